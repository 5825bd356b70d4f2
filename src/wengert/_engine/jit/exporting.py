"""export: a function and its derivatives as files for other languages (docs/export.md).

Each derivative is a function of its own, that of `wengert.grad`, `jvp` ..., traced for the given
specs; the backend generates code for the graphs and renders the files.

    export           writes the files
    ExportedFiles    what it returns: the files, and the functions in them
    DERIVATIVES      how each derivative is made of a function
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from wengert._engine.autodiff.grad import grad, value_and_grad
from wengert._engine.autodiff.jacobians import hessian, jacobian
from wengert._engine.autodiff.jvp_vjp import jvp, vjp
from wengert._engine.backends import backend
from wengert._engine.backends.llvm.export.files import FunctionToExport
from wengert._engine.core import pytree
from wengert._engine.core.loop_variants import LATE
from wengert._engine.core.spec import Spec
from wengert._engine.graphs import trace
from wengert._engine.graphs.graph import Graph
from wengert._engine.serialization.atomic_files import write
from wengert.errors import ArgumentError, at, user_line

from .lowered import spec_of_argument


@dataclass(frozen=True)
class DerivativeToExport:
    """A derivative as a function to trace.

    Attributes
    ----------
    function : callable
        Takes the arguments of the differentiated function, and then others.
    more : tuple of tree
        The specs of these others.
    more_names : tuple of str
        The names of their leaves; ``{k}`` is the name of the k-th input of the function itself.
    outputs : str
        What the names of its outputs begin with.
    what : str
    tables : mapping from str to tuple of int
        Tables for the header.
    """

    function: Callable[..., Any]
    outputs: str
    what: str
    more: tuple[Any, ...] = ()
    more_names: tuple[str, ...] = ()
    tables: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class DerivativeRequest:
    """What derivatives are made of.

    Attributes
    ----------
    fun : callable
    args : tuple
        Specs and static arguments.
    argnums : int or tuple of int
    name : str
    results : tree of Spec
        Of the function itself.
    """

    fun: Callable[..., Any]
    args: tuple[Any, ...]
    argnums: int | tuple[int, ...]
    name: str
    results: Any

    @property
    def numbers(self) -> tuple[int, ...]:
        """The arguments to differentiate with respect to."""
        return (self.argnums,) if isinstance(self.argnums, int) else self.argnums

    def chosen(self) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        """The specs and names of tangents of the differentiated arguments."""
        starts = [0]
        for arg in self.args:
            starts.append(starts[-1] + len(_specs_of(arg)))
        places = [n for k in self.numbers for n in range(starts[k], starts[k + 1])]
        names = tuple(f"{{{n}}}_dot" for n in places)
        return tuple(self.args[k] for k in self.numbers), names

    def of_chosen(self, args: Sequence[Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The function of the differentiated arguments alone, and these."""

        def function(*values: Any) -> Any:
            now = list(args)
            for k, value in zip(self.numbers, values, strict=True):
                now[k] = value
            return self.fun(*now)

        return function, tuple(args[k] for k in self.numbers)


@dataclass(frozen=True)
class ExportedFiles:
    """What `export` has written.

    Attributes
    ----------
    path, header : Path
        The file with the functions, and the C header.
    functions : tuple
        The functions: ``name``, ``inputs``, ``outputs`` (names and specs), ``sizes``.
    target : str
    """

    __module__ = "wengert.compiling"

    path: Path
    header: Path
    functions: tuple[Any, ...]
    target: str

    def __str__(self) -> str:
        names = ", ".join(f.name for f in self.functions)
        return f"{self.path} and {self.header}: {names}, for {self.target}"


Maker = Callable[[DerivativeRequest], DerivativeToExport]
DERIVATIVES: dict[str, Maker] = {}
_FOR_CASADI = ("value", "casadi_jacobian", "casadi_second")  # as many as the order and one


def derivative(name: str) -> Callable[[Maker], Maker]:
    """Register how a derivative is made (a decorator)."""
    return lambda make: DERIVATIVES.setdefault(name, make)


@derivative("value")
def _value(r: DerivativeRequest) -> DerivativeToExport:
    return DerivativeToExport(r.fun, "value", "the function itself")


@derivative("gradient")
def _gradient(r: DerivativeRequest) -> DerivativeToExport:
    return DerivativeToExport(grad(r.fun, r.argnums), "gradient", "the gradient")


@derivative("value_and_gradient")
def _value_and_gradient(r: DerivativeRequest) -> DerivativeToExport:
    both = value_and_grad(r.fun, r.argnums)

    def function(*args: Any) -> Any:
        value, gradient = both(*args)
        return {"gradient": gradient, "value": value}

    return DerivativeToExport(function, "", "the value and the gradient")


@derivative("jacobian")
def _jacobian(r: DerivativeRequest) -> DerivativeToExport:
    return DerivativeToExport(jacobian(r.fun, r.argnums), "jacobian", "the Jacobian")


@derivative("casadi_jacobian")
def _all_jacobians(r: DerivativeRequest) -> DerivativeToExport:
    numbers = tuple(k for k, a in enumerate(r.args) if _specs_of(a))
    blocks = jacobian(r.fun, numbers)

    def function(*args: Any) -> Any:
        return tuple(pytree.flatten(blocks(*args))[0])

    return DerivativeToExport(function, "jacobian", "all Jacobians, for CasADi")


@derivative("casadi_second")
def _all_second_derivatives(r: DerivativeRequest) -> DerivativeToExport:
    numbers = tuple(k for k, a in enumerate(r.args) if _specs_of(a))
    blocks = jacobian(jacobian(r.fun, numbers), numbers)

    def function(*args: Any) -> Any:
        return tuple(pytree.flatten(blocks(*args))[0])

    return DerivativeToExport(function, "second", "all second derivatives, for CasADi")


@derivative("hessian")
def _hessian(r: DerivativeRequest) -> DerivativeToExport:
    return DerivativeToExport(hessian(r.fun, r.argnums), "hessian", "the Hessian")


@derivative("jvp")
def _jvp(r: DerivativeRequest) -> DerivativeToExport:
    given = len(r.args)

    def function(*args: Any) -> Any:
        of_chosen, primals = r.of_chosen(args[:given])
        value, tangent = jvp(of_chosen, primals, args[given:])
        return {"tangent": tangent, "value": value}

    return DerivativeToExport(
        function, "", "the value and the Jacobian-vector product", *r.chosen()
    )


@derivative("vjp")
def _vjp(r: DerivativeRequest) -> DerivativeToExport:
    def function(*args: Any) -> Any:
        of_chosen, primals = r.of_chosen(args[:-1])
        value, back = vjp(of_chosen, *primals)
        gradients = back(args[-1])
        return {"gradient": gradients[0] if len(gradients) == 1 else gradients, "value": value}

    names = tuple(f"cotangent{p}" for p in pytree.paths(r.results))
    what = "the value and the vector-Jacobian product"
    return DerivativeToExport(function, "", what, (r.results,), names)


@derivative("hvp")
def _hvp(r: DerivativeRequest) -> DerivativeToExport:
    if len(r.numbers) != 1:
        raise ArgumentError(
            f"{r.name}: 'hvp' is the product with respect to one argument. Give argnums as an "
            f"integer{at(user_line())}."
        )

    def function(*args: Any) -> Any:
        of_chosen, primals = r.of_chosen(args[:-1])
        return jvp(grad(of_chosen), primals, args[-1:])[1]

    return DerivativeToExport(function, "product", "the Hessian times a vector", *r.chosen())


def export(
    fun: Any,
    path: str | os.PathLike[str],
    args: Any,
    *,
    derivatives: str | Sequence[str] = ("value",),
    format: str | None = None,
    target: str | None = None,
    name: str | None = None,
    argnums: int | Sequence[int] = 0,
    linker: str | None = None,
    workspace: int = 0,
    blas: str = "include",
    casadi: bool | int = False,
    simplify: bool = True,
) -> ExportedFiles:
    """Write a function and derivatives of it as a file for other languages, with a C header.

    Parameters
    ----------
    fun : callable
        A function as for `wengert.jit`, or a compiled one.
    path : path-like
        The file; the header stands beside it, with the suffix ``.h``.
    args : sequence, or spec
        Examples or specs (`wengert.spec`) of the arguments; the only one may be given alone.
        Symbolic sizes become arguments. Captured arrays become constants.
    derivatives : str or sequence of str
        What is exported: "value", "gradient", "value_and_gradient", "jacobian", "hessian", "jvp",
        "vjp", "hvp", "sparse_jacobian", "sparse_hessian". The value is the C function NAME, the
        others are NAME_gradient and so on.
    format : {"c", "object", "shared", "llvm", "wasm"}, optional
        By default that of the file's suffix.
    target : str, optional
        "native" (the default: this computer's processor), "x86-64", "x86-64-v3", "x86-64-v4",
        "aarch64", "riscv64", "wasm32", or an LLVM triple. Of C: C99 if it is not given; else C with
        vector types of GCC and Clang, as wide as the target's registers.
    name : str, optional
        The name in C; by default that of the function.
    argnums : int or sequence of int
        The arguments to differentiate with respect to.
    linker : str, optional
        The command that links ``"shared"`` and ``"wasm"``.
    workspace : int
        Bytes of workspace for arrays whose lengths the run computes.
    blas : {"include", "link"}
        Whether usual routines of BLAS and LAPACK are included as plain loops, or called in a
        library that the program is linked with.
    casadi : bool or int
        Whether C has the functions by which CasADi calls the value and its Jacobians too:
        ``casadi.external("NAME_casadi", "./file.so")``. With 2, second derivatives too.
    simplify : bool
        Whether to simplify the graphs.

    Returns
    -------
    ExportedFiles

    Raises
    ------
    BackendError
        An operation needs Python or a library of this process, memory without a bound, or a linker
        that is not installed.
    ArgumentError
        An unknown derivative, format or target.
    OSError
        The file cannot be written.
    """
    where = Path(path)
    wanted = (derivatives,) if isinstance(derivatives, str) else tuple(derivatives)
    if casadi not in (0, 1, 2):
        raise ArgumentError(
            f"casadi={casadi!r}: it must be True, False, or 2 for second derivatives too"
            f"{at(user_line())}."
        )
    for_casadi = _FOR_CASADI[: int(casadi) + 1] if casadi else ()
    wanted = tuple(dict.fromkeys((*wanted, *for_casadi)))
    own = name or getattr(fun, "__name__", "") or where.stem
    own = where.stem if own == "<lambda>" else own
    listed = args if isinstance(args, list | tuple) else (args,)
    specs = tuple(pytree.tree_map(spec_of_argument, a) for a in listed)
    base = trace(fun)(*specs)
    results = pytree.unflatten(base.structure[1].structure, [n.spec for n in base.outputs])
    chosen = argnums if isinstance(argnums, int) else tuple(argnums)
    request = DerivativeRequest(fun, specs, chosen, own, results)
    functions = []
    for what in wanted:
        made = _maker(what)(request)
        graph = base if what == "value" else trace(made.function)(*specs, *made.more)
        functions.append(_function(own, what, made, graph, base, simplify))
    native: Any = backend("llvm")
    found = native.export(
        where,
        functions,
        format=format,
        target=target,
        linker=linker,
        workspace=workspace,
        blas=blas,
        casadi=tuple(wanted.index(w) for w in for_casadi) if casadi else None,
    )
    header = where.with_suffix(".h")
    write(where, [found.code])
    write(header, [found.header])
    return ExportedFiles(where, header, found.functions, found.target)


def _maker(what: str) -> Maker:
    if what not in DERIVATIVES:
        for module in LATE:
            import_module(module)
    if what not in DERIVATIVES:
        raise ArgumentError(
            f"{what!r} is none of the derivatives {', '.join(map(repr, DERIVATIVES))}"
            f"{at(user_line())}."
        )
    return DERIVATIVES[what]


def _function(
    own: str, what: str, made: DerivativeToExport, graph: Graph, base: Graph, simplify: bool
) -> FunctionToExport:
    """A graph with the names of its inputs and outputs."""
    structure = graph.structure[1]
    paths = pytree.paths(pytree.unflatten(structure.structure, [0] * len(structure.live)))
    outputs = [made.outputs + p for p, live in zip(paths, structure.live, strict=True) if live]
    names = [n.name or "x" for n in base.inputs]
    inputs = (*names, *[more.format(*names) for more in made.more_names])
    return FunctionToExport(
        own if what == "value" else f"{own}_{what}",
        graph.simplify() if simplify else graph,
        inputs,
        tuple(outputs),
        f"{made.what} of {own}",
        made.tables,
    )


def _specs_of(tree: Any) -> list[Spec]:
    return [x for x in pytree.flatten(tree)[0] if isinstance(x, Spec)]
