"""BLAS and LAPACK of exported code, so that it needs no library of them.

    included      a routine by its symbol ("blas.dgemm"), with the functions that it calls

Each routine has the arguments of Fortran (addresses, 32-bit integers), and calls a function with
strides (strided_linear_algebra.py).  A transposed matrix has its strides exchanged, and an upper
triangle is a lower one read from its end, with negative strides; so there is one function for each.
They run at a fraction of the speed of a tuned library, for which ``blas="link"`` leaves the calls.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir.ir_builder import ModuleBuilder, Name
from .routine_builder import RoutineBuilder
from .strided_linear_algebra import cholesky, invert, lu, multiply, solve, swap_rows, times_triangle

_KINDS = {"s": "float", "d": "double"}
_ROUTINES: dict[str, tuple[str, Callable[[RoutineBuilder], None]]] = {}


def included(symbol: str) -> ModuleBuilder | None:
    """A routine and the functions that it calls; None for others."""
    library, _, name = symbol.partition(".")
    kind, entry = _KINDS.get(name[:1]), _ROUTINES.get(name[1:])
    if library not in ("blas", "lapack") or kind is None or entry is None:
        return None
    module = ModuleBuilder()
    arguments, write = entry
    routine = RoutineBuilder(module, symbol, [("ptr", a) for a in arguments.split()], kind, "void")
    write(routine)
    routine.close("ret void")
    return module


def _routine(name: str, arguments: str) -> Callable[[Callable[[RoutineBuilder], None]], None]:
    def register(write: Callable[[RoutineBuilder], None]) -> None:
        _ROUTINES[name] = arguments, write

    return register


def _strides(r: RoutineBuilder, transposed: Name, leading: Name) -> tuple[Name, Name]:
    return r.choice(transposed, leading, "1"), r.choice(transposed, "1", leading)


def _lower(
    r: RoutineBuilder, is_upper: Name, n: Name, base: Name, strides: tuple[Name, Name]
) -> tuple[Name, Name, Name]:
    """A triangle as a lower one: an upper one from its end."""
    rows, columns = strides
    last = r.s.minus(n, "1")
    end = r.at(base, (last, r.s.plus(rows, columns)))
    turned = [r.s.minus("0", x) for x in (rows, columns)]
    return (
        r.choice(is_upper, end, base, "ptr"),
        r.choice(is_upper, turned[0], rows),
        r.choice(is_upper, turned[1], columns),
    )


def _turned(
    r: RoutineBuilder, is_upper: Name, n: Name, base: Name, rows: Name
) -> tuple[Name, Name]:
    """The rows of another matrix in the order of such a triangle."""
    end = r.at(base, (r.s.minus(n, "1"), rows))
    return r.choice(is_upper, end, base, "ptr"), r.choice(is_upper, r.s.minus("0", rows), rows)


def _exclusive(r: RoutineBuilder, x: Name, y: Name) -> Name:
    return r.s.value(f"xor i1 {x}, {y}")


def _wide(r: RoutineBuilder, flag: Name) -> Name:
    return r.s.value(f"zext i1 {flag} to i64")


def _not(r: RoutineBuilder, flag: Name) -> Name:
    return r.s.value(f"xor i1 {flag}, true")


@_routine("gemm", "ta tb m n k alpha a lda b ldb beta c ldc")
def _(r: RoutineBuilder) -> None:
    ar, ac = _strides(r, _not(r, r.flag("ta", "N")), r.integer("lda"))
    br, bc = _strides(r, _not(r, r.flag("tb", "N")), r.integer("ldb"))
    sizes = [r.integer(x) for x in ("m", "n", "k")]
    r.call(multiply, *sizes, r.number("alpha"), "%a", ar, ac, "%b", br, bc,
        r.number("beta"), "%c", "1", r.integer("ldc"), "0",
    )  # fmt: skip


@_routine("gemv", "ta m n alpha a lda x incx beta y incy")
def _(r: RoutineBuilder) -> None:
    transposed = _not(r, r.flag("ta", "N"))
    ar, ac = _strides(r, transposed, r.integer("lda"))
    m, n = r.integer("m"), r.integer("n")
    rows, columns = r.choice(transposed, n, m), r.choice(transposed, m, n)
    r.call(multiply, rows, "1", columns, r.number("alpha"), "%a", ar, ac,
        "%x", r.integer("incx"), "0", r.number("beta"), "%y", r.integer("incy"), "0", "0",
    )  # fmt: skip


@_routine("syrk", "uplo ta n k alpha a lda beta c ldc")
def _(r: RoutineBuilder) -> None:
    ar, ac = _strides(r, _not(r, r.flag("ta", "N")), r.integer("lda"))
    n = r.integer("n")
    shape = r.choice(r.flag("uplo", "U"), "2", "1")
    r.call(multiply, n, n, r.integer("k"), r.number("alpha"), "%a", ar, ac, "%a", ac, ar,
        r.number("beta"), "%c", "1", r.integer("ldc"), shape,
    )  # fmt: skip


def _triangle(r: RoutineBuilder) -> tuple[Name, ...]:
    """The arguments of trsm and trmm, as of a lower triangle on the left."""
    is_right = r.flag("side", "R")
    transposed = _exclusive(r, _not(r, r.flag("ta", "N")), is_right)
    is_upper = _exclusive(r, r.flag("uplo", "U"), transposed)
    m, n, ldb = r.integer("m"), r.integer("n"), r.integer("ldb")
    rows, columns = r.choice(is_right, n, m), r.choice(is_right, m, n)
    a, ar, ac = _lower(r, is_upper, rows, "%a", _strides(r, transposed, r.integer("lda")))
    br, bc = _strides(r, is_right, ldb)
    b, br = _turned(r, is_upper, rows, "%b", br)
    return rows, columns, _wide(r, r.flag("diag", "U")), a, ar, ac, b, br, bc


@_routine("trsm", "side uplo ta diag m n alpha a lda b ldb")
def _(r: RoutineBuilder) -> None:
    alpha, ldb = r.number("alpha"), r.integer("ldb")
    with r.loop("0", r.integer("n")) as j, r.loop("0", r.integer("m")) as i:
        place = r.at("%b", (i, "1"), (j, ldb))
        r.store(r.compute("fmul", alpha, r.load(place)), place)
    r.call(solve, *_triangle(r))


@_routine("trmm", "side uplo ta diag m n alpha a lda b ldb")
def _(r: RoutineBuilder) -> None:
    rows, columns, unit, *rest = _triangle(r)
    r.call(times_triangle, rows, columns, unit, r.number("alpha"), *rest)


@_routine("trsv", "uplo ta diag n a lda x incx")
def _(r: RoutineBuilder) -> None:
    transposed = _not(r, r.flag("ta", "N"))
    is_upper = _exclusive(r, r.flag("uplo", "U"), transposed)
    n = r.integer("n")
    a = _lower(r, is_upper, n, "%a", _strides(r, transposed, r.integer("lda")))
    x = _turned(r, is_upper, n, "%x", r.integer("incx"))
    r.call(solve, n, "1", _wide(r, r.flag("diag", "U")), *a, *x, "0")


@_routine("swap", "n x incx y incy")
def _(r: RoutineBuilder) -> None:
    r.call(swap_rows, r.integer("n"), "%x", r.integer("incx"), "%y", r.integer("incy"))


@_routine("potrf", "uplo n a lda info")
def _(r: RoutineBuilder) -> None:
    strides = _strides(r, r.flag("uplo", "U"), r.integer("lda"))
    r.info(r.call(cholesky, r.integer("n"), "%a", *strides))


@_routine("potrs", "uplo n m a lda b ldb info")
def _(r: RoutineBuilder) -> None:
    n, m, ldb = r.integer("n"), r.integer("m"), r.integer("ldb")
    ar, ac = _strides(r, r.flag("uplo", "U"), r.integer("lda"))
    r.call(solve, n, m, "0", "%a", ar, ac, "%b", "1", ldb)
    a = _lower(r, "true", n, "%a", (ac, ar))
    b = _turned(r, "true", n, "%b", "1")
    r.call(solve, n, m, "0", *a, *b, ldb)
    r.info()


@_routine("getrf", "m n a lda pivots info")
def _(r: RoutineBuilder) -> None:
    sizes = r.integer("m"), r.integer("n")
    r.info(r.call(lu, *sizes, "%a", r.integer("lda"), "%pivots"))


def _exchanged(r: RoutineBuilder, backwards: Name, n: Name, m: Name, ldb: Name) -> None:
    """Exchange rows of b as the pivots say, in order or backwards."""
    last = r.s.minus(n, "1")
    with r.loop("0", n) as k:
        i = r.choice(backwards, r.s.minus(last, k), k)
        place = r.s.value(f"getelementptr i32, ptr %pivots, i64 {i}")
        pivot = r.s.value(f"sext i32 {r.s.value(f'load i32, ptr {place}')} to i64")
        other = r.at("%b", (r.s.minus(pivot, "1"), "1"))
        r.call(swap_rows, m, r.at("%b", (i, "1")), ldb, other, ldb)


def _with_factors(
    r: RoutineBuilder, transposed: Name, n: Name, m: Name, lda: Name, ldb: Name
) -> None:
    """Solve with the factors of LU and their pivots."""
    forward = _not(r, transposed)
    with r.when(forward):
        _exchanged(r, "false", n, m, ldb)
    # L, then U; or the transpose of U, a lower triangle, then that of L.
    strides = _strides(r, transposed, lda)
    unit = _wide(r, forward)
    r.call(solve, n, m, unit, "%a", *strides, "%b", "1", ldb)
    a = _lower(r, "true", n, "%a", strides)
    b = _turned(r, "true", n, "%b", "1")
    r.call(solve, n, m, _wide(r, transposed), *a, *b, ldb)
    with r.when(transposed):
        _exchanged(r, "true", n, m, ldb)


@_routine("getrs", "ta n m a lda pivots b ldb info")
def _(r: RoutineBuilder) -> None:
    transposed = _not(r, r.flag("ta", "N"))
    sizes = [r.integer(x) for x in ("n", "m", "lda", "ldb")]
    _with_factors(r, transposed, *sizes)
    r.info()


@_routine("gesv", "n m a lda pivots b ldb info")
def _(r: RoutineBuilder) -> None:
    n, m, lda, ldb = (r.integer(x) for x in ("n", "m", "lda", "ldb"))
    status = r.call(lu, n, n, "%a", lda, "%pivots")
    with r.when(r.s.value(f"icmp eq i64 {status}, 0")):
        _with_factors(r, "false", n, m, lda, ldb)
    r.info(status)


@_routine("laswp", "n b ldb first last pivots step")
def _(r: RoutineBuilder) -> None:
    first, last = r.integer("first"), r.integer("last")
    backwards = r.s.value(f"icmp slt i64 {r.integer('step')}, 0")
    count = r.s.plus(r.s.minus(last, first), "1")
    ldb, n = r.integer("ldb"), r.integer("n")
    with r.loop("0", count) as k:
        i = r.choice(backwards, r.s.minus(last, k), r.s.plus(first, k))
        row = r.s.minus(i, "1")
        place = r.s.value(f"getelementptr i32, ptr %pivots, i64 {row}")
        pivot = r.s.value(f"sext i32 {r.s.value(f'load i32, ptr {place}')} to i64")
        other = r.at("%b", (r.s.minus(pivot, "1"), "1"))
        r.call(swap_rows, n, r.at("%b", (row, "1")), ldb, other, ldb)


@_routine("trtri", "uplo diag n a lda info")
def _(r: RoutineBuilder) -> None:
    n, is_upper = r.integer("n"), r.flag("uplo", "U")
    strides = _strides(r, is_upper, r.integer("lda"))  # the transpose of an upper one is lower
    r.info(r.call(invert, n, _wide(r, r.flag("diag", "U")), "%a", *strides))
