"""The object file of a module, from the disk cache if it was compiled before.

    cached_object          the object file of LLVM IR, as from `execution_engine.object_of`
    read_object            the object file stored under a key
    key_of                 the key of LLVM IR
    compiler_fingerprint   a checksum of the other inputs of the compilation

The key is a checksum of the IR, the processor and its features, the versions of LLVM and llvmlite,
and the source that calls LLVM (ir/execution_engine.py).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from wengert._engine.cache import disk_cache

from ..ir import execution_engine
from ..ir.object_symbols import is_whole


def read_object(key: bytes, names: Iterable[str] = ()) -> bytes | None:
    """The object file stored under a key, if it defines these names; None if there is none.

    The checksum only shows that a file is unchanged, not that it is an object file, which LLVM does
    not check.
    """
    found = disk_cache.read(key)
    return found if found is not None and is_whole(found, names) else None


def cached_object(text: str, quick: bool = False) -> bytes:
    """The object file of a module, from the cache or compiled and then cached.

    Parameters
    ----------
    text : str
        LLVM IR, with its heading.
    quick : bool
        See `execution_engine.object_of`.

    Returns
    -------
    bytes
        To be passed to `execution_engine.Code`.

    Raises
    ------
    RuntimeError
        LLVM rejects the text: a bug in wengert.

    Notes
    -----
    A hit on 100 KB takes about 0.2 ms, most of it for the two checksums.
    """
    if not disk_cache.enabled():
        return execution_engine.object_of(text, quick)
    key = key_of(text, quick)
    image = read_object(key, _names(text))
    if image is None:
        image = execution_engine.object_of(text, quick)
        disk_cache.write(key, image)
    return image


def _names(text: str) -> list[str]:
    """The functions that a module exports."""
    firsts = [part.partition("(")[0] for part in text.split("\ndefine ")[1:]]
    return [x.partition("@")[2] for x in firsts if not x.startswith("internal ")]


def key_of(text: str, quick: bool = False) -> bytes:
    """The key of the object file of a module: 32 bytes."""
    checksum = hashlib.sha256(compiler_fingerprint() + (b"quick" if quick else b""))
    checksum.update(text.encode())
    return checksum.digest()


@functools.cache
def compiler_fingerprint() -> bytes:
    """A checksum of everything that an object file depends on, except the IR."""
    try:
        engine_text = Path(execution_engine.__file__).read_bytes()
    except OSError:  # no source file: rely on the versions
        engine_text = b""
    version = ".".join(map(str, llvm.llvm_version_info))
    parts = [
        version,
        llvmlite.__version__,
        execution_engine.cpu(),
        execution_engine.features(),
        execution_engine.heading(),
    ]
    checksum = hashlib.sha256(b"\0".join([*(part.encode() for part in parts), engine_text]))
    return checksum.digest()
