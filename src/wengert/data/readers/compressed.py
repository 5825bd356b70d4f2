"""Reading of possibly compressed files, and errors for missing and damaged ones.

contents     the bytes of a file, decompressed if it is gzip
damaged      the error for a file that is not of the expected format
find         the first existing file of several
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Sequence
from pathlib import Path

from wengert.errors import FileError, at, user_line

_GZIP = b"\x1f\x8b"


def contents(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file, decompressed if they are in gzip format, whatever its name.

    Raises
    ------
    FileError
        The compressed data are damaged or truncated.
    OSError
        The file cannot be read.
    """
    data = Path(path).read_bytes()
    if not data.startswith(_GZIP):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(path, f"it is compressed and cannot be decompressed ({error})") from error


def damaged(path: str | os.PathLike[str], what: str) -> FileError:
    """The error for a file that is not of the expected format."""
    return FileError(
        f"{os.fspath(path)}: {what}. Download it again, or pass another file{at(user_line())}."
    )


def find(root: str | os.PathLike[str], names: Sequence[str], what: str) -> Path:
    """The first existing file of several in a folder or its subfolders.

    Raises
    ------
    FileError
        None of them exists.
    """
    top = Path(root)
    for folder in (top, *sorted(p for p in top.glob("*") if p.is_dir())):
        for name in names:
            if (folder / name).is_file():
                return folder / name
    raise FileError(
        f"{top} has no file {' or '.join(names)} of {what}. Place it there: nothing is downloaded"
        f"{at(user_line())}."
    )
