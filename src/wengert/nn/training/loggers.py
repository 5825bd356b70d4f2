"""Loggers: callbacks that write the figures of a training run to files, TensorBoard's too.

    JSONLines      a line of JSON for each step and epoch
    TensorBoard    event files in a folder
    log_of         the loggers for given paths
    record         bytes framed as a record: length, checksum, data, checksum
    scalars        an event with numbers by name
    started        an event that invalidates earlier events from a step on
    version        the first event of a file
    crc32c         the checksum (Castagnoli's polynomial)

Each line is written with one unbuffered write, so that a log can be read while it is written, and
after the program was killed.  When training is resumed, lines after the checkpoint are removed, so
that each step is logged once.

A file is a sequence of records.  A record has a length of 8 bytes, the masked checksum of these,
the data, and the masked checksum of the data, all little-endian (TensorFlow's record format).  The
data are a protocol buffer message ``Event``: wall_time = 1, step = 2, file_version = 3, summary =
5, session_log = 7; a summary has values = 1, which have tag = 1 and simple_value = 2.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, at, user_line

from .trainer import Callback, Run

_POLYNOMIAL = 0x82F63B78  # Castagnoli's, bit-reversed


def _table() -> list[int]:
    made = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
        made.append(byte)
    return made


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """The checksum of data (G. Castagnoli et al., IEEE Trans. Commun. 41, 1993; RFC 3720, B.4)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data: bytes) -> bytes:
    """Data framed as a record."""
    length = struct.pack("<Q", len(data))
    return length + _masked(length) + data + _masked(data)


def _varint(number: int) -> bytes:
    number &= 2**64 - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _field(number: int, data: bytes) -> bytes:
    """A length-delimited field: a string or a nested message."""
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _event(time: float, step: int, rest: bytes) -> bytes:
    return b"\x09" + struct.pack("<d", time) + b"\x10" + _varint(step) + rest


def version(time: float) -> bytes:
    """The first event of a file."""
    return _event(time, 0, _field(3, b"brain.Event:2"))


def started(time: float, step: int) -> bytes:
    """An event that invalidates earlier events of this and later steps."""
    return _event(time, step, _field(7, b"\x08\x01"))


def scalars(time: float, step: int, figures: Mapping[str, float]) -> bytes:
    """An event with numbers by name."""
    values = b"".join(
        _field(1, _field(1, name.encode()) + b"\x15" + struct.pack("<f", value))
        for name, value in figures.items()
    )
    return _event(time, step, _field(5, values))


def _every(every: int, what: str) -> int:
    if every < 1:
        raise ArgumentError(f"{what}: every must be at least 1, got {every}{at(user_line())}.")
    return int(every)


class JSONLines(Callback):
    """A line of JSON for each step and each epoch.

    Parameters
    ----------
    path : path
        Lines are appended.
    every : int, default 1
        Log every `every`-th step.

    Notes
    -----
    A line has ``"event"`` ("begin", "step", "epoch", "end"), ``"time"`` (seconds since 1970),
    ``"epoch"``, ``"step"``, and figures by name; NaN and infinities are null.
    """

    only_first = True

    def __init__(self, path: str | os.PathLike[str], every: int = 1) -> None:
        self.path, self.every = Path(path), _every(every, "JSONLines")
        self._file: Any = None

    def on_train_begin(self, run: Run) -> None:
        """Open the file; remove lines after the checkpoint."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if run.is_resumed and self.path.exists():
            self._cut(run.step)
        self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115 - closed at the end
        self._write("begin", run, {"resumed": run.is_resumed, "epochs": run.epochs})

    def _cut(self, step: int) -> None:
        """Remove lines of later steps, and an incomplete line."""
        lines = []
        for line in self.path.read_bytes().splitlines(keepends=True):
            with contextlib.suppress(ValueError, TypeError, AttributeError):
                if json.loads(line).get("step", 0) <= step and line.endswith(b"\n"):
                    lines.append(line)
        temporary = self.path.with_name(f".{self.path.name}.part")
        temporary.write_bytes(b"".join(lines))
        os.replace(temporary, self.path)

    def on_step_end(self, run: Run) -> None:
        """Write a line."""
        if run.step % self.every == 0:
            self._write("step", run, run.figures)

    def on_epoch_end(self, run: Run) -> None:
        """Write a line."""
        self._write("epoch", run, run.figures)

    def on_train_end(self, run: Run) -> None:
        """Write the last line, and close the file."""
        if self._file is not None:
            self._write("end", run, {"stopped": run.history.stopped})
            self._file.close()
            self._file = None

    def _write(self, event: str, run: Run, figures: dict[str, Any]) -> None:
        head = {"event": event, "time": time.time(), "epoch": run.epoch, "step": run.step}
        line = {**head, **{name: _plain(value) for name, value in figures.items()}}
        self._file.write((json.dumps(line, allow_nan=False) + "\n").encode())


def _plain(value: Any) -> Any:
    if isinstance(value, str | bool | int) or value is None:
        return value
    number = float(value)
    return number if math.isfinite(number) else None


class TensorBoard(Callback):
    """Event files for TensorBoard: ``tensorboard --logdir FOLDER``.

    Parameters
    ----------
    folder : path
        Each training run writes a new file to it.
    every : int, default 1
        Log every `every`-th step.

    Notes
    -----
    Figures of steps are named ``step/loss``, those of epochs ``epoch/loss``, ``epoch/validation
    loss``, ...; both are recorded by step. Numbers are stored as float32.
    """

    only_first = True

    def __init__(self, folder: str | os.PathLike[str], every: int = 1) -> None:
        self.folder, self.every = Path(folder), _every(every, "TensorBoard")
        self._file: Any = None

    def on_train_begin(self, run: Run) -> None:
        """Open a new file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        now = time.time()
        stem = f"events.out.tfevents.{int(now):010d}.{socket.gethostname()}.{os.getpid()}"
        number = sum(1 for _ in self.folder.glob("events.out.tfevents.*"))
        path = self.folder / f"{stem}.{number}"
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 - closed at the end
        self._file.write(record(version(now)))
        if run.is_resumed:
            self._file.write(record(started(now, run.step + 1)))

    def on_step_end(self, run: Run) -> None:
        """Write an event."""
        if run.step % self.every == 0:
            self._write("step", run)

    def on_epoch_end(self, run: Run) -> None:
        """Write an event."""
        self._write("epoch", run)

    def on_train_end(self, run: Run) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, group: str, run: Run) -> None:
        with np.errstate(over="ignore"):
            figures = {
                f"{group}/{name}": float(np.float32(value))
                for name, value in run.figures.items()
                if name != "epoch"
            }
        self._file.write(record(scalars(time.time(), run.step, figures)))


def log_of(given: Any) -> list[Callback]:
    """Loggers for paths: JSON Lines for ``.jsonl`` and ``.json``, else a TensorBoard folder."""
    if given is None:
        return []
    entries = list(given) if isinstance(given, list | tuple) else [given]
    return [
        g
        if isinstance(g, Callback)
        else JSONLines(g)
        if Path(g).suffix in (".jsonl", ".json")
        else TensorBoard(g)
        for g in entries
    ]
