"""Object files and tuned thresholds in the disk cache (_engine/cache).

    cached_object          the object file of LLVM IR, as from `execution_engine.object_of`
    read_object            the object file stored under a key
    key_of                 the key of LLVM IR
    compiler_fingerprint   a checksum of the other inputs of the compilation

The key is a checksum of the IR, the processor and its features, the versions of LLVM and llvmlite,
and the source that calls LLVM (ir/execution_engine.py).

The thresholds that `wengert tune` measured on this machine (tuning.py):

    load      uses those of the file, if it is valid and from this machine
    save      writes the file atomically
    remove    deletes the file
    machine   the properties of the machine and defaults for which a file is valid
    path      the path of the file

A file that is damaged, from another machine or for other defaults is ignored with a warning:
defaults change with the code that they are for.  Every value is checked against its range.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from wengert._engine.cache import disk_cache
from wengert._engine.cache.private_directory import Folder

from . import tuning
from .ir import execution_engine
from .ir.object_symbols import is_whole

# ---- object files --------------------------------------------------------------------------------


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


# ---- tuned thresholds ----------------------------------------------------------------------------


NAME = "thresholds.json"
_MAX_FILE_BYTES = 1 << 16
_FORMAT = 1


def path() -> Path:
    """The path of the file, which may not exist."""
    return disk_cache.directory() / NAME


def machine() -> dict[str, str]:
    """The processor, its number of cores, and a checksum of the defaults."""
    table = repr([(name, tuning.describe(name).default) for name in tuning.names()])
    return {
        "processor": execution_engine.cpu(),
        "cores": str(os.cpu_count()),
        "defaults": hashlib.sha256(table.encode()).hexdigest()[:16],
    }


def load() -> dict[str, int]:
    """Use the values of the file; returns them, or an empty dict if there is no valid file."""
    values = _read() if disk_cache.enabled() else {}
    tuning.install(values)
    return values


def save(values: Mapping[str, int]) -> Path:
    """Write the file atomically, and use its values.

    Raises
    ------
    ValueError
        A value is out of range.
    OSError
        The directory is not writable, or not private.
    """
    problems = [p for name, value in values.items() if (p := tuning.problem_of(name, value))]
    if problems:
        raise ValueError("; ".join(problems))
    content = {"format": _FORMAT, "machine": machine(), "thresholds": dict(values)}
    with Folder(disk_cache.directory(), make=True) as folder:
        folder.write(NAME, (json.dumps(content, indent=1) + "\n").encode())
    tuning.install(values)
    return path()


def remove() -> bool:
    """Delete the file and use the defaults; returns whether there was a file."""
    tuning.install({})
    try:
        with Folder(disk_cache.directory(), make=False) as folder:
            return folder.delete(NAME)
    except FileNotFoundError:
        return False


def _read() -> dict[str, int]:
    try:
        with Folder(disk_cache.directory(), make=False) as folder:
            content = folder.read(NAME, _MAX_FILE_BYTES)
    except FileNotFoundError:
        return {}
    except OSError as error:
        return _ignored(f"it cannot be read ({error.strerror})") if path().exists() else {}
    if content is None:
        return _ignored(f"it is larger than {_MAX_FILE_BYTES} bytes") if path().exists() else {}
    try:
        found: Any = json.loads(content)
        written_on, values = found["machine"], dict(found["thresholds"])
        known = found["format"] == _FORMAT
    except (ValueError, KeyError, TypeError):
        return _ignored("it is damaged")
    if not known or not isinstance(written_on, dict):
        return _ignored("another version of wengert wrote it")
    for name, here in machine().items():
        if written_on.get(name) != here:
            difference = "for other defaults" if name == "defaults" else "from another machine"
            return _ignored(f"it is {difference} ({name})")
    for name, value in values.items():
        problem = tuning.problem_of(name, value)
        if problem is not None:
            return _ignored(problem)
    return values


def _ignored(why: str) -> dict[str, int]:
    warnings.warn(
        f"{path()} is ignored: {why}. `wengert tune` writes a new one, `wengert tune --reset` "
        "deletes it.",
        UserWarning,
        stacklevel=2,
    )
    return {}
