"""The thresholds that `wengert tune` measured on this machine, in the cache directory.

    load      uses those of the file, if it is valid and from this machine
    save      writes the file atomically
    remove    deletes the file
    machine   the properties of the machine and defaults for which a file is valid
    path      the path of the file

A file that is damaged, from another machine or for other defaults is ignored with a warning:
defaults change with the code that they are for.  Every value is checked against its range.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wengert._engine.cache import disk_cache
from wengert._engine.cache.private_directory import Folder

from .. import tuning
from ..ir import execution_engine

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
