"""A finished folder takes the place of another: at once where the system can, else by two renames that a stop between them is mended after."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from pathlib import Path

_EXCHANGE, _HERE = 2, -100  # RENAME_EXCHANGE of <linux/fs.h>, AT_FDCWD of <fcntl.h>


def put(built: Path, target: Path, mark: str = "") -> None:
    """`built`, which lies beside it, becomes `target`; what was there is removed. `mark` is a file that says of what is left of a
    removal that was stopped whose it is."""
    recover(target, mark)
    if not target.exists():
        built.rename(target)
    elif exchanged(built, target):
        remove(built, mark)
    else:
        aside = _aside(target)
        target.rename(aside)
        built.rename(target)
        remove(aside, mark)


def recover(target: Path, mark: str = "") -> None:
    """Mends what a stop between two renames left, and removes what one after them did."""
    aside = _aside(target)
    if aside.exists():
        if target.exists():
            remove(aside, mark)
        else:
            aside.rename(target)


def remove(folder: Path, mark: str = "") -> None:
    """Removes a folder; its mark goes last."""
    if mark and folder.exists():
        (folder / mark).touch()
        for entry in folder.iterdir():
            if entry.name != mark:
                shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _aside(target: Path) -> Path:
    return target.with_name(f".{target.name}-previous")


def exchanged(one: Path, other: Path) -> bool:
    """Swaps two folders in one step (renameat2 of Linux), so that there is no moment without either. False where it is not known."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code), str(other))
