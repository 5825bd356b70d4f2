"""Snapshots: a folder of dated files, of which the newest valid one is restored.

    snapshot-000007-2026-11-21T10-20-30Z.wengert

The number determines which one is newest, because clocks may be set back; the date is informative.
"""

from __future__ import annotations

import re
import warnings
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

from wengert._engine.core.fork_safe_locks import lock
from wengert.errors import ArgumentError, FileError, RegistryError, at, user_level, user_line

from .save_load import load, write_file

_NAME = re.compile(r"^snapshot-(\d{6,18})-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ\.wengert$")
_lock = lock()


class DamagedWarning(UserWarning):
    """A snapshot could not be read, and an older one is used."""

    __module__ = "wengert.keep"


def snapshot(
    folder: str | PathLike[str],
    what: int | dict[Any, Any],
    *,
    keep: int | None = 5,
    where: str | None = "name",
) -> Path:
    """Save to a new file in a folder, named by number and date, and remove old snapshots.

    Parameters
    ----------
    folder : path
        Created if it does not exist.
    what, where
        As for `wengert.save`.
    keep : int or None, default 5
        The number of snapshots to keep, including this one; None for all.

    Returns
    -------
    Path
        The new file.

    Raises
    ------
    ArgumentError
        `keep` is less than one.
    Errors of `wengert.save`
        No snapshot is removed in this case.

    Examples
    --------
    >>> import tempfile, numpy as np, wengert as wg
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for epoch in range(7):
    ...         _ = wg.keep.snapshot(folder, {"epoch": epoch}, keep=3)
    ...     len(wg.keep.snapshots(folder)), wg.keep.latest(folder)
    (3, {'epoch': 6})
    """
    if keep is not None and (type(keep) is not int or keep < 1):
        raise ArgumentError(
            f"snapshot: keep={keep!r} must be an integer of at least 1, or None{at(user_line())}."
        )
    directory = Path(folder)
    directory.mkdir(parents=True, exist_ok=True)
    with _lock:
        while True:
            existing = snapshots(directory)
            number = _number(existing[-1]) + 1 if existing else 1
            date = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
            path = directory / f"snapshot-{number:06d}-{date}.wengert"
            try:
                write_file(what, path, where, exclusive=True)
                break
            except FileExistsError:  # another process took the number
                continue
        if keep is not None:
            for outdated in snapshots(directory)[:-keep]:
                outdated.unlink(missing_ok=True)
    return path


def snapshots(folder: str | PathLike[str]) -> list[Path]:
    """The snapshots in a folder, oldest first."""
    return sorted((p for p in Path(folder).iterdir() if _NAME.match(p.name)), key=_number)


def latest(folder: str | PathLike[str], **options: Any) -> Any:
    """Load the newest valid snapshot.

    Parameters
    ----------
    folder : path
    **options
        As for `wengert.load`.

    Returns
    -------
    object
        The saved object.

    Raises
    ------
    FileError
        There is no snapshot, or all are damaged.
    RegistryError
        An operation is not registered.

    Warns
    -----
    DamagedWarning
        A newer snapshot is damaged; the message names it.
    """
    candidates = snapshots(folder)
    for path in reversed(candidates):
        try:
            return load(path, **options)
        except RegistryError:
            raise
        except FileError as error:
            warnings.warn(
                f"a snapshot cannot be read, trying an older one: {error}",
                DamagedWarning,
                stacklevel=user_level(),
            )
    raise FileError(
        f"none of the {len(candidates)} snapshots in {Path(folder)} can be read{at(user_line())}."
    )


def _number(path: Path) -> int:
    match = _NAME.match(path.name)
    return int(match[1]) if match else 0
