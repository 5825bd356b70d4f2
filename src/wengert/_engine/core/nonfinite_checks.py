"""NaN checks: whether values are checked, and the errors found.

`wengert.debug(nan=True)` opens a session (recording.py) with `Checks` (diagnostics/nan_switch.py).
`apply` (dispatch.py) passes every value to it; derivatives and compiled graphs are checked by their
callers.  Without an open session the cost is one test of a counter.

    Checks           the options of the checks, and the errors found
    Locator          finds the node in a loop, a graph or a derivative
    current_checks   the checks that are active here
    unchecked        a block without checks: a backward pass checks its results only
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from wengert.errors import NotFiniteError, at, user_line

from .dynamic_scope import Blocks, ScopedValue
from .recording import innermost_session
from .spec import spec_of

if TYPE_CHECKING:
    from wengert._engine.core.dispatch import Operation
    from wengert._engine.core.types import Array, Operand

UNCHECKED: Blocks[bool] = Blocks("wengert_unchecked", False)
SHOWN = 6  # arrays up to this size are shown in full
ADVICE = (
    "Keep the operands away from there (np.where around them, or clip them), or find out where "
    "they come from (wengert.debug.show, wengert.why); if it is intended, put the line into a "
    "block `with wengert.debug(nan=False):`"
)


class NonfiniteWatch(Protocol):
    """Checks of a graph that runs node by node."""

    def check(self, node: Any, params: Any, operands: Sequence[Any], out: Any) -> None:
        """Check the value of a node."""

    def finish(self, nodes: Sequence[Any], outputs: Iterable[Any]) -> None:
        """Report the errors found, after the graph has run."""


class Locator(Protocol):
    """Finds the node that produced a NaN in a loop or graph (diagnostics/nan_locator.py)."""

    def rerun(self, checks: Checks, op: Any, params: Any, values: Sequence[Any]) -> None:
        """Run a loop or a branch again, node by node."""

    def run_checked(
        self, graph: Any, sizes: Mapping[str, int], values: Sequence[Any], checks: Checks
    ) -> list[Any]:
        """Run a graph and check every value."""

    def report_backward(self, checks: Checks, tape: Any, seeds: Any, results: Any) -> None:
        """Report the first operation of a backward pass with a NaN among its cotangents."""

    def report_forward(
        self, checks: Checks, tape: Any, seeds: Any, outputs: Any, results: Any
    ) -> None:
        """Report the first operation of a forward pass with a NaN in its tangent."""

    @property
    def NodeWatch(self) -> Callable[[Checks], NonfiniteWatch]:
        """The class that checks a graph that runs node by node."""


class Checks:
    """The options of the checks, and the errors found.

    Attributes
    ----------
    nan, inf : bool
        Whether to look for NaN and for infinities; these are the nonfinite values below.
    raises : bool
        Whether the first error is raised.
    locator : Locator
        Finds the node in a loop, a graph or a derivative.
    found : list of NotFiniteError
        The errors, if they are not raised.
    """

    def __init__(self, nan: bool, inf: bool, raises: bool, locator: Locator) -> None:
        self.nan, self.inf, self.raises, self.locator = nan, inf, raises, locator
        self.found: list[NotFiniteError] = []

    def is_nonfinite(self, value: Array | tuple[Array, ...] | None) -> bool:
        """Whether a value (an array, a number, a tuple of them) has a nonfinite element."""
        return self.first(value) is not None

    def first(self, value: Any) -> tuple[Any, tuple[int, ...]] | None:
        """The first nonfinite element of a value, and its index; None if there is none."""
        if type(value) in (tuple, list):
            return next((f for f in map(self.first, value) if f is not None), None)
        if isinstance(value, dict):  # the cotangents of several outputs
            return self.first(tuple(value.values()))
        if not isinstance(value, np.ndarray | np.generic | float | complex):
            return None
        array = np.asarray(value)
        if array.dtype.kind not in "fc" or array.size == 0:
            return None
        with np.errstate(all="ignore"):
            if np.isfinite(np.add.reduce(array, axis=None)):  # usually one sum suffices
                return None
            mask = np.isnan(array) if self.nan else np.zeros(array.shape, bool)
            if self.inf:
                mask = mask | np.isinf(array)
        if not mask.any():
            return None
        index = tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), array.shape))
        return array[index], index

    def check(
        self, op: Operation, params: dict[Any, Any], values: Sequence[Any], value: Array
    ) -> None:
        """Check the result of an operation."""
        if self.is_nonfinite(value) and not UNCHECKED.get():
            if op.kind == "control":
                self.locator.rerun(self, op, params, values)
            self.report_result(op.name, values, value, user_line())

    def report_result(
        self, name: str, values: Sequence[Any], value: Array | tuple[Array, ...], where: str | None
    ) -> None:
        """Raise or store the error for a nonfinite result of an operation.

        Raises
        ------
        NotFiniteError
        """
        nonfinite = [i for i, v in enumerate(values) if self.is_nonfinite(v)]
        if nonfinite and not self.raises:
            return  # it was reported where it first occurred, or passed in
        element, index = self.first(value) or (None, ())
        place = f" at index {index}" if index else ""
        operands = "; ".join(short(v) for v in values)
        if nonfinite:
            origin = (
                f"operand {nonfinite[0]} already has it, and no operation in this block produced "
                "it. Find out where that operand comes from"
            )
        else:
            origin = f"it first occurs here. {ADVICE}"
        self.report(
            f"{name} gives {element}{place} of {spec_of(value)}, from {operands}: {origin}", where
        )

    def report(self, text: str, where: str | None) -> None:
        """Raise or store the error with this text."""
        error = NotFiniteError(f"{text}{at(where)}.")
        if self.raises:
            raise error
        self.found.append(error)


def short(value: Operand | tuple[Array, ...]) -> str:
    """A short text of a value: its spec, and its elements or their range."""
    if type(value) is tuple:
        return f"({', '.join(map(short, value))})"
    if not isinstance(value, np.ndarray | np.generic):
        return repr(value)[:40]
    spec = spec_of(value)
    if value.size <= SHOWN:
        return f"{spec} {np.array2string(np.asarray(value), precision=6, separator=', ')}"
    if value.dtype.kind not in "iufb":
        return str(spec)
    finite = np.asarray(value)[np.isfinite(value)]
    counts = [(int(f(value).sum()), word) for f, word in ((np.isnan, "nan"), (np.isinf, "inf"))]
    nonfinite = "".join(f", {n} of {value.size} {word}" for n, word in counts if n)
    bounds = f" from {np.min(finite):.6g} to {np.max(finite):.6g}" if finite.size else ""
    return f"{spec}{bounds}{nonfinite}"


def current_checks() -> Checks | None:
    """The checks that are active here, if any."""
    session = innermost_session()
    return None if session is None or UNCHECKED.get() else session.checks


@contextmanager
def unchecked() -> Iterator[None]:
    """A block in which values are not checked."""
    block = ScopedValue(True)
    try:
        UNCHECKED.open(block)
        yield
    finally:
        block.end(True)
        UNCHECKED.forget()
