"""Linear algebra as plain loops over arrays with strides, and the builder of such routines.

    strided           makes a function with strides, which routines call
    RoutineBuilder    builds one function: arguments of Fortran, elements, loops, calls of others

    multiply          c = alpha a b + beta c, or a triangle of it
    solve             b = a⁻¹ b for a lower triangle
    times_triangle    b = alpha a b for a lower triangle
    invert            the inverse of a lower triangle in place
    cholesky, lu      factors in place
    swap_rows         exchanges two vectors

Each is a function of a module, written when it is called first; the first string is the type of its
result, the second its arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..ir.ir_builder import Function, ModuleBuilder, Name, Section

ZERO = "0.0"


class RoutineBuilder:
    """Builds a function; `s` is the section that is being written."""

    def __init__(
        self,
        module: ModuleBuilder,
        name: str,
        arguments: list[tuple[str, str]],
        kind: str,
        result: str,
    ) -> None:
        self.module, self.kind = module, kind
        self.function = Function(module, name, arguments, result, "nounwind")
        self.s: Section = self.function.body

    def close(self, last: str) -> None:
        """Finish the function."""
        self.s.write(last)
        self.module.add(self.function)

    # ---- arguments of Fortran ------------------------------------------------------------------

    def integer(self, name: str) -> Name:
        """An integer argument."""
        return self.s.value(f"sext i32 {self.s.value(f'load i32, ptr %{name}')} to i64")

    def number(self, name: str) -> Name:
        """A floating-point argument."""
        return self.s.value(f"load {self.kind}, ptr %{name}")

    def flag(self, name: str, letter: str) -> Name:
        """Whether an argument is a letter, an i1."""
        found = self.s.value(f"load i8, ptr %{name}")
        upper = self.s.value(f"and i8 {found}, 95")
        return self.s.value(f"icmp eq i8 {upper}, {ord(letter)}")

    def choice(self, condition: Name, x: Name, y: Name, kind: str = "i64") -> Name:
        """x if a condition holds, else y."""
        return self.s.value(f"select i1 {condition}, {kind} {x}, {kind} {y}")

    def info(self, value: Name = "0") -> None:
        """Set the status of LAPACK."""
        narrow = value if value == "0" else self.s.value(f"trunc i64 {value} to i32")
        self.s.write(f"store i32 {narrow}, ptr %info")

    # ---- elements and loops --------------------------------------------------------------------

    def at(self, base: Name, *pairs: tuple[Name, Name]) -> Name:
        """The address of an element, from indices and strides."""
        offset: Name = "0"
        for index, stride in pairs:
            offset = self.s.plus(offset, self.s.times(index, stride))
        return self.s.value(f"getelementptr {self.kind}, ptr {base}, i64 {offset}")

    def load(self, place: Name) -> Name:
        """An element."""
        return self.s.value(f"load {self.kind}, ptr {place}")

    def store(self, value: Name, place: Name) -> None:
        """Set an element."""
        self.s.write(f"store {self.kind} {value}, ptr {place}")

    def compute(self, operation: str, x: Name, y: Name) -> Name:
        """The sum (fadd) ... of numbers."""
        return self.s.value(f"{operation} {self.kind} {x}, {y}")

    def total(self, start: Name, stop: Name, term: Callable[[Name], Name]) -> Name:
        """The sum of terms over a range."""
        cell = self.function.slot(self.kind)
        self.store(ZERO, cell)
        with self.loop(start, stop) as k:
            value = term(k)
            self.store(self.compute("fadd", self.load(cell), value), cell)
        return self.load(cell)

    @contextmanager
    def loop(self, start: Name, stop: Name) -> Any:
        """Count from start up to stop."""
        outer = self.s
        with outer.loop(start, stop) as (inner, k):
            self.s = inner
            yield k
        self.s = outer

    @contextmanager
    def when(self, condition: Name) -> Any:
        """Code that runs if a condition holds."""
        outer = self.s
        with outer.when(condition) as inner:
            self.s = inner
            yield
        self.s = outer

    def call(self, function: Strided, *arguments: Name) -> Name:
        """Call a function with strides, which is added to the module if necessary."""
        typed = [(self.kind if t == "number" else t, n) for t, n in function.arguments]
        name = f"wengert_{function.name}_{self.kind}"
        if name not in self.module:
            routine = RoutineBuilder(self.module, name, typed, self.kind, function.result)
            function.write(routine)
            if function.result == "void":
                routine.close("ret void")
        given = ", ".join(f"{t} {a}" for (t, _), a in zip(typed, arguments, strict=True))
        text = f"call {function.result} @{name}({given})"
        if function.result == "void":
            self.s.write(text)
            return ""
        return self.s.value(text)


class Strided(NamedTuple):
    """A function with strides.

    name, result : its name, and the type of its result.
    arguments : types and names; the type "number" is that of the elements.
    write : writes its body.
    """

    name: str
    result: str
    arguments: tuple[tuple[str, str], ...]
    write: Callable[[RoutineBuilder], None]


def strided(result: str, arguments: str) -> Callable[[Callable[[RoutineBuilder], None]], Strided]:
    """Make a function with strides of one that writes its body (a decorator)."""
    pairs = [a.split() for a in arguments.split(",")]
    listed = tuple((kind, name) for kind, name in pairs)
    return lambda write: Strided(write.__name__, result, listed, write)


ONE = "1.0"


@strided(
    "void",
    "i64 m, i64 n, i64 k, number alpha, ptr a, i64 ar, i64 ac, ptr b, i64 br, i64 bc, "
    "number beta, ptr c, i64 cr, i64 cc, i64 shape",
)
def multiply(r: RoutineBuilder) -> None:
    """c = alpha a b + beta c; of a square c the lower triangle (`shape` 1) or upper one (2)."""
    lower, upper = r.s.value("icmp eq i64 %shape, 1"), r.s.value("icmp eq i64 %shape, 2")
    keeps = r.s.value(f"fcmp une {r.kind} %beta, {ZERO}")
    with r.loop("0", "%n") as j:
        start = r.choice(lower, j, "0")
        stop = r.choice(upper, r.s.plus(j, "1"), "%m")
        with r.loop(start, stop) as i:
            place = r.at("%c", (i, "%cr"), (j, "%cc"))
            with r.when(keeps):
                r.store(r.compute("fmul", "%beta", r.load(place)), place)
            with r.when(r.s.value(f"xor i1 {keeps}, true")):
                r.store(ZERO, place)
        with r.loop("0", "%k") as p:
            factor = r.compute("fmul", "%alpha", r.load(r.at("%b", (p, "%br"), (j, "%bc"))))
            with r.loop(start, stop) as i:
                place = r.at("%c", (i, "%cr"), (j, "%cc"))
                product = r.compute("fmul", r.load(r.at("%a", (i, "%ar"), (p, "%ac"))), factor)
                r.store(r.compute("fadd", r.load(place), product), place)


@strided(
    "void",
    "i64 n, i64 m, i64 unit, ptr a, i64 ar, i64 ac, ptr b, i64 br, i64 bc",
)
def solve(r: RoutineBuilder) -> None:
    """b = a⁻¹ b, for a lower triangle a of n rows and m columns of b."""
    divides = r.s.value("icmp eq i64 %unit, 0")
    with r.loop("0", "%m") as j, r.loop("0", "%n") as i:
        place = r.at("%b", (i, "%br"), (j, "%bc"))
        with r.when(divides):
            r.store(
                r.compute("fdiv", r.load(place), r.load(r.at("%a", (i, "%ar"), (i, "%ac")))), place
            )
        value = r.load(place)
        with r.loop(r.s.plus(i, "1"), "%n") as k:
            other = r.at("%b", (k, "%br"), (j, "%bc"))
            product = r.compute("fmul", r.load(r.at("%a", (k, "%ar"), (i, "%ac"))), value)
            r.store(r.compute("fsub", r.load(other), product), other)


@strided(
    "void",
    "i64 n, i64 m, i64 unit, number alpha, ptr a, i64 ar, i64 ac, ptr b, i64 br, i64 bc",
)
def times_triangle(r: RoutineBuilder) -> None:
    """b = alpha a b, for a lower triangle a of n rows and m columns of b."""
    is_unit = r.s.value("icmp ne i64 %unit, 0")
    with r.loop("0", "%m") as j, r.loop("0", "%n") as back:
        i = r.s.minus(r.s.minus("%n", "1"), back)
        place = r.at("%b", (i, "%br"), (j, "%bc"))
        diagonal = r.choice(is_unit, ONE, r.load(r.at("%a", (i, "%ar"), (i, "%ac"))), r.kind)
        own = r.compute("fmul", diagonal, r.load(place))
        rest = r.total(
            "0",
            i,
            lambda k: r.compute(
                "fmul",
                r.load(r.at("%a", (i, "%ar"), (k, "%ac"))),
                r.load(r.at("%b", (k, "%br"), (j, "%bc"))),
            ),
        )
        r.store(r.compute("fmul", "%alpha", r.compute("fadd", own, rest)), place)


@strided(
    "i64",
    "i64 n, i64 unit, ptr a, i64 ar, i64 ac",
)
def invert(r: RoutineBuilder) -> None:
    """The inverse of the lower triangle of a in place; returns 0, or the first zero, from 1 on."""
    divides = r.s.value("icmp eq i64 %unit, 0")
    with r.loop("0", "%n") as i:
        value = r.load(r.at("%a", (i, "%ar"), (i, "%ac")))
        zero = r.s.value(f"fcmp oeq {r.kind} {value}, {ZERO}")
        number = r.function.number()
        singular = r.s.value(f"and i1 {zero}, {divides}")
        r.s.write(f"br i1 {singular}, label %bad{number}, label %good{number}")
        r.s.label(f"bad{number}")
        r.s.write(f"ret i64 {r.s.plus(i, '1')}")
        r.s.label(f"good{number}")
    with r.loop("0", "%n") as back:
        j = r.s.minus(r.s.minus("%n", "1"), back)
        place = r.at("%a", (j, "%ar"), (j, "%ac"))
        with r.when(divides):
            r.store(r.compute("fdiv", ONE, r.load(place)), place)
        own = r.choice(divides, r.load(place), ONE, r.kind)
        factor = r.s.value(f"fneg {r.kind} {own}")
        below = r.at("%a", (r.s.plus(j, "1"), "%ar"), (j, "%ac"))
        rest = r.at("%a", (r.s.plus(j, "1"), r.s.plus("%ar", "%ac")))
        triangle = (rest, "%ar", "%ac")
        r.call(times_triangle, back, "1", "%unit", factor, *triangle, below, "%ar", "0")
    r.close("ret i64 0")


@strided(
    "i64",
    "i64 n, ptr a, i64 ar, i64 ac",
)
def cholesky(r: RoutineBuilder) -> None:
    """The lower factor of a in place; returns 0, or the minor that is not positive, from 1 on."""
    root = r.module.declare(f"llvm.sqrt.f{32 if r.kind == 'float' else 64}", r.kind, [r.kind])

    def squares(i: Name, j: Name) -> Name:
        return r.total(
            "0",
            j,
            lambda k: r.compute(
                "fmul",
                r.load(r.at("%a", (i, "%ar"), (k, "%ac"))),
                r.load(r.at("%a", (j, "%ar"), (k, "%ac"))),
            ),
        )

    with r.loop("0", "%n") as j:
        place = r.at("%a", (j, "%ar"), (j, "%ac"))
        rest = r.compute("fsub", r.load(place), squares(j, j))
        good = r.s.value(f"fcmp ogt {r.kind} {rest}, {ZERO}")
        number = r.function.number()
        r.s.write(f"br i1 {good}, label %good{number}, label %bad{number}")
        r.s.label(f"bad{number}")
        r.s.write(f"ret i64 {r.s.plus(j, '1')}")
        r.s.label(f"good{number}")
        diagonal = r.s.value(f"call {r.kind} {root}({r.kind} {rest})")
        r.store(diagonal, place)
        with r.loop(r.s.plus(j, "1"), "%n") as i:
            other = r.at("%a", (i, "%ar"), (j, "%ac"))
            below = r.compute("fsub", r.load(other), squares(i, j))
            r.store(r.compute("fdiv", below, diagonal), other)
    r.close("ret i64 0")


@strided(
    "void",
    "i64 n, ptr x, i64 xs, ptr y, i64 ys",
)
def swap_rows(r: RoutineBuilder) -> None:
    """Exchange two vectors."""
    with r.loop("0", "%n") as k:
        one, two = r.at("%x", (k, "%xs")), r.at("%y", (k, "%ys"))
        first, second = r.load(one), r.load(two)
        r.store(second, one)
        r.store(first, two)


@strided(
    "i64",
    "i64 m, i64 n, ptr a, i64 lda, ptr pivots",
)
def lu(r: RoutineBuilder) -> None:
    """The factors of a in place, with pivots from 1 on; returns 0, or the first zero, from 1 on."""
    bits = 32 if r.kind == "float" else 64
    fabs = r.module.declare(f"llvm.fabs.f{bits}", r.kind, [r.kind])
    status, best, row = r.function.slot("i64"), r.function.slot(r.kind), r.function.slot("i64")
    r.s.write(f"store i64 0, ptr {status}")
    with r.loop("0", r.s.smaller("%m", "%n")) as j:
        r.store("-1.0", best)
        r.s.write(f"store i64 {j}, ptr {row}")
        with r.loop(j, "%m") as i:
            value = r.load(r.at("%a", (i, "1"), (j, "%lda")))
            size = r.s.value(f"call {r.kind} {fabs}({r.kind} {value})")
            with r.when(r.s.value(f"fcmp ogt {r.kind} {size}, {r.load(best)}")):
                r.store(size, best)
                r.s.write(f"store i64 {i}, ptr {row}")
        pivot = r.s.value(f"load i64, ptr {row}")
        narrow = r.s.value(f"trunc i64 {r.s.plus(pivot, '1')} to i32")
        r.s.write(
            f"store i32 {narrow}, ptr {r.s.value(f'getelementptr i32, ptr %pivots, i64 {j}')}"
        )
        r.call(swap_rows, "%n", r.at("%a", (j, "1")), "%lda", r.at("%a", (pivot, "1")), "%lda")
        diagonal = r.load(r.at("%a", (j, "1"), (j, "%lda")))
        zero = r.s.value(f"fcmp oeq {r.kind} {diagonal}, {ZERO}")
        known = r.s.value(f"load i64, ptr {status}")
        first = r.s.value(f"icmp eq i64 {known}, 0")
        new = r.choice(r.s.value(f"and i1 {zero}, {first}"), r.s.plus(j, "1"), known)
        r.s.write(f"store i64 {new}, ptr {status}")
        with r.when(r.s.value(f"xor i1 {zero}, true")), r.loop(r.s.plus(j, "1"), "%m") as i:
            place = r.at("%a", (i, "1"), (j, "%lda"))
            r.store(r.compute("fdiv", r.load(place), diagonal), place)
        with r.loop(r.s.plus(j, "1"), "%n") as c:
            factor = r.load(r.at("%a", (j, "1"), (c, "%lda")))
            with r.loop(r.s.plus(j, "1"), "%m") as i:
                place = r.at("%a", (i, "1"), (c, "%lda"))
                product = r.compute("fmul", r.load(r.at("%a", (i, "1"), (j, "%lda"))), factor)
                r.store(r.compute("fsub", r.load(place), product), place)
    r.close(f"ret i64 {r.s.value(f'load i64, ptr {status}')}")
