"""Adaptive bisection with extrapolation: `qags` and `qagi`, and `qagp` for given points.

    emit_bisection   @bisect, or @bisect_at_points

Both divide the subinterval with the largest error.  When that is one of the smallest, the sum of
all integrals is a term of a sequence, whose limit is extrapolated (R. Piessens et al., QUADPACK,
1983).  With points, the size of a subinterval is how often it was divided.
"""

from __future__ import annotations

from typing import NamedTuple

from ...ir.ir_builder import ModuleBuilder
from .scalar_code import FLAG, INT, PTR, REAL, Arguments, ArrayCode, ScalarCode, Value
from .subintervals import EPSILON, LARGEST_DOUBLE, MOST_TERMS, SMALLEST_NORMAL

ARGUMENTS = (
    "ptr state, ptr work, ptr values, double a, double b, double epsabs, double epsrel, "
    "i64 limit, i64 first, ptr out"
)
# The status of an integral, before the one of an extrapolated table is left out.
_LIMIT, _ROUNDING, _TABLE, _POINT, _SLOW, _DIVERGENT = 1, 2, 3, 4, 5, 6


class Sums(NamedTuple):
    """What `@sums` returns: integral, estimate, integral of |f|, and of |f - mean|."""

    value: Value
    error: Value
    size: Value
    spread: Value


class WorkLists:
    """The lists of subintervals in the memory of an integral, numbered from 1.

    left, right, values, errors : of each subinterval.
    numbers : of the subintervals, by decreasing error.
    levels : how often each was divided, with points.
    table, last : of the epsilon algorithm.
    """

    LISTS = 6

    def __init__(self, code: ScalarCode) -> None:
        self.code, base = code, ArrayCode(code, INT, "%work", 0)
        limit = code.argument("limit")
        addresses = [base.address(limit * k) for k in range(self.LISTS + 1)]
        self.left, self.right, self.values, self.errors = (
            ArrayCode(code, REAL, x) for x in addresses[:4]
        )
        self.numbers, self.levels = (ArrayCode(code, INT, x) for x in addresses[4:6])
        self.table = ArrayCode(code, REAL, addresses[6])
        self.last = ArrayCode(code, REAL, base.address(limit * self.LISTS + MOST_TERMS + 2))

    @classmethod
    def words(cls, limit: int) -> int:
        """The memory for some number of subintervals, in doubles."""
        return cls.LISTS * limit + MOST_TERMS + 2 + 3


class _SubintervalSearch:
    """The search for a sum of integrals whose error is small.

    total, error_sum : of all subintervals.
    value, error : the best extrapolated limit; at first the sum, and the largest number.
    large_error : the sum of the errors of subintervals that are larger than the smallest.
    bound, target : the errors at which it ends: of the sum, and of the limit.
    correction : what is added to the error of the limit if rounding was found.
    size : the integral of the absolute value, by the first rule.
    worst, worst_error : the subinterval that is divided next.
    place : of it, in the order of errors.
    small, levels : the size of the smallest subintervals: a length, or how often they were divided.
    stalls : extrapolations since the last better one.
    """

    def __init__(self, code: ScalarCode, by_points: bool) -> None:
        self.code, self.by_points, self.lists = code, by_points, WorkLists(code)
        self.limit, self.given = code.argument("limit"), code.argument("first")
        self.last = code.cell(INT, self.given)
        numbers = [code.cell(REAL, 0.0) for _ in range(11)]
        self.total, self.error_sum, self.value, self.error = numbers[:4]
        self.large_error, self.bound, self.target, self.correction = numbers[4:8]
        self.size, self.small, self.worst_error = numbers[8:]
        self.worst, self.place, self.terms = (
            code.cell(INT, x) for x in (1, 1, 1 if by_points else 2)
        )
        self.calls, self.stalls, self.levels = (code.cell(INT, x) for x in (0, 0, 1))
        self.rounding = [code.cell(INT, 0) for _ in range(3)]
        self.status, flags = code.cell(INT, 0), [code.cell(FLAG, 0) for _ in range(4)]
        self.is_noisy, self.has_sign, self.extrapolates, self.is_blocked = flags
        self.out, self.found = ArrayCode(code, REAL, "%out", 0), code.array(REAL, 4)

    def tolerance(self, value: Value) -> Value:
        """The error that is small enough for an integral."""
        code = self.code
        relative = code.argument("epsrel") * code.abs(value)
        return code.larger(code.argument("epsabs"), relative)

    def sums(self, a: Value, b: Value) -> Sums:
        """The sums of an interval."""
        ends: Arguments = [
            (PTR, "%state"),
            (REAL, a),
            (REAL, b),
            (PTR, "%values"),
            (PTR, self.found.base),
        ]
        self.code.call_or_leave("@rule", ends)
        return Sums(*[self.found[k] for k in range(4)])

    # ---- the beginning -------------------------------------------------------------------------

    def begin(self) -> None:
        """Emit the first approximation, and end if it suffices."""
        code, lists = self.code, self.lists
        if self.by_points:
            self._first_intervals()
        else:
            value, error, size, spread = (self.out[k] for k in range(4))
            for cell, x in ((self.value, value), (self.error, error), (self.size, size)):
                cell.set(x)
            self.error_sum.set(error)
            for numbers, x in ((lists.left, code.argument("a")), (lists.right, code.argument("b"))):
                numbers[1] = x
            lists.values[1], lists.errors[1], lists.numbers[1] = value, error, 1
        self.bound.set(self.tolerance(self.value))
        is_small = self.error <= self.bound
        with code.when((self.error <= 100.0 * EPSILON * self.size) & ~is_small):
            self.status.set(_ROUNDING)
        if self.by_points:
            with code.when((self.given > 1) & (self.limit <= self.given)):
                self.status.set(_LIMIT)
        else:
            with code.when(self.limit.equals(1)):
                self.status.set(_LIMIT)
            is_small = (is_small & self.error.differs(spread)) | self.error.equals(0.0)
        code.jump_if(self.status.differs(0) | is_small, "finish")
        lists.table[1] = self.value
        self.total.set(self.value)
        self.worst.set(lists.numbers[1])
        self.worst_error.set(lists.errors[self.worst])
        self.has_sign.set(code.abs(self.value) >= (1.0 - 50.0 * EPSILON) * self.size)
        self.error.set(LARGEST_DOUBLE)
        self.large_error.set(self.error_sum)
        self.target.set(self.bound)

    def _first_intervals(self) -> None:
        """Emit the integrals between given points, and their order."""
        code, lists = self.code, self.lists
        with code.count(1, self.given + 1) as k:
            sums = self.sums(lists.left[k], lists.right[k])
            self.error.set(self.error + sums.error)
            self.value.set(self.value + sums.value)
            self.size.set(self.size + sums.size)
            is_rough = sums.error.equals(sums.spread) & sums.error.differs(0.0)
            lists.values[k], lists.errors[k] = sums.value, sums.error
            lists.numbers[k], lists.levels[k] = k, code.where(is_rough, -1, 0)
        with code.count(1, self.given + 1) as k:
            with code.when(lists.levels[k] < 0):
                lists.errors[k] = self.error
                lists.levels[k] = 0
            self.error_sum.set(self.error_sum + lists.errors[k])
        with code.count(1, self.given) as k:
            chosen, at = code.cell(INT, lists.numbers[k]), code.cell(INT, k)
            with code.count(k + 1, self.given + 1) as j:
                other = lists.numbers[j]
                with code.when(~(lists.errors[chosen] > lists.errors[other])):
                    chosen.set(other)
                    at.set(j)
            lists.numbers[at] = lists.numbers[k]
            lists.numbers[k] = chosen

    # ---- a step --------------------------------------------------------------------------------

    def divide(self) -> None:
        """Emit the division of the worst subinterval, and the tests for its end."""
        code, lists, worst, last = self.code, self.lists, self.worst, self.last
        a, b = lists.left[worst], lists.right[worst]
        middle, before = 0.5 * (a + b), lists.values[worst]
        left, right = self.sums(a, middle), self.sums(middle, b)
        value, error = left.value + right.value, left.error + right.error
        self.error_sum.set(self.error_sum + error - self.worst_error)
        self.total.set(self.total + value - before)
        differs = left.spread.differs(left.error) & right.spread.differs(right.error)
        with code.when(differs):
            self._count_rounding(before, value, error)
        if self.by_points:
            level = lists.levels[worst] + 1
            lists.levels[worst] = lists.levels[last] = level
            is_large = level + 1 <= self.levels
        else:
            is_large = code.abs(middle - a) > self.small
        self.bound.set(self.tolerance(self.total))
        self._set_status(a, middle, b)
        swaps = right.error > left.error
        for numbers, x, y in (
            (lists.values, left.value, right.value),
            (lists.errors, left.error, right.error),
            (lists.left, a, middle),
            (lists.right, middle, b),
        ):
            numbers[worst] = code.where(swaps, y, x)
            numbers[last] = code.where(swaps, x, y)
        previous = code.cell(REAL, self.worst_error)
        places: Arguments = [(PTR, self.place.address), (PTR, worst.address)]
        given: Arguments = [
            (INT, self.limit),
            (INT, last),
            (PTR, lists.errors.base),
            (PTR, lists.numbers.base),
        ]
        code.call("@order", [*given, *places])
        self.worst_error.set(lists.errors[worst])
        code.jump_if(self.error_sum <= self.bound, "sum")
        code.jump_if(self.status.differs(0), "end")
        if not self.by_points:
            self._second_interval()
        code.jump_if(self.is_blocked, "next")
        self.large_error.set(self.large_error - previous)
        with code.when(is_large):
            self.large_error.set(self.large_error + error)

    def _count_rounding(self, before: Value, value: Value, error: Value) -> None:
        code = self.code
        varies = code.abs(before - value) > 1e-5 * code.abs(value)
        stays = ~(varies | (error < 0.99 * self.worst_error))
        for number, condition in enumerate(
            (
                stays & ~self.extrapolates,
                stays & self.extrapolates,
                (self.last > 10) & (error > self.worst_error),
            )
        ):
            with code.when(condition):
                self.rounding[number].set(self.rounding[number] + 1)

    def _set_status(self, a: Value, middle: Value, b: Value) -> None:
        code, (first, second, third) = self.code, self.rounding
        with code.when((first + second >= 10) | (third >= 20)):
            self.status.set(_ROUNDING)
        with code.when(second >= 5):
            self.is_noisy.set(1)
        with code.when(self.last.equals(self.limit)):
            self.status.set(_LIMIT)
        least = (1.0 + 100.0 * EPSILON) * (code.abs(middle) + 1000.0 * SMALLEST_NORMAL)
        with code.when(code.larger(code.abs(a), code.abs(b)) <= least):
            self.status.set(_POINT)

    def _second_interval(self) -> None:
        """Emit the second term of the sequence, before which nothing is extrapolated."""
        code = self.code
        with code.when(self.last.equals(2)):
            length = code.argument("b") - code.argument("a")
            self.small.set(code.abs(length) * 0.375)
            self.large_error.set(self.error_sum)
            self.target.set(self.bound)
            self.lists.table[2] = self.total
            code.jump("next")

    def _is_large(self) -> Value:
        """Whether the worst subinterval is larger than the smallest."""
        lists, worst = self.lists, self.worst
        if self.by_points:
            return lists.levels[worst] + 1 <= self.levels
        return self.code.abs(lists.right[worst] - lists.left[worst]) > self.small

    def search(self) -> None:
        """Emit the search for large subintervals, which are divided before the smallest."""
        code, lists = self.code, self.lists
        with code.when(~self.extrapolates):
            code.jump_if(self._is_large(), "next")
            self.extrapolates.set(1)
            self.place.set(2)
        with code.when(~self.is_noisy & (self.large_error > self.target)):
            is_half = self.last > 2 + self.limit // 2
            top = code.where(is_half, self.limit + 3 - self.last, self.last)
            with code.during(lambda: self.place <= top):
                self.worst.set(lists.numbers[self.place])
                self.worst_error.set(lists.errors[self.worst])
                code.jump_if(self._is_large(), "next")
                self.place.set(self.place + 1)

    def extrapolate(self) -> None:
        """Emit an extrapolation, after which the smallest subintervals are divided."""
        code, lists = self.code, self.lists
        self.terms.set(self.terms + 1)
        lists.table[self.terms] = self.total
        if self.by_points:
            code.jump_if(self.terms <= 2, "smaller")
        table: Arguments = [
            (PTR, self.terms.address),
            (PTR, lists.table.base),
            (PTR, lists.last.base),
        ]
        code.call("@extrapolate", [*table, (PTR, self.calls.address), (PTR, self.found.base)])
        limit, error = self.found[0], self.found[1]
        self.stalls.set(self.stalls + 1)
        with code.when((self.stalls > 5) & (self.error < 1e-3 * self.error_sum)):
            self.status.set(_SLOW)
        with code.when(error < self.error):
            self.stalls.set(0)
            self.error.set(error)
            self.value.set(limit)
            self.correction.set(self.large_error)
            self.target.set(self.tolerance(limit))
            ends = error < self.target if self.by_points else error <= self.target
            code.jump_if(ends, "end")
        with code.when(self.terms.equals(1)):
            self.is_blocked.set(1)
        code.jump_if(self.status.equals(_SLOW), "end")
        code.label("smaller")
        self.worst.set(lists.numbers[1])
        self.worst_error.set(lists.errors[self.worst])
        self.place.set(1)
        self.extrapolates.set(0)
        self.small.set(self.small * 0.5)
        self.levels.set(self.levels + 1)
        self.large_error.set(self.error_sum)

    # ---- the end -------------------------------------------------------------------------------

    def finish(self) -> None:
        """Emit the choice of the result: the limit, or the sum."""
        code, value, total = self.code, self.value, self.total
        code.label("end")
        code.jump_if(self.error.equals(LARGEST_DOUBLE), "sum")
        with code.when(self.status.differs(0) | self.is_noisy):
            with code.when(self.is_noisy):
                self.error.set(self.error + self.correction)
            with code.when(self.status.equals(0)):
                self.status.set(_TABLE)
            with code.when(value.differs(0.0) & total.differs(0.0)):
                relative = self.error / code.abs(value)
                code.jump_if(relative > self.error_sum / code.abs(total), "sum")
                code.jump("ratio")
            code.jump_if(self.error > self.error_sum, "sum")
            code.jump_if(total.equals(0.0), "finish")
        code.label("ratio")
        largest = code.larger(code.abs(value), code.abs(total))
        code.jump_if(~self.has_sign & (largest <= self.size * 0.01), "finish")
        ratio = value / total
        diverges = (ratio < 0.01) | (ratio > 100.0) | (self.error_sum > code.abs(total))
        with code.when(diverges):
            self.status.set(_DIVERGENT)
        code.jump("finish")
        code.label("sum")
        value.set(0.0)
        with code.count(1, self.last + 1) as k:
            value.set(value + self.lists.values[k])
        self.error.set(self.error_sum)
        code.label("finish")
        with code.when(self.status > 2):
            self.status.set(self.status - 1)
        self.out[0], self.out[1] = value, self.error
        numbers = ArrayCode(code, INT, "%out", 0)
        numbers[2], numbers[3] = self.status, 2 * self.last - self.given


def emit_bisection(module: ModuleBuilder, by_points: bool) -> None:
    """i64 bisect(...): an integral, its error, status, and the number of rules.

    `out` has the sums of the first rule; with points, `work` has the `first` subintervals instead.
    """
    code = ScalarCode(module, "bisect_at_points" if by_points else "bisect", ARGUMENTS)
    search = _SubintervalSearch(code, by_points)
    search.begin()
    with code.during(lambda: search.last < search.limit):
        search.last.set(search.last + 1)
        search.divide()
        search.search()
        search.extrapolate()
        code.label("next")
    search.finish()
    code.close()
