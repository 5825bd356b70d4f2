"""Functions of other libraries in exported code: sorting, BLAS, LAPACK, and others.

Functions of wengert's kernels, sorting, and the usual routines of BLAS and LAPACK for real numbers
are added to the module.  Other routines of these, and all with ``blas="link"``, are called by the
names that Fortran compilers give them (`dgemm_`): the header lists them, and the program is linked
with a library that has them.  All others exist only in this process (special functions of SciPy,
random numbers of NumPy, messages), and are refused.

    included     functions of kernels that a module declares, and the memory that they allocate
    linked       the names under which external functions are linked
    refuse       raises for functions that exist only in this process

All kinds of sorting are one stable merge sort; NaN comes last.  It allocates the positions once
more, which the kernel records (kernels/sorting.py).

Each routine of BLAS and LAPACK has the arguments of Fortran (addresses, 32-bit integers), and calls
a function with strides (strided_linear_algebra.py).  A transposed matrix has its strides exchanged,
and an upper triangle is a lower one read from its end, with negative strides; so there is one
function for each.  They run at a fraction of the speed of a tuned library, for which
``blas="link"`` leaves the calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from wengert._engine.core.graph import BaseGraph
from wengert.errors import BackendError, at

from ..ir.ir_builder import Function, ModuleBuilder, Name, Section
from ..ir.llvm_types import in_memory
from ..kernels.gemm import blocked_gemm
from ..kernels.index import HOMES, module_of
from ..kernels.linalg import complex_solve
from .strided_linear_algebra import (
    RoutineBuilder,
    cholesky,
    invert,
    lu,
    multiply,
    solve,
    swap_rows,
    times_triangle,
)
from .workspace import RUNTIME

# ---- sorting -------------------------------------------------------------------------------------


def _sorting(symbol: str) -> ModuleBuilder | None:
    """The function of a symbol; None for others, and for dtypes without a native order."""
    library, _, rest = symbol.partition(".")
    if library != "argsort":
        return None
    dtype = np.dtype(rest.rpartition(".")[2])
    if dtype.kind not in "biuf" or (dtype.itemsize == 2 and dtype.kind == "f"):
        return None
    module = ModuleBuilder()
    arguments = [("ptr", "values"), ("ptr", "positions"), ("i64", "count"), ("ptr", "unused")]
    function = Function(module, symbol, arguments, "i32", "nounwind")
    _write(function, dtype)
    module.add(function)
    return module


def _write(function: Function, dtype: np.dtype[np.generic]) -> None:
    """Merge runs of growing length, from the positions to a buffer and back."""
    body, module = function.body, function.module
    alloc = module.declare("wengert_alloc", "ptr", ["i64"])
    free = module.declare("wengert_free", "void", ["ptr"])
    size = body.value("mul i64 %count, 8")
    buffer = body.value(f"call ptr {alloc}(i64 {body.value(f'or i64 {size}, 1')})")
    with body.when(body.value(f"icmp eq ptr {buffer}, null")) as s:
        s.write("ret i32 -1")
        s.label(f"other{function.number()}")
    width = function.slot("i64")
    body.write(f"store i64 1, ptr {width}")
    n = function.number()
    body.block(f"wider{n}")
    length = body.value(f"load i64, ptr {width}")
    more = body.value(f"icmp slt i64 {length}, %count")
    body.write(f"br i1 {more}, label %pass{n}, label %sorted{n}")
    body.label(f"pass{n}")
    twice = body.value(f"mul i64 {length}, 2")
    with body.loop("0", "%count", twice) as (s, start):
        middle = s.smaller(s.plus(start, length), "%count")
        _merge(s, dtype, buffer, start, middle, s.smaller(s.plus(start, twice), "%count"))
    body.copy_bytes("%positions", buffer, size)
    body.write(f"store i64 {twice}, ptr {width}")
    body.write(f"br label %wider{n}")
    body.label(f"sorted{n}")
    body.write(f"call void {free}(ptr {buffer})")
    body.write("ret i32 0")


def _merge(
    s: Section, dtype: np.dtype[np.generic], buffer: Name, start: Name, middle: Name, stop: Name
) -> None:
    """Merge two neighboring runs into the buffer; of equal elements the first run's come first."""
    function, kind = s.function, in_memory(dtype)
    one, two = function.slot("i64"), function.slot("i64")
    s.write(f"store i64 {start}, ptr {one}")
    s.write(f"store i64 {middle}, ptr {two}")

    def element(t: Section, k: Name, end: Name) -> tuple[Name, Name]:
        """A position and its value; those of the last one of the run beyond its end."""
        last = t.minus(end, "1")
        place = t.value(f"getelementptr i64, ptr %positions, i64 {t.smaller(k, last)}")
        position = t.value(f"load i64, ptr {place}")
        at = t.value(f"getelementptr {kind}, ptr %values, i64 {position}")
        return position, t.value(f"load {kind}, ptr {at}")

    with s.loop(start, stop) as (t, k):
        i, j = t.value(f"load i64, ptr {one}"), t.value(f"load i64, ptr {two}")
        (p, x), (q, y) = element(t, i, middle), element(t, j, stop)
        has_one = t.value(f"icmp slt i64 {i}, {middle}")
        has_two = t.value(f"icmp slt i64 {j}, {stop}")
        takes = t.value(f"and i1 {has_two}, {_less(t, dtype, kind, y, x)}")
        takes = t.value(f"or i1 {takes}, {t.value(f'xor i1 {has_one}, true')}")
        place = t.value(f"getelementptr i64, ptr {buffer}, i64 {k}")
        t.write(f"store i64 {t.value(f'select i1 {takes}, i64 {q}, i64 {p}')}, ptr {place}")
        step = t.value(f"zext i1 {takes} to i64")
        other = t.value(f"sub i64 1, {step}")
        t.write(f"store i64 {t.plus(i, other)}, ptr {one}")
        t.write(f"store i64 {t.plus(j, step)}, ptr {two}")


def _less(s: Section, dtype: np.dtype[np.generic], kind: str, x: Name, y: Name) -> Name:
    if dtype.kind == "f":
        below = s.value(f"fcmp olt {kind} {x}, {y}")
        last = s.value(f"fcmp uno {kind} {y}, {y}")
        good = s.value(f"fcmp ord {kind} {x}, {x}")
        return s.value(f"or i1 {below}, {s.value(f'and i1 {last}, {good}')}")
    return s.value(f"icmp {'slt' if dtype.kind == 'i' else 'ult'} {kind} {x}, {y}")


# ---- BLAS and LAPACK -----------------------------------------------------------------------------


_KINDS = {"s": "float", "d": "double"}
_ROUTINES: dict[str, tuple[str, Callable[[RoutineBuilder], None]]] = {}


def _linear_algebra(symbol: str) -> ModuleBuilder | None:
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


# ---- all functions -------------------------------------------------------------------------------


# The bytes that kernels' functions allocate, if any; None if they depend on sizes.
_ALLOCATED: dict[str, Callable[[], int | None]] = {
    blocked_gemm.NAME: blocked_gemm.largest_allocation,
    complex_solve.NAME: lambda: None,
}
_FORTRAN = ("blas.", "lapack.")
_C_LIBRARY = frozenset({"memcmp"})


def included(name: str, links_blas: bool) -> tuple[ModuleBuilder, int | None] | None:
    """The functions of a name, and the bytes that a call allocates; None if there are none.

    Parameters
    ----------
    links_blas : bool
        Whether BLAS and LAPACK are linked, and not included.
    """
    if name in HOMES and name != "wengert_quadpack":  # it calls a function by its address
        return module_of(name), _ALLOCATED.get(name, lambda: 0)()
    found = _sorting(name)
    if found is None and not links_blas:
        found = _linear_algebra(name)
    return None if found is None else (found, 0)


def declared(parts: Mapping[str, str]) -> list[str]:
    """The external functions that a module declares, without intrinsics and the runtime's."""
    return sorted(
        name
        for name, text in parts.items()
        if text.startswith("declare") and not name.startswith("llvm.") and name not in RUNTIME
    )


def linked(names: Iterable[str]) -> dict[str, str]:
    """The symbol of each external function that a program is linked with."""
    return {n: n.partition(".")[2] + "_" for n in names if n.startswith(_FORTRAN)}


def refuse(names: Iterable[str], graph: BaseGraph) -> None:
    """Raise if a function exists only in this process.

    Raises
    ------
    BackendError
        With the operation that calls it, and its line.
    """
    for name in names:
        if name.startswith(_FORTRAN) or name in _C_LIBRARY:
            continue
        words = name.split(".")
        node = next((n for n in graph.nodes if n.op.name.split(".")[-1] in words), None)
        operation = name if node is None else f"{node.op.name} ({name})"
        where = None if node is None else node.where
        raise BackendError(
            f"{operation} is a function of a library that exists only in this Python process, so "
            f"it cannot be exported. Use another function{at(where)}."
        )
