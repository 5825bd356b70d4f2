"""Lines of text files, by number.

    TextLines   a dataset whose items are lines

A file is looked through once for where its lines begin; the text stays on the disk until an item is
asked for, so files may be larger than memory, and worker processes are sent places and no text.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, at, user_line

from ..dataset import Dataset
from .compressed import contents, damaged

__all__ = ["TextLines"]

_BLOCK = 1 << 20


class TextLines(Dataset):
    """Lines of text, without what ends them (a newline, or carriage return and newline).

    Parameters
    ----------
    paths : path or sequence of path
        Files; compressed ones (gzip) are kept in memory.
    encoding : str, default "utf-8"
        One in which a newline is the byte 10: UTF-8, Latin-1, but not UTF-16.
    skip_empty : bool, default False
        Leave out lines with nothing but blanks.

    Raises
    ------
    FileError
        In `__getitem__`: a line that is not in this encoding, or a file that has become shorter.
    ArgumentError
        An unknown encoding, or one without bytes for newlines.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from wengert.data import TextLines
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "poem.txt"
    >>> _ = path.write_bytes(bytes([111, 110, 101, 10, 116, 119, 111]))
    >>> list(TextLines(path))
    ['one', 'two']
    """

    def __init__(
        self,
        paths: str | os.PathLike[str] | Sequence[Any],
        encoding: str = "utf-8",
        skip_empty: bool = False,
    ) -> None:
        try:
            fits = "\n".encode(encoding) == b"\n"
        except LookupError:
            fits = False
        if not fits:
            raise ArgumentError(
                f"TextLines(encoding={encoding!r}): unknown, or newlines are not single bytes in "
                f"it. Convert the file to utf-8{at(user_line())}."
            )
        given = [paths] if isinstance(paths, str | os.PathLike) else paths
        self.paths = [Path(p) for p in given]
        self.encoding = encoding
        self._whole: dict[int, bytes] = {}
        tables = []
        for number, path in enumerate(self.paths):
            starts = self._starts(number, path)
            table = np.stack([np.full(len(starts) - 1, number), starts[:-1], starts[1:]], axis=1)
            tables.append(table)
        self._table = np.concatenate(tables) if tables else np.zeros((0, 3), np.int64)
        if skip_empty:
            kept = [i for i in range(len(self)) if self._bytes(i).strip()]
            self._table = self._table[kept]

    def _starts(self, number: int, path: Path) -> Any:
        """Where lines begin, and where the last one ends."""
        with open(path, "rb") as file:
            if file.read(2) == b"\x1f\x8b":
                data = self._whole[number] = contents(path)
                blocks = [data]
            else:
                file.seek(0)
                blocks = iter(lambda: file.read(_BLOCK), b"")  # type: ignore[assignment]
            found, size = [np.zeros(1, np.int64)], 0
            for block in blocks:
                found.append(np.flatnonzero(np.frombuffer(block, np.uint8) == 10) + (size + 1))
                size += len(block)
        starts = np.concatenate(found)
        return starts if starts[-1] == size else np.append(starts, size)

    def __len__(self) -> int:
        return len(self._table)

    def _bytes(self, index: int) -> bytes:
        number, start, stop = map(int, self._table[index])
        if number in self._whole:
            return self._whole[number][start:stop]
        with open(self.paths[number], "rb") as file:
            file.seek(start)
            data = file.read(stop - start)
        if len(data) != stop - start:
            raise damaged(self.paths[number], "it has become shorter since it was opened")
        return data

    def __getitem__(self, index: Any) -> str:
        line = self._bytes(index)
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        try:
            return line.decode(self.encoding)
        except UnicodeDecodeError as error:
            number, start, _ = map(int, self._table[index])
            raise damaged(
                self.paths[number],
                f"line {int(index) + 1} (byte {start}) is not {self.encoding}: {error.reason}",
            ) from error

    def __repr__(self) -> str:
        return f"TextLines({len(self)} lines of {', '.join(p.name for p in self.paths)})"
