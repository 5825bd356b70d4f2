"""Constraints on symbolic sizes: broadcasting, requirements of shape rules, solving.

    broadcast                          the shape that shapes broadcast to
    repeated_axes                      the axes along which broadcasting repeats an array
    require_at_least, require_equal    requirements of a shape rule on sizes; checked when known
    solve                              the sizes, from the shapes of a graph's arguments

A requirement that can be decided for all sizes is decided at once; the others are collected with
the graph (`requirements`), which is valid only for sizes that satisfy them.

Parsing of sizes written as text, ``"n"`` or ``"2*n + 1"``.

    dim    the size for a text

The text may come from an untrusted file, so it is parsed and not evaluated, and exponents are
limited, so that no polynomial takes long to expand.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from wengert._engine.core.thread_state import Blocks, ScopedValue
from wengert.errors import ShapeError, at, user_line

from .dim import LOCAL, OPEN, Dim, Quotient, bounds, is_open, names_in, spelled, valued


class LengthsDiffer(ValueError):
    """Lengths that are known only in a step of a loop are not known to be equal."""


def broadcast(*shapes: tuple[Any, ...]) -> tuple[Any, ...]:
    """The shape that shapes broadcast to; lengths may be symbolic.

    Raises
    ------
    ValueError
        Two lengths differ and neither is 1, or they are not known to be equal.
    """
    ndim = max((len(s) for s in shapes), default=0)
    out: list[Any] = [1] * ndim
    for shape in shapes:
        for i, n in enumerate(shape, ndim - len(shape)):
            current = out[i]
            if n == current or (type(n) is int and n == 1):
                continue
            if type(current) is int and current == 1:
                out[i] = n
                continue
            hint = ""
            if is_open(n) and is_open(current):
                raise LengthsDiffer(
                    f"shapes {' and '.join(map(spelled, shapes))} do not broadcast together; "
                    "the lengths of slices have to be equal in all steps of the loop"
                )
            if isinstance(n, Dim) or isinstance(current, Dim):
                hint = (
                    f"; {current} and {n} are not known to be equal. Give equal sizes one name "
                    "when the inputs are declared"
                )
            raise ValueError(
                f"shapes {' and '.join(map(spelled, shapes))} do not broadcast together{hint}"
            )
    return tuple(out)


def repeated_axes(shape: tuple[Any, ...], small: tuple[Any, ...]) -> tuple[int, ...]:
    """The axes of `shape` along which an array of shape `small` is repeated to fill it."""
    missing = len(shape) - len(small)
    stretched = [i for i, n in enumerate(small, missing) if n == 1 and shape[i] != 1]
    return (*range(missing), *stretched)


# ---- requirements on sizes ---------------------------------------------------------------------


class Requirement(NamedTuple):
    """The requirement that `length` is at least zero, or that it equals zero (`equal`)."""

    length: Dim
    equal: bool
    reason: str

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Whether these sizes satisfy it."""
        value = self.length(sizes)
        return value == 0 if self.equal else value >= 0


class Demands:
    """What shape rules return besides the shape.

    Attributes
    ----------
    needs : list of Requirement
    probed : bool
        The shape was inferred from examples, so it is checked when the operation has run.
    """

    __slots__ = ("needs", "probed")

    def __init__(self) -> None:
        self.needs: list[Requirement] = []
        self.probed = False


_sink: Blocks[Demands | None] = Blocks("wengert_demands", None)


@contextmanager
def demands() -> Iterator[Demands]:
    """A block in which the requirements of shape rules are collected."""
    collected = Demands()
    block: ScopedValue[Demands | None] = ScopedValue(collected)
    try:
        _sink.open(block)
        yield collected
    finally:
        block.end(True)
        _sink.forget()


def require_at_least(length: Any, minimum: Any, reason: str) -> None:
    """Require `length >= least`, now if that can be decided, else when the sizes are known.

    Raises
    ------
    ValueError
        It is never satisfied.
    """
    low, high = bounds(length - minimum)
    if low is not None and low >= 0:
        return
    if high is not None and high < 0:
        raise ValueError(f"{reason}: {length} is less than {minimum}")
    _demand(Requirement(length - minimum, False, reason))


def require_equal(a: Any, b: Any, reason: str) -> None:
    """Require `a == b`, now if that can be decided, else when the sizes are known.

    Raises
    ------
    ValueError
        It is never satisfied.
    """
    if a == b:
        return
    low, high = bounds(a - b)
    if (low is not None and low > 0) or (high is not None and high < 0):
        raise ValueError(f"{reason}: {a} is not {b}")
    _demand(Requirement(a - b, True, reason))


def _demand(requirement: Requirement) -> None:
    if is_open(requirement.length) and any(n.startswith(LOCAL) for n in requirement.length.names):
        if requirement.equal:
            raise LengthsDiffer(
                f"{requirement.reason}: these lengths are not known to be equal for all steps of "
                "the loop. Write the bounds of both slices with the same expressions"
            )
        return  # slices with computed bounds are clipped, so they satisfy it
    sink = _sink.get()
    if sink is not None:
        sink.needs.append(requirement)


def requirements_of(nodes: Iterable[Any]) -> list[Requirement]:
    """The requirements of nodes, and of the bodies of loops and branches among them.

    Those on lengths that only a run knows are not among them.
    """
    found: dict[Requirement, None] = {}
    for node in nodes:
        if node.info is not None and node.info.requires is not None:
            found.update(dict.fromkeys(node.info.requires))
        if node.op.kind != "control":
            continue
        for value in node.params.values():
            for body in value if isinstance(value, tuple) else (value,):
                for need in getattr(body, "requirements", ()):
                    if not any(name.startswith((OPEN, LOCAL)) for name in need.length.names):
                        found[need] = None
    return list(found)


def note_probed() -> None:
    """Note that a shape was inferred from examples."""
    sink = _sink.get()
    if sink is not None:
        sink.probed = True


def solve(pairs: Iterable[tuple[Any, int, str]]) -> dict[str, int]:
    """The sizes for which every length equals the given number.

    Parameters
    ----------
    pairs : iterable of (length, number, where)
        `where` describes the axis in messages.

    Returns
    -------
    dict
        Every name that occurs, with its size.

    Raises
    ------
    ShapeError
        There are no such sizes, or they cannot be determined.
    """
    equations = list(pairs)
    sizes: dict[str, int] = {}
    progress = True
    while progress:
        progress = False
        for length, number, where in equations:
            unknown = sorted(names_in([length]) - sizes.keys())
            if len(unknown) == 1:
                size = _solved_for(length, unknown[0], number, sizes)
                if size is None:
                    continue
                if size < 1:
                    raise ShapeError(
                        f"{where} has length {number}, which {length} is not for any size "
                        f"{unknown[0]} of at least 1{at(user_line())}."
                    )
                sizes[unknown[0]] = size
                progress = True
    for length, number, where in equations:
        unknown = sorted(names_in([length]) - sizes.keys())
        if unknown:
            raise ShapeError(
                f"the size {unknown[0]} cannot be determined from {where}, whose length is "
                f"{length} = {number}. Make it the length of a separate axis{at(user_line())}."
            )
        if valued(length, sizes) != number:
            known = ", ".join(f"{k} = {v}" for k, v in sizes.items() if k in names_in([length]))
            expected = f"{length} = {valued(length, sizes)}" if known else str(length)
            raise ShapeError(
                f"{where} has length {number}, but {expected} was expected"
                f"{f' (from the other inputs {known})' if known else ''}{at(user_line())}."
            )
    return sizes


def _solved_for(length: Dim, name: str, number: int, sizes: Mapping[str, int]) -> int | None:
    """The size with that name, if the length is linear in it; 0 if it is not an integer."""
    at_0, at_1, at_2 = (length({**sizes, name: k}) for k in (0, 1, 2))
    slope = at_1 - at_0
    has_quotient = any(isinstance(a, Quotient) for p in length._terms for a, _ in p)
    if slope == 0 or at_2 - at_1 != slope or has_quotient:
        return None
    size, remainder = divmod(number - at_0, slope)
    return 0 if remainder else size


def dim(text: str) -> Any:
    """The size for a name or an expression such as ``"2*n + 1"``.

    Parameters
    ----------
    text : str
        Names, integers, ``+ - * // **`` and parentheses.

    Returns
    -------
    Dim or int

    Raises
    ------
    ShapeError
        The text is something else.

    Examples
    --------
    >>> from wengert._engine.core.symbolic.constraints import dim
    >>> n = dim("n")
    >>> (n + 1) * (n - 1) == dim("n**2 - 1")
    True
    """
    try:
        tree = ast.parse(text, mode="eval").body
        return _read(tree)
    except _UNREADABLE as error:
        raise ShapeError(
            f"{text!r} is not a size. Write an expression of names, integers, + - * // and **, "
            f"such as 'n' or '2*n + 1'{at(user_line())}."
        ) from error


_UNREADABLE = (SyntaxError, TypeError, ValueError, ArithmeticError, RuntimeError, MemoryError)
_SIGNS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}
_MAX_POWER = 16


def _read(tree: ast.expr) -> Any:
    if isinstance(tree, ast.Name):
        return Dim({((tree.id, 1),): 1})
    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        return tree.value
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return -_read(tree.operand)
    if isinstance(tree, ast.BinOp) and type(tree.op) in _SIGNS:
        left, right = _read(tree.left), _read(tree.right)
        if isinstance(tree.op, ast.Pow) and not (type(right) is int and 0 <= right <= _MAX_POWER):
            raise ValueError("power")
        return _SIGNS[type(tree.op)](left, right)
    raise ValueError(ast.dump(tree))
