"""Atomic files: written completely or not at all.

The data are written to a temporary file in the same folder, which is synced to disk and renamed to
the final name.  So after an interrupt, a full disk or a crash, there is the old file, or none.

write   writes a file atomically
opened  a file to read
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
    """Whether `x` is a path."""
    return isinstance(x, str | os.PathLike)


def write(file: Any, pieces: Iterable[Any], exclusive: bool = False) -> None:
    """Write pieces of bytes in order.

    Parameters
    ----------
    file : path or binary file object
    pieces : iterable of bytes-like
    exclusive : bool
        Whether to raise FileExistsError instead of replacing an existing file.

    Raises
    ------
    ArgumentError
        `file` is neither a path nor a binary file object, or is open in text mode.
    OSError
        The file cannot be written; an existing file is unchanged.
    """
    if is_path(file):
        _write_path(Path(os.path.realpath(os.fspath(file))), pieces, exclusive)
        return
    if not hasattr(file, "write"):
        raise ArgumentError(
            f"save: a {type(file).__name__} is not a file. Give a path or an open binary file: "
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
    with _with_path(path):
        if path.exists() and not path.is_file() and not path.is_dir():
            with open(path, "wb") as device:  # a pipe or device, which cannot be replaced
                for piece in pieces:
                    device.write(piece)
            return
        if path.is_dir():
            raise IsADirectoryError(21, "it is a folder; give the name of a file in it", str(path))
        temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.part")
        try:
            with open(temporary, "xb") as stream:
                for piece in pieces:
                    stream.write(piece)
                stream.flush()
                os.fsync(stream.fileno())
            if exclusive:
                _place_new(temporary, path)
            else:
                if path.exists():
                    temporary.chmod(stat.S_IMODE(path.stat().st_mode))
                os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(path.parent)


def _place_new(temporary: Path, path: Path) -> None:
    """Rename a file to `path` unless `path` exists."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links, where this is not atomic
        if path.exists():
            raise FileExistsError(17, "there is a file of that name", str(path)) from None
        os.replace(temporary, path)


@contextlib.contextmanager
def _with_path(path: Path) -> Iterator[None]:
    """Report system errors with the user's path instead of that of the temporary file."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise type(error)(error.errno, error.strerror, str(path)) from error


def _sync_folder(folder: Path) -> None:
    """Sync a folder to disk, where the system supports it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def opened(file: Any) -> Iterator[tuple[BinaryIO, int, str]]:
    """A file to read, the number of bytes to read, and its name for messages.

    Raises
    ------
    ArgumentError
        `file` is neither a path nor an open binary file.
    OSError
        The file cannot be opened.
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
            f"load: a {type(file).__name__} is not a file. Give a path or an open binary file"
            f"{at(user_line())}."
        )
    yield _read_all(file)


def _read_all(file: Any) -> tuple[BinaryIO, int, str]:
    data = file.read()
    if isinstance(data, str):
        raise ArgumentError(
            f"load: the file is open for text. Open it with mode 'rb'{at(user_line())}."
        )
    return io.BytesIO(data), len(data), str(getattr(file, "name", "the file"))
