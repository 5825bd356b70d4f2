"""Non-finite values: where a NaN or an infinity appeared first in the forward pass.

From a bad element of the result the search goes back: through an elementwise operation to the
operands' elements at the same index, without those that `np.where` did not select; through others
to any bad operand.  It ends at a node whose operands are all finite there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.core.node import ConstantLeaf, Node

from .dependency_trace import plain
from .describe import called, named
from .findings import Finding

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand

Index = tuple[int, ...]

_ARITHMETIC = ("elementwise", "reduction", "contraction", "view")


class Bad(NamedTuple):
    """A bad element: of the value of a node, or of a plain operand of it.

    node : the node.
    operand : the position of the plain operand, or None for its own value.
    at : the index of the element; None where it is not known.
    """

    node: Node
    operand: int | None
    at: Index | None


def bad_index(value: Any) -> Index | None:
    """The index of the first NaN, else of the first infinity; None if all elements are finite."""
    if value is None or isinstance(value, tuple):
        return None
    array = np.asarray(value)
    if array.dtype.kind not in "fc" or array.size == 0:
        return None
    for test in (np.isnan, np.isinf):
        mask = test(array)
        if mask.any():
            return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), array.shape))
    return None


def origin(node: Node, index: Index | None = None) -> tuple[Bad, Bad | None]:
    """The origin of the bad element of a node, and where an infinity became NaN."""
    here = Bad(node, None, index if index is not None else bad_index(node.value))
    turned = None
    while True:
        before = _before(here)
        if before is None:
            return here, turned
        if turned is None and is_nan(_element(here)) and not is_nan(_element(before)):
            turned = here
        here = before
        if here.operand is not None:
            return here, turned


def _before(here: Bad) -> Bad | None:
    """A bad operand that the bad element was computed from, NaN before infinity."""
    node = here.node
    if node.op.aliasing.transparent:
        return None
    found = []
    for i, a in enumerate(node.args):
        if node.op.name == "where" and not _was_chosen(node, i, here.at):
            continue
        value = plain(a)
        index = _index_in(node, value, here.at)
        if index is None:
            continue
        is_leaf = not isinstance(a, Node) or (isinstance(a, ConstantLeaf) and not a.args)
        found.append(Bad(node, i, index) if is_leaf else Bad(a, None, index))
    found.sort(key=lambda b: not is_nan(_element(b)))
    return found[0] if found else None


def _was_chosen(node: Node, position: int, index: Index | None) -> bool:
    if position == 0 or index is None:
        return position != 0
    condition = plain(node.args[0])
    return bool(np.broadcast_to(condition, node.spec.shape)[index]) == (position == 1)


def _index_in(node: Node, value: Operand, index: Index | None) -> Index | None:
    """The bad element of an operand; for an elementwise operation only at the same index."""
    if isinstance(value, tuple):
        return next((k for k in map(bad_index, value) if k is not None), None)
    if node.op.kind != "elementwise" or index is None:
        return bad_index(value)
    own = at_index(value, index)
    return own if own is not None and not np.isfinite(np.asarray(value)[own]) else None


def at_index(value: Operand, index: Index) -> Index | None:
    """The index into an operand for an element of the broadcast result."""
    array = np.asarray(value)
    if array.dtype.kind not in "fc" or array.ndim > len(index):
        return None
    tail = index[len(index) - array.ndim :]
    own = tuple(0 if n == 1 else i for i, n in zip(tail, array.shape, strict=True))
    return own if all(i < n for i, n in zip(own, array.shape, strict=True)) else None


def _element(bad: Bad) -> Any:
    value = bad.node.value
    if bad.operand is not None:
        a = bad.node.args[bad.operand]
        value = plain(a)
    if bad.at is None or isinstance(value, tuple):
        return None
    return np.asarray(value)[bad.at]


def is_nan(x: Operand) -> bool:
    """Whether a number is NaN."""
    return x is not None and bool(np.isnan(x))


# ---- in words ----------------------------------------------------------------------------------


def first_nonfinite(bad: Bad, turned: Bad | None, symptom: str) -> Finding:
    """A description of the origin of a bad element."""
    node, element = bad.node, _element(bad)
    at_element = f" (element {bad.at})" if bad.at else ""
    if bad.operand is not None or not node.args or node.op.aliasing.transparent:
        return _given(bad, turned, symptom)
    operands = operands_at(node, bad.at)
    over = overflows(node, element)
    kind = "overflow" if over else "operation"
    advice = node.op.remedy.advice("overflow" if over else "outside")
    why = f"too large for {node.spec.dtype}" if over else "not a finite number"
    message = f"{node.op.name} of {operands} is {element}{at_element}, {why}. {advice}"
    if over and node.spec.dtype.itemsize < 8:
        message += "; float64 reaches further"
    if turned is not None:
        message += f". It became NaN in {named(turned.node)}{_place(turned.node)}"
    return Finding(kind, message, node, node.where, symptom)


def _given(bad: Bad, turned: Bad | None, symptom: str) -> Finding:
    """A bad number in an input or in a constant."""
    node, element = bad.node, _element(bad)
    is_input = bad.operand is None and type(node) is Node
    at_element = f" (element {bad.at})" if bad.at else ""
    if (
        turned is not None and not is_input
    ):  # an infinite constant is a problem only if it leads to NaN
        where = f" (element {turned.at})" if turned.at else ""
        message = (
            f"{turned.node.op.name} of {operands_at(turned.node, turned.at)} is nan{where}. The "
            f"infinity is a constant operand of {named(node)}{_place(node)}"
        )
        return Finding("operation", message, turned.node, turned.node.where, symptom)
    if is_input:
        what = called("the input", node)
    else:
        what = f"a constant that comes into {named(node)}"
    message = f"{what} is {element}{at_element}. Check where it comes from"
    return Finding("input" if is_input else "constant", message, node, node.where, symptom)


def _place(node: Node) -> str:
    return f" at {node.where}" if node.where else ""


def operands_at(node: Node, index: Index | None) -> str:
    """The operands of a node at an element, in words."""
    words = []
    for a in node.args:
        value = plain(a)
        own = None
        if index is not None and node.op.kind == "elementwise":
            own = at_index(value, index)
        if own is not None:
            words.append(f"{np.asarray(value)[own]:.6g}")
        elif isinstance(value, np.ndarray | np.generic):
            words.append(f"{value.dtype}[{','.join(map(str, value.shape))}]")
        else:
            words.append(str(value)[:20])
    return " and ".join(words)


def overflows(node: Node, element: Operand) -> bool:
    """Whether an infinite value is an overflow, not a pole."""
    if element is None or not np.isinf(element):
        return False
    op = node.op
    if op.kind not in _ARITHMETIC and op.remedy.overflow is None:
        return False
    if callable(op.differentiation.singular):  # a quotient or a power: a pole where that is zero
        value = plain(node.args[-1 if op.name == "divide" else 0])
        return bool(np.all(np.asarray(value) != 0))
    return not op.differentiation.singular
