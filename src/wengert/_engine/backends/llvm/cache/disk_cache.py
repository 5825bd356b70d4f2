"""Object files on disk, each under the checksum of everything that it was made from.

    read, write          one object file
    info, clear          all of them
    limit                how many bytes they may take
    directory, enabled   where they are; whether they are used

A file begins with a header: magic bytes, the key, the length and the checksum of the payload.  A
file that does not match its header is deleted, and compiled again.  Only the user can write to the
directory (cache/private_directory.py), since its files are executed; the checksum is against
accidents.

Files are written under another name and then renamed, so they are complete or absent.  When the
directory exceeds the limit, the least recently used files are deleted; a file's modification time
is that of its last use.  Nothing here raises because of a disk: then code is compiled without it.
"""

from __future__ import annotations

import hashlib
import os
import struct
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import SupportsIndex

from wengert._engine.core.validation import byte_count
from wengert.errors import ArgumentError, at, user_line

from .private_directory import Folder

_HEADER = struct.Struct("<8s32sQ32s")  # mark and version, key, length, checksum
_MARK = b"wengert\x01"
_ENDING = ".object"
_MAX_BYTES = 512 << 20
_MAX_FILES = 1 << 14  # so that the folder is measured in a tenth of a second
_WRITES_PER_SWEEP = 64  # on average: writes with certain keys, which are random
_MAX_FILE_BYTES = 256 << 20  # of one file: a header that says more is wrong
_UNFINISHED_SECONDS = 3600  # seconds after which a file that was never finished is deleted
_OFF = {"0", "off", "no", "false"}
_ON = {"", "1", "on", "yes", "true"}


@dataclass(frozen=True)
class DiskCacheInfo:
    """What is known of the object files on disk.

    Attributes
    ----------
    directory : pathlib.Path
    enabled : bool
    files, bytes : int
        How many object files there are, for all processes together, and how large they are.
    limit : int
        How many bytes they may take.
    hits, misses : int
        How often this process found what it looked for, and how often not.
    problem : str
        Why files cannot be read or written, if so; else empty.
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
    """What this process has set and counted."""

    enabled: bool | None = None  # as the environment says
    limit = _MAX_BYTES
    hits = misses = 0
    unswept = 0  # bytes written since the folder was last measured
    problem = ""


def directory() -> Path:
    """The folder of the object files.

    Returns
    -------
    pathlib.Path
        What the environment variable WENGERT_CACHE names if it is a path; or else "wengert" in the
        user's folder for caches: XDG_CACHE_HOME or ~/.cache, on macOS ~/Library/Caches, on Windows
        LOCALAPPDATA.  It need not exist yet.

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
        if not os.path.isabs(base):  # as its specification asks
            base = os.path.expanduser("~/.cache")
    if not os.path.isabs(base):  # a user without a home
        base = tempfile.gettempdir()
    return Path(base) / "wengert"


def enabled(on: bool | None = None) -> bool:
    """Whether object files are kept on disk; with an argument, decide it for this process.

    Parameters
    ----------
    on : bool, optional
        Without it nothing changes.  At the beginning they are kept, unless the environment
        variable WENGERT_CACHE is "0" or "off".

    Raises
    ------
    ArgumentError
        It is neither True nor False.

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
                f"enabled({on!r}) is no decision: give True to keep object files on disk, "
                f"or False{at(user_line())}."
            )
        _CacheState.enabled = on
    if _CacheState.enabled is not None:
        return _CacheState.enabled
    return os.environ.get("WENGERT_CACHE", "").strip().lower() not in _OFF


def limit(bytes: SupportsIndex) -> None:
    """Set how many bytes the object files may take.

    Parameters
    ----------
    bytes : int
        512 MiB at the beginning.  It holds for what this process writes: then files are deleted,
        and until then the folder may be somewhat larger.  There are at most 16384 files too.

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
    _CacheState.limit, _CacheState.unswept = number, number + 1  # measured at the next write


def info() -> DiskCacheInfo:
    """What is known of the object files on disk.

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
        How many were deleted.  Code that is in memory stays.

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
        _note(error)
    return count


def read(key: bytes) -> bytes | None:
    """The object file of a key, or None: absent, damaged, or not to be trusted."""
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
        _note(error)
        found = None
    if found is None:
        _CacheState.misses += 1
    else:
        _CacheState.hits += 1
    return found


def write(key: bytes, payload: bytes) -> None:
    """Keep an object file, if the disk lets us."""
    if _HEADER.size + len(payload) > min(_CacheState.limit, _MAX_FILE_BYTES):
        return
    header = _HEADER.pack(_MARK, key, len(payload), hashlib.sha256(payload).digest())
    try:
        with Folder(directory(), make=True) as folder:
            folder.write(key.hex() + _ENDING, header + payload)
            _CacheState.problem = ""
            written = len(header) + len(payload)
            _CacheState.unswept += written
            if key[0] % _WRITES_PER_SWEEP == 0 or _CacheState.unswept > _CacheState.limit // 32:
                _sweep(folder)
                _CacheState.unswept = 0
    except OSError as error:
        _note(error)


def _payload(key: bytes, content: bytes) -> bytes | None:
    """What a file holds, if it is whole and belongs to the key."""
    if len(content) < _HEADER.size:
        return None
    mark, of, length, checksum = _HEADER.unpack_from(content)
    payload = content[_HEADER.size :]
    if mark != _MARK or of != key or length != len(payload):
        return None
    return payload if hashlib.sha256(payload).digest() == checksum else None


def _sweep(folder: Folder) -> None:
    """Delete what was used longest ago until the rest fits; and what was never finished."""
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


def _note(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        _CacheState.problem = _described(error)


def _described(error: OSError) -> str:
    return f"{error.strerror or error}: {error.filename or directory()}"
