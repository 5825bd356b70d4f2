"""A directory that only its owner can write to, with atomic writes.

    Folder    an open directory: read, write, delete, touch, files
    File      one of its files: name, bytes, time of its last use

Machine code is loaded from here.  So the directory, and each file that is read, must be owned by
the user and writable by nobody else.  Ownership is checked on open handles, and files are opened
relative to the directory's handle, so renaming parent directories has no effect.  On Windows, which
lacks these calls, the directory is in the user's profile, which the system protects.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

_HAS_DIR_FDS = (
    {os.open, os.unlink, os.rename, os.utime} <= os.supports_dir_fd
    and os.scandir in os.supports_fd
    and hasattr(os, "O_DIRECTORY")
    and hasattr(os, "geteuid")
)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_CLOSED = getattr(os, "O_CLOEXEC", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # do not block if the file is a pipe
_UNFINISHED = ".unfinished"


class File(NamedTuple):
    """One file of a directory."""

    name: str
    bytes: int
    used: float


class Folder:
    """A directory, open for the duration of a `with` statement.

    Parameters
    ----------
    make : bool
        Create it, with its parents, if it does not exist.

    Raises
    ------
    OSError
        On entering: it does not exist, is not a directory, or is not private to the user.
    """

    def __init__(self, path: Path, make: bool) -> None:
        self._path, self._make = path, make
        self._handle: int | None = None

    def __enter__(self) -> Folder:
        if self._make:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.mkdir(self._path, 0o700)
        if _HAS_DIR_FDS:
            flags = os.O_RDONLY | os.O_DIRECTORY | _NO_LINK | _CLOSED
            self._handle = os.open(self._path, flags)
            try:
                _check_private(os.fstat(self._handle), self._path)
            except OSError:
                os.close(self._handle)
                raise
        elif not self._path.is_dir():
            raise FileNotFoundError(errno.ENOENT, "no such folder", str(self._path))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def read(self, name: str, max_bytes: int) -> bytes | None:
        """The content of a file; None if it does not exist or is too large."""
        try:
            handle = self._open(name, os.O_RDONLY | _NO_WAIT)
        except FileNotFoundError:
            return None
        with os.fdopen(handle, "rb", buffering=0) as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "not a file", str(self._path / name))
            if _HAS_DIR_FDS:
                _check_private(status, self._path / name)
            return file.readall() if status.st_size <= max_bytes else None

    def write(self, name: str, content: bytes) -> None:
        """Write a file atomically; an existing one is replaced."""
        unfinished = f"{secrets.token_hex(16)}{_UNFINISHED}"
        handle = self._open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            with os.fdopen(handle, "wb", buffering=0) as file:
                rest = memoryview(content)
                while rest:
                    rest = rest[file.write(rest) :]
            source, target = self._where(unfinished), self._where(name)
            os.replace(source, target, src_dir_fd=self._handle, dst_dir_fd=self._handle)
        except BaseException:
            self.delete(unfinished)
            raise

    def delete(self, name: str) -> bool:
        """Delete a file; returns whether it existed and could be deleted."""
        try:
            os.unlink(self._where(name), dir_fd=self._handle)
        except OSError:  # deleted by another process, or open on Windows
            return False
        return True

    def touch(self, name: str) -> None:
        """Set the time of the last use of a file to now."""
        with contextlib.suppress(OSError):
            os.utime(self._where(name), dir_fd=self._handle)

    def files(self) -> Iterator[File]:
        """The regular files in the directory."""
        with os.scandir(self._path if self._handle is None else self._handle) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # it may have been deleted
                    if entry.is_file(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        yield File(entry.name, status.st_size, status.st_mtime)

    @staticmethod
    def is_unfinished(name: str) -> bool:
        """Whether a file is being written, or was left behind by an interrupted writer."""
        return name.endswith(_UNFINISHED)

    def _open(self, name: str, flags: int) -> int:
        flags |= _NO_LINK | _BINARY | _CLOSED
        return os.open(self._where(name), flags, 0o600, dir_fd=self._handle)

    def _where(self, name: str) -> str:
        return name if self._handle is not None else str(self._path / name)


def _check_private(status: os.stat_result, path: Path) -> None:
    """Raise unless the user owns the file and nobody else may write to it."""
    if status.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "it belongs to another user", str(path))
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(errno.EPERM, "others may write to it", str(path))
