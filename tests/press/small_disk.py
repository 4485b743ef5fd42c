"""A disk with room for one build and not for two: `unshare -rm python -m tests.press.small_disk FOLDER` mounts it there, where nobody else sees it.

Publishes until the disk is full, and after it was made larger; says `held` where what was published stayed whole, and ends with 77 where this
system lets nobody mount.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

NOT_ALLOWED = 77
ONE, TWO = "1000k", "8m"  # two hundred small files take a page of memory each: half of them do not fit beside


def mounted(folder: Path, *options: str) -> bool:
    command = ["mount", "-t", "tmpfs", *options, "tmpfs", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def main(folder: Path) -> int:
    from tests.press.test_killed import Publishing  # which names this module

    publishing, disk = Publishing(folder), folder / "disk"
    disk.mkdir()
    if not mounted(disk, "-o", f"size={ONE}"):
        return NOT_ALLOWED
    publishing.output = disk / "build"
    publishing.whole("1")
    full = publishing.start("2")
    _said, problem = full.communicate(timeout=60)
    assert full.returncode != 0 and b"No space left on device" in problem, problem.decode()
    publishing.hold({"1"})
    assert sorted(path.name for path in disk.iterdir()) == [".build.lock", "build"]
    assert mounted(disk, "-o", f"remount,size={TWO}")
    publishing.whole("2")
    publishing.hold({"2"})
    print("held")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
