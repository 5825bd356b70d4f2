"""Random programs of loops over the elements of matrices, of which many have independent steps.

Loops are nested up to three deep, over whole, shifted, strided, reversed and triangular ranges.
Their statements read and write elements, rows, columns and parts of these at counters, shifted
counters, and positions that do not depend on the counter; add to numbers, elements, rows and
slices; and keep values from the last step.  Whether steps are independent is up to chance: an array
that is written may also be read, under another index, another name, or as a whole.

    array_program(seed)    the source of a program
"""

import random

HEADER = """import math
import numpy as np


"""


class ArrayWriter:
    """One program."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.lines = []
        self.depth = 1
        self.counters = []
        self.names = 0
        self.values = ["s"]

    def pick(self, *choices):
        return self.rng.choice(choices)

    def chance(self, share):
        return self.rng.random() < share

    def emit(self, text):
        self.lines.append("    " * self.depth + text)

    # ---- positions -----------------------------------------------------------------------------

    def position(self):
        c = self.rng.choice(self.counters)
        if self.chance(0.5):
            c = self.counters[-1]
        if self.chance(0.7):
            return c
        return self.pick(
            f"{c} - 1", f"({c} + 1) % n", f"n - 1 - {c}", "0", "n - 1", "-1", f"{c} // 2",
            f"k[{c}]", f"min({c} + 1, n - 1)",
        )  # fmt: skip

    def part(self):
        c = self.rng.choice(self.counters)
        return self.pick(":", f":{c}", f"{c}:", f"{c} + 1:", f":{c} + 1", "1:", ":-1", "::2")

    def number(self, depth=0):
        p = self.position
        choices = [
            lambda: f"{self.vector()}[{p()}]",
            lambda: f"{self.matrix()}[{p()}, {p()}]",
            lambda: f"{self.matrix()}[{p()}, {p()}]",
            lambda: self.rng.choice(self.values),
            lambda: self.pick("0.5", "1.5", "2", "alpha"),
            lambda: f"0.1 * {self.rng.choice(self.counters)}",
        ]
        if depth < 2:
            choices += [
                lambda: f"({self.number(depth + 1)} * {self.number(depth + 1)})",
                lambda: f"({self.number(depth + 1)} * {self.number(depth + 1)})",
                lambda: (
                    f"({self.number(depth + 1)} {self.pick('+', '-')} {self.number(depth + 1)})"
                ),
                lambda: f"np.sin({self.number(depth + 1)})",
                lambda: f"math.tanh({self.number(depth + 1)})",
                lambda: f"max({self.number(depth + 1)}, {self.number(depth + 1)})",
                self.dot,
                lambda: f"({self.number(2)} if {self.number(2)} > 0.1 else {self.number(2)})",
                lambda: f"np.sum({self.matrix()}[{p()}, {self.part()}])",
                lambda: f"float(f[{p()}])",
            ]
        return self.rng.choice(choices)()

    def dot(self):
        part, p = self.part(), self.position
        m = self.matrix
        return self.pick(
            f"np.dot({m()}[{part}, {p()}], {m()}[{part}, {p()}])",
            f"{m()}[{p()}, {part}] @ {self.vector()}[{part}]",
            f"({m()}[{p()}, {part}] * {m()}[{part}, {p()}]).sum()",
        )

    def matrix(self):
        return self.pick("A", "A", "B", "C", "A", "B")

    def vector(self):
        return self.pick("x", "y", "y") if self.chance(0.9) else "z"

    # ---- statements ----------------------------------------------------------------------------

    def statement(self):
        kinds = ["element", "element", "element", "vector", "add", "add", "total", "value", "row"]
        kinds += ["keep", "outer", "swap", "integer", "nothing"]
        if self.depth < 4:
            kinds += ["loop"] * 5
        getattr(self, "do_" + self.rng.choice(kinds))()

    def do_element(self):
        t = f"{self.matrix()}[{self.position()}, {self.position()}]"
        self.emit(f"{t} {self.pick('=', '=', '+=', '*=')} np.tanh({self.number()})")

    def do_vector(self):
        t = f"{self.vector()}[{self.position()}]"
        self.emit(f"{t} {self.pick('=', '=', '+=', '-=')} 0.5 * np.cos({self.number()})")

    def do_add(self):
        self.emit(
            self.pick(
                f"{self.matrix()}[{self.position()}, {self.position()}] {self.pick('+=', '-=')} "
                f"{self.number()} * {self.number()} * 0.1",
                f"{self.vector()}[{self.position()}] += {self.number(1)} * {self.number(1)} * 0.1",
            )
        )

    def do_total(self):
        self.emit(f"s {self.pick('+=', '-=', '+=')} 0.1 * {self.number()} * {self.number(1)}")

    def do_value(self):
        name = self.pick("t", "u")
        self.emit(f"{name} = np.tanh({self.number()})")

    def do_keep(self):
        name = self.pick("t", "u")
        self.emit(f"{name} = 0.5 * {name} + {self.number(1)} * 0.1")

    def do_row(self):
        part, p = self.part(), self.position()
        m = self.matrix()
        target, like = self.pick(
            (f"{m}[{p}, {part}]", lambda: f"{self.matrix()}[{self.position()}, {part}]"),
            (f"{m}[{part}, {p}]", lambda: f"{self.matrix()}[{part}, {self.position()}]"),
            (f"y[{part}]", lambda: f"x[{part}]"),
        )
        op = self.pick("=", "+=", "-=", "*=")
        weight = self.number(1) if self.chance(0.7) else "0.25"
        self.emit(f"{target} {op} 0.1 * np.cos({weight}) * {like()}")

    def do_outer(self):
        part, c = self.part(), self.position()
        self.emit(f"{self.matrix()}[{self.position()}, {part}] += 0.1 * A[{c}, {part}] * x[{c}]")

    def do_swap(self):
        i, j = self.position(), self.position()
        self.emit(f"y[{i}], y[{j}] = y[{j}] * 0.5, y[{i}]")

    def do_integer(self):
        c = self.rng.choice(self.counters)
        self.emit(
            self.pick(
                f"c[{self.position()}] += {c}", f"c[{self.position()}] = c[{self.position()}] // 2",
                f"b[{self.position()}] = {self.number(2)} > 0.0", f"m += c[{self.position()}]",
                f"f[{self.position()}] = {self.number(1)}", f"r.append({self.number(1)})",
            )
        )  # fmt: skip

    def do_nothing(self):
        self.emit(f"v = {self.matrix()}[{self.position()}]")
        self.emit(self.pick(f"v[{self.position()}] = 0.5", "v *= 0.5", "s += 0.01 * v.sum()"))

    def do_loop(self):
        self.names += 1
        c = f"i{self.names}"
        ranges = ["n", "n", "1, n", "n - 1", "1, n - 1", "0, n, 2", "n - 1, -1, -1", "n - 2, 0, -1"]
        ranges += ["1, n, 3", "9, n"]
        if self.counters:
            o = self.rng.choice(self.counters)
            ranges += [o, f"{o}, n", f"{o} + 1, n", f"{o}, -1, -1", f"n - {o}", f"{o} - 1"] * 2
        self.emit(f"for {c} in range({self.rng.choice(ranges)}):")
        self.counters.append(c)
        self.depth += 1
        for _ in range(self.pick(1, 1, 1, 2, 2, 3)):
            self.statement()
        self.depth -= 1
        self.counters.pop()

    def text(self):
        for line in (
            "A = A * 1.0", "x = x * 1.0", "n = x.shape[0]", "B = A.T * 0.5", "C = np.zeros((n, n))",
            "y = np.zeros(n)", "z = x[::-1]", "f = np.ones(n, np.float32)", "c = np.arange(n)",
            "b = np.arange(n) % 3 == 0", "alpha = 0.75", "t = u = 0.5", "s, m = 0.0, 0", "r = []",
        ):  # fmt: skip
            self.emit(line)
        for _ in range(self.rng.randint(1, 3)):
            self.do_loop()
        self.emit("s = s + np.sum(x) + np.sum(A * A) + np.sum(B * A) + np.sum(C * C) + t * u")
        self.emit("s = s + np.sum(y * y) + np.sum(f, dtype=float) + 0.01 * np.sum(c) + 0.01 * m")
        self.emit("return s + np.sum(b) + (0.1 * np.sum(np.array(r)) if len(r) > 0 else 0.0)")
        return HEADER + "def f(A, x, k):\n" + "\n".join(self.lines) + "\n"


def array_program(seed):
    """The source of a program."""
    return ArrayWriter(seed).text()
