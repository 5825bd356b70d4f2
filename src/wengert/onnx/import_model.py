"""Import of an ONNX file as a graph that can be run, compiled and differentiated.

The nodes are converted in order while the graph is traced; nodes of known values (constants, shapes
of known lengths) are computed immediately.

    load         the graph of a file
    parameters   its initializers, as tensors that can be modified and trained
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

from .importer import MemoryLimit, NodeView, as_value, imported, reader_of
from .onnx_library import dtype_of, onnx

__all__ = ["imported", "load", "parameters"]

_OLDEST, _NEWEST = 13, 28
# The first opset from which on an operator can be read, if it is older than _OLDEST: the earlier
# versions only accept fewer dtypes, or have an attribute instead of an input.
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
    """The graph of an ONNX file.

    Parameters
    ----------
    file : path, bytes or binary file object
        External data (weights in other files) are loaded if it is a path.
    given : mapping from str to array, optional
        Fixed values of inputs: shapes, axes and counts must be known when the graph is built.
    constants : bool, default False
        Make all initializers constants. By default floating-point arrays with at least one axis
        become variables with their names, which can be modified and receive gradients
        (`parameters`).
    limit : int, default 2**30
        Maximal number of bytes of all arrays that are computed during the import (filled, padded,
        tiled or expanded arrays, ranges). The weights in the file do not count.

    Returns
    -------
    Graph
        A function of the inputs of the file, in order; dynamic axes become symbolic sizes. It
        returns one result, or a tuple of them.

    Raises
    ------
    FileError
        The file is damaged, truncated, or not an ONNX file; or it needs more memory than `limit`.
    BackendError
        The file has an unsupported operator (the message names it), a version of the operators
        outside 13 to 28, or shapes that are computed from values.
    OSError
        The file cannot be opened.
    ImportError
        The package onnx is not installed.

    Examples
    --------
    >>> graph = wg.onnx.load("model.onnx")  # doctest: +SKIP
    >>> graph(x)                            # doctest: +SKIP
    """
    try:
        return _loaded(_model_of(file), given, constants, MemoryLimit(limit))
    except (OSError, WengertError):
        raise
    except Exception as error:  # a damaged file can cause any error
        raise FileError(
            f"onnx.load: {_shown(file)} is damaged: {_first_line(error)}{at(user_line())}."
        ) from error


def _loaded(
    model: Any, given: Mapping[str, Any] | None, constants: bool, memory: MemoryLimit
) -> Graph:
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
        ModelReader(opset, {**known, **held}, memory).run(model.graph, found)
        results = [_result(found[name]) for name in names]
        return results[0] if len(results) == 1 else tuple(results)

    run.__name__ = re.sub(r"\W", "_", model.graph.name) or "graph"
    run.__signature__ = _signature([i.name for i in heads])  # type: ignore[attr-defined]
    graph: Graph = trace(run)(*specs)
    return graph


def parameters(graph: Graph) -> dict[str, Any]:
    """The variables of a graph by name; for an imported graph, its floating-point initializers.

    Returns
    -------
    dict from str to Tensor
        Assigning to one (``p[...] = value``) changes the results of the graph.
    """
    found = owners_of(graph.variables)
    return {
        n.name or f"{k}": t for k, (n, t) in enumerate(zip(graph.variables, found, strict=True))
    }


class ModelReader:
    """Converts the nodes of a file in order.

    Parameters
    ----------
    opset : int
        The version of the operators.
    known : mapping from str to array
        The values of initializers, including variables, for inputs that must be known when the
        graph is built.
    memory : MemoryLimit
        Limit of the memory of computed constants.
    """

    def __init__(self, opset: int, known: Mapping[str, Any], memory: MemoryLimit) -> None:
        self.opset = opset
        self.known = known
        self.memory = memory

    def run(self, graph: Any, values: dict[str, Any]) -> None:
        """Convert the nodes of a graph; `values` contains its inputs, and results are added."""
        for proto in graph.node:
            results = self._read(proto, values)
            for name, value in zip(proto.output, results, strict=False):
                if name:
                    values[name] = value

    def _read(self, proto: Any, values: dict[str, Any]) -> tuple[Any, ...]:
        run_body = lambda body, given: self._run_body(body, given, values)  # noqa: E731
        n = NodeView(proto, self.opset, self.memory, run_body)
        entry = reader_of(n.kind) if proto.domain in ("", "ai.onnx") else None
        if entry is None:
            kind = n.kind if proto.domain in ("", "ai.onnx") else f"{proto.domain}.{n.kind}"
            raise BackendError(
                f"onnx.load: the operator {kind} is not supported. wg.onnx.imported() lists the "
                f"supported ones{at(user_line())}."
            )
        self._check_version(n)
        try:
            inputs = [values[name] if name else None for name in proto.input]
        except KeyError as error:
            raise FileError(
                f"onnx.load: {n.kind} uses {error}, which no node before it computes"
                f"{at(user_line())}."
            ) from None
        for k in entry.static:
            if k < len(inputs) and proto.input[k] in self.known:
                inputs[k] = self.known[proto.input[k]]
        if not entry.lengths:
            inputs = [x if k in entry.static else as_value(x) for k, x in enumerate(inputs)]
        try:
            run = functools.partial(entry.function, n)
            self.memory.need_result(n.label, run, inputs, entry.static, entry.grows)
            out = run(*inputs)
        except (BackendError, FileError, TraceError):
            raise
        except Exception as error:
            raise FileError(
                f"onnx.load: {n.kind} {n.name!r} of the file is invalid: {type(error).__name__}: "
                f"{str(error).rstrip('.')}{at(user_line())}."
            ) from error
        results = out if isinstance(out, tuple) else (out,)
        self.memory.take(results)
        return results

    def _run_body(self, body: Any, given: Any, values: Mapping[str, Any]) -> list[Any]:
        """The results of a subgraph, which can refer to values of the outer graph by name."""
        own = {t.name: _array(t) for t in body.initializer}
        heads = [i.name for i in body.input]
        found = {**values, **own, **dict(zip(heads, given, strict=True))}
        ModelReader(self.opset, {**self.known, **own}, self.memory).run(body, found)
        return [as_value(found[o.name]) for o in body.output]

    def _check_version(self, n: NodeView) -> None:
        """Raise if an operator is defined differently in this opset than in supported ones."""
        if self.opset >= min(_OLDEST, _SAME_FROM.get(n.kind, _OLDEST)):
            return
        defs = onnx().defs
        try:
            here = defs.get_schema(n.kind, self.opset, "").since_version
            first = defs.get_schema(n.kind, _OLDEST, "").since_version
        except defs.SchemaError:
            here, first = 0, 1
        if here != first:
            raise n.unsupported(
                f"of opset {self.opset} may differ from the one of opset {_OLDEST} and later. "
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
        source.open("rb").close()  # raises an OSError that names the file
    elif not hasattr(file, "read"):
        raise ArgumentError(
            f"onnx.load: {type(file).__name__} is not a file. Pass a path, bytes or an open binary "
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
            f"onnx.load: {_shown(file)} is damaged or not an ONNX file: {_first_line(error)}"
            f"{at(user_line())}."
        ) from error
    if model.functions:
        model = package.inliner.inline_local_functions(model)
    return model


def _shown(file: Any) -> str:
    return repr(str(file)) if isinstance(file, str | os.PathLike) else "the file"


def _first_line(error: BaseException) -> str:
    return (str(error).strip().partition("\n")[0] or type(error).__name__).rstrip(".")


def _opset_of(model: Any) -> int:
    found = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
    newest = min(_NEWEST, onnx().defs.onnx_opset_version())
    if not found:
        raise _unsupported("uses no standard ONNX operators, only operators of other domains")
    if not 1 <= found[0] <= newest:
        raise _unsupported(f"has opset {found[0]}; opsets {_OLDEST} to {newest} are supported")
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
        raise _unsupported(f"has an input {head.name!r} that is not a numeric array")
    if not head.type.tensor_type.HasField("shape"):
        raise _unsupported(f"does not define the number of axes of its input {head.name!r}")
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
    """The name of a dynamic axis as a symbolic size; simple expressions of names are kept."""
    if re.fullmatch(r"[A-Za-z]\w*(\s*[-+*]\s*\w+)*", text):
        return text
    name = re.sub(r"\W", "_", text)
    return name if re.match("[A-Za-z]", name) else f"n{name}"


def _signature(names: list[str]) -> inspect.Signature:
    """A signature with the names of inputs, made valid and unique."""
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
    return as_value(x)
