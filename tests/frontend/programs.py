"""Random programs with loops, as source files.

A program is a function of a matrix A, a vector x and an integer array k.  It has nested loops,
bounds that depend on counters, strided and reversed ranges and slices, stores to elements and
slices, stencils in place, swaps, aliases, masks, branches on values and on counters, exits, lists,
generator expressions, helper functions, closures, objects with attributes, and arrays of integers,
booleans and float32.  It is printed to a file, so that its source is found as a user's is.

    program(seed)    the source of a program
    load(text, folder, name)    its function
"""

import importlib.util
import random

HEADER = """import math
import numpy as np


def helper(a, b):
    if a > b:
        return a * 0.5
    return b - 0.25 * a


def touch(v, i):
    v[i] = v[i] * 0.75 + 0.125


class Model:
    # The programs read it.

    def __init__(self):
        self.scale, self.weights = 0.75, np.linspace(0.5, 1.0, 12)

    def term(self, v, i):
        return v * self.scale + self.weights[i]


model = Model()
OFFSET = 0.125


"""


class Writer:
    """One program."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.lines = []
        self.depth = 1
        self.counters = []
        self.scalars = ["s"]
        self.names = 0
        self.in_loop = 0

    def emit(self, text):
        self.lines.append("    " * self.depth + text)

    def pick(self, *choices):
        return self.rng.choice(choices)

    def index(self):
        """An index of an axis of length n."""
        if self.counters and self.rng.random() < 0.8:
            c = self.rng.choice(self.counters)
            return self.pick(c, c, c, f"{c} - 1", f"({c} + 1) % n", f"n - 1 - {c}", f"k[{c}]")
        return self.pick("0", "1", "-1", "n - 1", "n // 2")

    def end(self):
        if self.counters and self.rng.random() < 0.8:
            return self.rng.choice(self.counters)
        return self.pick("2", "n - 1", "n")

    def scalar(self, depth=0):
        choices = [
            lambda: f"x[{self.index()}]",
            lambda: f"A[{self.index()}, {self.index()}]",
            lambda: self.rng.choice(self.scalars),
            lambda: self.pick("0.5", "1.5", "2", "-1"),
        ]
        if self.counters:
            choices.append(lambda: self.rng.choice(self.counters))
        if depth < 2:
            choices += [
                lambda: self.infix(depth + 1),
                lambda: f"np.sin({self.scalar(depth + 1)})",
                lambda: f"math.cos({self.scalar(depth + 1)})",
                lambda: f"np.tanh({self.scalar(depth + 1)})",
                lambda: f"helper({self.scalar(depth + 1)}, {self.scalar(depth + 1)})",
                lambda: f"x[:{self.end()}].sum()",
                lambda: (
                    f"np.dot(A[{self.index()}, :{self.counter()}], x[:{self.counter()}])"
                    if False
                    else self.dot()
                ),
                lambda: self.conditional(depth + 1),
                lambda: f"min({self.scalar(depth + 1)}, {self.scalar(depth + 1)})",
                lambda: f"abs({self.scalar(depth + 1)})",
                lambda: f"model.term({self.scalar(depth + 1)}, {self.index()})",
                lambda: f"(OFFSET + {self.scalar(depth + 1)})",
                lambda: f"closed({self.scalar(depth + 1)})",
                self.reduced,
                lambda: f"x[::{self.pick(2, 3, -1, -2)}].sum()",
                lambda: f"c[{self.index()}] * 0.25",
                lambda: f"float(f[{self.index()}])",
            ]
        return self.rng.choice(choices)()

    def infix(self, depth):
        return f"({self.scalar(depth)} {self.pick('+', '-', '*')} {self.scalar(depth)})"

    def conditional(self, depth):
        return f"({self.scalar(depth)} if {self.condition()} else {self.scalar(depth)})"

    def reduced(self):
        """A reduction of a generator expression or a comprehension."""
        bound = self.end()
        return self.pick(
            f"sum(x[q] * 0.25 for q in range({bound}))",
            "sum([np.sin(x[q]) for q in range(n)])",
            "max(v * 0.5 for v in x)",
            "np.sum(np.array([x[q] * q for q in range(n)])) * 0.0625",
        )

    def counter(self):
        return self.rng.choice(self.counters) if self.counters else "2"

    def dot(self):
        c = self.counter()
        return self.pick(
            f"np.dot(A[{self.index()}, :{c}], x[:{c}])",
            f"A[{self.index()}, {c}:] @ A[{self.index()}, {c}:]",
            f"(A[:{c}, {self.index()}] * x[:{c}]).sum()",
        )

    def condition(self):
        simple = [
            lambda: f"{self.scalar(2)} {self.pick('<', '>', '<=')} {self.scalar(2)}",
            lambda: f"x[{self.index()}] > 0.2",
        ]
        if self.counters:
            simple.append(lambda: f"{self.rng.choice(self.counters)} % 2 == {self.pick(0, 1)}")
            simple.append(lambda: f"0 < {self.rng.choice(self.counters)} < n - 1")
        text = self.rng.choice(simple)()
        if self.rng.random() < 0.25:
            text = f"{text} {self.pick('and', 'or')} {self.rng.choice(simple)()}"
        return f"not ({text})" if self.rng.random() < 0.1 else text

    def vector(self):
        return self.pick(
            "np.sin(x)", "x * 0.5", "A[0]", f"A[{self.index()}] + x", f"x + {self.scalar(1)}",
            "x[::-1]", f"np.where(x > {self.scalar(2)}, x, 0.5)", f"A[:, {self.index()}] * 0.25",
        )  # fmt: skip

    def statement(self):
        kinds = [
            "scalar",
            "element",
            "element",
            "update",
            "matrix",
            "slice",
            "mask",
            "window",
            "call",
            "swap",
            "alias",
            "strided",
            "list",
            "typed",
        ]
        if self.depth < 4:
            kinds += ["for", "for", "if", "if"]
            kinds += ["while"] if self.depth < 3 else []
        if self.in_loop:
            kinds += ["exit"]
        getattr(self, "do_" + self.rng.choice(kinds))()

    def block(self, count):
        before = self.scalars[:]
        self.depth += 1
        for _ in range(count):
            self.statement()
        self.depth -= 1
        self.scalars = before

    def do_scalar(self):
        name = self.rng.choice(self.scalars)
        self.emit(f"{name} {self.pick('=', '+=', '-=')} 0.5 * np.tanh({self.scalar()})")

    def do_element(self):
        self.emit(f"x[{self.index()}] = np.tanh({self.scalar()})")

    def do_update(self):
        self.emit(f"x[{self.index()}] {self.pick('+=', '-=', '*=')} np.cos({self.scalar(1)})")

    def do_matrix(self):
        i, j = self.index(), self.index()
        self.emit(f"A[{i}, {j}] {self.pick('=', '+=', '*=')} np.sin({self.scalar(1)})")

    def do_slice(self):
        self.emit(
            self.pick(
                f"x[1:] = 0.5 * (x[:-1] + {self.scalar(2)})",
                f"x[:] = np.tanh({self.vector()})",
                f"A[{self.index()}, :] = np.tanh({self.vector()})",
                "x[1:-1] += 0.25 * (x[2:] + x[:-2])",
                f"A[{self.index()}] *= 0.5",
            )
        )

    def do_mask(self):
        self.emit(
            self.pick(
                f"x[x > {self.scalar(2)}] *= 0.5",
                f"x[x < 0.1] = {self.scalar(2)} * 0.25",
                "m = x > 0.3",
            )
        )
        if self.lines[-1].strip().startswith("m ="):
            self.emit("x[m] = x[m] ** 2")

    def do_window(self):
        c = self.counter()
        self.emit(
            self.pick(
                f"x[:{c}] += 0.125",
                f"A[{self.index()}, :{c}] -= 0.25 * x[:{c}]",
                f"x[{c}:] = x[{c}:] * 0.5 + {self.scalar(2)} * 0.25",
            )
        )

    def do_call(self):
        self.emit(self.pick(f"touch(x, {self.index()})", f"s = s + helper({self.scalar(1)}, s)"))

    def do_swap(self):
        i, j = self.index(), self.index()
        if self.rng.random() < 0.5:
            self.emit(f"x[{i}], x[{j}] = x[{j}], x[{i}]")
        else:
            self.emit(f"t = x[{i}]")
            self.emit(f"x[{i}] = x[{j}] * 0.5")
            self.emit(f"x[{j}] = t")

    def do_alias(self):
        kind = self.pick("part", "row", "column", "reversed")
        target = {
            "part": "x[1:]", "row": f"A[{self.index()}]", "column": f"A[:, {self.index()}]",
            "reversed": "x[::-1]",
        }[kind]  # fmt: skip
        self.emit(f"y = {target}")
        where = self.pick("0", "2", "-1")
        self.emit(
            self.pick(
                f"y[{where}] = np.tanh({self.scalar(2)})", "y *= 0.5", "y[:] = np.cos(y)",
                f"y[{where}] += 0.25",
            )
        )  # fmt: skip

    def do_strided(self):
        self.emit(
            self.pick(
                f"x[::2] = np.sin({self.scalar(2)})", "x[1::2] += 0.25 * x[:-1:2]",
                "x[::-1] *= 0.75", "A[::2, 1] = x[::2] * 0.5", "x[1:] += 0.25 * x[:-1]",
                "A[1:-1, 1:-1] = 0.25 * (A[:-2, 1:-1] + A[2:, 1:-1] + A[1:-1, :-2])",
            )
        )  # fmt: skip

    def do_list(self):
        self.names += 1
        out, c = f"out{self.names}", f"r{self.names}"
        self.emit(f"{out} = []")
        self.emit(f"for {c} in range({self.pick('n', 'n', '3', '0, n, 2')}):")
        self.depth += 1
        self.counters.append(c)
        exits, self.in_loop = self.in_loop, 0
        if self.rng.random() < 0.4:
            self.statement()
        self.emit(f"{out}.append(np.tanh({self.scalar(1)}))")
        self.in_loop = exits
        self.counters.pop()
        self.depth -= 1
        self.emit(f"s = s + 0.125 * np.sum(np.array({out}))")

    def do_typed(self):
        i = self.index()
        self.emit(
            self.pick(
                f"c[{i}] += {self.pick('1', '2', '-1')}", f"b[{i}] = {self.condition()}",
                f"f[{i}] = {self.scalar(2)} * 0.5", "s = s + 0.125 * np.sum(x[b])",
                f"c[{i}] = c[{self.index()}] // 2", "f *= 0.5",
            )
        )  # fmt: skip

    def do_for(self):
        self.names += 1
        c = f"i{self.names}"
        outer = self.rng.choice(self.counters) if self.counters else None
        ranges = [
            "n",
            "1, n",
            "n - 1, -1, -3",
            "1, n, 3",
            "1, n - 1",
            "n - 1, 0, -1",
            "0, n, 2",
            "n - 2, -1, -2",
            "0",
        ]
        if outer:
            ranges += [outer, f"{outer}, n", f"{outer} + 1, n", f"{outer}, -1, -1"] * 2
        if self.rng.random() < 0.15:
            self.emit(f"for {c}, v in enumerate(x):")
        else:
            self.emit(f"for {c} in range({self.rng.choice(ranges)}):")
        self.counters.append(c)
        self.in_loop += 1
        self.block(self.rng.randint(1, 3))
        self.in_loop -= 1
        self.counters.pop()

    def do_while(self):
        self.names += 1
        c = f"w{self.names}"
        self.emit(f"{c} = 0")
        self.emit(f"while {c} < {self.pick('n', 'n - 1', '3')} and s < 50.0:")
        self.depth += 1
        self.counters.append(f"({c} % n)")
        exits, self.in_loop = self.in_loop, 0  # a `continue` would skip the increment
        self.statement()
        self.in_loop = exits
        self.counters.pop()
        self.emit(f"{c} += 1")
        self.depth -= 1

    def do_if(self):
        self.emit(f"if {self.condition()}:")
        self.block(self.rng.randint(1, 2))
        if self.rng.random() < 0.5:
            self.emit("else:")
            self.block(self.rng.randint(1, 2))

    def do_exit(self):
        self.emit(f"if {self.condition()}:")
        word = self.pick("break", "continue", "return s + x.sum()")
        self.lines.append("    " * (self.depth + 1) + word)

    def text(self):
        body = HEADER + "def f(A, x, k):\n"
        self.emit("A = A * 1.0")
        self.emit("x = x * 1.0")
        self.emit("n = x.shape[0]")
        self.emit("c = np.arange(n)")
        self.emit("b = np.arange(n) % 3 == 0")
        self.emit("f = np.ones(n, np.float32)")
        self.emit("w = x[1] * 0.5")
        self.emit("def closed(v):")
        self.emit("    return v * 0.5 + w * OFFSET")
        self.emit(self.pick("s = 0", "s = 0.0", "s = x[0]"))
        for _ in range(self.rng.randint(2, 4)):
            self.statement()
        self.emit("typed = 0.0625 * np.sum(c) + np.sum(f, dtype=float)")
        self.emit("return s * 1.0 + np.sum(x * 0.5) + np.sum(A * A) + typed")
        return body + "\n".join(self.lines) + "\n"


def program(seed):
    """The source of a program."""
    return Writer(seed).text()


def load(text, folder, name):
    """The function of a program, from a file."""
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f
