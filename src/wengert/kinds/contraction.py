"""Contraction: products summed over shared axes; matmul, dot, tensordot, outer, einsum.

An entry states *index letters*: one string for each operand and one for the result, as in einsum.
All derivatives follow by permuting letters: the cotangent of an operand is the contraction of the
cotangent with the other operands, into the letters of that operand.

    Contraction   the kind: both modes of derivative
    contract      the value of any contraction of plain arrays (kinds/contracting.py)

An axis of length one meets a longer one as in broadcasting.  No operand may repeat a letter (a
trace or diagonal is taken before, numpy/products.py).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.apply import Operation
from ..core.handle import value_of
from ..core.node import Node
from ..core.op import Sweep, lookup, register
from .contracting import Letters, Shape, contract, planned


class Contraction(Operation):
    """A multilinear operation given by index letters; made by the decorator `contraction`."""

    kind = "contraction"

    def __init__(
        self,
        run: Callable[..., Any],
        letters: Callable[..., Letters],
        *,
        ufunc: Any = None,
        oracle: Any = None,
    ) -> None:
        super().__init__(run.__name__, inspect.getdoc(run))
        self.run = run if ufunc is None else ufunc
        self.ufunc = ufunc
        self.letters = functools.lru_cache(maxsize=1024)(letters)
        self.oracle = oracle
        self._routes = functools.lru_cache(maxsize=4096)(self._find_routes)

    def _find_routes(self, shapes: tuple[Shape, ...], **params: Any) -> list[Route]:
        letters = self.letters(*map(len, shapes), **params)
        return [route(letters, shapes, i) for i in range(len(shapes))]

    def vjp(self, node: Node, t: Any, out: Any, inputs: Sequence[Any], sweep: Sweep) -> Any:
        """Contract the cotangent with the other operands."""
        try:
            shapes = tuple([x.shape for x in inputs])
        except AttributeError:  # a Python number among them
            inputs = [x if hasattr(x, "shape") else np.asarray(x) for x in inputs]
            shapes = tuple([x.shape for x in inputs])
        routes = self._routes(shapes, **node.params)
        if t.dtype.kind == "c":
            inputs = [np.conjugate(x) for x in inputs]
        wanted = sweep.wanted
        bars: list[Any] = []
        for i, a in enumerate(node.args):
            letters, lengths, shape, run = routes[i]
            if type(a) is not Node or (wanted is not None and a not in wanted):
                bars.append(None)
                continue
            others = (*inputs[:i], *inputs[i + 1 :])
            if sweep.recorded:
                bar = lookup("einsum")(t, *others, letters=letters)
            else:
                bar = run(t, *others)
            if sweep.guarded:
                bar = _strong_zero(bar, t, others, letters)
            if lengths is not None:
                bar = bar.reshape(lengths)
            if shape is not None:
                bar = lookup("broadcast_to")(bar, shape=shape)
            bars.append(bar)
        return bars

    def jvp(self, node: Node, dots: Sequence[Any], out: Any, inputs: Any, sweep: Sweep) -> Any:
        """One term for each operand that has a tangent."""
        total = None
        for i, dot in enumerate(dots):
            if dot is None:
                continue
            operands = [*inputs[:i], dot, *inputs[i + 1 :]]
            term = self(*operands, **node.params)
            if sweep.guarded:
                others = [*inputs[:i], *inputs[i + 1 :]]
                letters = self.letters(*[np.ndim(value_of(x)) for x in inputs], **node.params)
                path = (letters[i], *letters[:i], *letters[i + 1 :])
                term = _strong_zero(term, dot, others, path)
            total = term if total is None else total + term
        return total


class Route(NamedTuple):
    """How to reach the cotangent of an operand from (t, *other operands).

    letters : for the contraction; letters along which the operand has length one and others more
        are summed, the adjoint of broadcasting in the same product.
    lengths : the shape to give to its result, where letters are missing in it.
    shape : the shape to repeat that to, where the operand was summed along a letter of its own.
    run : the contraction of plain arrays.
    """

    letters: Letters
    lengths: Shape | None
    shape: Shape | None
    run: Callable[..., Any]


def route(letters: Letters, shapes: tuple[Shape, ...], i: int) -> Route:
    """The route to the cotangent of operand `i`."""
    *ins, result = letters
    sizes: dict[str, int] = {}  # what the letters are in t and the other operands together
    for k, (word, lengths) in enumerate(zip(ins, shapes, strict=True)):
        for c, n in zip(word, lengths, strict=True):
            if (k != i or c in result) and sizes.get(c, 1) == 1:
                sizes[c] = n
    mine, own = ins[i], shapes[i]
    target = "".join(c for c, n in zip(mine, own, strict=True) if sizes.get(c) == n)
    kept = tuple(n if c in target else 1 for c, n in zip(mine, own, strict=True))
    path = (result, *[w for k, w in enumerate(ins) if k != i], target)
    t_shape = tuple(sizes[c] for c in result)
    return Route(
        path,
        None if target == mine else kept,
        None if kept == own else own,
        planned(path, (t_shape, *shapes[:i], *shapes[i + 1 :])),
    )


def _strong_zero(bar: Any, t: Any, others: Sequence[Any], letters: Letters) -> Any:
    """`bar` without what came of 0 * inf or 0 * nan, where the 0 stands in `t`."""
    finite = [np.isfinite(value_of(x)) for x in others]
    if all(f.all() for f in finite):
        return bar
    where: Any = lookup("where")
    safe = [x if f.all() else where(f, x, 0.0) for x, f in zip(others, finite, strict=True)]
    clean = lookup("einsum")(t, *safe, letters=letters)
    live = np.asarray(value_of(t) != 0, float)
    every = contract(live, *[np.ones(np.shape(f)) for f in finite], letters=letters)
    sound = contract(live, *[np.asarray(f, float) for f in finite], letters=letters)
    return where(every == sound, clean, bar)


def contraction(letters: Callable[..., Letters], **options: Any) -> Any:
    """Register the function below it as a contraction (a decorator).

    Parameters
    ----------
    letters : callable
        ``letters(*ndims, **params)`` returns one string of index letters for each operand and
        one for the result.
    ufunc : numpy.ufunc, optional
        NumPy's own, where it has one; then it is what runs.
    """
    return lambda run: register(Contraction(run, letters, **options))
