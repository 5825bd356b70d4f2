"""Reading files that may be compressed, truncated or of another format.

contents     all bytes of a file, uncompressed if it is gzip's
damaged      the error for a file that is not what it should be
found        the first of some files that is there
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
    """All bytes of a file, uncompressed if it is gzip's, whatever its name.

    Raises
    ------
    FileError
        Compressed, and damaged or truncated.
    OSError
        It cannot be read.
    """
    data = Path(path).read_bytes()
    if not data.startswith(_GZIP):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(path, f"it is compressed, and cannot be uncompressed ({error})") from error


def damaged(path: str | os.PathLike[str], what: str) -> FileError:
    """The error for a file that is not what it should be."""
    return FileError(
        f"{os.fspath(path)}: {what}. Fetch it again, or name another file{at(user_line())}."
    )


def found(root: str | os.PathLike[str], names: Sequence[str], what: str) -> Path:
    """The first of some files that is in a folder, or in one of its folders.

    Raises
    ------
    FileError
        None is.
    """
    place = Path(root)
    for folder in (place, *sorted(p for p in place.glob("*") if p.is_dir())):
        for name in names:
            if (folder / name).is_file():
                return folder / name
    raise FileError(
        f"{place} has no file {' or '.join(names)}, which {what} consists of. Put it there: "
        f"nothing is downloaded{at(user_line())}."
    )
