"""check_traced: whether a function means the same when it is traced.

The graph of a function is run by the interpreter and compared with the function itself: values,
shapes, dtypes, and the derivative along one random cotangent.  Then once more with names in the
place of lengths: the same graph has to serve other sizes too, or to refuse them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..autodiff.directional import vjp
from ..core import tree
from ..core.handle import Handle, shape_of, value_of, wrap
from ..core.node import constant
from ..core.spec import Spec, is_inexact
from ..errors import CheckError, WengertError
from ..graphs import Graph, spec, trace


def check_traced(
    f: Callable[..., Any],
    args: Sequence[Any],
    *,
    derivative: bool = True,
    sizes: bool = True,
    rtol: float = 1e-12,
    only: str = "",
) -> None:
    """Compare a function with its graph.

    Parameters
    ----------
    f : callable
        Takes arrays, returns arrays or nested containers of them.
    args : sequence of array
    derivative : bool, default True
        Also compare the derivative by the floating arguments.
    sizes : bool, default True
        Also trace with names in the place of lengths; equal lengths get the same name. False
        requires that this is refused.
    rtol : float, default 1e-12

    Raises
    ------
    CheckError
        Something differs; the message says what.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.testing import check_traced
    >>> check_traced(lambda x: np.mean(x, axis=0) * len(x.shape), [np.ones((3, 2))])
    """
    arrays = [np.asarray(a) for a in args]
    functions = [f]
    if derivative and any(is_inexact(a.dtype) for a in arrays):
        functions.append(_derivative(f))
    wants = [g(*_tensors(arrays)) for g in functions]
    for what, g, want in zip(("value", "derivative"), functions, wants, strict=False):
        if only == "symbolic":
            break
        graph = trace(g)(*arrays)
        _compare(graph, graph(*arrays), want, f"the {what} of the graph", rtol)
    if only == "fixed":
        return
    if not sizes:
        _refused(f, _named(arrays))
        return
    for what, g, want in zip(("value", "derivative"), functions, wants, strict=False):
        graph = trace(g)(*_named(arrays))
        _compare(graph, graph(*arrays), want, f"the {what} with names for lengths", rtol)
        larger = _larger(arrays)
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                want = g(*_tensors(larger))
        except Exception:  # this function is not for those sizes
            continue
        try:
            got = graph(*larger)
        except WengertError:
            continue
        _compare(graph, got, want, f"the {what} for other sizes", rtol)


def _tensors(arrays: Sequence[Any]) -> list[Any]:
    return [wrap(constant(a.copy() if a.ndim else a[()])) for a in arrays]


def _derivative(f: Callable[..., Any]) -> Callable[..., Any]:
    def pulled(*xs: Any) -> Any:
        """Cotangents of the arguments for one cotangent of the result."""
        chosen = tuple(i for i, x in enumerate(xs) if is_inexact(x.dtype))

        def of_chosen(*ys: Any) -> Any:
            full = list(xs)
            for i, y in zip(chosen, ys, strict=True):
                full[i] = y
            leaves, _ = tree.flatten(f(*full))
            return [x for x in leaves if isinstance(x, Handle) and is_inexact(x.dtype)]

        out, pull = vjp(of_chosen, *[xs[i] for i in chosen])
        return pull([_cotangent(value_of(x), i) for i, x in enumerate(out)])

    return pulled


def _cotangent(x: Any, number: int) -> Any:
    """Different for each element, of the shape and dtype of x."""
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


def _refused(f: Callable[..., Any], specs: Sequence[Spec]) -> None:
    try:
        trace(f)(*specs)
    except WengertError:
        return
    raise CheckError("sizes=False was said, but the function can be traced with names for lengths.")


def _compare(graph: Graph, got: Any, want: Any, what: str, rtol: float) -> None:
    gots, wants = tree.flatten(got)[0], tree.flatten(want)[0]
    specs = [n.spec for n in graph.outputs]
    if not len(gots) == len(wants) == len(specs):
        raise CheckError(f"{what}: {len(gots)} results, where the function has {len(wants)}.")
    for k, (g, w, s) in enumerate(zip(gots, wants, specs, strict=True)):
        g, w = np.asarray(value_of(g)), np.asarray(value_of(w))
        if g.dtype != w.dtype or s.dtype != w.dtype:
            raise CheckError(f"{what}: result {k} is {g.dtype} ({s}), but should be {w.dtype}.")
        if g.shape != w.shape or len(s.shape) != w.ndim:
            raise CheckError(f"{what}: result {k} has shape {g.shape}, not {shape_of(w)}.")
        if any(type(n) is int and n != m for n, m in zip(s.shape, w.shape, strict=True)):
            raise CheckError(f"{what}: result {k} was said to be {s}, but has shape {w.shape}.")
        tolerance = max(rtol, 64 * float(np.finfo(w.dtype).eps)) if is_inexact(w.dtype) else 0.0
        size = float(np.max(np.abs(w[np.isfinite(w)]), initial=1e-300)) if w.size else 1.0
        if not np.allclose(g, w, rtol=tolerance, atol=tolerance * size, equal_nan=True):
            raise CheckError(f"{what}: result {k} is {g}, but should be {w}.")
