"""save, load and inspect.

save      encode.py makes JSON and arrays of what is given, safetensors_file.py the bytes,
          atomic_files.py puts them in place
load      the same backwards (decode.py); what is damaged becomes a FileError that names it
inspect   what a file holds, without its data
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.spec import Spec
from wengert.errors import (
    ArgumentError,
    FileError,
    GraphError,
    RegistryError,
    StructureError,
    at,
    user_line,
)

from . import atomic_files, safetensors_file
from .decode import FileDecoder, name_in_file
from .encode import FileEncoder
from .errors import Damage, need, parsed, written
from .graph_from_json import graph_of
from .graph_json import graph_json

_PLACES = ("name", "full", None)


def save(what: Any, file: Any, *, where: str | None = "name") -> None:
    """Write a graph, parameters, or containers of them to a file.

    Parameters
    ----------
    what : object
        A `Graph`, an array, a tensor, a number, a string, or nested lists, tuples and dicts of
        these. Of a model or optimiser give the `state_dict()`.
    file : path or binary file object
        A path is written whole or not at all: what was there before stays until the new file is
        complete.
    where : {"name", "full", None}
        What to keep of the user's files and lines that a graph remembers: the names of the files,
        their full paths, or nothing.

    Raises
    ------
    StructureError
        Something that no file can hold: a function, an object of an unknown class.
    RegistryError
        A graph uses an operation that is not registered under its name.
    DtypeError
        An array is not of numbers, or of a width that differs between machines.
    ConversionError
        A tensor with a history, which would be lost.
    GraphError
        A graph that cannot be built again from its lines.
    OSError
        The file cannot be written.

    See Also
    --------
    load : the backward pass.
    wengert.keep.snapshot : a series of dated files, of which old ones are removed.

    Notes
    -----
    The file has the layout of safetensors: its arrays can be read by any program that knows that
    (docs/keeping.md). The same object gives the same bytes. Gradients and hooks of tensors are not
    kept. *Cost*: about one pass over the data beside writing it.

    Examples
    --------
    >>> import io, numpy as np, wengert as wg
    >>> graph = wg.trace(lambda x: np.sum(np.sin(x)))(wg.spec("n"))
    >>> file = io.BytesIO()
    >>> wg.save({"graph": graph, "epoch": 3}, file)
    >>> _ = file.seek(0)
    >>> kept = wg.load(file)
    >>> float(kept["graph"](np.zeros(4))), kept["graph"].grad()(np.zeros(2)), kept["epoch"]
    (0.0, array([1., 1.]), 3)
    """
    write_file(what, file, where, exclusive=False)


def write_file(what: Any, file: Any, where: str | None, exclusive: bool) -> None:
    """What `save` does; `exclusive` refuses a file that is there already."""
    if where not in _PLACES:
        raise ArgumentError(f"save: where={where!r} must be one of {_PLACES}{at(user_line())}.")
    if atomic_files.is_path(what) and not atomic_files.is_path(file) and not hasattr(file, "write"):
        raise ArgumentError(
            f"save: what to save comes first, then the file: save(..., {str(what)!r})"
            f"{at(user_line())}."
        )
    writer = FileEncoder(graph_json, where)
    writer.name_tensors(what)
    try:
        root = writer.value(what, ())
    except RecursionError as error:
        raise StructureError(
            f"save: containers or graphs are nested too deeply{at(user_line())}."
        ) from error
    made = {"tensors": writer.tensors, "graphs": writer.graphs, "root": root}
    try:
        pieces = safetensors_file.pack(writer.arrays, {"object": written(made)})
    except ValueError as error:
        raise GraphError(f"save: {error}. Save it in parts{at(user_line())}.") from error
    atomic_files.write(file, pieces, exclusive)


def load(file: Any, *, variables: Mapping[str, Any] | None = None) -> Any:
    """Read what `save` has written.

    Parameters
    ----------
    file : path or binary file object
        The file, or the rest of one that is open. A file of safetensors that another program
        wrote gives a dict of arrays.
    variables : mapping from name to tensor, optional
        Tensors of the running program that stand in the place of variables of the file, and keep
        their own values. `inspect` lists the names.

    Returns
    -------
    object
        Of the same kind as what was saved. Variables and tensors that were one are one again.

    Raises
    ------
    FileError
        The file is damaged, incomplete, of a later version, or no such file. Nothing in a file
        is ever executed or imported.
    RegistryError
        It uses an operation that is not registered here; the message says what to import.
    ArgumentError, ShapeError, DtypeError
        A tensor in `variables` fits no variable of the file.
    OSError
        The file cannot be read.

    Notes
    -----
    Operations are found by name among those that the running program has registered, and of the
    same kind as when the file was written; import the modules that define your own first. Shapes
    and dtypes of all lines are inferred again and compared.

    Examples
    --------
    >>> import io, numpy as np, wengert as wg
    >>> w = wg.variable([1.0, 2.0], "w")
    >>> file = io.BytesIO()
    >>> wg.save(wg.trace(lambda x: x @ w)(wg.spec(2)), file)
    >>> _ = file.seek(0)
    >>> mine = wg.variable([10.0, 20.0])
    >>> float(wg.load(file, variables={"w": mine})(np.ones(2)))
    30.0
    """
    with atomic_files.opened(file) as (stream, size, name):
        try:
            header, sha = safetensors_file.read_header(stream, size)
            ours = safetensors_file.is_ours(header)
            arrays = safetensors_file.read_data(stream, header, sha)
            if not ours:
                reader = FileDecoder(arrays, variables or {})
                reader.check_bound()
                return arrays
            return _object(header, safetensors_file.checked(header, arrays, sha), variables or {})
        except Damage as damage:
            raise FileError(f"{name}: {damage}{at(user_line())}.") from damage
        except RegistryError as error:
            raise RegistryError(f"{name}: {error}") from None
        except RecursionError as error:
            raise FileError(f"{name}: it is nested too deeply{at(user_line())}.") from error


def _object(
    header: safetensors_file.Header, arrays: dict[Any, Any], variables: Mapping[str, Any]
) -> Any:
    made = parsed(header.metadata.get("object", ""), "what it holds")
    need(type(made) is dict and made.keys() == {"tensors", "graphs", "root"}, "it is empty")
    need(type(made["tensors"]) is list and type(made["graphs"]) is list, "it has no tables")
    reader = FileDecoder(arrays, variables)
    for x in made["tensors"]:
        reader.add_tensor(x)
    reader.check_bound()
    for x in made["graphs"]:
        reader.graphs.append(graph_of(reader, x))
    return reader.value(made["root"])


class Contents(NamedTuple):
    """What a file holds.

    arrays : the spec of each array, by name.
    variables : names of the tensors that persist, as `load` takes them in `variables`.
    operations : names of the operations that its graphs use.
    version : of the format; None for a file of another program.
    metadata : texts that another program has written beside the arrays.
    """

    arrays: dict[str, Spec]
    variables: list[str]
    operations: list[str]
    version: int | None
    metadata: dict[str, str]


Contents.__module__ = "wengert.keep"


def inspect(file: Any) -> Contents:
    """What a file holds, without reading its data.

    Parameters
    ----------
    file : path or binary file object

    Returns
    -------
    Contents

    Raises
    ------
    FileError
        It is no such file. Whether its data are sound only `load` finds out.

    Examples
    --------
    >>> import io, numpy as np, wengert as wg
    >>> file = io.BytesIO()
    >>> wg.save({"weight": np.ones((2, 3))}, file)
    >>> _ = file.seek(0)
    >>> {name: str(spec) for name, spec in wg.keep.inspect(file).arrays.items()}
    {'weight': 'float64[2,3]'}
    """
    with atomic_files.opened(file) as (stream, size, name):
        try:
            header, _ = safetensors_file.read_header(stream, size)
            return _contents(header)
        except Damage as damage:
            raise FileError(f"{name}: {damage}{at(user_line())}.") from damage
        except (RecursionError, TypeError, KeyError, AttributeError, IndexError) as error:
            raise FileError(
                f"{name}: it is not a file written by wengert.save{at(user_line())}."
            ) from error


def _contents(header: safetensors_file.Header) -> Contents:
    notes = parsed(header.metadata.get("dtypes", "{}"), "the notes of dtypes")
    specs = {}
    for name, (dtype, shape, _, _) in sorted(header.tensors.items()):
        known = safetensors_file.DTYPES[notes[name]] if name in notes else dtype
        known = np.dtype(np.float32) if known == safetensors_file.HALVES else known
        specs[name] = Spec(shape[:-1] if known.kind == "c" else shape, known)
    if not safetensors_file.is_ours(header):
        return Contents(specs, [], [], None, header.metadata)
    made = parsed(header.metadata.get("object", ""), "what it holds")
    named = [name_in_file(x) for x in made["tensors"] if x["kind"] != "constant"]
    ops = sorted({op[0] for graph in made["graphs"] for op in graph["ops"]})
    return Contents(specs, named, ops, int(header.metadata["version"]), {})
