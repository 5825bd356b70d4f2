"""Weights in safetensors files, for exchange with other libraries.

    save_safetensors   writes the state of a model, or arrays by name
    load_safetensors   reads arrays by name

Files are read and validated by _engine/serialization/safetensors_file.py.  `wengert.save` writes
the same format with additional content (graphs, containers); the files written here have arrays and
string metadata only, with the names of the model, as other programs expect.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from wengert._engine.core.handle import value_of
from wengert._engine.serialization import atomic_files, safetensors_file
from wengert._engine.serialization.errors import Damage
from wengert.errors import ArgumentError, DtypeError, FileError, at, user_line

from .module import Module

_CODES = {dtype: code for code, dtype in safetensors_file.CODES.items()}


def save_safetensors(state: Any, file: Any, metadata: Mapping[str, str] | None = None) -> None:
    """Write weights to a safetensors file, as read by PyTorch, JAX and others.

    Parameters
    ----------
    state : Module, or mapping from name to array
        For a module, its `state_dict` is written.
    file : path or binary file object
        A path is written atomically: an existing file is replaced when the new one is complete.
    metadata : mapping from str to str, optional
        Default ``{"format": "pt"}``, which some programs require.

    Raises
    ------
    DtypeError
        The format does not support a dtype, such as complex numbers or objects.
    ArgumentError
        `state` is not a module or mapping, a name is invalid, or metadata are not strings.
    OSError
        The file cannot be written.

    See Also
    --------
    wengert.save : files with graphs and containers.

    Examples
    --------
    >>> import io
    >>> from wengert import nn
    >>> file = io.BytesIO()
    >>> nn.save_safetensors(nn.Linear(2, 1, rng=0), file)
    >>> _ = file.seek(0)
    >>> sorted(nn.load_safetensors(file))
    ['bias', 'weight']
    """
    if isinstance(state, Module):
        state = state.state_dict()
    if not isinstance(state, Mapping):
        raise ArgumentError(
            f"save_safetensors: expected a module or a mapping from names to arrays, got "
            f"{type(state).__name__}{at(user_line())}."
        )
    entries = {"format": "pt"} if metadata is None else dict(metadata)
    if not all(isinstance(x, str) for pair in entries.items() for x in pair):
        raise ArgumentError(
            f"save_safetensors: metadata must map strings to strings{at(user_line())}."
        )
    arrays = {name: _plain(name, value) for name, value in state.items()}
    order = sorted(arrays, key=lambda n: (-arrays[n].itemsize, n))  # large items first: aligned
    header: dict[str, Any] = {safetensors_file.METADATA: entries}
    offset = 0
    for name in order:
        array = arrays[name]
        header[name] = {
            "dtype": _CODES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    pieces: list[Any] = [len(text).to_bytes(8, "little"), text]
    atomic_files.write(file, [*pieces, *(arrays[n].reshape(-1).view(np.uint8).data for n in order)])


def _plain(name: Any, value: Any) -> np.ndarray[Any, Any]:
    if not isinstance(name, str) or name == safetensors_file.METADATA:
        raise ArgumentError(
            f"save_safetensors: {name!r} is not a valid name of an array{at(user_line())}."
        )
    array = np.asarray(value_of(value))
    little = array.dtype.newbyteorder("<")
    if little not in _CODES:
        raise DtypeError(
            f"save_safetensors: {name} has dtype {array.dtype}, which the format does not support. "
            f"Convert it, or use wengert.save{at(user_line())}."
        )
    return np.array(array, dtype=little, order="C", ndmin=array.ndim)


def load_safetensors(file: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Read the arrays of a safetensors file, for `Module.load_state_dict`.

    Parameters
    ----------
    file : path or binary file object

    Returns
    -------
    dict from name to array
        In the order of the file; bfloat16 as float32.

    Raises
    ------
    FileError
        The file is damaged, incomplete or in another format. Content of files is never executed.
    OSError
        The file cannot be read.
    """
    with atomic_files.opened(file) as (stream, size, name):
        try:
            header, sha = safetensors_file.read_header(stream, size)
            arrays = safetensors_file.read_data(stream, header, sha)
            if safetensors_file.is_ours(header):
                arrays = safetensors_file.checked(header, arrays, sha)
        except Damage as damage:
            raise FileError(f"{name}: {damage}{at(user_line())}.") from damage
        except RecursionError as error:
            raise FileError(f"{name}: it is nested too deeply{at(user_line())}.") from error
    return arrays
