"""Integrals of subintervals by Kronrod rules, their order by errors, and extrapolation.

    IntegralState        what all functions of an integral read
    emit_points          @points: the integrand at the nodes of an interval
    emit_sums            @sums: integral, estimate of the error, and two sizes, from these values
    emit_rule            @rule: both
    emit_extrapolation   @extrapolate: the limit of a sequence, and an estimate of its error
    emit_order           @order: which subinterval is divided next

The rules have 21 points of an interval, 15 of a transformed half line: an integral from c to
infinity is that of f(c + (1 - t) / t) / t^2 from 0 to 1, and one over the whole line that of
f(x) + f(-x) from 0 (R. Piessens et al., QUADPACK, 1983).  Sums, the table of the epsilon algorithm
(P. Wynn, "On a device for computing the e_m(S_n) transformation", 1956), the tests for irregular
behavior and the partial order are those of the published routines, so that results are theirs to
the last bit where the integrand's are.
"""

from __future__ import annotations

from typing import NamedTuple

from ...ir.ir_builder import ModuleBuilder, Name
from ...ir.llvm_types import F64, literal
from .scalar_code import INT, PTR, REAL, Arguments, ArrayCode, Cell, ScalarCode, Value

EPSILON, SMALLEST_NORMAL = 2.0**-52, 2.0**-1022
# Nodes on [0, 1] without the middle, their weights and that of the middle, and Gauss weights of
# every other node, from the end inward; the last one of 15 is that of the middle.
_NODES_21 = (
    *(0.995657163025808080735527280689003, 0.973906528517171720077964012084452),
    *(0.930157491355708226001207180059508, 0.865063366688984510732096688423493),
    *(0.780817726586416897063717578345042, 0.679409568299024406234327365114874),
    *(0.562757134668604683339000099272694, 0.433395394129247190799265943165784),
    *(0.294392862701460198131126603103866, 0.148874338981631210884826001129720),
)
_KRONROD_21 = (
    *(0.011694638867371874278064396062192, 0.032558162307964727478818972459390),
    *(0.054755896574351996031381300244580, 0.075039674810919952767043140916190),
    *(0.093125454583697605535065465083366, 0.109387158802297641899210590325805),
    *(0.123491976262065851077958109585166, 0.134709217311473325928054001771707),
    *(0.142775938577060080797094273138717, 0.147739104901338491374841515972068),
    0.149445554002916905664936468389821,
)
_GAUSS_10 = (
    *(0.066671344308688137593568809893332, 0.149451349150580593145863396957698),
    *(0.219086362515982043995534934228163, 0.269266719309996355091226921569469),
    0.295524224714752870173815619188769,
)
_NODES_15 = (
    *(0.991455371120812639206854697526329, 0.949107912342758524526189684047851),
    *(0.864864423359769072789712788640926, 0.741531185599394439863864773280788),
    *(0.586087235467691130294144691691137, 0.405845151377397166906606412076961),
    0.207784955007898467600689403773245,
)
_KRONROD_15 = (
    *(0.022935322010529224963732008058970, 0.063092092629978553290700663189204),
    *(0.104790010322250183839876322541518, 0.140653259715525918745189590510238),
    *(0.169004726639267902826583426598550, 0.190350578064785409913256402421014),
    *(0.204432940075298892414161999234649, 0.209482141084727828012999174891714),
)
_GAUSS_7 = (
    *(0.129484966168869693270611432679082, 0.279705391489276667901467771423780),
    *(0.381830050505118944950369775488975, 0.417959183673469387755102040816327),
)
FINITE, HALF, WHOLE = 0, 1, 2  # intervals


class KronrodRule(NamedTuple):
    """A rule: half of its nodes, and the weights.

    kronrod : of these nodes and of the middle.
    gauss : of every other node, from the second; of the middle too, if it is one of them.
    """

    name: str
    nodes: tuple[float, ...]
    kronrod: tuple[float, ...]
    gauss: tuple[float, ...]

    @property
    def points(self) -> int:
        """The number of its nodes."""
        return 2 * len(self.nodes) + 1

    def all_nodes(self) -> list[float]:
        """The nodes on [-1, 1], from left to right."""
        return [*[-x for x in self.nodes], 0.0, *self.nodes[::-1]]


RULE_21 = KronrodRule("nodes21", _NODES_21, _KRONROD_21, _GAUSS_10)
RULE_15 = KronrodRule("nodes15", _NODES_15, _KRONROD_15, _GAUSS_7)


class IntegralState:
    """What all functions of an integral read, in memory.

    function, context : the address of ``i64 f(context, x, values)``, and its first argument.
    points : where the nodes are stored.
    nodes : how many are stored for each call, not less than those of the rule.
    width, element : the number of elements of each value, and which one is integrated.
    interval : FINITE, HALF or WHOLE.
    end, sign : of the half line.
    """

    FIELDS = (
        *(("function", PTR), ("context", PTR), ("points", PTR), ("nodes", INT), ("width", INT)),
        *(("element", INT), ("interval", INT), ("end", REAL), ("sign", REAL)),
    )

    def __init__(self, code: ScalarCode, address: Name) -> None:
        self.code, self.base = code, address

    def _place(self, name: str) -> tuple[Name, str]:
        number = [n for n, _ in self.FIELDS].index(name)
        text = f"getelementptr i64, ptr {self.base}, i64 {number}"
        return self.code.function.body.value(text), self.FIELDS[number][1]

    def get(self, name: str) -> Value:
        """A field."""
        place, kind = self._place(name)
        return Value(self.code, kind, self.code.function.body.value(f"load {kind}, ptr {place}"))

    def set(self, name: str, value: Value | float | Name) -> None:
        """Set a field."""
        place, kind = self._place(name)
        text = value if isinstance(value, str) else self.code.operand(value, kind)
        self.code.function.body.write(f"store {kind} {text}, ptr {place}")


def _table(code: ScalarCode, rule: KronrodRule) -> ArrayCode:
    values = rule.all_nodes()
    listed = ", ".join(f"double {literal(v, F64)}" for v in values)
    base = code.module.constant(rule.name, f"[{len(values)} x double]", f"[{listed}]")
    return ArrayCode(code, REAL, base, 0)


def emit_points(module: ModuleBuilder) -> None:
    """i64 points(state, a, b, to): the integrand at the nodes of an interval."""
    code = ScalarCode(module, "points", "ptr state, double a, double b, ptr to")
    state, a, b = IntegralState(code, "%state"), code.argument("a"), code.argument("b")
    center, half = 0.5 * (a + b), 0.5 * (b - a)
    points = ArrayCode(code, REAL, state.get("points").name, 0)
    interval, count = state.get("interval"), code.cell(INT, RULE_21.points)
    with code.when(interval.equals(FINITE)):
        nodes = _table(code, RULE_21)
        with code.count(0, RULE_21.points) as k:
            points[k] = center + half * nodes[k]
    with code.when(interval.differs(FINITE)):
        count.set(RULE_15.points)
        nodes, end, sign = _table(code, RULE_15), state.get("end"), state.get("sign")
        with code.count(0, RULE_15.points) as k:
            t = center + half * nodes[k]
            points[k] = end + sign * (1.0 - t) / t
    last = points[count - 1]
    with code.count(count, state.get("nodes")) as k:
        points[k] = last
    _call(code, state, points, "%to")
    with code.when(interval.equals(WHOLE)):
        nodes_of_call = state.get("nodes")
        with code.count(0, nodes_of_call) as k:
            points[k] = 0.0 - points[k]
        to = ArrayCode(code, REAL, "%to", 0).address(nodes_of_call * state.get("width"))
        _call(code, state, points, to)
    code.close()


def _call(code: ScalarCode, state: IntegralState, points: ArrayCode, to: Name) -> None:
    given: Arguments = [(PTR, state.get("context")), (PTR, points.base), (PTR, to)]
    code.call_or_leave(state.get("function").name, given)


def emit_sums(module: ModuleBuilder) -> None:
    """void sums(state, a, b, values, out): the sums of an element of the values."""
    code = ScalarCode(module, "sums", "ptr state, double a, double b, ptr values, ptr out")
    state, a, b = IntegralState(code, "%state"), code.argument("a"), code.argument("b")
    center, half = 0.5 * (a + b), 0.5 * (b - a)
    given, own = ArrayCode(code, REAL, "%values", 0), code.array(REAL, RULE_21.points)
    out = ArrayCode(code, REAL, "%out", 0)
    width, element, interval = state.get("width"), state.get("element"), state.get("interval")
    with code.when(interval.equals(FINITE)):
        with code.count(0, RULE_21.points) as k:
            own[k] = given[k * width + element]
        _sums(code, RULE_21, own, half, out)
        code.leave()
    with code.when(interval.equals(WHOLE)):
        second = state.get("nodes") * width + element
        with code.count(0, RULE_15.points) as k:
            own[k] = given[k * width + element] + given[k * width + second]
    with code.when(interval.equals(HALF)), code.count(0, RULE_15.points) as k:
        own[k] = given[k * width + element]
    nodes = _table(code, RULE_15)
    with code.count(0, RULE_15.points) as k:
        t = center + half * nodes[k]
        own[k] = own[k] / t / t
    _sums(code, RULE_15, own, half, out)
    code.close()


def _sums(
    code: ScalarCode, rule: KronrodRule, values: ArrayCode, half: Value, out: ArrayCode
) -> None:
    """Emit the sums of a rule; pairs are added in the order of QUADPACK."""
    middle_place, pairs = len(rule.nodes), range(len(rule.nodes))
    middle, weight = values[middle_place], rule.kronrod[-1]
    kronrod, size = weight * middle, code.abs(weight * middle)
    of_middle = len(rule.gauss) > middle_place // 2
    gauss = rule.gauss[-1] * middle if of_middle else None
    left, right = [values[k] for k in pairs], [values[rule.points - 1 - k] for k in pairs]
    # The rule of 21 points adds the nodes of Gauss first, that of 15 all in turn.
    order = [*pairs] if of_middle else [*pairs[1::2], *pairs[::2]]
    for k in order:
        both = left[k] + right[k]
        if k % 2:
            term = rule.gauss[k // 2] * both
            gauss = term if gauss is None else gauss + term
        kronrod = kronrod + rule.kronrod[k] * both
        size = size + rule.kronrod[k] * (code.abs(left[k]) + code.abs(right[k]))
    assert gauss is not None
    mean = 0.5 * kronrod
    spread = weight * code.abs(middle - mean)
    for k in pairs:
        spread = spread + rule.kronrod[k] * (code.abs(left[k] - mean) + code.abs(right[k] - mean))
    length = code.abs(half)
    size, spread = size * length, spread * length
    error = code.cell(REAL, code.abs((kronrod - gauss) * half))
    with code.when(spread.differs(0.0) & error.differs(0.0)):
        ratio = 200.0 * error / spread
        power = ratio * code.sqrt(ratio)
        error.set(spread * code.where(power < 1.0, power, 1.0))
    with code.when(size > SMALLEST_NORMAL / (50.0 * EPSILON)):
        error.set(code.larger(50.0 * EPSILON * size, error))
    for k, value in enumerate((kronrod * half, error, size, spread)):
        out[k] = value


def emit_rule(module: ModuleBuilder) -> None:
    """i64 rule(state, a, b, values, out): evaluate the integrand in an interval, and sum."""
    code = ScalarCode(module, "rule", "ptr state, double a, double b, ptr values, ptr out")
    interval = [(PTR, "%state"), (REAL, "%a"), (REAL, "%b"), (PTR, "%values")]
    code.call_or_leave("@points", interval)
    code.call("@sums", [*interval, (PTR, "%out")])
    code.close()


# ---- extrapolation and order ---------------------------------------------------------------------


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
