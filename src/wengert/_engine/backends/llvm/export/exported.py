"""One graph as LLVM functions that need no Python: code, constants, and a bound of the workspace.

    Exported     the functions of a graph
    exported     generates them for a processor

The names of functions that belong to one graph (`kernel`, `nest0`, ...) begin with its name, so the
functions of several graphs can be in one module; functions that all share are there once.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import Requirement
from wengert.errors import BackendError, at, user_line

from ..abi.ports import Port
from ..ir.execution_engine import Processor, compiling_for
from ..ir.llvm_types import in_memory, is_supported, literal, part_of
from ..program import Program
from . import externals
from .workspace import Bound, bound_of, names_in

_OWN = re.compile(r"@((?:kernel|nest|body|step|batch)[-\w.$]*)")


class _ExportedProgram(Program):
    """A program that Python does not call."""

    is_called_by_python = False


@dataclass(frozen=True)
class Exported:
    """The functions of a graph.

    Attributes
    ----------
    name : str
        The name of the C function.
    inputs, outputs : tuple of (str, Spec)
        Names in C, and specs.
    sizes : tuple of (str, str)
        The symbolic sizes, and their names in C.
    input_ports, output_ports, size_slots, slots
        The frame of the kernel (abi/ports.py).
    constants : tuple of (int, str)
        Slots of the frame, and the names of the constants whose addresses are in them.
    requirements : tuple of Requirement
        Conditions that the sizes must satisfy.
    bound : Bound
    parts : dict from str to str
        Functions and constants of the module.
    linked : dict from str to str
        Functions of other libraries, and their symbols.
    """

    name: str
    inputs: tuple[tuple[str, Spec], ...]
    outputs: tuple[tuple[str, Spec], ...]
    sizes: tuple[tuple[str, str], ...]
    input_ports: tuple[Port, ...]
    output_ports: tuple[Port, ...]
    size_slots: tuple[int, ...]
    slots: int
    constants: tuple[tuple[int, str], ...]
    requirements: tuple[Requirement, ...]
    bound: Bound
    parts: dict[str, str]
    linked: dict[str, str]

    @property
    def kernel(self) -> str:
        """The name of the function that reads its arguments from the frame."""
        return f"{self.name}.kernel"


def exported(
    graph: BaseGraph,
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    size_names: Mapping[str, str],
    processor: Processor,
    workspace: int = 0,
    links_blas: bool = False,
) -> Exported:
    """The functions of a graph for a processor.

    Parameters
    ----------
    graph : Graph
    name : str
        The name of the C function.
    input_names, output_names : sequence of str
    size_names : mapping from str to str
        Names in C of the symbolic sizes.
    processor : Processor
    workspace : int
        Bytes for allocations whose size is computed by the run.
    links_blas : bool
        Whether BLAS and LAPACK are called, and not included.

    Raises
    ------
    BackendError
        The graph has variables or side effects, calls back into Python, calls a library that exists
        only in this process, or has values of an unsupported dtype.
    """
    _refuse_effects(graph, name)
    with compiling_for(processor):
        program = _ExportedProgram(graph, threads=1)
        parts = dict(program.module.parts)
        extra: int | None = 0
        for used in externals.declared(parts):
            found = externals.included(used, links_blas)
            if found is not None:
                module, needed = found
                del parts[used]
                parts = {**parts, **module.parts}
                extra = None if extra is None or needed is None else max(extra, needed)
    _refuse_callbacks(program, name)
    parts = _reachable(parts, "kernel")
    names = externals.declared(parts)
    externals.refuse(names, graph)
    constants, arrays = [], {}
    for slot, array in program.constants:
        label, text = _constant(array)
        arrays[label] = text
        constants.append((slot, label))
    owned = {_own(k, name): _internal(_OWN.sub(rf"@{name}.\1", t)) for k, t in parts.items()}
    return Exported(
        name,
        tuple(zip(input_names, [p.spec for p in program.inputs], strict=True)),
        tuple(zip(output_names, [p.spec for p in program.outputs], strict=True)),
        tuple((n, size_names[n]) for n in program.sizes),
        tuple(program.inputs),
        tuple(program.outputs),
        tuple(program.size_slots),
        program.slots,
        tuple(constants),
        tuple(program.requirements),
        bound_of(program.module.allocations, program.sizes, extra, workspace),
        {**arrays, **owned},
        externals.linked(names),
    )


def _own(part: str, name: str) -> str:
    return _OWN.sub(rf"@{name}.\1", f"@{part}")[1:]


def _internal(text: str) -> str:
    """A definition that other files do not see."""
    if text.startswith("define ") and not text.startswith("define internal"):
        return text.replace("define ", "define internal ", 1)
    return text


def _reachable(parts: Mapping[str, str], first: str) -> dict[str, str]:
    """The parts that a function needs."""
    found, pending = {first}, [first]
    while pending:
        new = {n for n in names_in(parts[pending.pop()]) if n in parts} - found
        found |= new
        pending += new
    return {name: text for name, text in parts.items() if name in found}


def _constant(array: np.ndarray[Any, Any]) -> tuple[str, str]:
    """The name and the definition of a constant array."""
    dtype = array.dtype
    part = part_of(dtype)
    kind = in_memory(part)
    flat = np.ravel(array)
    flat = flat.view(part) if dtype.kind == "c" else flat
    name = f"constant.{dtype.str[1:]}.{hashlib.sha256(flat.tobytes()).hexdigest()[:16]}"
    if not len(flat):
        return name, f"@{name} = internal constant [1 x {kind}] zeroinitializer, align 64"
    values = [str(int(v)) if part.kind == "b" else literal(v, part) for v in flat]
    listed = ", ".join(f"{kind} {v}" for v in values)
    return name, f"@{name} = internal constant [{len(flat)} x {kind}] [{listed}], align 64"


def _refuse_effects(graph: BaseGraph, name: str) -> None:
    checks = all(n.op.effects.only_if_true for n in graph.effects)
    if graph.updates or graph.variables or not checks:
        raise BackendError(
            f"{name} reads or changes variables (parameters, random states, buffers), or has other "
            "side effects, which an exported function cannot. Pass them as arguments, and return "
            f"new values{at(user_line())}."
        )
    for node in graph.nodes:
        for spec in node.spec if isinstance(node.spec, tuple) else (node.spec,):
            if isinstance(spec, Spec) and not is_supported(spec.dtype):
                raise BackendError(
                    f"{name} has values of dtype {spec.dtype} ({node.op.name}), which cannot be "
                    "exported. Use float64, float32, integers or complex numbers"
                    f"{at(node.where or user_line())}."
                )


def _refuse_callbacks(program: Program, name: str) -> None:
    nodes = program.host_callbacks
    if nodes:
        names = ", ".join(sorted({f"{n.op.name}{at(n.where)}" for n in nodes}))
        raise BackendError(
            f"{name} would call back into Python for {names}, so it cannot be exported. Use other "
            "operations, or export the parts before and after it."
        )
