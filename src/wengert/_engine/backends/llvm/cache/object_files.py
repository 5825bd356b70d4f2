"""The object file of a module, from the disk if it was compiled before.

    read_object      the object file under a key
    cached_object    text -> the bytes of an object file, as `execution_engine.object_of` makes them
    key_of           the key of a text
    circumstances    everything else that an object file depends on

The key has the text, the processor and its features, the versions of LLVM and llvmlite, and the
source that calls LLVM (ir/execution_engine.py).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from ..ir import execution_engine
from ..ir.object_symbols import is_whole
from . import disk_cache


def read_object(key: bytes, names: Iterable[str] = ()) -> bytes | None:
    """The object file that is kept under a key and defines these names; None if none is.

    A checksum says that a file is what somebody wrote, not that it is an object file, which LLVM
    takes for granted.
    """
    found = disk_cache.read(key)
    return found if found is not None and is_whole(found, names) else None


def cached_object(text: str, quick: bool = False) -> bytes:
    """The object file of a module: kept on disk, or compiled and then kept.

    Parameters
    ----------
    text : str
        LLVM's text, with its heading.
    quick : bool
        As `engine.object_of` has it.

    Returns
    -------
    bytes
        What `engine.Code` takes.

    Raises
    ------
    RuntimeError
        LLVM does not understand the text: a fault of wengert's own.

    Notes
    -----
    A hit on 100 KB takes about 0.2 ms, most of it for the two checksums.
    """
    if not disk_cache.enabled():
        return execution_engine.object_of(text, quick)
    key = key_of(text, quick)
    kept = read_object(key, _names(text))
    if kept is None:
        kept = execution_engine.object_of(text, quick)
        disk_cache.write(key, kept)
    return kept


def _names(text: str) -> list[str]:
    """The functions that a module defines for others."""
    firsts = [part.partition("(")[0] for part in text.split("\ndefine ")[1:]]
    return [x.partition("@")[2] for x in firsts if not x.startswith("internal ")]


def key_of(text: str, quick: bool = False) -> bytes:
    """What the object file of a module is kept under: 32 bytes."""
    made = hashlib.sha256(circumstances() + (b"quick" if quick else b""))
    made.update(text.encode())
    return made.digest()


@functools.cache
def circumstances() -> bytes:
    """All that an object file depends on beside its text."""
    try:
        engine_text = Path(execution_engine.__file__).read_bytes()
    except OSError:  # not in a file of its own: versions have to do
        engine_text = b""
    version = ".".join(map(str, llvm.llvm_version_info))
    parts = [
        version,
        llvmlite.__version__,
        execution_engine.cpu(),
        execution_engine.features(),
        execution_engine.heading(),
    ]
    made = hashlib.sha256(b"\0".join([*(part.encode() for part in parts), engine_text]))
    return made.digest()
