"""Contraction: products summed over shared axes; matmul, dot, tensordot, outer, einsum.

An entry states *index letters*: one string for each operand and one for the result, as in einsum.
All derivatives follow by permuting letters: the cotangent of an operand is the contraction of the
cotangent with the other operands, into the letters of that operand.  A pair of operands is brought
to one batched matrix product (BLAS); more are left to NumPy's einsum.

No operand may repeat a letter (a trace or diagonal is taken before, ops/products.py).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..core.apply import Operation
from ..core.handle import value_of
from ..core.node import Node
from ..core.op import Sweep, lookup, register

Letters = tuple[str, ...]  # one string for each operand, then the result's


class Contraction(Operation):
    """A multilinear operation given by index letters; made by the decorator `contraction`."""

    kind = "contraction"

    def __init__(
        self, run: Callable[..., Any], letters: Callable[..., Letters], oracle: Any = None
    ) -> None:
        super().__init__(run.__name__, inspect.getdoc(run))
        self.run = run
        self.letters = letters
        self.oracle = oracle

    def vjp(self, node: Node, t: Any, out: Any, inputs: Sequence[Any], sweep: Sweep) -> Any:
        """Contract the cotangent with the other operands."""
        *ins, result = self.letters(*[np.ndim(x) for x in _values(node)], **node.params)
        bars: list[Any] = []
        for i, a in enumerate(node.args):
            if not sweep.wants(a):
                bars.append(None)
                continue
            others = [_conj(x) for k, x in enumerate(inputs) if k != i]
            their = [s for k, s in enumerate(ins) if k != i]
            bars.append(_contract_into(ins[i], [t, *others], [result, *their], inputs[i]))
        return bars

    def jvp(self, node: Node, dots: Sequence[Any], out: Any, inputs: Any, sweep: Sweep) -> Any:
        """One term for each operand that has a tangent."""
        total = None
        for i, dot in enumerate(dots):
            if dot is not None:
                term = self(*inputs[:i], dot, *inputs[i + 1 :], **node.params)
                total = term if total is None else total + term
        return total


def _values(node: Node) -> list[Any]:
    return [a.value if isinstance(a, Node) else a for a in node.args]


def _conj(x: Any) -> Any:
    return x.conj() if getattr(getattr(x, "dtype", None), "kind", "f") == "c" else x


def _contract_into(target: str, operands: list[Any], letters: list[str], like: Any) -> Any:
    """Contract the operands into the target's letters, repeating along letters nobody has."""
    known = set("".join(letters))
    present = "".join(c for c in target if c in known)
    bar = lookup("einsum")(*operands, letters=(*letters, present))  # type: ignore[operator]
    if present == target:
        return bar
    shape = np.shape(value_of(like))
    sizes = tuple(1 if c not in known else bar.shape[present.index(c)] for c in target)
    full = tuple(n if c not in known else m for c, n, m in zip(target, shape, sizes, strict=True))
    return lookup("broadcast_to")(bar.reshape(sizes), shape=full)  # type: ignore[operator]


# ---- running a contraction on plain arrays -----------------------------------------------------


def contract(*operands: Any, letters: Letters) -> Any:
    """The contraction of plain arrays."""
    *ins, out = letters
    if len(operands) == 1:
        return _single(np.asarray(operands[0]), ins[0], out)
    arrays = [np.asarray(x) for x in operands]
    if len(arrays) == 2 and _sizes_agree(arrays, ins):
        return _pair(arrays[0], arrays[1], _plan(ins[0], ins[1], out))
    return np.einsum(f"{','.join(ins)}->{out}", *arrays, optimize=True)[()]


def _single(a: Any, letters: str, out: str) -> Any:
    gone = tuple(i for i, c in enumerate(letters) if c not in out)
    if gone:
        a = np.add.reduce(a, axis=gone)
    kept = [c for c in letters if c in out]
    return np.transpose(a, [kept.index(c) for c in out])[()]


def _sizes_agree(arrays: Sequence[Any], ins: Sequence[str]) -> bool:
    size: dict[str, int] = {}
    for a, letters in zip(arrays, ins, strict=True):
        for n, c in zip(a.shape, letters, strict=True):
            if size.setdefault(c, n) != n:
                return False
    return True


@functools.lru_cache(maxsize=4096)
def _plan(la: str, lb: str, lo: str) -> Any:
    batch = [c for c in lo if c in la and c in lb]
    shared = [c for c in la if c in lb and c not in lo]
    free_a = [c for c in lo if c in la and c not in lb]
    free_b = [c for c in lo if c in lb and c not in la]
    sum_a = tuple(i for i, c in enumerate(la) if c not in lb and c not in lo)
    sum_b = tuple(i for i, c in enumerate(lb) if c not in la and c not in lo)
    rest_a = [c for i, c in enumerate(la) if i not in sum_a]
    rest_b = [c for i, c in enumerate(lb) if i not in sum_b]
    order_a = tuple(rest_a.index(c) for c in batch + free_a + shared)
    order_b = tuple(rest_b.index(c) for c in batch + shared + free_b)
    natural = batch + free_a + free_b
    order_out = tuple(natural.index(c) for c in lo)
    return (
        len(batch),
        len(free_a),
        sum_a,
        sum_b,
        None if order_a == tuple(range(len(order_a))) else order_a,
        None if order_b == tuple(range(len(order_b))) else order_b,
        None if order_out == tuple(range(len(order_out))) else order_out,
        len(free_a) == len(free_b) == len(shared) == 1,
    )


def _pair(a: Any, b: Any, plan: Any) -> Any:
    n_batch, n_free, sum_a, sum_b, order_a, order_b, order_out, matrices = plan
    if sum_a:
        a = np.add.reduce(a, axis=sum_a)
    if sum_b:
        b = np.add.reduce(b, axis=sum_b)
    if order_a is not None:
        a = a.transpose(order_a)
    if order_b is not None:
        b = b.transpose(order_b)
    if matrices:
        out = np.matmul(a, b)
    else:
        batch = a.shape[:n_batch]
        free_a = a.shape[n_batch : n_batch + n_free]
        shared = a.shape[n_batch + n_free :]
        free_b = b.shape[n_batch + len(shared) :]
        k = prod(shared)
        left = a.reshape((*batch, prod(free_a), k))
        right = b.reshape((*batch, k, prod(free_b)))
        out = np.matmul(left, right).reshape(batch + free_a + free_b)
    return (out if order_out is None else out.transpose(order_out))[()]


def contraction(letters: Callable[..., Letters], **options: Any) -> Any:
    """Register the function below it as a contraction (a decorator).

    Parameters
    ----------
    letters : callable
        ``letters(*ndims, **params)`` returns one string of index letters for each operand and
        one for the result.
    """
    return lambda run: register(Contraction(run, letters, **options))
