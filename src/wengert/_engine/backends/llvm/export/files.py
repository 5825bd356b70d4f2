"""The files of exported functions.

FORMATS            the formats, with the suffixes of their files
FunctionToExport   a graph and the function that it becomes
Export             the contents of the files, and what is in them
rendered           generates the functions of some graphs

Object files as shared libraries and WebAssembly modules, by a compiler of the user.

The linker is the one that is given; else that of this computer for its own code (`cc`), and zig, of
the package `ziglang`, for other targets.

    linked       the bytes of a linked file

Processors that code is exported for.

    TARGETS          by name
    target_of        a processor, by its name or an LLVM triple
    SCALAR           the processor for which C is printed: without vectors

A triple (`aarch64-apple-darwin`) has the instructions of the target of its first part.
"""

from __future__ import annotations

import importlib.util
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.symbolic.dim import names_in
from wengert.errors import ArgumentError, BackendError, at, user_line

from ..ir import execution_engine
from ..ir.execution_engine import Processor
from .c_names import distinct, function_name
from .c_source import c_source
from .c_vectors import vector_types
from .casadi_names import casadi_source
from .entry_points import Described, header
from .exported import Exported, exported
from .object_code import merged, module_text, object_code

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
        content = linked(content, processor, names, linker)
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


_ZIG = {
    "x86_64": "x86_64-linux-gnu",
    "aarch64": "aarch64-linux-gnu",
    "riscv64": "riscv64-linux-gnu",
}


def linked(
    image: bytes, processor: Processor, names: Sequence[str], linker: str | None = None
) -> bytes:
    """An object file as a shared library, or as a module of WebAssembly.

    Parameters
    ----------
    image : bytes
    processor : Processor
    names : sequence of str
        The functions that are called from outside.
    linker : str, optional
        A command, such as ``"aarch64-linux-gnu-gcc"``.

    Raises
    ------
    BackendError
        There is no linker for the target, or it fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "code.o"), Path(folder, "code.out")
        source.write_bytes(image)
        command = [*_command(processor, names, linker), "-o", str(result), str(source)]
        if "wasm" not in processor.triple:
            command.append("-lm")
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise BackendError(
                f"the linker {command[0]!r} cannot be run: {error}{at(user_line())}."
            ) from error
        if done.returncode or not result.exists():
            raise BackendError(
                f"linking failed ({shlex.join(command[:-3])}): {done.stderr.strip()[-2000:]}"
                f"{at(user_line())}."
            )
        return result.read_bytes()


def _command(processor: Processor, names: Sequence[str], linker: str | None) -> list[str]:
    if "wasm" in processor.triple:
        first = shlex.split(linker) if linker else [*_zig("a WebAssembly module"), "wasm-ld"]
        exports = [f"--export={n}" for n in names]
        return [*first, "--no-entry", *exports, "--export=__heap_base", "--allow-undefined"]
    if linker:
        return [*shlex.split(linker), "-shared"]
    own = str(execution_engine.machine().triple)
    compiler = next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)
    if processor.triple.split("-")[0] == own.split("-")[0] and compiler is not None:
        return [compiler, "-shared"]
    zig = _ZIG.get(processor.triple.split("-")[0])
    if zig is None:
        raise BackendError(
            f"there is no linker for {processor.triple}. Give one, linker='...', or export an "
            f"object file, format='object'{at(user_line())}."
        )
    return [*_zig(f"a shared library for {processor.name}"), "cc", "-target", zig, "-shared"]


def _zig(what: str) -> list[str]:
    if importlib.util.find_spec("ziglang") is None:
        raise BackendError(
            f"linking {what} needs a compiler for it. Install the package ziglang "
            "(pip install wengert[cross]), give the command of a linker, linker='...', or export "
            f"an object file, format='object'{at(user_line())}."
        )
    return [sys.executable, "-m", "ziglang"]


_AVX512 = "+avx512f,+avx512vl,+avx512dq,+avx512bw,+avx512cd"
_LINUX = "unknown-linux-gnu"
TARGETS = {
    p.name: p
    for p in (
        Processor("x86-64", f"x86_64-{_LINUX}", "x86-64", "", 16, 16),
        Processor("x86-64-v3", f"x86_64-{_LINUX}", "x86-64-v3", "+avx,+avx2,+fma", 32, 32),
        Processor("x86-64-v4", f"x86_64-{_LINUX}", "x86-64-v4", f"+avx2,+fma,{_AVX512}", 64, 64),
        Processor("aarch64", f"aarch64-{_LINUX}", "generic", "+neon", 16, 16),
        Processor("riscv64", f"riscv64-{_LINUX}", "generic-rv64", "+m,+a,+f,+d,+c", 16, 0, "lp64d"),
        Processor("wasm32", "wasm32-unknown-unknown", "generic", "+simd128", 16, 16),
    )
}
SCALAR = Processor("c", f"x86_64-{_LINUX}", "x86-64", "", 16, 0)
_ARCHITECTURES = {"x86_64": "x86-64", "arm64": "aarch64"}


def target_of(name: str | None) -> Processor:
    """A processor, by its name or an LLVM triple; by default this computer's.

    Raises
    ------
    ArgumentError
        There is no such target.

    Examples
    --------
    >>> target_of("riscv64").abi
    'lp64d'
    >>> target_of("aarch64-apple-darwin").triple
    'aarch64-apple-darwin'
    """
    if name is None or name == "native":
        return _native()
    if name in TARGETS:
        return TARGETS[name]
    first, dash, _ = name.partition("-")
    known = TARGETS.get(_ARCHITECTURES.get(first, first))
    if known is None or not dash:
        raise ArgumentError(
            f"{name!r} is not a target. Use 'native', {', '.join(map(repr, TARGETS))}, or an LLVM "
            f"triple that begins with x86_64, aarch64, riscv64 or wasm32{at(user_line())}."
        )
    return replace(known, triple=name)


def _native() -> Processor:
    width = execution_engine.vector_bytes()
    triple = str(execution_engine.machine().triple)
    cpu, features = execution_engine.cpu(), execution_engine.features()
    return Processor("native", triple, cpu, features, width, width)
