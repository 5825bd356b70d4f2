"""Policy: which implicit conversions are allowed while a graph is built.

    with wg.policy(broadcast="raise", cast="warn", max_float="float32"):
        graph = wg.trace(f)(...)

Each of `broadcast` and `cast` is "quiet" (as in NumPy, the default), "warn" or "raise".  If a
maximal width of floats or integers is given, wider results are cast down.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, PolicyError, at, user_level, user_line

from .dynamic_scope import Blocks, Openings, ScopedValue
from .recording import paused
from .spec import Spec

CHOICES = ("quiet", "warn", "raise")


class PolicyWarning(UserWarning):
    """An implicit conversion under a policy of "warn"."""


@dataclass(frozen=True)
class Policy:
    """The options of `policy`."""

    broadcast: str = "quiet"
    cast: str = "quiet"
    independent: str | None = None
    max_float: np.dtype[Any] | None = None
    max_int: np.dtype[Any] | None = None

    def cap(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """The dtype, or the widest of its kind that is allowed."""
        if dtype.kind == "f" and self.max_float is not None:
            return min(dtype, self.max_float, key=lambda d: d.itemsize)
        if dtype.kind == "c" and self.max_float is not None:
            widest = np.result_type(self.max_float, np.complex64)
            return min(dtype, widest, key=lambda d: d.itemsize)
        if dtype.kind in "iu" and self.max_int is not None:
            widest = np.dtype(f"{dtype.kind}{self.max_int.itemsize}")
            return min(dtype, widest, key=lambda d: d.itemsize)
        return dtype

    def capped(self, handle: Any) -> Any:
        """A handle, cast down if its dtype is wider than allowed."""
        spec = handle.node.spec
        narrow = self.cap(spec.dtype)
        return handle if narrow == spec.dtype else handle.astype(narrow)


_chosen: Blocks[Policy | None] = Blocks("wengert_policy", None)
chosen: Callable[[], Policy | None] = _chosen.get


gate = Openings(cell=np.zeros(1, np.int64))  # native entry points read the cell


@contextmanager
def gated() -> Iterator[None]:
    """A block in which native entry points call Python instead of their compiled program."""
    opening = gate.begin()
    try:
        yield
    finally:
        gate.end(opening)


@contextmanager
def policy(
    *,
    broadcast: str = "quiet",
    cast: str = "quiet",
    independent: str | None = None,
    max_float: str | None = None,
    max_int: str | None = None,
) -> Iterator[Policy]:
    """A block in which graphs are built under rules stricter than NumPy's.

    Parameters
    ----------
    broadcast : {"quiet", "warn", "raise"}
        Operands of different shapes, neither of them a single number.
    cast : {"quiet", "warn", "raise"}
        Operands of different dtypes; Python numbers, whose dtype is weak, are ignored.
    independent : {"zero", "warn", "raise"}, optional
        A derivative with respect to a value that the output does not depend on, unless specified
        by ``grad`` (``unconnected=``).
    max_float, max_int : dtype, optional
        The widest allowed; wider results are cast down.

    Raises
    ------
    ArgumentError
        An unknown option, or a maximal width that is not a float or an integer dtype.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> with wg.policy(max_float="float32"):
    ...     graph = wg.trace(np.sin)(wg.spec((3,), "float32"))
    >>> graph.outputs[0].spec.dtype
    dtype('float32')
    """
    for name, value, allowed in [
        ("broadcast", broadcast, CHOICES),
        ("cast", cast, CHOICES),
        ("independent", independent, (None, "zero", "quiet", "warn", "raise")),
    ]:
        if not (value is None or isinstance(value, str)) or value not in allowed:
            raise ArgumentError(f"{name}={value!r} is not one of {allowed}{at(user_line())}.")
    chosen_policy = Policy(
        broadcast,
        cast,
        "zero" if independent == "quiet" else independent,
        _cap(max_float, "f", "max_float"),
        _cap(max_int, "iu", "max_int"),
    )
    block: ScopedValue[Policy | None] = ScopedValue(chosen_policy)
    with paused(), gated():
        try:
            _chosen.open(block)
            yield chosen_policy
        finally:
            block.end(True)
            _chosen.forget()


def _cap(dtype: str | None, kinds: str, name: str) -> np.dtype[Any] | None:
    if dtype is None:
        return None
    try:
        result: np.dtype[Any] = np.dtype(dtype)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name}={dtype!r} is not a dtype{at(user_line())}.") from error
    if result.kind not in kinds:
        kind = "a floating-point" if kinds == "f" else "an integer"
        raise ArgumentError(f"{name}={dtype!r} is not {kind} dtype{at(user_line())}.")
    return result


def check_cast(rules: Policy, op: Any, specs: Sequence[Any], out: Spec) -> None:
    """Warn or raise for implicit conversions in one operation."""
    if not isinstance(out, Spec) or not op.promotes:
        return
    operands = [s for s in specs if isinstance(s, Spec)]
    if rules.broadcast != "quiet" and op.kind == "elementwise":
        shapes = {s.shape for s in operands if s.shape != ()}
        if len(shapes) > 1:
            _complain(rules.broadcast, op, operands, "are broadcast", "np.broadcast_to")
    if rules.cast != "quiet":
        selectors = range(len(operands))[op.selectors]
        dtypes = {s.dtype for k, s in enumerate(operands) if k not in selectors and not s.weak}
        if len(dtypes) > 1:
            _complain(rules.cast, op, operands, "are cast", "astype")


def _complain(choice: str, op: Any, specs: Sequence[Any], what: str, remedy: str) -> None:
    message = (
        f"{op.name} of {' and '.join(map(str, specs))}: the operands {what} implicitly. Do it "
        f"explicitly with {remedy}, or relax the policy{at(user_line())}."
    )
    if choice == "raise":
        raise PolicyError(message)
    warnings.warn(message, PolicyWarning, stacklevel=user_level())
