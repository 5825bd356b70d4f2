"""Atomic files: written completely or not at all.

A file is written beside its place under another name, forced to the disk, and then moved: an
interrupt, a full disk or a crash leaves the old file, or none.
"""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from wengert.errors import ArgumentError, at, user_line


def is_path(x: Any) -> bool:
    """Whether something names a file."""
    return isinstance(x, str | os.PathLike)


def write(file: Any, pieces: Iterable[Any], exclusive: bool = False) -> None:
    """Write pieces of bytes one after the other.

    Parameters
    ----------
    file : path or binary file object
    pieces : iterable of bytes-like
    exclusive : bool
        Refuse to replace a file that exists.

    Raises
    ------
    ArgumentError
        It is neither, or a file of text.
    OSError
        It cannot be written; what was there before still is.
    """
    if is_path(file):
        _write_path(Path(os.path.realpath(os.fspath(file))), pieces, exclusive)
        return
    if not hasattr(file, "write"):
        raise ArgumentError(
            f"save: {type(file).__name__} is not a file. Give a path or an open binary file: "
            f"save(what, file){at(user_line())}."
        )
    for piece in pieces:
        try:
            count = file.write(piece)
        except TypeError as error:
            raise ArgumentError(
                f"save: the file is open for text. Open it with mode 'wb'{at(user_line())}."
            ) from error
        if count is not None and count != memoryview(piece).nbytes:
            raise OSError(f"save: only {count} of {memoryview(piece).nbytes} bytes were written")


def _write_path(path: Path, pieces: Iterable[Any], exclusive: bool) -> None:
    with _named(path):
        if path.exists() and not path.is_file() and not path.is_dir():
            with open(path, "wb") as special:  # a pipe or device, which nothing can be moved over
                for piece in pieces:
                    special.write(piece)
            return
        if path.is_dir():
            raise IsADirectoryError(21, "it is a folder; give the name of a file in it", str(path))
        beside = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.part")
        try:
            with open(beside, "xb") as stream:
                for piece in pieces:
                    stream.write(piece)
                stream.flush()
                os.fsync(stream.fileno())
            if exclusive:
                _place_new(beside, path)
            else:
                if path.exists():
                    beside.chmod(stat.S_IMODE(path.stat().st_mode))
                os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)
        _force(path.parent)


def _place_new(beside: Path, path: Path) -> None:
    """Give a file its name unless there is one of that name."""
    try:
        os.link(beside, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: nothing better than to look first
        if path.exists():
            raise FileExistsError(17, "there is a file of that name", str(path)) from None
        os.replace(beside, path)


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Errors of the system, of the file that the user named and not of the one beside it."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise type(error)(error.errno, error.strerror, str(path)) from error


def _force(folder: Path) -> None:
    """Make sure that the new name is on the disk, where the system can do that for folders."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def opened(file: Any) -> Iterator[tuple[BinaryIO, int, str]]:
    """A file to read, its size from here on, and what to call it in messages.

    Raises
    ------
    ArgumentError
        It is neither a path nor an open binary file.
    OSError
        It cannot be opened.
    """
    if is_path(file):
        with open(file, "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                data = stream.read()
                yield io.BytesIO(data), len(data), os.fspath(file)
                return
            yield stream, os.fstat(stream.fileno()).st_size, os.fspath(file)
        return
    if not hasattr(file, "read"):
        raise ArgumentError(
            f"load: {type(file).__name__} is not a file. Give a path or an open binary file"
            f"{at(user_line())}."
        )
    yield _whole(file)


def _whole(file: Any) -> tuple[BinaryIO, int, str]:
    data = file.read()
    if isinstance(data, str):
        raise ArgumentError(
            f"load: the file is open for text. Open it with mode 'rb'{at(user_line())}."
        )
    return io.BytesIO(data), len(data), str(getattr(file, "name", "the file"))
