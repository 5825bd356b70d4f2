"""Import of an ONNX file as a graph that can be run, compiled and differentiated.

The nodes are read in order while the graph is traced; what is known already (constants, shapes of
known lengths) is computed at once.

    load         the graph of a file
    parameters   its initializers, as tensors that can be changed and trained
"""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from wengert._engine.core.handle import owners_of
from wengert._engine.graphs import Graph, spec, trace, variable
from wengert.errors import (
    ArgumentError,
    BackendError,
    FileError,
    TraceError,
    WengertError,
    at,
    user_line,
)

from .importer import NodeView, Room, imported, reader_of, settled
from .onnx_library import dtype_of, onnx

__all__ = ["imported", "load", "parameters"]

_OLDEST, _NEWEST = 13, 28
# Operators whose earlier versions are read too, and from where on: they only take fewer dtypes,
# or have as an attribute what is an input since.
_SAME_FROM = {
    **dict.fromkeys(("If", "Loop", "Identity", "Constant", "Not"), 1),
    **{
        "Scan": 9,
        "Add": 7,
        "Sub": 7,
        "Mul": 7,
        "Div": 7,
        "Squeeze": 11,
        "Unsqueeze": 11,
        "Slice": 10,
    },
}


def load(
    file: Any,
    *,
    given: Mapping[str, Any] | None = None,
    constants: bool = False,
    limit: int = 1 << 30,
) -> Graph:
    """The graph of a file of ONNX.

    Parameters
    ----------
    file : path, bytes or binary file object
        Weights in other files (external data) are found if it is a path.
    given : mapping from str to array, optional
        Values for inputs that are to be fixed: shapes, axes and counts must be known when a graph
        is built.
    constants : bool, default False
        Take initializers as constants. By default those that are floating and have an axis are
        variables, with their names: they receive gradients and can be changed (`parameters`).
    limit : int, default 2**30
        How many bytes all arrays together may take that are computed when the file is read
        (constants of a shape, ranges, what is padded, tiled or expanded). The weights that the file
        contains do not count.

    Returns
    -------
    Graph
        A function of the inputs of the file, in order; a length that the file gives a name, or
        none, may be any size. One result, or a tuple of them.

    Raises
    ------
    FileError
        The file is damaged, cut off, or no file of ONNX; or it needs more memory than `limit`.
    BackendError
        It has an operator that is not read (the message names it), a version of the operators
        outside 13 to 28, or needs to know a shape that it computes from values.
    OSError
        It cannot be opened.
    ImportError
        The package onnx is not installed.

    Examples
    --------
    >>> graph = wg.onnx.load("model.onnx")  # doctest: +SKIP
    >>> graph(x)                            # doctest: +SKIP
    """
    try:
        return _loaded(_model_of(file), given, constants, Room(limit))
    except (OSError, WengertError):
        raise
    except Exception as error:  # names and numbers of a damaged file can be anything
        raise FileError(
            f"onnx.load: {_shown(file)} is damaged: {_first_line(error)}{at(user_line())}."
        ) from error


def _loaded(model: Any, given: Mapping[str, Any] | None, constants: bool, room: Room) -> Graph:
    opset = _opset_of(model)
    held = {name: np.asarray(value) for name, value in (given or {}).items()}
    known = {t.name: _array(t) for t in model.graph.initializer}
    if len(model.graph.sparse_initializer):
        raise _unsupported("has sparse initializers")
    values: dict[str, Any] = {
        name: a if constants or a.dtype.kind != "f" or not a.ndim else variable(a, name)
        for name, a in known.items()
    }
    heads = [i for i in model.graph.input if i.name not in known and i.name not in held]
    missing = held.keys() - {i.name for i in model.graph.input}
    if missing:
        raise ArgumentError(
            f"onnx.load: given={sorted(missing)} are not inputs of the file, which has "
            f"{[i.name for i in model.graph.input]}{at(user_line())}."
        )
    specs = [_spec_of(i) for i in heads]
    names = [o.name for o in model.graph.output]

    def run(*inputs: Any) -> Any:
        found = {**values, **held, **dict(zip([i.name for i in heads], inputs, strict=True))}
        ModelReader(opset, {**known, **held}, room).run(model.graph, found)
        results = [_result(found[name]) for name in names]
        return results[0] if len(results) == 1 else tuple(results)

    run.__name__ = re.sub(r"\W", "_", model.graph.name) or "graph"
    run.__signature__ = _signature([i.name for i in heads])  # type: ignore[attr-defined]
    graph: Graph = trace(run)(*specs)
    return graph


def parameters(graph: Graph) -> dict[str, Any]:
    """The variables of a graph by their names: of a file's, its floating initializers.

    Returns
    -------
    dict from str to Tensor
        Setting one (``p[...] = value``) changes what the graph computes from then on.
    """
    found = owners_of(graph.variables)
    return {
        n.name or f"{k}": t for k, (n, t) in enumerate(zip(graph.variables, found, strict=True))
    }


class ModelReader:
    """Nodes read in order.

    Parameters
    ----------
    opset : int
        The version of the operators.
    known : mapping from str to array
        The values of initializers, also of those that are variables: where a shape or a number must
        be known when the graph is built, it is taken from here.
    room : Room
        What arrays of known values may take.
    """

    def __init__(self, opset: int, known: Mapping[str, Any], room: Room) -> None:
        self.opset = opset
        self.known = known
        self.room = room

    def run(self, graph: Any, values: dict[str, Any]) -> None:
        """Read the nodes of a graph; `values` has its inputs, and gets all else."""
        for proto in graph.node:
            results = self._read(proto, values)
            for name, value in zip(proto.output, results, strict=False):
                if name:
                    values[name] = value

    def _read(self, proto: Any, values: dict[str, Any]) -> tuple[Any, ...]:
        inside = lambda body, given: self._inside(body, given, values)  # noqa: E731
        n = NodeView(proto, self.opset, self.room, inside)
        entry = reader_of(n.kind) if proto.domain in ("", "ai.onnx") else None
        if entry is None:
            kind = n.kind if proto.domain in ("", "ai.onnx") else f"{proto.domain}.{n.kind}"
            raise BackendError(
                f"onnx.load: the operator {kind} is not read. What is: wg.onnx.imported()"
                f"{at(user_line())}."
            )
        self._check_version(n)
        try:
            inputs = [values[name] if name else None for name in proto.input]
        except KeyError as error:
            raise FileError(
                f"onnx.load: {n.kind} uses {error}, which nothing before it makes{at(user_line())}."
            ) from None
        for k in entry.static:
            if k < len(inputs) and proto.input[k] in self.known:
                inputs[k] = self.known[proto.input[k]]
        if not entry.lengths:
            inputs = [x if k in entry.static else settled(x) for k, x in enumerate(inputs)]
        try:
            run = functools.partial(entry.function, n)
            self.room.need_result(n.label, run, inputs, entry.static, entry.grows)
            out = run(*inputs)
        except (BackendError, FileError, TraceError):
            raise
        except Exception as error:
            raise FileError(
                f"onnx.load: {n.kind} {n.name!r} of the file cannot be: {type(error).__name__}: "
                f"{str(error).rstrip('.')}{at(user_line())}."
            ) from error
        results = out if isinstance(out, tuple) else (out,)
        self.room.take(results)
        return results

    def _inside(self, body: Any, given: Any, values: Mapping[str, Any]) -> list[Any]:
        """The results of a graph inside a node, which sees what stands outside by its name."""
        own = {t.name: _array(t) for t in body.initializer}
        heads = [i.name for i in body.input]
        found = {**values, **own, **dict(zip(heads, given, strict=True))}
        ModelReader(self.opset, {**self.known, **own}, self.room).run(body, found)
        return [settled(found[o.name]) for o in body.output]

    def _check_version(self, n: NodeView) -> None:
        """Refuse an operator that means something else in this version than in those read."""
        if self.opset >= min(_OLDEST, _SAME_FROM.get(n.kind, _OLDEST)):
            return
        defs = onnx().defs
        try:
            here = defs.get_schema(n.kind, self.opset, "").since_version
            first = defs.get_schema(n.kind, _OLDEST, "").since_version
        except defs.SchemaError:
            here, first = 0, 1
        if here != first:
            raise n.refused(
                f"of opset {self.opset} may mean something else than in opset {_OLDEST} and later. "
                "Convert the file: onnx.version_converter.convert_version"
            )


# ---- the file ----------------------------------------------------------------------------------


def _model_of(file: Any) -> Any:
    """The file as a checked model with all its weights."""
    package = onnx()
    source = file
    if isinstance(file, bytes | bytearray | memoryview):
        source = BytesIO(bytes(file))
    elif isinstance(file, str | os.PathLike):
        source = Path(os.fspath(file))
        source.open("rb").close()  # an OSError that names it
    elif not hasattr(file, "read"):
        raise ArgumentError(
            f"onnx.load: {type(file).__name__} is not a file. Give a path, bytes or an open binary "
            f"file{at(user_line())}."
        )
    try:
        model = package.load(source, format="protobuf", load_external_data=isinstance(source, Path))
        if not model.graph.node and not model.graph.output:
            raise ValueError("it has no graph")
        package.checker.check_model(model)
    except OSError:
        raise
    except Exception as error:
        raise FileError(
            f"onnx.load: {_shown(file)} is damaged, or no file of ONNX: {_first_line(error)}"
            f"{at(user_line())}."
        ) from error
    if model.functions:
        model = package.inliner.inline_local_functions(model)
    return model


def _shown(file: Any) -> str:
    return repr(str(file)) if isinstance(file, str | os.PathLike) else "what was given"


def _first_line(error: BaseException) -> str:
    return (str(error).strip().partition("\n")[0] or type(error).__name__).rstrip(".")


def _opset_of(model: Any) -> int:
    found = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
    newest = min(_NEWEST, onnx().defs.onnx_opset_version())
    if not found:
        raise _unsupported("has no operators of ONNX's own, only of other domains")
    if not 1 <= found[0] <= newest:
        raise _unsupported(f"is of opset {found[0]}, and what is read is {_OLDEST} to {newest}")
    return int(found[0])


def _unsupported(why: str) -> BackendError:
    return BackendError(f"onnx.load: the file {why}{at(user_line())}.")


def _array(tensor: Any) -> Any:
    if dtype_of(tensor.data_type) is None:
        kind = onnx().TensorProto.DataType.Name(tensor.data_type)
        raise _unsupported(f"has an initializer {tensor.name!r} of type {kind}")
    try:
        return np.array(onnx().numpy_helper.to_array(tensor))
    except Exception as error:
        raise FileError(
            f"onnx.load: the initializer {tensor.name!r} is damaged: {_first_line(error)}"
            f"{at(user_line())}."
        ) from error


def _spec_of(head: Any) -> Any:
    kind = head.type.WhichOneof("value")
    dtype = dtype_of(head.type.tensor_type.elem_type) if kind == "tensor_type" else None
    if dtype is None:
        raise _unsupported(f"has an input {head.name!r} that is not an array of numbers")
    if not head.type.tensor_type.HasField("shape"):
        raise _unsupported(f"does not say how many axes its input {head.name!r} has")
    shape: list[Any] = []
    for axis, dim in enumerate(head.type.tensor_type.shape.dim):
        if dim.HasField("dim_value"):
            if dim.dim_value < 0:
                raise FileError(
                    f"onnx.load: axis {axis} of the input {head.name!r} has length "
                    f"{dim.dim_value}{at(user_line())}."
                )
            shape.append(int(dim.dim_value))
        else:
            text = dim.dim_param or f"{head.name}_{axis}"
            shape.append(_size_name(text))
    return spec(tuple(shape), dtype)


def _size_name(text: str) -> str:
    """The name of a length as a size's; an expression of names stays one where it is understood."""
    if re.fullmatch(r"[A-Za-z]\w*(\s*[-+*]\s*\w+)*", text):
        return text
    name = re.sub(r"\W", "_", text)
    return name if re.match("[A-Za-z]", name) else f"n{name}"


def _signature(names: list[str]) -> inspect.Signature:
    """The names of inputs, as far as they can be Python's."""
    used: list[str] = []
    for name in names:
        word = re.sub(r"\W", "_", name)
        word = word if word.isidentifier() else f"input_{word}"
        while word in used:
            word += "_"
        used.append(word)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([inspect.Parameter(w, kind) for w in used])


def _result(x: Any) -> Any:
    return settled(x)
