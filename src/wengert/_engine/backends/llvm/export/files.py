"""The files of exported functions.

FORMATS            the formats, with the suffixes of their files
FunctionToExport   a graph and the function that it becomes
Export             the contents of the files, and what is in them
rendered           generates the functions of some graphs
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.symbolic.dim import names_in
from wengert.errors import ArgumentError, BackendError, at, user_line

from ..ir.processors import Processor
from . import linking
from .c_names import distinct, function_name
from .c_source import c_source
from .c_vectors import vector_types
from .casadi_names import casadi_source
from .exported import Exported, exported
from .header import Described, header
from .object_code import merged, module_text, object_code
from .targets import SCALAR, target_of

FORMATS = {
    "c": (".c",),
    "llvm": (".ll",),
    "object": (".o", ".obj"),
    "shared": (".so", ".dylib", ".dll"),
    "wasm": (".wasm",),
}
_TAKEN = ("work", "work_bytes")


@dataclass(frozen=True)
class FunctionToExport:
    """A graph and the function that it becomes.

    Attributes
    ----------
    name : str
    graph : BaseGraph
    inputs, outputs : tuple of str
        Names, from which the names in C are made.
    what : str
        What it computes.
    tables : mapping from str to tuple of int
        Tables for the header.
    """

    name: str
    graph: BaseGraph
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    what: str
    tables: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Export:
    """The contents of the files.

    Attributes
    ----------
    code, header : bytes
    functions : tuple of Exported
    target : str
    """

    code: bytes
    header: bytes
    functions: tuple[Exported, ...]
    target: str


def rendered(
    path: Path,
    functions: Sequence[FunctionToExport],
    *,
    format: str | None = None,
    target: str | None = None,
    linker: str | None = None,
    workspace: int = 0,
    blas: str = "include",
    casadi: tuple[int, ...] | None = None,
) -> Export:
    """Generate the functions of some graphs.

    Parameters
    ----------
    path : Path
        The file; the header has the same name with the suffix ``.h``.
    functions : sequence of FunctionToExport
    format : str, optional
        One of `FORMATS`; by default that of the suffix.
    target : str, optional
        See `targets.target_of`.
    linker : str, optional
        See `linking.linked`.
    workspace : int
        Bytes of workspace for arrays whose lengths are computed by the run.
    blas : {"include", "link"}
        Whether routines of BLAS and LAPACK are included, or called in a library.
    casadi : tuple of int, optional
        The places of the value and of the Jacobians in `functions`, if CasADi is to find them.
    """
    if blas not in ("include", "link"):
        raise ArgumentError(f"blas={blas!r} is neither 'include' nor 'link'{at(user_line())}.")
    chosen = _format_of(path, format)
    if chosen != "c" and casadi is not None:
        raise ArgumentError(
            f"casadi=True adds functions in C, but the format is {chosen!r}. Give format='c', and "
            f"compile the file as a shared library{at(user_line())}."
        )
    if chosen == "wasm" and target is None:
        target = "wasm32"
    processor = _processor_of_c(target) if chosen == "c" else target_of(target)
    if chosen == "wasm" and "wasm" not in processor.triple:
        raise ArgumentError(
            f"format='wasm' is for the target 'wasm32', and not for {target!r}{at(user_line())}."
        )
    made = [_function(f, processor, workspace, blas == "link") for f in functions]
    if chosen == "c":
        with nullcontext() if target is None else vector_types():
            text = c_source(path.stem, made, merged(made), version("wengert"))
        if casadi is not None:
            text += "\n" + casadi_source(*[made[k] for k in casadi])
        content = text.encode()
    else:
        text = module_text(made, processor)
        content = text.encode() if chosen == "llvm" else object_code(text, processor)
    if chosen in ("shared", "wasm"):
        names = [n for f in made for n in (f.name, f"{f.name}_work")]
        content = linking.linked(content, processor, names, linker)
    described = [Described(m, f.what, f.tables) for m, f in zip(made, functions, strict=True)]
    head = header(path.stem, described, version("wengert")).encode()
    return Export(content, head, tuple(made), processor.name)


def _processor_of_c(target: str | None) -> Processor:
    """The processor that C is printed for: one without vectors, or with those of a target."""
    if target is None:
        return SCALAR
    lanes = target_of(target).vector_bytes
    return replace(SCALAR, name=f"c-{lanes}", loop_bytes=lanes, widens=False)


def _format_of(path: Path, given: str | None) -> str:
    if given is None:
        given = next((f for f, ends in FORMATS.items() if path.suffix in ends), None)
        if given is None:
            raise ArgumentError(
                f"the suffix of {str(path)!r} is none of "
                f"{', '.join(e for ends in FORMATS.values() for e in ends)}. Give the format, "
                f"format='object'{at(user_line())}."
            )
    if given not in FORMATS:
        raise ArgumentError(
            f"format={given!r} is none of {', '.join(map(repr, FORMATS))}{at(user_line())}."
        )
    if path.suffix == ".h":
        raise ArgumentError(
            f"{str(path)!r} is the name of the header, which is written beside the file with the "
            f"functions. Use another suffix{at(user_line())}."
        )
    return given


def _function(
    given: FunctionToExport, processor: Processor, workspace: int, links_blas: bool
) -> Exported:
    graph = given.graph
    sizes = sorted(names_in([n for x in graph.inputs for n in x.spec.shape]))
    names = distinct([*given.inputs, *given.outputs, *sizes], [*_TAKEN, given.name])
    count, total = len(given.inputs), len(given.inputs) + len(given.outputs)
    made = exported(
        graph,
        function_name(given.name),
        names[:count],
        names[count:total],
        dict(zip(sizes, names[total:], strict=True)),
        processor,
        workspace,
        links_blas,
    )
    if not made.bound.is_known:
        raise BackendError(
            f"{given.name} allocates memory whose size is computed while it runs (a loop with an "
            "unknown number of steps, results of unknown lengths, or a routine of LAPACK with a "
            "workspace of its own). Give a bound in bytes, workspace=1 << 20; a run that needs "
            f"more returns the code for a workspace that is too small{at(user_line())}."
        )
    return made
