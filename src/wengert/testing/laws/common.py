"""The laws of operations, one function each.

A law takes an operation and a random generator and raises CheckError if it is violated.  It uses
facts that the operation states: domain, oracle, examples.  `LAWS` has all laws, `laws_of` those
that apply to an operation; `check_op` checks one operation, tests/laws all registered ones.

The reference for a derivative is always the forward function, never another formula.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import inf, isinf
from typing import Any

import numpy as np

from wengert._engine.autodiff.grad import grad
from wengert._engine.autodiff.jvp_vjp import jvp, linearize, vjp
from wengert._engine.core.handle import dtype_of, value_of
from wengert._engine.core.spec import bare, spec_of
from wengert.errors import CheckError, TraceError
from wengert.scipy.special.register import OracleExpression

from ..grad_checks import check_grads
from ..mpmath_oracle import evaluated, oracle_of

Law = Callable[[Any, np.random.Generator], None]
Examples = Iterator[tuple[tuple[Any, ...], dict[str, Any]]]
Applies = Callable[[Any], bool]
LAWS: dict[str, Law] = {}
_APPLIES: dict[str, Applies] = {}


def always(op: Any) -> bool:
    """True: the law applies to all operations."""
    return True


def is_elementwise(op: Any) -> bool:
    """Whether the operation was created by `elementwise`."""
    return hasattr(op, "body")


def has_ufunc(op: Any) -> bool:
    """Whether NumPy has a ufunc for an elementwise operation."""
    return is_elementwise(op) and op.ufunc is not None


def has_derivative(op: Any) -> bool:
    """Whether the operation is differentiable, and not a step function."""
    return op.differentiable and not op.discrete


def has_elementwise_derivative(op: Any) -> bool:
    """Whether the operation is elementwise and differentiable."""
    return is_elementwise(op) and has_derivative(op)


def law(check: Law | None = None, *, applies: Applies = always) -> Any:
    """Register a law (a decorator); `applies` selects the operations that it applies to."""
    if check is None:
        return partial(law, applies=applies)
    LAWS[check.__name__] = check
    _APPLIES[check.__name__] = applies
    return check


def laws_of(op: Any) -> tuple[str, ...]:
    """The names of the laws that apply to an operation."""
    return tuple([name for name in LAWS if _APPLIES[name](op)])


# ---- operands ----------------------------------------------------------------------------------


def draw(interval: tuple[float, float], rng: np.random.Generator, shape: Any = (5,)) -> Any:
    """Random numbers well inside an interval."""
    low, high = interval
    if is_condition(interval):
        return rng.normal(size=shape) > 0
    if is_whole(interval):
        return rng.integers(int(low), int(high) + 1, size=shape)
    if isinf(low) and isinf(high):
        return rng.normal(size=shape) * 1.5
    if isinf(high):
        return low + np.exp(rng.normal(size=shape) * 0.6)
    if isinf(low):
        return high - np.exp(rng.normal(size=shape) * 0.6)
    return low + (high - low) * rng.uniform(0.08, 0.92, size=shape)


def is_condition(interval: tuple[float, float]) -> bool:
    """Whether the bounds are False and True, for a boolean operand."""
    return all(isinstance(bound, bool) for bound in interval)


def is_whole(interval: tuple[float, float]) -> bool:
    """Whether the bounds are integers, for an integer operand."""
    return all(isinstance(bound, int) for bound in interval) and not is_condition(interval)


def arguments_of(op: Any, rng: np.random.Generator) -> Examples:
    """Operands and parameters for checks of an operation.

    Raises
    ------
    CheckError
        The operation has neither a domain nor examples.
    """
    if getattr(op, "make_examples", None) is not None:
        yield from op.make_examples(rng)
    elif getattr(op, "domain", None):
        shapes = [(5,), (2, 3), (), (1, 3)]
        for shape in shapes:
            yield tuple(_operand(op, k, rng, shape) for k in range(len(op.domain))), {}
    else:
        raise CheckError(
            f"{op.name} has neither a domain nor examples, so it cannot be checked. Add examples: "
            "@op.examples on a generator of (operands, parameters)."
        )


def _operand(op: Any, k: int, rng: np.random.Generator, shape: Any) -> Any:
    x = draw(op.domain[k], rng, shape)
    if is_whole(op.domain[k]) or is_condition(op.domain[k]):
        return x
    for kink in op.kinks:
        near = np.abs(x - kink) < 0.1
        x = np.where(near, kink + 0.5, x)
    return x


def _operands(op: Any, rng: np.random.Generator, shapes: Sequence[Any]) -> list[Any]:
    """Operands of given shapes.

    They are near an example where there are examples: a domain says nothing of several operands
    together, such as a probability that an inverse can have.
    """
    if getattr(op, "make_examples", None) is None:
        return [_operand(op, k, rng, shape) for k, shape in enumerate(shapes)]
    point = [np.asarray(x).ravel() for x in next(iter(op.make_examples(rng)))[0]]
    return [
        x[0] * rng.uniform(0.99, 1.01, shape) if x.dtype.kind == "f" else np.full(shape, x[0])
        for x, shape in zip(point, shapes, strict=True)
    ]


# ---- the laws ----------------------------------------------------------------------------------


@law
def value_agrees_with_oracle(op: Any, rng: np.random.Generator) -> None:
    """The value agrees with that of an independent implementation."""
    if op.oracle is None:
        raise CheckError(
            f"{op.name} has no oracle, an independent implementation. Define one (oracle=)."
        )
    for args, params in arguments_of(op, rng):
        got = op.run(*args, **params)
        if isinstance(op.oracle, OracleExpression):
            _same(op, got, evaluated(op.oracle, *args, **params), "mpmath")
        elif callable(op.oracle):
            _same(op, got, op.oracle(*args, **params), "its oracle")
        elif is_elementwise(op):
            exact = np.vectorize(lambda *xs: complex(oracle_of(op)(*[_item(x) for x in xs])))
            if np.size(got):
                _same(op, np.asarray(got).astype(complex), exact(*args), "mpmath")


def _item(x: Any) -> Any:
    return x.item() if hasattr(x, "item") else x


def _same(op: Any, got: Any, want: Any, who: str, rtol: float = 1e-13) -> None:
    gots = got if isinstance(got, tuple) else (got,)
    wants = want if isinstance(want, tuple) else (want,)
    for g, w in zip(gots, wants, strict=True):
        scale = np.max(np.abs(w), initial=0.0)
        if np.shape(g) != np.shape(w) or not np.allclose(
            g, w, rtol=rtol * 50, atol=rtol * scale, equal_nan=True
        ):
            raise CheckError(f"{op.name} gives {g}, but {who} gives {w}.")


@law(applies=has_ufunc)
def body_agrees_with_ufunc(op: Any, rng: np.random.Generator) -> None:
    """The body in the scalar language agrees with NumPy's ufunc."""
    for args, _ in arguments_of(op, rng):
        with np.errstate(all="ignore"):
            _same(op, np.asarray(op._run_body(*args)), np.asarray(op.run(*args)), "NumPy's ufunc")


@law
def spec_is_true(op: Any, rng: np.random.Generator) -> None:
    """The spec inferred from the specs of operands is the spec of the value."""
    for args, params in arguments_of(op, rng):
        want = spec_of(op.run(*args, **params))
        try:
            got = op.infer([spec_of(a) for a in args], params)
        except TraceError:
            if op.effects.value_dependent_shape:
                continue
            raise
        if bare(got) != bare(want):
            raise CheckError(f"{op.name} infers the spec {got}, but its value is {want}.")


@law(applies=has_derivative)
def derivatives_are_right(op: Any, rng: np.random.Generator) -> None:
    """Derivatives in both modes, to second order, agree with finite differences."""
    for args, params in arguments_of(op, rng):
        check_grads(function_of(op, params), args, order=2, entries=False)


def function_of(op: Any, params: dict[str, Any]) -> Any:
    """An operation with given parameters, as a function of its operands."""
    prepare = getattr(op, "prepare", None)  # for example to make matrices Hermitian

    def f(*xs: Any) -> Any:
        return op(*(xs if prepare is None else prepare(*xs)), **params)

    f.__name__ = op.name
    return f


def floating(op: Any, args: Any, params: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """The operation as a function from floating operands to floating results; the operands."""
    slots = [i for i, a in enumerate(args) if np.asarray(a).dtype.kind in "fc"]

    def f(*xs: Any) -> Any:
        full = list(args)
        for i, x in zip(slots, xs, strict=True):
            full[i] = x
        out = op(*full, **params)
        outs = out if isinstance(out, tuple) else (out,)
        return tuple(y for y in outs if dtype_of(y).kind in "fc")

    return f, tuple(np.asarray(args[i]) for i in slots)


@law(applies=has_derivative)
def modes_are_transposes(op: Any, rng: np.random.Generator) -> None:
    """<t, J v> == <J^T t, v> up to rounding."""
    for args, params in arguments_of(op, rng):
        f, point = floating(op, args, params)
        v = tuple(_like(x, rng) for x in point)
        outs, pull = vjp(f, *point)
        t = tuple(_like(np.asarray(y), rng) for y in outs)
        left = sum(_dot(a, b) for a, b in zip(t, jvp(f, point, v)[1], strict=True))
        right = sum(_dot(a, b) for a, b in zip(pull(t), v, strict=True))
        if not abs(left - right) <= 1e-10 * (1 + abs(left)):
            raise CheckError(f"{op.name}: jvp and vjp are not transposes, {left} != {right}.")


def _like(x: Any, rng: np.random.Generator) -> Any:
    v = rng.normal(size=x.shape)
    return (v + 1j * rng.normal(size=x.shape) if x.dtype.kind == "c" else v).astype(x.dtype)


def _dot(a: Any, b: Any) -> float:
    return float(np.sum(np.conj(a) * b).real)


@law
def operands_are_not_changed(op: Any, rng: np.random.Generator) -> None:
    """Neither `run` nor the rules modify operands, results, tangents or cotangents."""
    for args, params in arguments_of(op, rng):
        with _unchanged(op, "run", args):
            op.run(*args, **params)
        f, point = floating(op, args, params)
        if op.discrete or not op.differentiable or not point:
            continue
        seen: list[Any] = []

        def watched(*xs: Any, f: Any = f, seen: Any = seen) -> Any:
            outs = f(*xs)
            seen.extend(value_of(x) for x in (*xs, *outs))
            return outs

        outs, pull = vjp(watched, *point)
        t = tuple(_like(np.asarray(y), rng) for y in outs)
        with _unchanged(op, "the reverse rule", [*seen, *t]):
            pull(t)
        seen.clear()
        _, push = linearize(watched, *point)
        v = tuple(_like(x, rng) for x in point)
        with _unchanged(op, "the forward rule", [*seen, *v]):
            push(*v)


@contextmanager
def _unchanged(op: Any, who: str, arrays: Sequence[Any]) -> Iterator[None]:
    """Raise an error at the end of the block if an array was modified in it."""
    before = [np.array(a) for a in arrays]
    yield
    for a, b in zip(arrays, before, strict=True):
        if not np.array_equal(np.asarray(a), b, equal_nan=b.dtype.kind in "fc"):
            raise CheckError(f"{op.name}: {who} modified an array, from {b} to {a}.")


def _total(out: Any) -> Any:
    outs = out if isinstance(out, tuple) else (out,)
    total: Any = 0.0
    for y in outs:
        dtype = np.asarray(value_of(y)).dtype
        if dtype.kind in "fc":
            total = total + (y.real if dtype.kind == "c" else y).sum()
    return total


@law(applies=has_derivative)
def dtype_is_kept(op: Any, rng: np.random.Generator) -> None:
    """float32 operands have float32 gradients."""
    for args, params in arguments_of(op, rng):
        if any(np.asarray(a).dtype.kind == "c" for a in args):
            continue
        slots = [i for i, a in enumerate(args) if np.asarray(a).dtype.kind == "f"]
        if not slots:
            continue
        is_double = any(np.asarray(args[i]).dtype != np.float32 for i in slots)
        if op.kind in ("control", "call") and is_double:
            continue  # bodies are traced for their dtypes
        single = [np.asarray(a, np.float32) if i in slots else a for i, a in enumerate(args)]
        with np.errstate(all="ignore"):
            bars = grad(lambda *xs, p=params: _real_total(op(*xs, **p)), argnums=slots)(*single)
        for i, bar in zip(slots, bars, strict=True):
            if bar.dtype != np.float32 or bar.shape != np.shape(single[i]):
                raise CheckError(
                    f"{op.name}: operand {i} is float32{np.shape(single[i])}, its gradient "
                    f"{bar.dtype}{bar.shape}."
                )


def _real_total(out: Any) -> Any:
    return _total(out) * 1.0


def _is_broadcast(op: Any) -> bool:
    return is_elementwise(op) and not op.discrete and len(op.arguments) > 1


@law(applies=_is_broadcast)
def broadcasting_is_undone(op: Any, rng: np.random.Generator) -> None:
    """Operands may be broadcast, 0-d, empty, or Python numbers."""
    n = len(op.arguments)
    for k in range(n):
        for shape in [(3, 1), (), (1,), (4,)]:
            args = _operands(op, rng, [shape if i == k else (3, 4) for i in range(n)])
            check_grads(function_of(op, {}), tuple(args), order=1)
        empty = _operands(op, rng, [(0, 4) if i != k else (4,) for i in range(n)])
        check_grads(function_of(op, {}), tuple(empty), order=1)


@law(applies=has_elementwise_derivative)
def python_numbers_are_operands(op: Any, rng: np.random.Generator) -> None:
    """Operands may be Python numbers, constant or differentiated."""
    args = [_item(x) for x in _operands(op, rng, [()] * len(op.arguments))]
    for i, a in enumerate(args):
        if isinstance(a, float):
            slope = grad(lambda *xs: _real_total(op(*xs)), argnums=i)(*args)
            want = grad(lambda *xs: _real_total(op(*xs)), argnums=i)(*map(np.asarray, args))
            if not np.allclose(slope, want):
                raise CheckError(f"{op.name} of Python numbers {args}: {slope} != {want}.")


@law
def formula_and_documentation_exist(op: Any, rng: np.random.Generator) -> None:
    """The operation has a formula, the text of its body, and a docstring."""
    if not op.__doc__:
        raise CheckError(f"{op.name} has no docstring.")
    if is_elementwise(op) and not op.formula():
        raise CheckError(f"{op.name} has no formula.")


SPECIAL = (0.0, -0.0, 1.0, -1.0, inf, -inf, np.nan, 800.0, -800.0, 0.5)
SPECIAL_WHOLE = (0, 1, -1, 800, -800, 5)


@law(applies=has_ufunc)
def special_values_agree(op: Any, rng: np.random.Generator) -> None:
    """Body and ufunc agree on zeros, infinities, NaN and large numbers."""
    grid = np.meshgrid(*[np.array(SPECIAL_WHOLE if is_whole(d) else SPECIAL) for d in op.domain])
    with np.errstate(all="ignore"):
        got, want = np.asarray(op._run_body(*grid)), np.asarray(op.run(*grid))
    if not np.allclose(got, want, rtol=1e-14, atol=0.0, equal_nan=True):
        bad = np.argwhere(~np.isclose(got, want, rtol=1e-14, atol=0.0, equal_nan=True))[0]
        where = [g[tuple(bad)] for g in grid]
        raise CheckError(
            f"{op.name} at {where}: the body gives {got[tuple(bad)]}, NumPy {want[tuple(bad)]}."
        )
