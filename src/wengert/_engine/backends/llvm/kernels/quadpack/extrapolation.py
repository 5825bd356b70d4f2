"""The epsilon algorithm, and the order of subintervals by their errors.

    emit_extrapolation  @extrapolate: the limit of a sequence, and an estimate of its error
    emit_order          @order: which subinterval is divided next

P. Wynn, "On a device for computing the e_m(S_n) transformation", 1956; the table, the tests for
irregular behavior and the partial order are those of R. Piessens et al., QUADPACK, 1983.
"""

from __future__ import annotations

from ...ir.ir_builder import ModuleBuilder
from .rules import EPSILON
from .scalar_code import INT, REAL, ArrayCode, Cell, ScalarCode, Value

LARGEST_DOUBLE = float.fromhex("0x1.fffffffffffffp+1023")
MOST_TERMS = 50  # of the table; two more are for the next ones
_IRREGULAR = 1e-4


def emit_extrapolation(module: ModuleBuilder) -> None:
    """void extrapolate(terms, table, last, calls, out): limit and estimate.

    `terms` is the number of elements of the lower diagonal of the table, which changes; `last` has
    the last three limits, and `calls` counts them.
    """
    code = ScalarCode(module, "extrapolate", "ptr terms, ptr table, ptr last, ptr calls, ptr out")
    terms = ArrayCode(code, INT, "%terms", 0)
    table, out = ArrayCode(code, REAL, "%table"), ArrayCode(code, REAL, "%out", 0)
    calls, n = ArrayCode(code, INT, "%calls", 0), code.cell(INT, terms[0])
    calls[0] = calls[0] + 1
    limit, error = code.cell(REAL, table[n]), code.cell(REAL, LARGEST_DOUBLE)
    code.jump_if(n < 3, "finish")
    table[n + 2] = table[n]
    pairs, given = (n - 1) // 2, code.cell(INT, n)
    table[n] = LARGEST_DOUBLE
    _new_diagonal(code, table, n, pairs, limit, error)
    code.label("shift")
    with code.when(n.equals(MOST_TERMS)):
        n.set(2 * (MOST_TERMS // 2) - 1)
    is_even = (given // 2 * 2).equals(given)
    place = code.cell(INT, code.where(is_even, 2, 1))
    with code.count(0, pairs + 1):
        table[place] = table[place + 2]
        place.set(place + 2)
    with code.when(given.differs(n)):
        offset = given - n
        with code.count(1, n + 1) as k:
            table[k] = table[offset + k]
    _estimate(code, ArrayCode(code, REAL, "%last"), calls[0], limit, error)
    code.label("finish")
    terms[0] = n
    out[0] = limit
    out[1] = code.larger(error, 5.0 * EPSILON * code.abs(limit))
    code.close()


def _new_diagonal(
    code: ScalarCode, table: ArrayCode, n: Cell, pairs: Value, limit: Cell, error: Cell
) -> None:
    """Emit the new lower diagonal, and take the element with the least estimate."""
    at = code.cell(INT, n)
    with code.count(1, pairs + 1) as k:
        e0, e1, e2 = table[at - 2], table[at - 1], table[at + 2]
        size, step2, step3 = code.abs(e1), e2 - e1, e1 - e0
        change2, change3 = code.abs(step2), code.abs(step3)
        bound2 = code.larger(code.abs(e2), size) * EPSILON
        bound3 = code.larger(size, code.abs(e0)) * EPSILON
        with code.when((change2 <= bound2) & (change3 <= bound3)):  # it has converged
            limit.set(e2)
            error.set(change2 + change3)
            code.jump("finish")
        e3 = table[at]
        table[at] = e1
        step1 = e1 - e3
        change1, bound1 = code.abs(step1), code.larger(size, code.abs(e3)) * EPSILON
        close = (change1 <= bound1) | (change2 <= bound2) | (change3 <= bound3)
        with code.when(close):  # part of the table is left out
            n.set(k + k - 1)
            code.jump("shift")
        total = 1.0 / step1 + 1.0 / step2 - 1.0 / step3
        with code.when(~(code.abs(total * e1) > _IRREGULAR)):
            n.set(k + k - 1)
            code.jump("shift")
        new = e1 + 1.0 / total
        table[at] = new
        at.set(at - 2)
        estimate = change2 + code.abs(new - e2) + change3
        with code.when(~(estimate > error)):
            error.set(estimate)
            limit.set(new)


def _estimate(code: ScalarCode, last: ArrayCode, calls: Value, limit: Cell, error: Cell) -> None:
    """Emit the estimate from the last three limits."""
    with code.when(calls < 4):
        last[calls] = limit
        error.set(LARGEST_DOUBLE)
    with code.when(calls >= 4):
        changes = [code.abs(limit - last[k]) for k in (3, 2, 1)]
        error.set(changes[0] + changes[1] + changes[2])
        last[1] = last[2]
        last[2] = last[3]
        last[3] = limit


def emit_order(module: ModuleBuilder) -> None:
    """void order(limit, count, errors, numbers, place, chosen): sort in the last two intervals.

    The two are the one that was divided, `chosen`, and the last of `count`.  `numbers` has the
    subintervals by decreasing error, as many as may be divided until the limit is reached; `place`
    is that of the one to be divided next, and `chosen` becomes its number.
    """
    code = ScalarCode(
        module, "order", "i64 limit, i64 count, ptr errors, ptr numbers, ptr place, ptr chosen"
    )
    limit, count = code.argument("limit"), code.argument("count")
    errors, numbers = ArrayCode(code, REAL, "%errors"), ArrayCode(code, INT, "%numbers")
    where, result = ArrayCode(code, INT, "%place", 0), ArrayCode(code, INT, "%chosen", 0)
    place, chosen = code.cell(INT, where[0]), result[0]
    with code.when(count <= 2):
        numbers[1] = 1
        numbers[2] = 2
        code.jump("chosen")
    error, least = errors[chosen], errors[count]
    with code.during(lambda: place > 1):  # its error may have increased
        before = numbers[place - 1]
        code.jump_if(error <= errors[before], "insert")
        numbers[place] = before
        place.set(place - 1)
    code.label("insert")
    top = code.where(count > limit // 2 + 2, limit + 3 - count, count)
    k, end = code.cell(INT, place + 1), top - 1
    with code.during(lambda: k <= end):
        following = numbers[k]
        code.jump_if(error >= errors[following], "found")
        numbers[k - 1] = following
        k.set(k + 1)
    numbers[end] = chosen
    numbers[top] = count
    code.jump("chosen")
    code.label("found")
    numbers[k - 1] = chosen
    at = code.cell(INT, end)
    with code.during(lambda: at >= k):
        following = numbers[at]
        code.jump_if(least < errors[following], "last")
        numbers[at + 1] = following
        at.set(at - 1)
    code.label("last")
    numbers[at + 1] = count
    code.label("chosen")
    where[0] = place
    result[0] = numbers[place]
    code.close()
