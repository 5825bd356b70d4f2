"""The routine that programs call: the integrals of the elements of a function.

NAME          its symbol
work_words    the memory that it needs
REFUSED       a status: SciPy treats this interval
"""

from __future__ import annotations

import math

from ...ir.ir_builder import ModuleBuilder, Name
from ...ir.llvm_types import F64, literal
from .bisection import WorkLists, emit_bisection
from .scalar_code import INT, PTR, REAL, Arguments, ArrayCode, Cell, ScalarCode, Value
from .subintervals import (
    FINITE,
    HALF,
    RULE_15,
    RULE_21,
    WHOLE,
    IntegralState,
    emit_extrapolation,
    emit_order,
    emit_points,
    emit_rule,
    emit_sums,
)

NAME = "wengert_quadpack"
REFUSED = 99
KINDS = (PTR, PTR, REAL, REAL, REAL, REAL, INT, PTR, INT, INT, INT, PTR, PTR, PTR, PTR, PTR)
_ARGUMENTS = (
    "ptr function, ptr context, double a, double b, double epsabs, double epsrel, i64 limit, "
    "ptr given, i64 count, i64 nodes, i64 width, ptr work, ptr value, ptr error, ptr status, "
    "ptr evaluations"
)


def work_words(limit: int, nodes: int, width: int) -> int:
    """The memory that the routine needs, in doubles.

    Parameters
    ----------
    limit : int
        The largest number of subintervals.
    nodes, width : int
        The points of a call of the integrand, and the elements of each value.
    """
    return WorkLists.words(limit) + nodes + 4 * nodes * width


def emit(module: ModuleBuilder, name: str) -> None:
    """Add the routine.

    ``i64 (function, context, a, b, epsabs, epsrel, limit, points, count, nodes, width, work, value,
    error, status, evaluations)``: the integrals from a to b of the elements of a function, which is
    ``i64 f(context, x, values)`` for an array of `nodes` numbers.  Each element has a value and a
    status; the error is the largest one, and evaluations are added.  It returns the status of the
    function if that is not zero.
    """
    emit_points(module)
    emit_sums(module)
    emit_rule(module)
    emit_extrapolation(module)
    emit_order(module)
    emit_bisection(module, by_points=False)
    emit_bisection(module, by_points=True)
    _emit_routine(module)


def _emit_routine(module: ModuleBuilder) -> None:
    """Emit the routine; intervals from or to infinity are those from 0 to 1."""
    code = ScalarCode(module, NAME, _ARGUMENTS, linkage="")
    status, limits = ArrayCode(code, INT, "%status", 0), (code.argument("a"), code.argument("b"))
    flips = limits[1] < limits[0]
    low, high = code.where(flips, limits[1], limits[0]), code.where(flips, *limits)
    count = code.cell(INT, 0)
    _count_inside(code, low, high, count)
    is_invalid = ~(low < high) | (count >= code.argument("limit"))
    is_infinite = low.equals(-math.inf) | high.equals(math.inf)
    has_points = code.argument("count") > 0
    with code.when(is_invalid | (is_infinite & has_points)):
        with code.count(0, code.argument("width")) as k:
            status[k] = REFUSED
        code.leave()
    state, places = _state(code, low, high, is_infinite)
    a, b = code.where(is_infinite, 0.0, low), code.where(is_infinite, 1.0, high)
    ends: Arguments = [(REAL, a), (REAL, b)]
    with code.when(~has_points):
        code.call_or_leave("@points", [(PTR, state.base), *ends, (PTR, places[0])])
    error, total = code.cell(REAL, 0.0), code.cell(INT, 0)
    value, out = ArrayCode(code, REAL, "%value", 0), code.array(REAL, 4)
    found = ArrayCode(code, INT, out.base, 0)
    given = [*[(PTR, x) for x in (state.base, "%work", places[1])], *ends]
    given += [
        (t, code.argument(n)) for t, n in ((REAL, "epsabs"), (REAL, "epsrel"), (INT, "limit"))
    ]
    given += [(INT, count + 1), (PTR, out.base)]
    with code.count(0, code.argument("width")) as k:
        state.set("element", k)
        with code.when(~has_points):
            code.call("@sums", [(PTR, state.base), *ends, (PTR, places[0]), (PTR, out.base)])
            code.call_or_leave("@bisect", given)
        with code.when(has_points):
            _store_intervals(code, low, high)
            code.call_or_leave("@bisect_at_points", given)
        value[k] = code.where(flips, 0.0 - out[0], out[0])
        grows = ~(out[1] <= error) & error.equals(error)  # NaN remains
        error.set(code.where(grows, out[1], error))
        status[k] = found[2]
        total.set(total + found[3])
    is_whole = state.get("interval").equals(WHOLE)
    nodes = code.where(is_infinite, RULE_15.points, RULE_21.points) * code.where(is_whole, 2, 1)
    ArrayCode(code, REAL, "%error", 0)[0] = error
    ArrayCode(code, INT, "%evaluations", 0)[0] = total * nodes
    code.close()


def _state(
    code: ScalarCode, low: Value, high: Value, is_infinite: Value
) -> tuple[IntegralState, tuple[Name, Name]]:
    """Emit the state, and where the values of the first rule and of others are stored."""
    state = IntegralState(code, code.function.slot(f"[{len(IntegralState.FIELDS)} x i64]"))
    for name in ("function", "context", "nodes", "width"):
        state.set(name, code.argument(name))
    is_whole = low.equals(-math.inf) & high.equals(math.inf)
    half = code.where(is_infinite, HALF, Value(code, INT, str(FINITE)))
    state.set("interval", code.where(is_whole, Value(code, INT, str(WHOLE)), half))
    is_right = high.equals(math.inf)
    state.set("sign", code.where(is_right, Value(code, REAL, literal(1.0, F64)), -1.0))
    state.set("end", code.where(is_whole, 0.0, code.where(is_right, low, high)))
    work, nodes = ArrayCode(code, REAL, "%work", 0), code.argument("nodes")
    points = code.argument("limit") * WorkLists.LISTS + WorkLists.words(0)
    state.set("points", work.address(points))
    first = points + nodes
    values = first + 2 * nodes * code.argument("width")
    return state, (work.address(first), work.address(values))


def _count_inside(code: ScalarCode, low: Value, high: Value, count: Cell) -> None:
    """Count the points between the limits; SciPy ignores others."""
    points = ArrayCode(code, REAL, "%given", 0)
    with code.count(0, code.argument("count")) as k:
        inside = (low < points[k]) & (points[k] < high)
        count.set(code.where(inside, count + 1, count))


def _store_intervals(code: ScalarCode, low: Value, high: Value) -> None:
    """Store the intervals between limits and points, which are in increasing order."""
    points, lists = ArrayCode(code, REAL, "%given", 0), WorkLists(code)
    place = code.cell(INT, 1)
    lists.left[1] = low
    with code.count(0, code.argument("count")) as k:
        is_inside = (low < points[k]) & (points[k] < high)
        with code.when(is_inside):
            lists.right[place] = points[k]
            place.set(place + 1)
            lists.left[place] = points[k]
    lists.right[place] = high
