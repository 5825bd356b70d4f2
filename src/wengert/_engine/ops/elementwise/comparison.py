"""Comparisons, logic, bitwise operations and predicates: their derivatives are zero.

    less, equal, ...                       comparisons
    logical_and, isnan, signbit, ...       logic and predicates
    bitwise_and, gcd, left_shift, ...      operations on integers only

The results are booleans or integers; values that depend only on them have no derivative.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.dispatch import Operation
from wengert._engine.core.op import register
from wengert._engine.core.op_facts import ARITHMETIC, Jump, call, facts
from wengert._engine.kinds.batching import elementwise_batching
from wengert._engine.kinds.elementwise import elementwise

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand, Scalar, ScalarLanguage


@facts(cost=ARITHMETIC, onnx="Less", jump=Jump(True, False))
@elementwise(ufunc=np.less, oracle="x < y", discrete=True)
def less(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """x < y."""
    return s.less(x, y)


@facts(cost=ARITHMETIC, onnx="LessOrEqual", jump=Jump(True, False))
@elementwise(ufunc=np.less_equal, oracle="x <= y", discrete=True)
def less_equal(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """x <= y."""
    return s.less_equal(x, y)


@facts(cost=ARITHMETIC, onnx="Greater", jump=Jump(False, True))
@elementwise(ufunc=np.greater, oracle="x > y", discrete=True)
def greater(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """x > y."""
    return s.less(y, x)


@facts(cost=ARITHMETIC, onnx="GreaterOrEqual", jump=Jump(False, True))
@elementwise(ufunc=np.greater_equal, oracle="x >= y", discrete=True)
def greater_equal(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """x >= y."""
    return s.less_equal(y, x)


@facts(cost=ARITHMETIC, onnx="Equal")
@elementwise(ufunc=np.equal, commutative=True, oracle="x == y", discrete=True, complex_ok=True)
def equal(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """x == y."""
    return s.equal(x, y)


@facts(cost=ARITHMETIC)
@elementwise(ufunc=np.not_equal, commutative=True, oracle="x != y", discrete=True, complex_ok=True)
def not_equal(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """x != y."""
    return s.not_equal(x, y)


# ---- logic -------------------------------------------------------------------------------------


@facts(cost=ARITHMETIC)
@elementwise(
    ufunc=np.logical_and,
    commutative=True,
    oracle="bool(x) and bool(y)",
    discrete=True,
    complex_ok=True,
)
def logical_and(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """Whether x and y are both nonzero."""
    return s.logical_and(x, y)


@facts(cost=ARITHMETIC)
@elementwise(
    ufunc=np.logical_or,
    commutative=True,
    oracle="bool(x) or bool(y)",
    discrete=True,
    complex_ok=True,
)
def logical_or(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """Whether x or y is nonzero."""
    return s.logical_or(x, y)


@facts(cost=ARITHMETIC)
@elementwise(
    ufunc=np.logical_xor,
    commutative=True,
    oracle="bool(x) != bool(y)",
    discrete=True,
    complex_ok=True,
)
def logical_xor(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """Whether exactly one of x and y is nonzero."""
    return s.logical_xor(x, y)


@facts(cost=ARITHMETIC)
@elementwise(ufunc=np.logical_not, oracle="not bool(x)", discrete=True, complex_ok=True)
def logical_not(s: ScalarLanguage, x: Scalar) -> Any:
    """Whether x is zero."""
    return s.logical_not(x)


for _op in (logical_and, logical_or, logical_xor):

    @_op.examples
    def _(rng: np.random.Generator) -> Any:
        x, y = rng.normal(size=(2, 4))
        yield (np.where(x > 0, x, 0.0), np.where(y > 0, y, 0.0)), {}
        yield (x > 0, y > 0), {}


@logical_not.examples
def _(rng: np.random.Generator) -> Any:
    x = rng.normal(size=(5,))
    yield (np.where(x > 0, x, 0.0),), {}
    yield (x > 0,), {}


# ---- predicates --------------------------------------------------------------------------------


@facts(cost=ARITHMETIC)
@elementwise(ufunc=np.isnan, oracle="isnan(x)", discrete=True, complex_ok=True)
def isnan(s: ScalarLanguage, x: Scalar) -> Any:
    """Whether x is NaN."""
    return s.isnan(x)


@facts(cost=ARITHMETIC)
@elementwise(ufunc=np.isinf, oracle="isinf(x)", discrete=True, complex_ok=True)
def isinf(s: ScalarLanguage, x: Scalar) -> Any:
    """Whether x is plus or minus infinity."""
    return s.isinf(x)


@facts(cost=ARITHMETIC)
@elementwise(ufunc=np.isfinite, oracle="isfinite(x)", discrete=True, complex_ok=True)
def isfinite(s: ScalarLanguage, x: Scalar) -> Any:
    """Whether x is neither infinite nor NaN."""
    return s.isfinite(x)


@facts(cost=ARITHMETIC, jump=Jump(True, False))
@elementwise(ufunc=np.signbit, oracle="x < 0", discrete=True)
def signbit(s: ScalarLanguage, x: Scalar) -> Any:
    """Whether the sign bit is set: x < 0, or x is -0.0."""
    return s.signbit(x)


class _IsClose(Operation):
    """NumPy's isclose, with the tolerances as parameters."""

    kind = "elementwise"
    discrete = True
    oracle = staticmethod(
        lambda x, y, rtol=1e-5, atol=1e-8, equal_nan=False: np.abs(x - y) <= atol + rtol * np.abs(y)
    )

    def run(self, x: Array, y: Operand, **tolerances: Any) -> Any:
        """``numpy.isclose``."""
        return np.isclose(x, y, **tolerances)


isclose = register(_IsClose("isclose", "Whether |x - y| <= atol + rtol |y|, as NumPy's."))


elementwise_batching(isclose)


@isclose.examples
def _(rng: np.random.Generator) -> Any:
    x = rng.normal(size=(6,))
    yield (x, x + 1e-6 * rng.normal(size=(6,))), {}
    yield (x, x + rng.normal(size=(6,))), {"rtol": 0.5, "atol": 0.1}


# ---- bits --------------------------------------------------------------------------------------


class IntegerOperation(Operation):
    """An operation on integers and booleans only.

    The oracle is Python's integer arithmetic, element by element.
    """

    kind = "elementwise"
    discrete = True
    cost = ARITHMETIC

    def __init__(self, ufunc: np.ufunc, python: Callable[..., int]) -> None:
        super().__init__(ufunc.__name__, f"numpy.{ufunc.__name__}; integers only.")
        self.ufunc = ufunc
        self.run = ufunc
        self.python = python
        self.commutative = "shift" not in self.name and ufunc.nin == 2
        self.make_examples = self._integer_examples
        elementwise_batching(self)

    def oracle(self, *xs: Any) -> Any:
        """Python's operator on Python integers."""
        return np.vectorize(lambda *v: self.python(*map(int, v)), otypes=[np.int64])(*xs)

    def _integer_examples(self, rng: np.random.Generator) -> Any:
        for low, high in [(0, 20), (1, 5)]:
            yield tuple(rng.integers(low, high, size=(4,)) for _ in range(self.ufunc.nin)), {}


BITS: list[IntegerOperation] = []
for _ufunc, _python in (
    (np.bitwise_and, operator.and_),
    (np.bitwise_or, operator.or_),
    (np.bitwise_xor, operator.xor),
    (np.invert, operator.invert),
    (np.left_shift, operator.lshift),
    (np.right_shift, operator.rshift),
    (np.gcd, math.gcd),
    (np.lcm, math.lcm),
    (np.bitwise_count, int.bit_count),
):
    BITS.append(register(IntegerOperation(_ufunc, _python)))
# Programs are kept on disk only if each operation is an attribute of a module of the package.
globals().update({_bits.name: _bits for _bits in BITS})
for _bits in BITS:
    if _bits.name in ("gcd", "lcm"):
        _bits.cost = call()
