"""Object files on disk, each stored under a checksum of its inputs.

    read, write          one object file
    info, clear          all object files
    limit                sets how many bytes they may take
    directory, enabled   where they are stored; whether the cache is used

A file begins with a header: magic bytes, the key, the length and the checksum of the payload.  A
file that does not match its header is deleted, and compiled again.  Only the user can write to the
directory (cache/private_directory.py), since its files are executed; the checksum detects
accidental damage.

Files are written under another name and then renamed, so they are complete or absent.  When the
directory exceeds the limit, the least recently used files are deleted; a file's modification time
is that of its last use.  File system errors are never raised: code is then compiled without the
cache.

The state of wengert's sources: what a cached file depends on beside its own inputs.

library_sources    a checksum of paths, sizes and times of all source files, and of the versions of
                   Python, NumPy and SciPy
"""

from __future__ import annotations

import functools
import hashlib
import os
import struct
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
import scipy

from wengert._engine.core.lazy_import import STARTED
from wengert._engine.core.validation import byte_count
from wengert.errors import FOLDER, ArgumentError, at, user_line

from .private_directory import Folder

_HEADER = struct.Struct("<8s32sQ32s")  # magic and version, key, length, checksum
_MARK = b"wengert\x01"
_ENDING = ".object"
_MAX_BYTES = 512 << 20
_MAX_FILES = 1 << 14  # listing so many takes a tenth of a second
_WRITES_PER_CLEANUP = 64  # on average, as keys are random
_MAX_FILE_BYTES = 256 << 20
_UNFINISHED_SECONDS = 3600  # age at which unfinished files are deleted
_OFF = {"0", "off", "no", "false"}
_ON = {"", "1", "on", "yes", "true"}


@dataclass(frozen=True)
class DiskCacheInfo:
    """The state of the cache of object files.

    Attributes
    ----------
    directory : pathlib.Path
    enabled : bool
    files, bytes : int
        The number and total size of the object files of all processes.
    limit : int
        The maximum total size.
    hits, misses : int
        How often this process found an object file, and how often not.
    problem : str
        Why files cannot be read or written; empty if they can.
    """

    __module__ = "wengert.cache"

    directory: Path
    enabled: bool
    files: int
    bytes: int
    limit: int
    hits: int
    misses: int
    problem: str


class _CacheState:
    """Settings and counters of this process."""

    enabled: bool | None = None  # None: set by the environment
    limit = _MAX_BYTES
    hits = misses = 0
    written_bytes = 0  # since the last cleanup
    problem = ""


def directory() -> Path:
    """The directory of the object files.

    Returns
    -------
    pathlib.Path
        The value of the environment variable WENGERT_CACHE if it is a path; otherwise "wengert" in
        the user's cache directory: XDG_CACHE_HOME or ~/.cache, on macOS ~/Library/Caches, on
        Windows LOCALAPPDATA.  It may not exist yet.

    Examples
    --------
    >>> wg.cache.directory().is_absolute()
    True
    """
    chosen = os.environ.get("WENGERT_CACHE", "").strip()
    if chosen.lower() not in _OFF | _ON:
        return Path(os.path.abspath(os.path.expanduser(chosen)))
    if sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    elif os.name == "nt":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/AppData/Local")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(base):  # relative paths are to be ignored
            base = os.path.expanduser("~/.cache")
    if not os.path.isabs(base):  # a user without a home
        base = tempfile.gettempdir()
    return Path(base) / "wengert"


def enabled(on: bool | None = None) -> bool:
    """Whether object files are stored on disk; with an argument, set it for this process.

    Parameters
    ----------
    on : bool, optional
        Without it nothing changes.  The default is True, unless the environment variable
        WENGERT_CACHE is "0" or "off".

    Raises
    ------
    ArgumentError
        Not a bool.

    Examples
    --------
    >>> before = wg.cache.enabled()
    >>> wg.cache.enabled(False)
    False
    >>> wg.cache.enabled(before) == before
    True
    """
    if on is not None:
        if not isinstance(on, bool):
            raise ArgumentError(
                f"enabled({on!r}): give True to store object files on disk, or False not "
                f"to{at(user_line())}."
            )
        _CacheState.enabled = on
    if _CacheState.enabled is not None:
        return _CacheState.enabled
    return os.environ.get("WENGERT_CACHE", "").strip().lower() not in _OFF


def limit(bytes: SupportsIndex) -> None:
    """Set the maximum total size of the object files.

    Parameters
    ----------
    bytes : int
        The default is 512 MiB.  Files are deleted when this process writes others; until then the
        total may be larger.  There are also at most 16384 files.

    Raises
    ------
    ArgumentError
        It is not an integer, or less than 0.

    Examples
    --------
    >>> before = wg.cache.info().limit
    >>> wg.cache.limit(1 << 30)
    >>> wg.cache.limit(before)
    """
    number = byte_count(bytes, "limit")
    # Files are deleted at the next write.
    _CacheState.limit, _CacheState.written_bytes = number, number + 1


def info() -> DiskCacheInfo:
    """The state of the cache of object files.

    Examples
    --------
    >>> wg.cache.info().limit >> 20
    512
    """
    found = []
    try:
        with Folder(directory(), make=False) as folder:
            found = [file for file in folder.files() if file.name.endswith(_ENDING)]
        problem = _CacheState.problem
    except FileNotFoundError:
        problem = _CacheState.problem
    except OSError as error:
        problem = _described(error)
    size = sum(file.bytes for file in found)
    hits, misses = _CacheState.hits, _CacheState.misses
    return DiskCacheInfo(
        directory(), enabled(), len(found), size, _CacheState.limit, hits, misses, problem
    )


def clear() -> int:
    """Delete all object files, of all processes.

    Returns
    -------
    int
        The number of deleted files.  Code in memory is not affected.

    Examples
    --------
    >>> import os, tempfile
    >>> from unittest.mock import patch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with patch.dict(os.environ, WENGERT_CACHE=folder):
    ...         wg.cache.clear()
    0
    """
    count = 0
    try:
        with Folder(directory(), make=False) as folder:
            for file in folder.files():
                if file.name.endswith(_ENDING) or folder.is_unfinished(file.name):
                    count += folder.delete(file.name) and file.name.endswith(_ENDING)
    except OSError as error:
        _record_problem(error)
    return count


def read(key: bytes) -> bytes | None:
    """The object file with a key; None if it is absent, damaged, or not private."""
    name = key.hex() + _ENDING
    try:
        with Folder(directory(), make=False) as folder:
            content = folder.read(name, _HEADER.size + _MAX_FILE_BYTES)
            found = None if content is None else _payload(key, content)
            if found is None and content is not None:
                folder.delete(name)
            elif found is not None:
                folder.touch(name)
    except OSError as error:
        _record_problem(error)
        found = None
    if found is None:
        _CacheState.misses += 1
    else:
        _CacheState.hits += 1
    return found


def write(key: bytes, payload: bytes) -> None:
    """Store an object file, if possible."""
    if _HEADER.size + len(payload) > min(_CacheState.limit, _MAX_FILE_BYTES):
        return
    header = _HEADER.pack(_MARK, key, len(payload), hashlib.sha256(payload).digest())
    try:
        with Folder(directory(), make=True) as folder:
            folder.write(key.hex() + _ENDING, header + payload)
            _CacheState.problem = ""
            _CacheState.written_bytes += len(header) + len(payload)
            too_many = _CacheState.written_bytes > _CacheState.limit // 32
            if key[0] % _WRITES_PER_CLEANUP == 0 or too_many:
                _delete_old_files(folder)
                _CacheState.written_bytes = 0
    except OSError as error:
        _record_problem(error)


def _payload(key: bytes, content: bytes) -> bytes | None:
    """The payload of a file, if it is complete and belongs to the key."""
    if len(content) < _HEADER.size:
        return None
    magic, stored_key, length, checksum = _HEADER.unpack_from(content)
    payload = content[_HEADER.size :]
    if magic != _MARK or stored_key != key or length != len(payload):
        return None
    return payload if hashlib.sha256(payload).digest() == checksum else None


def _delete_old_files(folder: Folder) -> None:
    """Delete the least recently used files beyond the limits, and old unfinished files."""
    found = []
    for file in folder.files():
        if file.name.endswith(_ENDING):
            found.append(file)
        elif folder.is_unfinished(file.name) and file.used < time.time() - _UNFINISHED_SECONDS:
            folder.delete(file.name)
    size, count = sum(file.bytes for file in found), len(found)
    if size <= _CacheState.limit and count <= _MAX_FILES:
        return
    for file in sorted(found, key=lambda file: (file.used, file.name)):
        if (
            size <= _CacheState.limit - _CacheState.limit // 16
            and count <= _MAX_FILES - _MAX_FILES // 16
        ):
            break
        size, count = size - file.bytes, count - 1
        folder.delete(file.name)


def _record_problem(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        _CacheState.problem = _described(error)


def _described(error: OSError) -> str:
    return f"{error.strerror or error}: {error.filename or directory()}"


_EARLIER = 1_000_000_000  # nanoseconds by which sources must be older than the process


@functools.cache
def library_sources() -> bytes | None:
    """The state of wengert's sources and of its dependencies; None if it is not known.

    A checksum, which each key contains: the names and times themselves are 190 KB, and to hash them
    takes longer than to hash a program.
    """
    versions = sys.version, sys.implementation.cache_tag, np.__version__, scipy.__version__
    found: list[Any] = [repr(versions)]
    pending = [FOLDER]
    try:
        while pending:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.name.endswith((".py", ".ll", ".npy")):
                        state = entry.stat()
                        if max(state.st_ctime_ns, state.st_mtime_ns) > STARTED - _EARLIER:
                            return None  # it may have changed after this process read it
                        times = state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino
                        found.append(f"{entry.path} {times}")
                    elif entry.name != "__pycache__" and entry.is_dir():
                        pending.append(entry.path)
    except OSError:  # not installed as files
        return None
    if len(found) == 1:
        return None
    return hashlib.sha256("\n".join(sorted(found)).encode()).digest()
