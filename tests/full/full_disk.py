"""The real publish of a few models on disks that run full at another moment each: `unshare -rm python -m tests.full.full_disk FOLDER` mounts
them there, where nobody else sees it, and says `held` where nothing that was published was lost; ends with 77 where nobody may mount."""

from __future__ import annotations

import hashlib
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.press import manifest
from tests.press.small_disk import NOT_ALLOWED, mounted

SIZES, SITES = 12, 4  # so many disks that are too small for all, and for a site alone
ROOM = "4g"
PARTS = ("tables", "site")


def sums(folder: Path) -> dict[str, str]:
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


@contextmanager
def most_used(disk: Path) -> Iterator[list[int]]:
    """The bytes that are used at most, and before."""
    found, is_done = [shutil.disk_usage(disk).used] * 2, threading.Event()

    def look() -> None:
        while not is_done.wait(0.02):
            found[0] = max(found[0], shutil.disk_usage(disk).used)

    watch = threading.Thread(target=look)
    watch.start()
    try:
        yield found
    finally:
        is_done.set()
        watch.join()


def main(folder: Path) -> int:
    from tests.full.test_killed_publish import Publishing  # which reads the whole book

    publishing, disk = Publishing(folder), folder / "disk"
    disk.mkdir()
    if not mounted(disk, "-o", f"size={ROOM}"):
        return NOT_ALLOWED
    publishing.output = output = disk / "build"
    pages = publishing.root / "mkdocs.yml"
    text = pages.read_text(encoding="utf-8")
    pages.unlink()  # of a link to the true one
    pages.write_text(text, encoding="utf-8")

    def used() -> int:
        return shutil.disk_usage(disk).used

    def tried(content: str, more_bytes: int) -> bool:
        """Publishes on a disk with so much room; whether that was enough."""
        before = {part: sums(output / part) for part in PARTS}
        assert mounted(disk, "-o", f"remount,size={used() + more_bytes}")
        process = publishing.start(content)
        said, problem = (text.decode() for text in process.communicate())
        assert mounted(disk, "-o", f"remount,size={ROOM}")
        print(content, f"{more_bytes:,}", process.returncode, problem.strip()[:300], file=sys.stderr, flush=True)
        publishing.hold()
        assert sorted(path.name for path in disk.iterdir()) == [".build.lock", "build"]
        if process.returncode == 0:
            return True
        assert problem.count("\n") == 1 and problem.startswith(f"error: no space left on the disk of {output}; ")
        changed = [part for part in PARTS if sums(output / part) != before[part]]
        assert changed == (["tables"] if "The tables are whole and can be asked" in said else []), (changed, said)
        return False

    publishing.whole("0")
    with most_used(disk) as found:
        publishing.whole("1")
    needed = found[0] - found[1]
    enough = [tried(f"all {number}", needed * number // SIZES) for number in range(SIZES)]
    assert not any(enough[: SIZES // 2]), enough
    publishing.whole("2")

    def site_alone(word: str) -> None:
        pages.write_text(f"{text}# {word}\n", encoding="utf-8")

    site_alone("0")
    with most_used(disk) as found:
        publishing.whole("2")
    needed = found[0] - found[1]
    for number in range(SITES):
        site_alone(f"{number} of less")
        enough.append(tried("2", needed * number // SITES))
    assert not any(enough[-SITES:-1]), enough

    assert mounted(disk, "-o", "remount,ro")
    process = publishing.start("read-only")
    _said, problem = process.communicate()
    assert process.returncode and problem.count(b"\n") == 1 and str(disk).encode() in problem, problem.decode()
    publishing.hold()
    assert mounted(disk, "-o", "remount,rw")

    publishing.whole("last")
    publishing.output = disk / "fresh"
    publishing.whole("last")
    assert [manifest.damage(output / part) for part in PARTS] == [[], []]
    assert {part: sums(output / part) for part in PARTS} == {part: sums(disk / "fresh" / part) for part in PARTS}
    print("held")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
