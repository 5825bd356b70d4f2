"""Laws of compiled code, native or of an emulated device: it agrees with eager execution.

    native_values_agree, device_values_agree
                                values for all dtypes that the operation accepts,
                                special values; operands that are broadcast, empty, 0-d, or
                                parts of other arrays
    native_derivatives_agree    both modes, first and second order
    native_sizes_agree          one program for all sizes, run for two sets of sizes

The cases of an operation are nodes of one graph, so that a law takes only a few compilations.  The
native program must return a result: a run that is left to the interpreter violates the law, except
for operations of libraries (a singular matrix, for example).

Tolerances are relative to the largest element of a result.  The order of sums differs from NumPy's,
and elementary functions are wengert's own, accurate to one or two units in the last place
(tests/backends/llvm/test_leaves_*.py).  `UNITS` units are allowed for values, and more for
derivatives, depending on the order.

The threads of an emulated kernel run one after the other, in random order; results have memory that
was filled with other numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.backends import Backend, backend
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.spec import bare, is_inexact, spec_of
from wengert._engine.graphs.graph import Graph
from wengert._engine.graphs.trace import trace
from wengert.errors import CheckError, WengertError

from .common import arguments_of, draw, floating, has_derivative, is_elementwise, law
from .tracing import FREE, cancellation, compare, derivatives, sizes_agree, special_operands

# In wengert-extras, which may not be installed.
_cuda = LazyModule("wengert._engine.backends.cuda")
_cuda_device = LazyModule("wengert._engine.backends.cuda.device")
_cuda_program = LazyModule("wengert._engine.backends.cuda.program")

UNITS = 64.0  # units in the last place: 1.4e-14 in double precision
GROWTH = {0: 1.0, 1: 4.0, 2: 64.0}  # factor of the tolerance for each order of derivative
_OTHERS = ("float32", "float16", "complex128", "complex64", "int64", "int8", "bool")


class Case(NamedTuple):
    """A computation and its expected result.

    name : name in messages.
    run : function of the operands.
    args : the operands.
    want : the result of eager execution.
    is_variant : whether it is derived from an example, and may be rejected by the operation.
    """

    name: str
    run: Callable[..., Any]
    args: tuple[Any, ...]
    want: Any
    is_variant: bool = False


class Strict(Backend):
    """The native backend without fallback to the interpreter.

    Parameters
    ----------
    threads : int, default 1
    """

    name = "native code alone"

    def __init__(self, threads: int = 1) -> None:
        native: Any = backend("llvm")
        self.native = native.configured(threads=threads)

    def compile(self, graph: Any, sizes: Mapping[str, int]) -> Callable[[Sequence[Any]], list[Any]]:
        """The program, with its sizes."""
        compiled = self.native.compiled(graph)
        bound = dict(sizes)

        def run(values: Sequence[Any]) -> list[Any]:
            found = compiled.run(values, bound)
            if found is None:
                raise Unfinished("native code returned no result.")
            return list(found)

        return run


class Unfinished(CheckError):
    """A native run returned no result, for which the interpreter would be used."""


@law
def native_values_agree(op: Any, rng: np.random.Generator) -> None:
    """Values of native code agree with eager execution, for all dtypes, shapes and layouts."""
    native_values(op, rng, thorough=False)


def native_values(
    op: Any, rng: np.random.Generator, thorough: bool, alone: Callable[[], Backend] = Strict
) -> None:
    """`native_values_agree`; `thorough` checks all examples in all variants.

    `alone` makes the backend, which has no fallback to the interpreter.
    """
    cases: list[Case] = []
    for k, (args, params) in enumerate(arguments_of(op, rng)):
        run = _function(op, params)
        cases.append(_case(f"example {k}", op, run, args, params))
        if k == 0 or thorough:
            cases += _without_none(_variants(k, op, run, args, params))
    for args, params in special_operands(op):
        run = _function(op, params)
        cases.append(_case("special values", op, run, args, params))
        single = tuple(a.astype(np.float32) if a.dtype == np.float64 else a for a in args)
        cases += _without_none([_case_if_valid("special values, float32", op, run, single, params)])
    cases += _without_none(_shaped(op, rng))
    _check(op, cases, 0, alone)


def _function(op: Any, params: dict[str, Any]) -> Callable[..., Any]:
    return lambda *xs: op(*xs, **params) if xs else op.record(**params)


def _case(name: str, op: Any, run: Any, args: Any, params: Any) -> Case:
    with np.errstate(all="ignore"):
        return Case(name, run, tuple(args), op.run(*args, **params))


def _case_if_valid(
    name: str, op: Any, run: Any, args: tuple[Any, ...], params: Any, fed: Any = None
) -> Case | None:
    """A case, if the operation accepts these operands; `fed` are the inputs if they differ."""
    try:
        case = _case(name, op, run, args, params)
        if bare(op.infer([spec_of(a) for a in args], params)) != bare(spec_of(case.want)):
            return None  # LAPACK has no float16 and returns float32
    except Exception:  # eager execution rejects the operands, with any error
        return None
    return case._replace(args=case.args if fed is None else fed, is_variant=True)


def _without_none(cases: Iterable[Case | None]) -> list[Case]:
    return [c for c in cases if c is not None]


def _variants(k: int, op: Any, run: Any, args: Any, params: Any) -> Iterable[Case | None]:
    """An example in other dtypes, and its operands as parts of other arrays."""
    for name in _OTHERS:
        other = tuple(_cast(a, np.dtype(name)) for a in args)
        if any(a is not b for a, b in zip(args, other, strict=True)):
            yield _case_if_valid(f"example {k}, {name}", op, run, other, params)
    arrays = tuple(np.asarray(a) if isinstance(a, np.generic) else a for a in args)
    for name, hide, show in (
        ("transposed", _transposed_copy, _transposed),
        ("interleaved", _interleaved, _deinterleaved),
    ):
        fed = tuple(hide(a) if _has_axes(a) else a for a in arrays)
        flags = [_has_axes(a) for a in arrays]
        if any(flags):

            def seen(*xs: Any, flags: Any = flags, show: Any = show) -> Any:
                return run(*[show(x) if f else x for x, f in zip(xs, flags, strict=True)])

            yield _case_if_valid(f"example {k}, {name}", op, seen, arrays, params, fed)


def _cast(a: Any, dtype: Any) -> Any:
    if not isinstance(a, np.ndarray | np.generic) or a.dtype != np.float64:
        return a
    with np.errstate(all="ignore"):
        return a.astype(dtype) * (dtype.type(1.0 + 0.25j) if dtype.kind == "c" else dtype.type(1))


def _has_axes(a: Any) -> bool:
    return isinstance(a, np.ndarray) and a.ndim > 0


def _transposed_copy(a: Any) -> Any:
    return np.ascontiguousarray(a.T)


def _transposed(x: Any) -> Any:
    return np.transpose(x)


def _interleaved(a: Any) -> Any:
    """The elements in reverse order, interleaved with others that must not be read."""
    wide = np.full((*a.shape[:-1], 2 * a.shape[-1] + 1), np.nan if is_inexact(a.dtype) else 1)
    wide = wide.astype(a.dtype)
    wide[..., -2::-2] = a
    return wide


def _deinterleaved(x: Any) -> Any:
    return x[..., -2::-2]


def _shaped(op: Any, rng: np.random.Generator) -> Iterable[Case | None]:
    """Operands that are broadcast, empty, or of lengths near that of SIMD vectors."""
    if not is_elementwise(op):
        return
    n = len(op.domain)
    shapes: list[tuple[Any, ...]] = [((0, 4),) * n, ((3, 0),) * n, ((37,),) * n, ((),) * n]
    for k in range(n if n > 1 else 0):
        shapes += [
            tuple((3, 1) if i == k else (1, 9) for i in range(n)),
            tuple(() if i == k else (2, 17) for i in range(n)),
            tuple((5,) if i == k else (0, 5) for i in range(n)),
        ]
    for each in shapes:
        args = tuple(draw(d, rng, s) for d, s in zip(op.domain, each, strict=True))
        yield _case_if_valid(f"shapes {each}", op, _function(op, {}), args, {})


# ---- derivatives ---------------------------------------------------------------------------------


@law(applies=has_derivative)
@law
def native_derivatives_agree(op: Any, rng: np.random.Generator) -> None:
    """Derivatives of native code agree with eager execution, in both modes, to second order."""
    native_derivatives(op, rng, thorough=False)


def native_derivatives(op: Any, rng: np.random.Generator, thorough: bool) -> None:
    """`native_derivatives_agree`; `thorough` checks all examples, and single precision."""
    cases: dict[int, list[Case]] = {1: [], 2: []}
    for k, (args, params) in enumerate(arguments_of(op, rng)):
        if k > 1 and not thorough:
            break
        single = tuple(_cast(a, np.dtype(np.float32)) for a in args)
        for name, operands in ((f"example {k}", args), (f"example {k}, float32", single)):
            if name.endswith("32") and (op.kind in ("control", "call") or not (k == 0 or thorough)):
                continue  # bodies are traced for their dtypes
            f, point = floating(op, operands, params)
            prepare = getattr(op, "prepare", None) or (lambda *xs: xs)
            if not point:
                continue
            g = lambda *xs, f=f, p=prepare: f(*p(*xs))  # noqa: E731
            for order, what, derivative in derivatives(g, point, rng):
                if thorough or (order, what) not in ((1, "grad"), (2, "jvp of grad")):
                    want = derivative(*point)
                    cases[order].append(Case(f"{what}, {name}", derivative, point, want))
    for order, several in cases.items():
        _check(op, several, order)


@law
def native_sizes_agree(op: Any, rng: np.random.Generator) -> None:
    """One native program is correct for all sizes: value and gradient for two sets of sizes."""
    native_sizes(op, rng, examples=2)


def native_sizes(op: Any, rng: np.random.Generator, examples: int | None) -> None:
    """`native_sizes_agree` for a number of examples, or all."""
    sizes_agree(op, rng, _run_at_sizes, 2.0**-36, examples)


def _run_at_sizes(graph: Graph, args: Sequence[Any]) -> Any:
    try:
        return graph.run(*args, backend=Strict())
    except Unfinished:
        return graph(*args)


# ---- running -------------------------------------------------------------------------------------


def _check(
    op: Any, cases: Sequence[Case], order: int, alone: Callable[[], Backend] = Strict
) -> None:
    """Run cases in one graph, and compare their results."""
    if not cases:
        return
    graph = _graph(op, cases)
    if graph is None:
        for case in cases:
            single = _graph(op, [case])
            if single is not None:
                _compare_all(op, single, [case], order, alone)
        return
    _compare_all(op, graph, cases, order, alone)


def _graph(op: Any, cases: Sequence[Case]) -> Graph | None:
    """A graph of all cases; None if the operation cannot be traced with these operands."""

    def together(*groups: Any) -> Any:
        return [case.run(*xs) for case, xs in zip(cases, groups, strict=True)]

    try:
        return trace(together)(*[case.args for case in cases])
    except WengertError:
        if len(cases) > 1 or cases[0].is_variant or op.effects.value_dependent_shape:
            return None
        raise


def _compare_all(
    op: Any, graph: Graph, cases: Sequence[Case], order: int, alone: Callable[[], Backend]
) -> None:
    try:
        found = graph.run(*[c.args for c in cases], backend=alone())
    except Unfinished as error:
        if op.kind in FREE:
            raise CheckError(f"{op.name}, {[c.name for c in cases]}: {error}") from error
        if len(cases) > 1:
            for case in cases:
                _check(op, [case], order, alone)
        return
    for case, got in zip(cases, found, strict=True):
        _compare(op, case, got, order)


def _compare(op: Any, case: Case, got: Any, order: int) -> None:
    what = f"native, {case.name}"
    wants = case.want if isinstance(case.want, tuple | list) else (case.want,)
    gots = got if isinstance(got, tuple | list) else (got,)
    for g, w in zip(gots, wants, strict=True):
        dtype = np.asarray(w).dtype if not isinstance(w, tuple | list) else None
        if dtype is None:
            _compare(op, case._replace(want=w), g, order)
            continue
        exact = [np.asarray(a).dtype for a in case.args]
        units = [np.finfo(d).eps for d in (*exact, dtype) if is_inexact(d)]
        unit = float(max(units, default=0.0))
        rounding = cancellation(op, case.args) if order else 0.0
        compare(op, g, w, what, UNITS * GROWTH[order] * unit, rounding)


class StrictDevice(Backend):
    """An emulated device without fallback to the interpreter; results are copied to the host."""

    name = "device code alone"

    def __init__(self) -> None:
        self.device = _cuda.EmulatedDevice(threads=5)

    def compile(self, graph: Any, sizes: Mapping[str, int]) -> Callable[[Sequence[Any]], list[Any]]:
        """The program, with its sizes."""
        program, device = _cuda_program.DeviceProgram(graph, self.device), self.device

        def run(values: Sequence[Any]) -> list[Any]:
            given = [device.put(x) if getattr(x, "ndim", 0) else x for x in values]
            try:
                return [_on_host(device, x) for x in program.run(given, sizes)]
            except _cuda_device.Failed as error:
                raise Unfinished("a kernel returned no result.") from error

        return run


def _on_host(device: Any, x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple([_on_host(device, y) for y in x])
    return device.get(x)[()] if device.owns(x) else x


@law
def device_values_agree(op: Any, rng: np.random.Generator) -> None:
    """Values of kernels agree with eager execution, for all dtypes, shapes and layouts."""
    native_values(op, rng, thorough=False, alone=StrictDevice)
