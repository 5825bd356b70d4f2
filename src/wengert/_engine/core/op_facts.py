"""Facts about one operation, stated at its definition and read as its attributes.

    @facts(cost=Cost(23.0, is_call=True), onnx="Exp", zero_slope=UNDERFLOW, range=NONNEGATIVE)
    @elementwise(ufunc=np.exp, oracle="exp(x)", complex_ok=True)
    def exp(s, x):
        return s.exp(x)

    Cost        the cost to run it, for scheduling, profiles, checkpoints and reports
    Remedy      the advice if the result is NaN, infinite or has no derivative
    ValueRange  properties of its values (rewrite/value_properties.py)
    InverseProduct    the product that an operation inverts
    Jump        where it jumps
    LOOP ...    the kinds of nodes with bodies

Other files use these facts instead of comparing names of operations.

Traits of operations, grouped: effects, aliasing, differentiation.

Every operation has one record of each (`Op.effects`, `Op.aliasing`, `Op.differentiation`); the
defaults are those of a pure function whose result is a new array.  Traits read for each recorded
operation (`discrete`, `notes_where`, `pulls`) are attributes of the operation (core/op.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar

OpT = TypeVar("OpT")  # an operation
Flops = Callable[[Any, Sequence[Any], Any], Any]  # (node, specs of operands, spec of the result)

# How a derivative may be exactly zero although the value varies (`Op.zero_slope`).
SATURATES = "saturates"  # far from 0, where the slope rounds to zero
UNDERFLOW = "underflow"  # where the value underflows, and the slope with it
AT_ORIGIN = "at_origin"  # at 0, by convention
SELECTS = "selects"  # with respect to the elements that are not selected

# The role of the bodies of an operation (`Op.control_flow`).
LOOP = "loop"  # one step: scan, while
CHECKPOINTED = "checkpointed loop"  # one step of a loop that also stores some of its carries
REPLAY = "replayed loop"  # one step of the backward pass of a checkpointed loop
BRANCH = "branch"  # one of several alternatives: cond, switch
INTEGRAND = "integrand"  # the function whose integral is computed: quadrature
LOOPS = (LOOP, CHECKPOINTED)

NO_OPERANDS = slice(0, 0)

# Why native code calls an operation back in Python (`Op.host_callback`).
BY_SCIPY = "SciPy computes it"
BY_NUMPY = "NumPy computes it"
ACTS = "it has a side effect in the user's process"
BY_TRIALS = "the number of random draws depends on values"


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of an operation.

    Attributes
    ----------
    work : float
        The time for one element relative to an addition: measured on 4000 float64 on one thread
        of an EPYC with AVX-512 (an addition took 0.03 ns); 20 for functions not measured.
    is_call : bool
        It calls a function of the math library, with much more code than one instruction.
    flops : callable, optional
        ``flops(node, operands, spec)``, floating-point operations; by default those of its kind
        (ops/cost_model.py).  None is returned where they are not known.
    """

    work: float = 1.0
    is_call: bool = False
    flops: Flops | None = None

    @property
    def weight(self) -> int:
        """The work in the steps that fusion distinguishes: 1, 4 (a division) and 20 (a call)."""
        return 20 if self.is_call else 4 if self.work > 1.0 else 1

    @property
    def is_recomputed(self) -> bool:
        """Whether recomputing it takes no longer than reading a value from memory."""
        return not self.is_call and self.work < 25.0


ARITHMETIC = Cost()
DIVISION = Cost(18.0)


def call(work: float = 20.0) -> Cost:
    """The cost of a function of the math library."""
    return Cost(work, is_call=True)


@dataclass(frozen=True, slots=True)
class Remedy:
    """The advice at the end of a message about an operation.

    Attributes
    ----------
    singular : str, optional
        If the derivative is infinite or NaN at a finite operand.
    outside : str, optional
        If the value itself is not finite; by default that of `singular`.
    overflow : str, optional
        If the exact value is finite and too large for the dtype.
    """

    singular: str | None = None
    outside: str | None = None
    overflow: str | None = None

    def advice(self, problem: Literal["singular", "outside", "overflow"]) -> str:
        """The advice for a problem; a general one if none is defined."""
        if problem == "overflow":
            return self.overflow or _GENERAL
        if problem == "outside":
            return self.outside or self.singular or _GENERAL
        return self.singular or _GENERAL


_GENERAL = "Rewrite the formula, or keep the operands away from that point"
GUARD = (
    "Keep the operand away from there before the function is applied: "
    "np.where(ok, x, 1.0) inside, and np.where(ok, ..., value) around it"
)
CLIP = "Clip the operand to just inside, np.clip(x, -1 + eps, 1 - eps), or use arctan2"
IN_LOGARITHMS = "Work with logarithms"


@dataclass(frozen=True, slots=True)
class ValueRange:
    """Properties of every element of the result, as named in rewrite/value_properties.py.

    Attributes
    ----------
    always : frozenset of str
    inherited : frozenset of str
        Properties that the result has if the operand has them.
    of_numbers : frozenset of str
        Properties that the result has if no element of the operand is NaN.
    """

    always: frozenset[str] = frozenset()
    inherited: frozenset[str] = frozenset()
    of_numbers: frozenset[str] = frozenset()


NOTHING_KNOWN = ValueRange()
NONNEGATIVE = ValueRange(always=frozenset({"nonnegative"}), inherited=frozenset({"number"}))
BOUNDED = ValueRange(of_numbers=frozenset({"finite"}))


class InverseProduct(NamedTuple):
    """The product that an operation z = x / y inverts, for Taylor series: x = product(y, z).

    Attributes
    ----------
    numerator : int
        The position of x among the two operands.
    product : callable
        ``product(y, z, **params)``, a bilinear function in operations.
    solve : callable, optional
        ``solve(y, x, **params)`` gives z; by default the operation itself. The numerator may have
        the shape of the result instead of that of the operand.
    """

    numerator: int
    product: Callable[..., Any]
    solve: Callable[..., Any] | None = None


class Jump(NamedTuple):
    """Where an operation of real numbers jumps.

    Attributes
    ----------
    below, above : bool or float
        The results where the first operand minus the second (or the only one) is negative, and
        where it is positive; None if it jumps elsewhere too.
    """

    below: bool | float | None = None
    above: bool | float | None = None


STEPS = Jump()


def facts(
    *,
    cost: Cost | None = None,
    flops: Flops | None = None,
    onnx: str | None = None,
    remedy: Remedy | None = None,
    zero_slope: str | None = None,
    range: ValueRange | None = None,
    host_callback: str | None = None,
    selectors: slice | None = None,
    native: bool | None = None,
    special_numbers: bool | None = None,
    multilinear: bool | None = None,
    quotient: InverseProduct | None = None,
    involution: bool | None = None,
    jump: Jump | None = None,
) -> Callable[[OpT], OpT]:
    """Set facts of the decorated operation (a decorator).

    Parameters
    ----------
    cost : Cost, optional
    flops : callable, optional
        `Cost.flops`.
    onnx : str, optional
        The operator of ONNX that computes the same.
    remedy : Remedy, optional
    zero_slope : str, optional
        `SATURATES`, `UNDERFLOW`, `AT_ORIGIN` or `SELECTS`.
    range : ValueRange, optional
    host_callback : str, optional
        Why native code calls the operation back in Python, always or for some operands.
    selectors : slice, optional
        The operands that select elements of the others (conditions, indices).
    native, special_numbers, multilinear, involution : bool, optional
        See `Op`.
    quotient : InverseProduct, optional
    jump : Jump, optional
    """
    if flops is not None:
        cost = replace(cost or ARITHMETIC, flops=flops)
    stated = {
        "cost": cost,
        "onnx": onnx,
        "remedy": remedy,
        "zero_slope": zero_slope,
        "range": range,
        "host_callback": host_callback,
        "selectors": selectors,
        "native": native,
        "special_numbers": special_numbers,
        "multilinear": multilinear,
        "quotient": quotient,
        "involution": involution,
        "jump": jump,
    }

    def set_facts(op: OpT) -> OpT:
        for name, fact in stated.items():
            if fact is not None:
                setattr(op, name, fact)
        return op

    return set_facts


@dataclass(frozen=True, slots=True)
class Effects:
    """The side effects of an operation, and where it may run.

    Attributes
    ----------
    side_effect : bool
        It runs in the order of the program even if nothing uses its value, and is never merged
        with another or dropped.
    serializable : bool
        Whether a graph in a file may contain it.  False for operations with effects outside the
        process (write files, open connections), which an untrusted graph must not have.
    total : bool
        It accepts all operands of its spec, so it may run before a loop that has no steps.
    value_dependent_shape : bool
        The shape of the result may depend on values (nonzero, x[mask]).
    only_if_true : bool
        The side effect occurs only if an element of the operand is nonzero.
    """

    side_effect: bool = False
    serializable: bool = True
    total: bool = False
    value_dependent_shape: bool = False
    only_if_true: bool = False


@dataclass(frozen=True, slots=True)
class Aliasing:
    """Whether the value may share memory with the first operand.

    Attributes
    ----------
    view : bool
        It may, as in NumPy.
    may_copy : bool
        It is a copy if the memory of the operand is not contiguous.
    transparent : bool
        An alias of its operand during a transformation; not in finished graphs.
    uniform : bool
        All elements are equal, so that native code reads one number and stores no array.
    """

    view: bool = False
    may_copy: bool = False
    transparent: bool = False
    uniform: bool = False


@dataclass(frozen=True, slots=True)
class Differentiation:
    """Properties of the derivative besides its rules.

    Attributes
    ----------
    masks : bool
        The derivative is exactly zero with respect to values that were not selected (a branch, an
        element).
    singular : bool or callable
        The derivative is infinite or NaN at some finite operands; a callable decides for a node.
    limits : bool
        The rules are NaN where values are equal (eigenvalues), though a limit may exist; they
        compute it when the derivative is recorded.
    takes_parts : bool
        It has several outputs, and its vjp takes a dict of the nonzero cotangents.
    """

    masks: bool = False
    singular: bool | Callable[[Any], bool] = False
    limits: bool = False
    takes_parts: bool = False

    def is_singular(self, node: Any) -> bool:
        """Whether the derivative may be infinite or NaN at finite operands of this node."""
        return self.singular if isinstance(self.singular, bool) else self.singular(node)
