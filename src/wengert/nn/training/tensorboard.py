"""TensorBoard's event files, written without TensorFlow.

    record    bytes framed as a record: length, checksum, data, checksum
    scalars   an event with numbers by name
    started   an event that invalidates earlier events from a step on
    version   the first event of a file
    crc32c    the checksum (Castagnoli's polynomial)

A file is a sequence of records.  A record has a length of 8 bytes, the masked checksum of these,
the data, and the masked checksum of the data, all little-endian (TensorFlow's record format).  The
data are a protocol buffer message ``Event``: wall_time = 1, step = 2, file_version = 3, summary =
5, session_log = 7; a summary has values = 1, which have tag = 1 and simple_value = 2.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

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
