"""Safetensors files: named arrays and strings in one file.

    8 bytes      length of the header, little-endian
    header       JSON: {"__metadata__": {word: text}, name: {"dtype", "shape", "data_offsets"}}
    the rest     the arrays, little-endian, row by row, without gaps

So any program that reads safetensors reads the arrays of our files.  What that layout has no name
for is written as something it has, and noted in the metadata under "dtypes": a complex number as a
pair of real ones (a last axis of length 2), an array of foreign byte order as one of the usual.
The bfloat16 of other programs is read as float32.

Reading is strict, and takes no more memory than the file is long: lengths and offsets are checked
against the size of the file before anything is allocated.  "sha256" is the digest of the header
(without itself) and of the data.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from wengert.errors import DtypeError, at, user_line

from .errors import Damage, brief, need, parsed, written

FORMAT, VERSION = "wengert", 1
METADATA = "__metadata__"
HEADER_LIMIT = 100_000_000  # the limit of other readers of this layout
_AXES = 64  # NumPy's limit

CODES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype("?"),
    **{f"{k}{8 * n}": np.dtype(f"<{c}{n}") for k, c in ("Ii", "Uu") for n in (1, 2, 4, 8)},
    **{f"F{8 * n}": np.dtype(f"<f{n}") for n in (2, 4, 8)},
}
_CODE_OF = {dtype: code for code, dtype in CODES.items()}
# What other programs write and NumPy does not have, as the bits: the upper half of a float32.
HALVES = np.dtype([("bfloat16", "<u2")])
_READ = {**CODES, "BF16": HALVES}
# What a note may say: numbers of either byte order, by NumPy's name or, if swapped, its code.
DTYPES: dict[str, np.dtype[Any]] = {
    (d.name if d.isnative else d.str): d
    for plain in (*CODES.values(), np.dtype("<c8"), np.dtype("<c16"))
    for d in (plain, plain.newbyteorder(">"))
}


class Header(NamedTuple):
    """What stands before the data.

    Attributes
    ----------
    metadata : dict
        Words and texts.
    tensors : dict
        For each name dtype, shape, first and last offset, in the order of the data.
    size : int
        Bytes of data.
    """

    metadata: dict[str, str]
    tensors: dict[str, tuple[np.dtype[Any], tuple[int, ...], int, int]]
    size: int


# ---- dtypes ------------------------------------------------------------------------------------


def dtype_name(dtype: np.dtype[Any], what: str = "an array") -> str:
    """The name under which a dtype is kept.

    Raises
    ------
    DtypeError
        It cannot be kept.
    """
    name = dtype.name if dtype.isnative else dtype.str
    if DTYPES.get(name) != dtype:
        why = "its elements must be numbers, so that a file never holds code"
        if dtype.kind in "fc":
            why = "its width differs from one machine to the next; cast it to float64 or complex128"
        raise DtypeError(f"{what} of dtype {dtype} cannot be kept: {why}{at(user_line())}.")
    return name


def _stored(array: np.ndarray[Any, Any], name: str) -> tuple[np.ndarray[Any, Any], str | None]:
    """An array as the layout has it, and the note that tells what it was."""
    kept = dtype_name(array.dtype, f"the array {name!r}")
    little = array.dtype.newbyteorder("<")
    plain = np.asarray(array, dtype=little, order="C")
    if little.kind == "c":
        plain = plain.reshape(*plain.shape, 1).view(f"<f{little.itemsize // 2}")
    return plain, kept if little.kind == "c" or DTYPES[kept] != little else None


def _restored(array: np.ndarray[Any, Any], note: str | None) -> np.ndarray[Any, Any]:
    if note is None:
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    dtype = DTYPES[note]
    if dtype.kind == "c":
        array = array.view(f"<c{2 * array.itemsize}").reshape(array.shape[:-1])
    return array.astype(dtype, copy=False)


def _bytes(array: np.ndarray[Any, Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


# ---- writing -----------------------------------------------------------------------------------


def pack(arrays: Mapping[str, np.ndarray[Any, Any]], metadata: Mapping[str, str]) -> list[Any]:
    """The pieces of a file, in order: what can be written to it one after the other.

    The same arrays and metadata give the same bytes.

    Raises
    ------
    DtypeError
        An array is not of numbers.
    """
    stored = {name: _stored(a, name) for name, a in arrays.items()}
    # Wide elements first, as other writers do, so that all are aligned.
    order = sorted(stored, key=lambda n: (-stored[n][0].itemsize, n))
    notes = {name: stored[name][1] for name in order if stored[name][1] is not None}
    words = {**metadata, "format": FORMAT, "version": str(VERSION)}
    if notes:
        words["dtypes"] = written(notes)
    header: dict[str, Any] = {METADATA: dict(sorted(words.items()))}
    offset, data = 0, []
    for name in order:
        plain = stored[name][0]
        header[name] = {
            "dtype": _CODE_OF[plain.dtype],
            "shape": list(plain.shape),
            "data_offsets": [offset, offset + plain.nbytes],
        }
        offset += plain.nbytes
        data.append(_bytes(plain))
    header[METADATA]["sha256"] = _digest(header, data).hexdigest()
    text = written(header).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > HEADER_LIMIT:
        raise ValueError(f"a header of {len(text)} bytes, more than {HEADER_LIMIT}")
    return [len(text).to_bytes(8, "little"), text, *data]


def _digest(header: Mapping[str, Any], data: Iterable[Any] = ()) -> Any:
    """The digest so far: of a header, whatever its spacing, without the digest in it."""
    words = {k: v for k, v in header[METADATA].items() if k != "sha256"}
    sha = hashlib.sha256(written({**header, METADATA: words}).encode())
    for piece in data:
        sha.update(piece)
    return sha


# ---- reading -----------------------------------------------------------------------------------


def read_header(stream: BinaryIO, size: int) -> tuple[Header, Any]:
    """What stands before the data of a file of that many bytes, and the digest so far."""
    need(size >= 8, f"it has {size} bytes, too few for any file of this kind")
    length = int.from_bytes(_exactly(stream, 8), "little")
    need(
        length <= size - 8,
        f"its header should have {length} bytes, but only {size - 8} follow: it is truncated, or "
        "no file of this kind",
    )
    need(length <= HEADER_LIMIT, f"its header has {length} bytes, more than {HEADER_LIMIT}")
    try:
        text = _exactly(stream, length).decode()
    except UnicodeDecodeError as error:
        raise Damage(f"its header is not text ({error})") from error
    header = parsed(text, "its header")
    need(type(header) is dict, "its header is not an object")
    words = header.setdefault(METADATA, {})
    need(
        type(words) is dict and all(type(v) is str for v in words.values()),
        "its metadata are not texts",
    )
    tensors = {k: _entry(k, v) for k, v in header.items() if k != METADATA}
    ordered = dict(sorted(tensors.items(), key=lambda item: item[1][2:]))
    end = 0
    for name, (_, _, start, stop) in ordered.items():
        need(start == end, f"the data of {brief(name)} begin at byte {start} instead of {end}")
        end = stop
    have = size - 8 - length
    need(end == have, f"{end} bytes of data should follow its header, but there are {have}")
    return Header(words, ordered, have), _digest(header)


def _entry(name: str, entry: dict[Any, Any]) -> tuple[np.dtype[Any], tuple[int, ...], int, int]:
    what = f"the entry of {brief(name)}"
    need(
        type(entry) is dict and entry.keys() == {"dtype", "shape", "data_offsets"},
        f"{what} has not dtype, shape and data_offsets",
    )
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    need(type(code) is str and code in _READ, f"{what} has dtype {brief(code)}, unknown to NumPy")
    need(
        type(shape) is list
        and len(shape) <= _AXES
        and all(type(n) is int and 0 <= n < 2**62 for n in shape),
        f"{what} has shape {brief(shape)}",
    )
    need(
        type(offsets) is list and len(offsets) == 2 and all(type(n) is int for n in offsets),
        f"{what} has offsets {brief(offsets)}",
    )
    dtype = _READ[code]
    # Of a shape with a zero too: NumPy refuses arrays whose other lengths are beyond it.
    extent = math.prod(n for n in shape if n) * dtype.itemsize
    need(extent < 2**62, f"{what} has shape {brief(shape)}, too large for any machine")
    size = math.prod(shape) * dtype.itemsize
    need(
        offsets[0] >= 0 and offsets[1] - offsets[0] == size,
        f"{what} has offsets {brief(offsets)}, but its shape needs {size} bytes",
    )
    return dtype, tuple(shape), offsets[0], offsets[1]


def read_data(stream: BinaryIO, header: Header, sha: Any) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays, once the digest is right."""
    arrays = {}
    for name, (dtype, shape, _, _) in header.tensors.items():
        array = np.empty(shape, dtype)
        piece = _bytes(array)
        _fill(stream, piece)
        sha.update(piece)
        if dtype.kind == "b":
            odd = array.size and int(array.view(np.uint8).max()) > 1
            need(not odd, f"{brief(name)} holds booleans that are neither 0 nor 1")
        arrays[name] = _widened(array) if dtype is HALVES else array
    need(not stream.read(1), "more follows its data")
    return arrays


def _widened(halves: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The float32 of which only the upper half was kept."""
    return (halves["bfloat16"].astype(np.uint32) << 16).view(np.float32)


def checked(header: Header, arrays: dict[str, Any], sha: Any) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays as they were saved, if the file is what was written."""
    need(
        sha.hexdigest() == header.metadata.get("sha256"),
        "its content is not what was written (the sha256 differs): it is damaged",
    )
    notes = parsed(header.metadata.get("dtypes", "{}"), "the notes of dtypes")
    need(type(notes) is dict and notes.keys() <= arrays.keys(), "the notes of dtypes do not fit")
    for name, note in notes.items():
        dtype, have = DTYPES.get(note) if type(note) is str else None, arrays[name]
        fits = dtype is not None and (
            dtype.newbyteorder("<") == have.dtype != dtype
            if dtype.kind != "c"
            else have.dtype.str == f"<f{dtype.itemsize // 2}" and have.shape[-1:] == (2,)
        )
        need(fits, f"{brief(name)} is noted to be {brief(note)}, which it cannot be")
    return {name: _restored(a, notes.get(name)) for name, a in arrays.items()}


def is_ours(header: Header) -> bool:
    """Whether it is a file of ours, of a version that is known here."""
    words = header.metadata
    if words.get("format") != FORMAT:
        # One that was ours until a word of it was damaged must not pass for another program's.
        damaged = "object" in words or {"sha256", "version"} <= words.keys()
        need(not damaged, f"its format is {brief(words.get('format'))} and not {FORMAT!r}")
        return False
    version = header.metadata.get("version", "")
    need(version.isascii() and version.isdecimal() and len(version) < 9, f"version {version!r}")
    need(
        int(version) <= VERSION,
        f"it is of version {version} of the format, and this wengert knows up to {VERSION}: "
        "install a newer wengert",
    )
    return True


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = bytearray(count)
    _fill(stream, memoryview(data))
    return bytes(data)


def _fill(stream: Any, into: memoryview) -> None:
    done = 0
    while done < len(into):
        count = stream.readinto(into[done:])
        need(count, "it ends too early: it is truncated")
        done += count
