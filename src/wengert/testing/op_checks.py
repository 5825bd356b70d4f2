"""check_op: all laws of one operation; check_traced: a function and its graph.

    check_op, OpReport   the laws are functions in laws/, which run in turn; they use only the facts
                         stated by the operation (domain, oracle, examples)
    check_traced         values and derivatives of a function against those of its graph

The graph of a function and of its derivative along one cotangent is run by the interpreter and
compared with the function itself: values, shapes, dtypes.  The check is repeated with named sizes:
the same graph must be correct for other sizes, or reject them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert._engine.autodiff.jvp_vjp import vjp
from wengert._engine.core import display, pytree
from wengert._engine.core.handle import Handle, value_of, wrap
from wengert._engine.core.node import constant
from wengert._engine.core.op import Op, lookup
from wengert._engine.core.spec import Spec, is_inexact
from wengert._engine.graphs import Graph, spec, trace
from wengert.errors import CheckError, WengertError

from . import laws as _laws  # registers the laws  # noqa: F401
from .laws.common import LAWS, laws_of


def check_traced(
    f: Callable[..., Any],
    args: Sequence[Any],
    *,
    sizes: bool | None = True,
    rtol: float = 1e-12,
) -> None:
    """Compare a function and its derivative with their graphs.

    Parameters
    ----------
    f : callable
        Takes arrays, returns arrays or nested containers of them.
    args : sequence of array
    sizes : bool or None, default True
        Whether to trace also with named sizes; equal lengths get the same name. None allows this
        to raise an error.
    rtol : float, default 1e-12
        Relative to the largest element; limited by the precision.

    Raises
    ------
    CheckError
        Results differ; the message describes the difference.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.testing import check_traced
    >>> check_traced(lambda x: np.mean(x, axis=0) * x.shape[0], [np.ones((3, 2))])
    """
    arrays = [np.asarray(a) for a in args]
    g = _with_derivative(f) if any(is_inexact(a.dtype) for a in arrays) else f
    want = g(*_tensors(arrays))
    graph = trace(g)(*arrays)
    _compare(graph, graph(*arrays), want, "the graph", rtol)
    if sizes is not False:
        try:
            graph = trace(g)(*_named(arrays))
            got = graph(*arrays)
        except WengertError:
            if sizes is None:
                return
            raise
        _compare(graph, got, want, "the graph with names for lengths", rtol)
        _check_other_sizes(g, graph, _larger(arrays), rtol)


def _check_other_sizes(g: Any, graph: Graph, arrays: Sequence[Any], rtol: float) -> None:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            want = g(*_tensors(arrays))
        except Exception:  # the function does not support these sizes
            return
        try:
            got = graph(*arrays)
        except WengertError:
            return
    _compare(graph, got, want, "the graph with names for lengths, at other sizes,", rtol)


def _tensors(arrays: Sequence[Any]) -> list[Any]:
    return [wrap(constant(a.copy() if a.ndim else a[()])) for a in arrays]


def _with_derivative(f: Callable[..., Any]) -> Callable[..., Any]:
    def pulled(*xs: Any) -> Any:
        """The results, and cotangents of the arguments for one cotangent of the results."""
        chosen = [i for i, x in enumerate(xs) if is_inexact(x.dtype)]
        discrete: list[Any] = []

        def of_chosen(*ys: Any) -> Any:
            full = list(xs)
            for i, y in zip(chosen, ys, strict=True):
                full[i] = y
            leaves, _ = pytree.flatten(f(*full))
            discrete[:] = [x for x in leaves if not _is_differentiable(x)]
            return [x for x in leaves if _is_differentiable(x)]

        out, pull = vjp(of_chosen, *[xs[i] for i in chosen])
        held = [wrap(constant(value_of(x))) if _is_known(x) else x for x in discrete]
        return out, held, pull([_cotangent(value_of(x), i) for i, x in enumerate(out)])

    return pulled


def _is_differentiable(x: Any) -> bool:
    return isinstance(x, Handle) and is_inexact(x.dtype)  # type: ignore[attr-defined]


def _is_known(x: Any) -> bool:
    return isinstance(x, Handle) and not x.node.is_traced


def _cotangent(x: Any, number: int) -> Any:
    """An array with distinct elements, of the shape and dtype of x."""
    finite = np.isfinite(x)
    return np.where(finite, np.cos(np.where(finite, x.real, 0) + number), 1).astype(x.dtype)


def _named(arrays: Sequence[Any]) -> list[Spec]:
    names = {n: f"n{n}" for a in arrays for n in a.shape if n > 1}
    return [spec(tuple(names.get(n, n) for n in a.shape), a.dtype) for a in arrays]


def _larger(arrays: Sequence[Any]) -> list[Any]:
    rng = np.random.default_rng(0)
    made = []
    for a in arrays:
        shape = tuple(n + 1 if n > 1 else n for n in a.shape)
        chosen = rng.choice(a.ravel(), size=shape) if a.size else np.zeros(shape, a.dtype)
        if is_inexact(a.dtype):
            chosen = chosen * (1 + rng.random(shape) / 8)
        made.append(np.asarray(chosen.astype(a.dtype)))
    return made


def _compare(graph: Graph, got: Any, want: Any, what: str, rtol: float) -> None:
    gots, wants = pytree.flatten(got)[0], pytree.flatten(want)[0]
    specs = [n.spec for n in graph.outputs]
    if not len(gots) == len(wants) == len(specs):
        raise CheckError(f"{what} has {len(gots)} results, where the function has {len(wants)}.")
    for k, (g, w, s) in enumerate(zip(gots, wants, specs, strict=True)):
        g, w = np.asarray(value_of(g)), np.asarray(value_of(w))
        if g.dtype != w.dtype or s.dtype != w.dtype:
            raise CheckError(f"{what} gives {g.dtype} ({s}) as result {k}, not {w.dtype}.")
        if g.shape != w.shape or len(s.shape) != w.ndim:
            raise CheckError(f"{what} returns shape {g.shape} as result {k}, not {w.shape}.")
        if any(type(n) is int and n != m for n, m in zip(s.shape, w.shape, strict=True)):
            raise CheckError(f"{what} states that result {k} is {s}, but its shape is {w.shape}.")
        tolerance = max(rtol, 64 * float(np.finfo(w.dtype).eps)) if is_inexact(w.dtype) else 0.0
        size = float(np.max(np.abs(w[np.isfinite(w)]), initial=1e-300)) if w.size else 1.0
        if not np.allclose(g, w, rtol=tolerance, atol=tolerance * size, equal_nan=True):
            raise CheckError(f"{what} gives {g} as result {k}, not {w}.")


@display.shown_fields
@dataclass(frozen=True)
class OpReport:
    """The laws that `check_op` has checked."""

    name: str
    kind: str
    laws: tuple[str, ...]

    def __str__(self) -> str:
        kept = "\n".join(f"  kept: {name.replace('_', ' ')}" for name in self.laws)
        return f"{self.name} ({self.kind})\n{kept}"


def check_op(op: Op | str, *, seed: int = 0) -> OpReport:
    """Check that an operation satisfies every law.

    Compare values with the oracle, the body with NumPy's ufunc, and both modes of derivative to
    second order with differences; check that the modes are transposes of each other, the spec,
    dtypes, broadcasting, Python numbers, and that operands are not modified.

    Parameters
    ----------
    op : Op or str
        The operation, or its name in the registry.
    seed : int
        Seed of the random operands.

    Returns
    -------
    OpReport
        The laws that were checked.

    Raises
    ------
    CheckError
        A law is violated; the message names the operation, the input and both numbers.

    Examples
    --------
    >>> from wengert.testing import check_op
    >>> print(check_op("sin").name)
    sin
    """
    op = lookup(op) if isinstance(op, str) else op
    names = laws_of(op)
    for name in names:
        LAWS[name](op, np.random.default_rng(seed))
    return OpReport(op.name, op.kind, names)
