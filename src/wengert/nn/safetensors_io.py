"""Exchange: weights in files of safetensors, as other libraries write and read them.

    save_safetensors   a model's state, or arrays by name
    load_safetensors   arrays by name

The layout is that of _engine/serialization/safetensors_file.py, which checks what it reads;
`wengert.save` writes the same with more beside (graphs, containers).  Here are arrays and texts
alone, so that names are the model's and the metadata what other programs ask for.
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
    """Write weights to a file that PyTorch, JAX and others read with safetensors.

    Parameters
    ----------
    state : Module, or mapping from name to array
        A model's `state_dict` under its names.
    file : path or binary file object
        A path is written whole or not at all: what was there before stays until the new file is
        complete.
    metadata : mapping from str to str, optional
        By default ``{"format": "pt"}``, without which some programs refuse a file.

    Raises
    ------
    DtypeError
        Numbers that the layout has no name for: complex ones, objects.
    ArgumentError
        Metadata that are not texts, a name that is taken, nothing that has names.
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
            f"save_safetensors was given a {type(state).__name__}. Give a module, or arrays by "
            f"name{at(user_line())}."
        )
    words = {"format": "pt"} if metadata is None else dict(metadata)
    if not all(isinstance(x, str) for pair in words.items() for x in pair):
        raise ArgumentError(f"save_safetensors: metadata are texts by name{at(user_line())}.")
    arrays = {name: _plain(name, value) for name, value in state.items()}
    order = sorted(arrays, key=lambda n: (-arrays[n].itemsize, n))  # wide ones first: aligned
    header: dict[str, Any] = {safetensors_file.METADATA: words}
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
            f"save_safetensors: {name!r} cannot be the name of an array{at(user_line())}."
        )
    array = np.asarray(value_of(value))
    little = array.dtype.newbyteorder("<")
    if little not in _CODES:
        raise DtypeError(
            f"save_safetensors: {name} is of {array.dtype}, which the layout has no name for. "
            f"Convert it, or use wengert.save{at(user_line())}."
        )
    return np.array(array, dtype=little, order="C", ndmin=array.ndim)


def load_safetensors(file: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Read the arrays of a file of safetensors, for `Module.load_state_dict`.

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
        The file is damaged, incomplete, or no such file. Nothing in a file is ever executed.
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
