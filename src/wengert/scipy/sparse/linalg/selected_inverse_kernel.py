"""Elements of the inverse of a matrix on the pattern of its LU factors, as native code.

From Z L = inv(U) and U Z = inv(L) follow, for Z = inv(L U) with pivots d, from the last column to
the first (K. Takahashi, J. Fagan and M.-S. Chen, 1973; A. M. Erisman and W. F. Tinney, 1975),

    Z[R, j] = -Z[R, C] L[C, j]        Z[j, C] = -U[j, R] Z[R, C] / d[j]
    Z[j, j] = (1 - U[j, R] Z[R, j]) / d[j]

where R are the columns of row j of U, and C the rows of column j of L.  So Z is needed on the
transposed pattern of L + U only.  Z[R, C] is gathered into a dense matrix; where R and C are those
of column j + 1 and j + 1 itself, one row and one column are added to the previous one instead.

    TriangularLines            a triangular factor without its diagonal, by lines
    solve_on_pattern runs the function
    positions        the positions of entries of a factor
    closed_lines     the pattern of a Cholesky factor (matrix_patterns.py)
    filled_lines     a factor with further entries that are zero
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.backends.llvm.ir import execution_engine
from wengert._engine.backends.llvm.ir.ir_builder import Function, ModuleBuilder, Name, Section
from wengert._engine.backends.llvm.runtime import runtime_library

from .matrix_patterns import FACTOR_PATTERN, FILLED_LINES, SYMBOLIC, emit_symbolic
from .operands import Plain

_INVERSE, _POSITIONS = "selected_inverse", "positions_of_entries"
_WIDTH = 8  # elements of a vector; columns of the dense matrix are padded to multiples of it
_VECTOR = f"<{_WIDTH} x double>"
_LINES = ("starts", "stops", "indices", "values")
_ARRAYS = (
    *[f"lower_{x}" for x in _LINES],
    *[f"upper_{x}" for x in _LINES],
    *("pivots", "z_lower", "z_upper", "z_diagonal", "place_in_rows", "place_in_columns"),
    *("dense", "row_values", "products"),
)
_SOUGHT = ("starts", "stops", "indices", "lines", "others", "found")


class TriangularLines(NamedTuple):
    """The columns of L, or the rows of U, without the diagonal.

    starts, stops : int64 arrays, where the entries of a line begin and end.
    indices : int32 array, of their rows or columns. If lines have the same ones, in the same order.
    values : float64 array.
    """

    starts: Plain
    stops: Plain
    indices: Plain
    values: Plain

    @classmethod
    def of(cls, matrix: Any, values: Plain | None = None) -> TriangularLines:
        """Of a triangular matrix in CSC or CSR format; the first entry of a line is the diagonal.

        Raises
        ------
        ValueError
            A line begins with another entry.
        """
        starts = matrix.indptr[:-1].astype(np.int64)
        if not np.array_equal(matrix.indices[starts], np.arange(len(starts))):
            raise ValueError("the diagonal is not the first entry of each line")
        data = matrix.data if values is None else values
        indices = np.ascontiguousarray(matrix.indices, np.int32)
        return cls(
            starts + 1,
            matrix.indptr[1:].astype(np.int64),
            indices,
            np.ascontiguousarray(data, float),
        )


def solve_on_pattern(
    lower: TriangularLines, upper: TriangularLines | None, pivots: Plain
) -> tuple[Plain, ...] | None:
    """The elements of inv(L U) on the transposed pattern of L + U.

    Parameters
    ----------
    lower : TriangularLines
        The columns of L.
    upper : TriangularLines or None
        The rows of U. None: they are the columns of L times the pivots, and the inverse is
        symmetric.
    pivots : array
        The diagonal of U.

    Returns
    -------
    below, above, diagonal : array, or None
        Of the inverse, below the diagonal at the entries of `upper`, above it at the entries of
        `lower`. None if an element is needed that is not on the pattern: some elements of the
        factors are zero.
    """
    n, is_symmetric = len(pivots), upper is None
    upper = lower if upper is None else upper
    heights = [int((x.stops - x.starts).max(initial=1)) for x in (upper, lower)]
    stride = -(-heights[0] // _WIDTH) * _WIDTH
    below, diagonal = np.zeros(len(upper.values)), np.zeros(n)
    above = below if is_symmetric else np.zeros(len(lower.values))
    places = np.full(n, -1), np.full(n, -1)
    dense = np.zeros(stride * heights[1]), np.zeros(stride), np.zeros(stride)
    arrays = *lower, *upper, np.ascontiguousarray(pivots, float), below, above, diagonal
    addresses = [x.ctypes.data for x in (*arrays, *places, *dense)]
    failed = _functions()[_INVERSE](n, stride, int(is_symmetric), *addresses)
    return None if failed else (below, above, diagonal)


def positions(entries: TriangularLines, lines: Plain, others: Plain) -> Plain:
    """The positions of the entries with these lines and indices; -1 for entries not there."""
    found = np.empty(len(lines), np.int64)
    arrays = *entries[:3], lines.astype(np.int64), others.astype(np.int64), found
    _functions()[_POSITIONS](len(lines), *[x.ctypes.data for x in arrays])
    return found


def closed_lines(rows: Any) -> TriangularLines:
    """The pattern of the Cholesky factor of a matrix with a symmetric pattern, with values zero.

    Parameters
    ----------
    rows : csr_array
        The strictly lower triangle of the matrix.
    """
    n = rows.shape[0]
    starts, indices = rows.indptr.astype(np.int64), np.ascontiguousarray(rows.indices, np.int32)
    run, zeros = _functions()[FACTOR_PATTERN], np.zeros(n + 1, np.int64)
    counts, found = zeros.copy(), np.zeros(0, np.int32)
    for is_known in (False, True):
        parents, marks = np.full(n, -1), np.full(n, -1)
        flag = np.array([is_known], np.int64)
        if is_known:
            ends = np.cumsum(counts[:-1])
            found, begin = np.empty(int(ends[-1]) if n else 0, np.int32), ends - counts[:-1]
            counts[:-1] = begin
        arrays = starts, indices, parents, marks, counts, found, flag
        run(n, *[x.ctypes.data for x in arrays])
    return TriangularLines(begin, counts[:-1].copy(), found, np.zeros(len(found)))


def filled_lines(pattern: TriangularLines, given: TriangularLines) -> TriangularLines | None:
    """Lines with a larger pattern and the given values; None if an entry is not in the pattern."""
    values = np.zeros(len(pattern.indices))
    places = np.full(len(pattern.starts), -1)
    arrays = *pattern[:3], values, *given, places
    failed = _functions()[FILLED_LINES](len(pattern.starts), *[x.ctypes.data for x in arrays])
    return None if failed else pattern._replace(values=values)


@functools.cache
def _functions() -> dict[str, Any]:
    module = ModuleBuilder()
    _emit(module)
    _emit_positions(module)
    emit_symbolic(module)
    text = module.text(execution_engine.heading())
    count, address = ctypes.c_int64, ctypes.c_void_p
    kinds = {
        _INVERSE: [count] * 3 + [address] * len(_ARRAYS),
        _POSITIONS: [count] + [address] * len(_SOUGHT),
        **{name: [count] + [address] * number for name, number in SYMBOLIC.items()},
    }
    addresses = runtime_library.loaded(text, {}, kinds)
    return {name: ctypes.CFUNCTYPE(count, *kinds[name])(addresses[name]) for name in kinds}


def _at(s: Section, array: str, index: Name, kind: str = "double") -> Name:
    return s.value(f"getelementptr {kind}, ptr %{array}, i64 {index}")


def _number(s: Section, array: str, index: Name) -> Name:
    """An element of an integer array."""
    return s.value(f"load i64, ptr {_at(s, array, index, 'i64')}")


def _index(s: Section, array: str, index: Name) -> Name:
    """An element of an array of 32-bit integers."""
    value = s.value(f"load i32, ptr {_at(s, array, index, 'i32')}")
    return s.value(f"sext i32 {value} to i64")


def _double(s: Section, array: str, index: Name) -> Name:
    return s.value(f"load double, ptr {_at(s, array, index)}")


def _store(s: Section, array: str, index: Name, value: Name) -> None:
    s.write(f"store double {value}, ptr {_at(s, array, index)}")


def _place(s: Section, row: Name, column: Name) -> Name:
    """The index of an element of the dense matrix."""
    return s.plus(s.times(column, "%stride"), row)


class _Line:
    """The entries of one column of L or row of U."""

    def __init__(self, s: Section, which: str, line: Name) -> None:
        self.indices, self.values = f"{which}_indices", f"{which}_values"
        self.start = _number(s, f"{which}_starts", line)
        self.stop = _number(s, f"{which}_stops", line)
        self.count = s.minus(self.stop, self.start)

    def index(self, s: Section, position: Name) -> Name:
        """The row or column of an entry."""
        return _index(s, self.indices, position)

    def local(self, s: Section, position: Name) -> Name:
        """The position of an entry counted from the last one: its place in the dense matrix."""
        return s.minus(s.minus(self.stop, "1"), position)


def _emit(module: ModuleBuilder) -> None:
    """The function; it returns 1 if an element is not on the pattern, else 0."""
    numbers = [("i64", x) for x in ("n", "stride", "symmetric")]
    arguments = [*numbers, *[("ptr", x) for x in _ARRAYS]]
    function = Function(module, _INVERSE, arguments, "i64", "#1", linkage="")
    body = function.body
    failed = function.slot("i64")
    body.write(f"store i64 0, ptr {failed}")
    is_symmetric = body.value("icmp ne i64 %symmetric, 0")
    with body.loop("0", "%n") as (outer, k):
        so_far = outer.value(f"load i64, ptr {failed}")
        with outer.when(outer.value(f"icmp eq i64 {so_far}, 0")) as s:
            j = s.minus(s.minus("%n", "1"), k)
            rows, columns = _Line(s, "upper", j), _Line(s, "lower", j)
            grown = _is_grown(s, j, rows, columns)
            with s.when(grown) as inner:
                _grow(inner, j, rows, columns)
            with s.unless(grown) as inner:
                found = _gather(inner, rows, columns, is_symmetric)
                wanted = inner.times(rows.count, columns.count)
                missing = inner.value(f"icmp ne i64 {found}, {wanted}")
                with inner.when(missing) as last:
                    last.write(f"store i64 1, ptr {failed}")
            with s.when(is_symmetric) as inner:
                _multiply_symmetric(inner, j, columns)
            with s.unless(is_symmetric) as inner:
                _multiply(inner, j, rows, columns)
    result = body.value(f"load i64, ptr {failed}")
    body.write(f"ret i64 {result}")
    module.add(function)


def _is_grown(s: Section, j: Name, rows: _Line, columns: _Line) -> Name:
    """Whether the dense matrix is the previous one with one more row and column."""
    after = s.plus(j, "1")
    answer = s.function.slot("i1")
    s.write(f"store i1 false, ptr {answer}")
    inside = s.value(f"icmp slt i64 {after}, %n")
    with s.when(inside) as t:
        pairs = (rows, _Line(t, "upper", after)), (columns, _Line(t, "lower", after))
        conditions = [t.value(f"icmp eq i64 {x.count}, {t.plus(y.count, '1')}") for x, y in pairs]
        both = t.value(f"and i1 {conditions[0]}, {conditions[1]}")
        with t.when(both) as u:
            u.write(f"store i1 true, ptr {answer}")
            for x, y in pairs:
                first = u.value(f"icmp eq i64 {x.index(u, x.start)}, {after}")
                with u.unless(first) as v:
                    v.write(f"store i1 false, ptr {answer}")
                with u.loop("0", y.count) as (v, p):
                    one = x.index(v, v.plus(v.plus(x.start, "1"), p))
                    same = v.value(f"icmp eq i64 {one}, {y.index(v, v.plus(y.start, p))}")
                    with v.unless(same) as w:
                        w.write(f"store i1 false, ptr {answer}")
    return s.value(f"load i1, ptr {answer}")


def _grow(s: Section, j: Name, rows: _Line, columns: _Line) -> None:
    """Add row and column j + 1 to the dense matrix, after the others."""
    after = s.plus(j, "1")
    last_row, last_column = s.minus(rows.count, "1"), s.minus(columns.count, "1")
    lower, upper = _Line(s, "lower", after), _Line(s, "upper", after)
    with s.loop(lower.start, lower.stop) as (t, p):
        place = _place(t, last_row, lower.local(t, p))
        _store(t, "dense", place, _double(t, "z_upper", p))
    with s.loop(upper.start, upper.stop) as (t, p):
        place = _place(t, upper.local(t, p), last_column)
        _store(t, "dense", place, _double(t, "z_lower", p))
    _store(s, "dense", _place(s, last_row, last_column), _double(s, "z_diagonal", after))


def _gather(s: Section, rows: _Line, columns: _Line, is_symmetric: Name) -> Name:
    """Fill the dense matrix from the elements found so far; returns their number."""
    count = s.function.slot("i64")
    s.write(f"store i64 0, ptr {count}")
    marks = (rows, "place_in_rows"), (columns, "place_in_columns")
    for lines, array in marks:
        with s.loop(lines.start, lines.stop) as (t, p):
            place = _at(t, array, lines.index(t, p), "i64")
            t.write(f"store i64 {lines.local(t, p)}, ptr {place}")

    def put(t: Section, other: Name, line: Name, is_row: bool, source: str, p: Name) -> None:
        with t.when(t.value(f"icmp sge i64 {other}, 0")) as u:
            place = _place(u, line, other) if is_row else _place(u, other, line)
            _store(u, "dense", place, _double(u, source, p))
            more = u.plus(u.value(f"load i64, ptr {count}"), "1")
            u.write(f"store i64 {more}, ptr {count}")

    with s.loop(columns.start, columns.stop) as (t, p):
        entries = _Line(t, "upper", columns.index(t, p))
        with t.loop(entries.start, entries.stop) as (u, q):
            row, line = _number(u, "place_in_rows", entries.index(u, q)), columns.local(u, p)
            put(u, row, line, False, "z_lower", q)
            with u.when(is_symmetric) as v:
                put(v, row, line, True, "z_lower", q)
    with s.loop(rows.start, rows.stop) as (t, p):
        line = rows.index(t, p)
        with t.unless(is_symmetric) as u:
            entries = _Line(u, "lower", line)
            with u.loop(entries.start, entries.stop) as (v, q):
                column = _number(v, "place_in_columns", entries.index(v, q))
                put(v, column, rows.local(v, p), True, "z_upper", q)
        put(t, _number(t, "place_in_columns", line), rows.local(t, p), True, "z_diagonal", line)
    for lines, array in marks:
        with s.loop(lines.start, lines.stop) as (t, p):
            t.write(f"store i64 -1, ptr {_at(t, array, lines.index(t, p), 'i64')}")
    return s.value(f"load i64, ptr {count}")


def _multiply(s: Section, j: Name, rows: _Line, columns: _Line) -> None:
    """The products of the dense matrix with column j of L and row j of U."""
    padded = s.value(f"add i64 {rows.count}, {_WIDTH - 1}")
    padded = s.value(f"and i64 {padded}, {-_WIDTH}")
    with s.loop("0", padded) as (t, r):
        _store(t, "products", r, "0.0")
        _store(t, "row_values", r, "0.0")
    with s.loop(rows.start, rows.stop) as (t, p):
        _store(t, "row_values", rows.local(t, p), _double(t, "upper_values", p))
    pivot = _double(s, "pivots", j)
    add = s.function.module.declare("llvm.vector.reduce.fadd.v8f64", "double", ["double", _VECTOR])
    accumulator = s.function.slot(_VECTOR)
    with s.loop(columns.start, columns.stop) as (t, p):
        factor = t.value(f"fneg double {_double(t, 'lower_values', p)}")
        spread = _spread(t, factor)
        begin = t.times(columns.local(t, p), "%stride")
        t.write(f"store {_VECTOR} zeroinitializer, ptr {accumulator}")
        with t.loop("0", padded, str(_WIDTH)) as (u, r):
            _step(u, begin, r, spread, accumulator)
        total = t.value(f"load {_VECTOR}, ptr {accumulator}")
        total = t.value(f"call reassoc double {add}(double 0.0, {_VECTOR} {total})")
        scaled = t.value(f"fdiv double {total}, {pivot}")
        _store(t, "z_upper", p, t.value(f"fneg double {scaled}"))
    sum_ = s.function.slot("double")
    s.write(f"store double 1.0, ptr {sum_}")
    with s.loop(rows.start, rows.stop) as (t, p):
        value = _double(t, "products", rows.local(t, p))
        _store(t, "z_lower", p, value)
        term = t.value(f"fmul double {value}, {_double(t, 'upper_values', p)}")
        rest = t.value(f"fsub double {t.value(f'load double, ptr {sum_}')}, {term}")
        t.write(f"store double {rest}, ptr {sum_}")
    rest = s.value(f"load double, ptr {sum_}")
    _store(s, "z_diagonal", j, s.value(f"fdiv double {rest}, {pivot}"))


def _multiply_symmetric(s: Section, j: Name, lines: _Line) -> None:
    """The product of the dense matrix with column j of L, which is row j of U over its pivot."""
    padded = s.value(f"add i64 {lines.count}, {_WIDTH - 1}")
    padded = s.value(f"and i64 {padded}, {-_WIDTH}")
    with s.loop("0", padded) as (t, r):
        _store(t, "products", r, "0.0")
    with s.loop(lines.start, lines.stop) as (t, p):
        spread = _spread(t, t.value(f"fneg double {_double(t, 'lower_values', p)}"))
        begin = t.times(lines.local(t, p), "%stride")
        with t.loop("0", padded, str(_WIDTH)) as (u, r):
            _product_step(u, begin, r, spread)
    sum_ = s.function.slot("double")
    pivot = _double(s, "pivots", j)
    s.write(f"store double {s.value(f'fdiv double 1.0, {pivot}')}, ptr {sum_}")
    with s.loop(lines.start, lines.stop) as (t, p):
        value = _double(t, "products", lines.local(t, p))
        _store(t, "z_lower", p, value)
        term = t.value(f"fmul double {value}, {_double(t, 'lower_values', p)}")
        rest = t.value(f"fsub double {t.value(f'load double, ptr {sum_}')}, {term}")
        t.write(f"store double {rest}, ptr {sum_}")
    _store(s, "z_diagonal", j, s.value(f"load double, ptr {sum_}"))


def _spread(t: Section, factor: Name) -> Name:
    """A vector whose elements are one number."""
    first = t.value(f"insertelement {_VECTOR} poison, double {factor}, i64 0")
    zeros = f"<{_WIDTH} x i32> zeroinitializer"
    return t.value(f"shufflevector {_VECTOR} {first}, {_VECTOR} poison, {zeros}")


def _product_step(u: Section, begin: Name, r: Name, factor: Name) -> Name:
    """Eight rows of one column, added to the products."""
    z = u.value(f"load {_VECTOR}, ptr {_at(u, 'dense', u.plus(begin, r))}, align 8")
    place = _at(u, "products", r)
    before = u.value(f"load {_VECTOR}, ptr {place}, align 8")
    term = u.value(f"fmul contract {_VECTOR} {factor}, {z}")
    after = u.value(f"fadd contract {_VECTOR} {before}, {term}")
    u.write(f"store {_VECTOR} {after}, ptr {place}, align 8")
    return z


def _step(u: Section, begin: Name, r: Name, factor: Name, accumulator: Name) -> None:
    """Eight rows of one column: added to both products."""
    z = _product_step(u, begin, r, factor)
    values = u.value(f"load {_VECTOR}, ptr {_at(u, 'row_values', r)}, align 8")
    term = u.value(f"fmul contract {_VECTOR} {values}, {z}")
    so_far = u.value(f"load {_VECTOR}, ptr {accumulator}")
    total = u.value(f"fadd contract {_VECTOR} {so_far}, {term}")
    u.write(f"store {_VECTOR} {total}, ptr {accumulator}")


def _emit_positions(module: ModuleBuilder) -> None:
    """The function that looks for entries, each in its line."""
    arguments = [("i64", "n"), *[("ptr", x) for x in _SOUGHT]]
    function = Function(module, _POSITIONS, arguments, "i64", "#1", linkage="")
    body = function.body
    with body.loop("0", "%n") as (s, k):
        line, other = _number(s, "lines", k), _number(s, "others", k)
        place = _at(s, "found", k, "i64")
        s.write(f"store i64 -1, ptr {place}")
        with s.loop(_number(s, "starts", line), _number(s, "stops", line)) as (t, p):
            same = t.value(f"icmp eq i64 {_index(t, 'indices', p)}, {other}")
            with t.when(same) as u:
                u.write(f"store i64 {p}, ptr {place}")
    body.write("ret i64 0")
    module.add(function)
