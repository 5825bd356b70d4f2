"""Safetensors files: named arrays and strings in one file.

    8 bytes      length of the header, little-endian
    header       JSON: {"__metadata__": {key: text}, name: {"dtype", "shape", "data_offsets"}}
    data         the arrays, little-endian, in C order, without gaps

Any program that reads safetensors can read the arrays.  Dtypes that the format lacks are converted,
and the original dtype is stored in the metadata under "dtypes": complex numbers become pairs of
real numbers (a last axis of length 2), big-endian arrays become little-endian.  The bfloat16 of
other programs is read as float32.

Reading is strict, and takes no more memory than the size of the file: lengths and offsets are
checked before anything is allocated.  "sha256" in the metadata is the digest of the header (without
this entry) and the data.
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
HEADER_LIMIT = 100_000_000  # bytes; that of other readers of this format
_AXES = 64  # NumPy's limit

CODES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype("?"),
    **{f"{k}{8 * n}": np.dtype(f"<{c}{n}") for k, c in ("Ii", "Uu") for n in (1, 2, 4, 8)},
    **{f"F{8 * n}": np.dtype(f"<f{n}") for n in (2, 4, 8)},
}
_CODE_OF = {dtype: code for code, dtype in CODES.items()}
# NumPy has no bfloat16, so it is read as its bits, which are the upper half of a float32.
BFLOAT16 = np.dtype([("bfloat16", "<u2")])
_READ = {**CODES, "BF16": BFLOAT16}
# Dtypes of either byte order, by NumPy's name, or by its code if the byte order is not native.
DTYPES: dict[str, np.dtype[Any]] = {
    (d.name if d.isnative else d.str): d
    for plain in (*CODES.values(), np.dtype("<c8"), np.dtype("<c16"))
    for d in (plain, plain.newbyteorder(">"))
}


class Header(NamedTuple):
    """The header of a file.

    Attributes
    ----------
    metadata : dict
        Strings by key.
    tensors : dict
        Dtype, shape, first and last offset by name, in the order of the data.
    size : int
        The size of the data in bytes.
    """

    metadata: dict[str, str]
    tensors: dict[str, tuple[np.dtype[Any], tuple[int, ...], int, int]]
    size: int


# ---- dtypes ------------------------------------------------------------------------------------


def dtype_name(dtype: np.dtype[Any], what: str = "an array") -> str:
    """The name of a dtype in files.

    Raises
    ------
    DtypeError
        Arrays of this dtype cannot be saved.
    """
    name = dtype.name if dtype.isnative else dtype.str
    if DTYPES.get(name) != dtype:
        reason = "its elements must be numbers, so that a file never contains code"
        if dtype.kind in "fc":
            reason = "its width differs between machines; cast it to float64 or complex128"
        raise DtypeError(f"{what} of dtype {dtype} cannot be saved: {reason}{at(user_line())}.")
    return name


def _stored(array: np.ndarray[Any, Any], name: str) -> tuple[np.ndarray[Any, Any], str | None]:
    """An array in a dtype of the format, and its original dtype if that differs."""
    original = dtype_name(array.dtype, f"the array {name!r}")
    little = array.dtype.newbyteorder("<")
    converted = np.asarray(array, dtype=little, order="C")
    if little.kind == "c":
        converted = converted.reshape(*converted.shape, 1).view(f"<f{little.itemsize // 2}")
    return converted, original if little.kind == "c" or DTYPES[original] != little else None


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
    """The content of a file, as a sequence of bytes-like objects.

    Equal arrays and metadata give equal bytes.

    Raises
    ------
    DtypeError
        An array is not numeric.
    """
    stored = {name: _stored(a, name) for name, a in arrays.items()}
    # Wide elements come first, as in files of other writers, so that all arrays are aligned.
    order = sorted(stored, key=lambda n: (-stored[n][0].itemsize, n))
    notes = {name: stored[name][1] for name in order if stored[name][1] is not None}
    strings = {**metadata, "format": FORMAT, "version": str(VERSION)}
    if notes:
        strings["dtypes"] = written(notes)
    header: dict[str, Any] = {METADATA: dict(sorted(strings.items()))}
    offset, data = 0, []
    for name in order:
        converted = stored[name][0]
        header[name] = {
            "dtype": _CODE_OF[converted.dtype],
            "shape": list(converted.shape),
            "data_offsets": [offset, offset + converted.nbytes],
        }
        offset += converted.nbytes
        data.append(_bytes(converted))
    header[METADATA]["sha256"] = _digest(header, data).hexdigest()
    text = written(header).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > HEADER_LIMIT:
        raise ValueError(f"a header of {len(text)} bytes, more than {HEADER_LIMIT}")
    return [len(text).to_bytes(8, "little"), text, *data]


def _digest(header: Mapping[str, Any], data: Iterable[Any] = ()) -> Any:
    """The hash object of a header (in canonical form, without its digest) and data."""
    metadata = {k: v for k, v in header[METADATA].items() if k != "sha256"}
    sha = hashlib.sha256(written({**header, METADATA: metadata}).encode())
    for piece in data:
        sha.update(piece)
    return sha


# ---- reading -----------------------------------------------------------------------------------


def read_header(stream: BinaryIO, size: int) -> tuple[Header, Any]:
    """The header of a file of `size` bytes, and the hash object after it."""
    need(size >= 8, f"it has {size} bytes, too few for a safetensors file")
    length = int.from_bytes(_exactly(stream, 8), "little")
    need(
        length <= size - 8,
        f"its header should have {length} bytes, but only {size - 8} follow: it is truncated, or "
        "not a safetensors file",
    )
    need(length <= HEADER_LIMIT, f"its header has {length} bytes, more than {HEADER_LIMIT}")
    try:
        text = _exactly(stream, length).decode()
    except UnicodeDecodeError as error:
        raise Damage(f"its header is not text ({error})") from error
    header = parsed(text, "its header")
    need(type(header) is dict, "its header is not an object")
    metadata = header.setdefault(METADATA, {})
    need(
        type(metadata) is dict and all(type(v) is str for v in metadata.values()),
        "its metadata must be strings",
    )
    tensors = {k: _entry(k, v) for k, v in header.items() if k != METADATA}
    ordered = dict(sorted(tensors.items(), key=lambda item: item[1][2:]))
    end = 0
    for name, (_, _, start, stop) in ordered.items():
        need(start == end, f"the data of {brief(name)} begin at byte {start} instead of {end}")
        end = stop
    remaining = size - 8 - length
    need(
        end == remaining, f"{end} bytes of data should follow its header, but there are {remaining}"
    )
    return Header(metadata, ordered, remaining), _digest(header)


def _entry(name: str, entry: dict[Any, Any]) -> tuple[np.dtype[Any], tuple[int, ...], int, int]:
    what = f"the entry of {brief(name)}"
    need(
        type(entry) is dict and entry.keys() == {"dtype", "shape", "data_offsets"},
        f"{what} must have dtype, shape and data_offsets",
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
    # Even if one length is zero, NumPy limits the product of the other lengths.
    extent = math.prod(n for n in shape if n) * dtype.itemsize
    need(extent < 2**62, f"{what} has shape {brief(shape)}, which is too large")
    size = math.prod(shape) * dtype.itemsize
    need(
        offsets[0] >= 0 and offsets[1] - offsets[0] == size,
        f"{what} has offsets {brief(offsets)}, but its shape needs {size} bytes",
    )
    return dtype, tuple(shape), offsets[0], offsets[1]


def read_data(stream: BinaryIO, header: Header, sha: Any) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of a file; updates the hash object."""
    arrays = {}
    for name, (dtype, shape, _, _) in header.tensors.items():
        array = np.empty(shape, dtype)
        piece = _bytes(array)
        _fill(stream, piece)
        sha.update(piece)
        if dtype.kind == "b":
            is_invalid = array.size and int(array.view(np.uint8).max()) > 1
            need(not is_invalid, f"{brief(name)} contains booleans that are neither 0 nor 1")
        arrays[name] = _widened(array) if dtype is BFLOAT16 else array
    need(not stream.read(1), "it has bytes after its data")
    return arrays


def _widened(halves: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Float32 values of bfloat16 values."""
    return (halves["bfloat16"].astype(np.uint32) << 16).view(np.float32)


def checked(header: Header, arrays: dict[str, Any], sha: Any) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays in their original dtypes, after verification of the digest."""
    need(
        sha.hexdigest() == header.metadata.get("sha256"),
        "its content was modified (the sha256 differs): it is damaged",
    )
    notes = parsed(header.metadata.get("dtypes", "{}"), "the notes of dtypes")
    need(type(notes) is dict and notes.keys() <= arrays.keys(), "its dtypes do not fit its arrays")
    for name, note in notes.items():
        dtype, array = DTYPES.get(note) if type(note) is str else None, arrays[name]
        is_valid = dtype is not None and (
            dtype.newbyteorder("<") == array.dtype != dtype
            if dtype.kind != "c"
            else array.dtype.str == f"<f{dtype.itemsize // 2}" and array.shape[-1:] == (2,)
        )
        need(is_valid, f"{brief(name)} cannot be of the dtype {brief(note)}")
    return {name: _restored(a, notes.get(name)) for name, a in arrays.items()}


def is_ours(header: Header) -> bool:
    """Whether `save` wrote the file, in a version that can be read."""
    metadata = header.metadata
    if metadata.get("format") != FORMAT:
        # A damaged file written by `save` must not be read as a file of another program.
        damaged = "object" in metadata or {"sha256", "version"} <= metadata.keys()
        need(not damaged, f"its format is {brief(metadata.get('format'))} instead of {FORMAT!r}")
        return False
    version = header.metadata.get("version", "")
    need(version.isascii() and version.isdecimal() and len(version) < 9, f"version {version!r}")
    need(
        int(version) <= VERSION,
        f"it is of version {version} of the format, but this wengert reads versions up to "
        f"{VERSION}: install a newer wengert",
    )
    return True


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = bytearray(count)
    _fill(stream, memoryview(data))
    return bytes(data)


def _fill(stream: Any, into: memoryview) -> None:
    filled = 0
    while filled < len(into):
        count = stream.readinto(into[filled:])
        need(count, "it ends too early: it is truncated")
        filled += count
