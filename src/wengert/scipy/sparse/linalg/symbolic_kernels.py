"""Native functions on the patterns of sparse factors (selected_inverse_kernel.py).

    FACTOR_PATTERN   the pattern of the Cholesky factor of a matrix with a symmetric pattern
    FILLED_LINES     the values of a factor in a larger pattern
    SYMBOLIC         the number of arrays that each takes, after the number of lines
    emit_symbolic    emits both

The pattern is found row by row: the entries of row i are in the columns on the ways in the
elimination tree from each column k of row i of the matrix up to i (T. A. Davis, "Direct methods for
sparse linear systems", 2006, section 4.4).  The tree is found on the way.
"""

from __future__ import annotations

from wengert._engine.backends.llvm.ir.ir_builder import Function, ModuleBuilder, Name, Section

FACTOR_PATTERN, FILLED_LINES = "factor_pattern", "filled_lines"
_TREE = ("starts", "indices", "parents", "marks", "counts", "found", "writes")
_FILLED = (
    *("starts", "stops", "indices", "values"),
    *("given_starts", "given_stops", "given_indices", "given_values", "places"),
)
SYMBOLIC = {FACTOR_PATTERN: len(_TREE), FILLED_LINES: len(_FILLED)}


def _at(s: Section, array: str, index: Name, kind: str) -> Name:
    return s.value(f"getelementptr {kind}, ptr %{array}, i64 {index}")


def _number(s: Section, array: str, index: Name) -> Name:
    return s.value(f"load i64, ptr {_at(s, array, index, 'i64')}")


def _index(s: Section, array: str, position: Name) -> Name:
    value = s.value(f"load i32, ptr {_at(s, array, position, 'i32')}")
    return s.value(f"sext i32 {value} to i64")


def _set(s: Section, array: str, index: Name, value: Name) -> None:
    s.write(f"store i64 {value}, ptr {_at(s, array, index, 'i64')}")


def emit_symbolic(module: ModuleBuilder) -> None:
    """Emit the functions of this file."""
    _emit_pattern(module)
    _emit_filled(module)


def _emit_pattern(module: ModuleBuilder) -> None:
    """Count the entries of each column, or write their rows if `writes[0]` is not 0."""
    arguments = [("i64", "n"), *[("ptr", x) for x in _TREE]]
    function = Function(module, FACTOR_PATTERN, arguments, "i64", "#1", linkage="")
    body = function.body
    writes = body.value(f"icmp ne i64 {_number(body, 'writes', '0')}, 0")
    column = function.slot("i64")
    with body.loop("0", "%n") as (s, i):
        _set(s, "marks", i, i)
        after = _number(s, "starts", s.plus(i, "1"))
        with s.loop(_number(s, "starts", i), after) as (t, p):
            t.write(f"store i64 {_index(t, 'indices', p)}, ptr {column}")
            _climb(t, i, column, writes)
    body.write("ret i64 0")
    module.add(function)


def _climb(s: Section, row: Name, column: Name, writes: Name) -> None:
    """Go up the tree to the first column that is marked for this row."""
    number = s.function.number()
    s.block(f"climb{number}")
    k = s.value(f"load i64, ptr {column}")
    new = s.value(f"icmp ne i64 {_number(s, 'marks', k)}, {row}")
    s.write(f"br i1 {new}, label %step{number}, label %top{number}")
    s.label(f"step{number}")
    root = s.value(f"icmp slt i64 {_number(s, 'parents', k)}, 0")
    with s.when(root) as t:
        _set(t, "parents", k, row)
    count = _number(s, "counts", k)
    with s.when(writes) as t:
        narrow = t.value(f"trunc i64 {row} to i32")
        t.write(f"store i32 {narrow}, ptr {_at(t, 'found', count, 'i32')}")
    _set(s, "counts", k, s.plus(count, "1"))
    _set(s, "marks", k, row)
    s.write(f"store i64 {_number(s, 'parents', k)}, ptr {column}")
    s.write(f"br label %climb{number}")
    s.label(f"top{number}")


def _emit_filled(module: ModuleBuilder) -> None:
    """Store given values at their entries in the larger pattern; 1 if there is no such entry."""
    arguments = [("i64", "n"), *[("ptr", x) for x in _FILLED]]
    function = Function(module, FILLED_LINES, arguments, "i64", "#1", linkage="")
    body, failed = function.body, function.slot("i64")
    body.write(f"store i64 0, ptr {failed}")
    with body.loop("0", "%n") as (s, j):
        start, stop = _number(s, "starts", j), _number(s, "stops", j)
        with s.loop(start, stop) as (t, p):
            _set(t, "places", _index(t, "indices", p), p)
        last = _number(s, "given_stops", j)
        with s.loop(_number(s, "given_starts", j), last) as (t, p):
            place = _number(t, "places", _index(t, "given_indices", p))
            known = t.value(f"icmp sge i64 {place}, {start}")
            with t.when(known) as u:
                value = u.value(f"load double, ptr {_at(u, 'given_values', p, 'double')}")
                u.write(f"store double {value}, ptr {_at(u, 'values', place, 'double')}")
            with t.unless(known) as u:
                u.write(f"store i64 1, ptr {failed}")
    result = body.value(f"load i64, ptr {failed}")
    body.write(f"ret i64 {result}")
    module.add(function)
