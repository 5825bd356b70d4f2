"""Random programs with more of Python and NumPy than those of `programs.py`, which they contain.

Added are: views that overlap under two names, also made in loops and in branches; slices of
matrices with ends that depend on counters; exits of `while` loops, `else` of loops; lists that are
filled and read; variables, arrays and views that branches and loops rebind; functions that write
their arguments, return in loops or change variables of the function around them; attributes,
entries of dicts and elements of lists as state; operands of float32; arrays of integers and
booleans that select and count; functions of slices (`where`, `minimum`, `cumsum`, `outer`, `dot`,
...); and functions that modify their own arguments.

    wider_program(seed)    the source of a program
"""

import re

from .programs import HEADER, Writer

WIDER_HEADER = HEADER.replace(
    "class Model:",
    """def smooth(v):
    v[1:-1] = 0.25 * v[:-2] + 0.5 * v[1:-1] + 0.25 * v[2:]


def recurrence(v, m):
    for q in range(1, m):
        v[q] = v[q] * 0.5 + 0.25 * np.sin(v[q - 1])
    return v[m - 1] * 0.5


def first_above(v, level):
    for q in range(v.shape[0]):
        if v[q] > level:
            return v[q] * 0.5
    return level - 0.25


def onto(v, w, by=0.25):
    v += by * w
    return v


def half_of(v, i, *, upper=False):
    return v[i:] if upper else v[:i]


def exchange(M, i, j):
    M[i], M[j] = M[j].copy(), M[i] * 0.5


def eliminate(M, i):
    for r in range(i + 1, M.shape[0]):
        M[r, i:] -= 0.125 * M[r, i] * M[i, i:]


class State:
    # The programs change it.

    def __init__(self, value, v):
        self.value, self.v, self.count = value, v, 0

    def push(self, a):
        self.value = 0.5 * self.value + 0.25 * np.tanh(a)
        self.count += 1

    def write(self, i, a):
        self.v[i] = 0.5 * a
        return self.v[i - 1]


TABLE = np.linspace(-0.5, 0.5, 12)


class Model:""",
)


class WiderWriter(Writer):
    """One program."""

    def __init__(self, seed):
        super().__init__(seed)
        self.kinds = [
            "shifted",
            "block",
            "cumulative",
            "selected",
            "counted",
            "rebound",
            "bound_view",
            "written_by_call",
            "state",
            "forever",
            "rows",
            "found",
            "single",
            "filled",
            "minima",
            "last",
            "chained",
            "integers",
        ]
        self.options = [
            name
            for name in ("views", "state", "nonlocal", "single", "matrix", "arguments", "parts")
            if self.rng.random() < 0.55
        ]

    # ---- expressions ---------------------------------------------------------------------------

    def scalar(self, depth=0):
        if self.rng.random() < 0.72:
            return super().scalar(depth)
        i, j = self.index(), self.index()
        choices = [
            f"TABLE[{i}]",
            f"x[{self.span()}].sum()",
            f"np.sum(A[{self.span()}, {j}])",
            f"A.T[{i}, {j}]",
            "x.mean()",
            f"(cnt + {self.pick('1', 'n')}) * 0.0625",
            f"np.maximum(x[{i}], A[{i}, {j}])",
            f"x[c[{i}] % n]",
            "x[cnt % n]",
            "q",
            f"np.float64({self.pick('1.5', '0.25')})",
            f"np.sum(np.where(b, x, {self.pick('0.0', 's', 'A[0]')}))",
            f"np.cumsum(x)[{i}] * 0.25",
            f"np.cumsum(x[{self.span()}]).sum() * 0.125",
            f"np.outer(x[{self.span()}], A[{i}]).sum() * 0.0625",
            f"np.dot(A[{i}], TABLE)",
            "np.minimum(x[1:], x[:-1]).sum()",
            "x.max() * 0.5",
            f"A[{self.span()}, {self.span()}].sum() * 0.125",
            f"np.linalg.norm(A[{i}] + 2.0)",
            f"first_above(x, {self.pick('0.5', '0.9', 's')})",
            f"np.clip(x[{i}], -0.5, 0.75)",
            f"x[k[{i}]]",
            "float(cnt) * 0.125",
            f"np.prod(1.0 + 0.25 * x[{self.span()}])",
            f"(0.5 if flag else {self.pick('x[0]', '0', '1', 's')})",
            f"np.diff(x)[{self.pick('0', '-1', 'n // 2')}]",
            f"x[np.argmax(A[{i}])]",
            "np.trace(A) * 0.125",
            f"np.abs(x[{i}] - x[{j}])",
        ]
        choices += self.of_options(i, j)
        return self.rng.choice(choices)

    def of_options(self, i, j):
        """Scalars of what the program has by choice."""
        found = []
        if "views" in self.options:
            found += ["y[0]", "z[-1]", "y.sum() * 0.25", "(y * z).sum() * 0.125", "v2[1]"]
        if "state" in self.options:
            found += [
                "state.value",
                "state.v[1]",
                "state.count * 0.0625",
                'table["a"]',
                'table["v"][0]',
            ]
        if "nonlocal" in self.options:
            found += ["bump(0.5)", f"bump(x[{i}])", f"peek({i})"]
        if "single" in self.options:
            found += [f"f[{i}] * x[{j}]", "f.sum() * 0.125", f"h[{i}]"]
        if "matrix" in self.options:
            found += [f"B[{i}, {j}]", f"B[{i}].sum() * 0.25", f"A[{i}] @ B[{j}] * 0.25"]
        if "parts" in self.options:
            found += ["parts[0]", "parts[1]", "parts[-1] * 0.5", "sum(parts) * 0.25", "p0"]
        return found

    def span(self):
        """A slice of an axis of length n, which may be empty."""
        i = self.end()
        return self.pick(
            f":{i}",
            f"{i}:",
            f":{i}:2",
            f"{i}::-1" if i != "n" else "::-1",
            f"1:{i}",
            f"{i}:{i} + 3",
            f"::{self.pick(2, -1, 3)}",
            f"{self.counter()}:n - 1",
            f"-{self.pick(1, 3)}:",
            f"max({i} - 1, 0):{i} + 2",
        )

    def open_span(self):
        """The end of a slice and its text for two operands of equal lengths."""
        i = self.end()
        return self.pick(f":{i}", f"{i}:", f"1:{i}", f":{i}:2", f"{i}::2", f"max({i} - 2, 0):{i}")

    def condition(self):
        if self.rng.random() < 0.8:
            return super().condition()
        i = self.index()
        return self.pick(
            "flag",
            "not flag",
            f"b[{i}]",
            f"c[{i}] > {self.pick(2, 5)}",
            f"k[{i}] < n // 2",
            f"0.0 < x[{i}] < 0.6",
            f"cnt % {self.pick(2, 3)} == 0",
            "np.any(x > 0.9)",
            "b.all()",
            f"x[{i}] > TABLE[{self.index()}] and A[{i}, 0] < 0.5",
            f"cnt > {self.pick(1, 4)}",
            f"(q > 0.1) == (x[{i}] > 0.0)",
            f"x[{i}] != 0 and 1.0 / x[{i}] < 4.0",
        )

    def vector(self):
        if self.rng.random() < 0.6:
            return super().vector()
        choices = [
            "TABLE * x",
            "np.minimum(x, A[0])",
            "np.maximum(x, 0.125)",
            "np.cumsum(x) * 0.25",
            "np.outer(x, A[1])[2]",
            "A @ x * 0.25",
            "x @ A * 0.25",
            "np.roll(x, 1)",
            "A.T[1]",
            "np.where(b, x, -x)",
            "A.sum(axis=0) * 0.25",
            "A[::-1, 1]",
            "x[k]",
            "np.flip(x)",
            "np.concatenate([x[1:], x[:1]])",
            "np.diagonal(A) * 1.0",
            "A.max(axis=1)",
            "x.copy()",
            f"np.clip(x, {self.pick('-0.5', 's')}, 2.0)",
            "x * f",
            "c * 0.0625 + x",
            "x * b",
        ]
        return self.rng.choice(choices)

    # ---- statements ----------------------------------------------------------------------------

    def statement(self):
        if self.rng.random() < 0.5:
            return super().statement()
        if self.rng.random() < 0.01:
            return self.do_reshaped()
        kinds = [
            k
            for k in self.kinds
            if self.depth < 4 or k not in ("forever", "rows", "filled", "rebound")
        ]
        getattr(self, "do_" + self.rng.choice(kinds))()

    def do_alias(self):
        """A name of its own for a view, as the shapes differ."""
        first = len(self.lines)
        self.names += 1
        super().do_alias()
        self.lines[first:] = [
            re.sub(r"\by\b", f"y{self.names}", line) for line in self.lines[first:]
        ]

    def do_shifted(self):
        """Stencils in place, and views that overlap under two names."""
        i, j, name = self.index(), self.index(), self.pick("u", "y", "v2")
        if name == "y" and "views" in self.options and self.rng.random() < 0.7:
            self.emit(
                self.pick(
                    f"y[{i} - 1] = 0.5 * z[{j} - 1]",
                    "y[:] = 0.5 * z + 0.125",
                    "z -= 0.25 * y",
                    "y[1:] += 0.25 * z[:-1]",
                    "z[::2] *= 0.5",
                    f"v2[{self.pick('0', '2', '-1')}] += 0.25 * y[0]",
                    "y[y > 0.4] = z[y > 0.4] * 0.5",
                )
            )
            return
        self.emit(
            self.pick(
                "x[1:-1] = 0.5 * x[:-2] + 0.25 * x[2:]",
                "x[2:] = 0.5 * x[:-2] + 0.25",
                f"A[1:, {i}] = 0.5 * A[:-1, {i}] + 0.125",
                "A[1:, 1:] -= 0.25 * A[:-1, :-1]",
                f"A[{i}, 1:] = 0.5 * (A[{j}, :-1] + x[1:])",
                "x[::-1][2:] += 0.25 * x[:-2]",
                "A[1:-1, 1:-1] += 0.125 * (A[2:, 1:-1] - A[:-2, 1:-1])",
                "A.T[1] = 0.5 * A[2]",
                f"A.T[{i}, {j}] += 0.5 * x[{i}]",
            )
        )

    def do_reshaped(self):
        """What may be a view or a copy."""
        i, j = self.index(), self.index()
        self.emit(
            self.pick(
                f"A.reshape(-1)[{i} * n + {j}] *= 0.5",
                f"A.ravel()[n * {i} - 1] = x[{j}]",
                "u = A.reshape(-1); u *= 0.5",
                f"s = s + A.reshape(-1)[{i}]",
            )
        )

    def do_block(self):
        """Slices of matrices and vectors with ends that depend on counters."""
        i, j, r, w = self.index(), self.index(), self.open_span(), self.open_span()
        self.emit(
            self.pick(
                f"A[{r}, {w}] *= 0.5",
                f"A[{r}, {j}] -= 0.25 * x[{r}]",
                f"A[{i}, {r}] = 0.5 * A[{j}, {r}]",
                f"A[{r}, {i}] = np.tanh(A[{r}, {j}] + {self.scalar(2)})",
                f"x[{r}] = np.sin(x[{r}]) * {self.scalar(2)}",
                f"x[{r}] -= 0.125 * A[{r}, {w}].sum(axis=1)",
                f"A[{r}, {w}] -= 0.125 * np.outer(x[{r}], x[{w}])",
                f"x[{r}] += 0.125 * np.dot(A[{r}, {w}], x[{w}])",
                f"s = s + 0.125 * x[{r}] @ A[{r}, {w}] @ x[{w}]",
                f"A[{r}] += 0.125 * x",
                f"x[{r}] = x[{r}][::-1] * 0.5",
                f"x[{i}] = 0.25 * np.cumsum(x[{r}]).sum()",
                f"A[{r}, {w}] = np.minimum(A[{r}, {w}], {self.pick('0.5', 's', 'x[0]')})",
                f"x[{r}] = np.where(A[{r}, {i}] > 0.0, x[{r}], A[{r}, {j}] * 0.5)",
                f"x[{r}] = np.maximum(x[{r}], A[{i}, {r}])",
                f"A[{i}:, {i}] /= 2.0 + np.abs(A[{i}, {j}])",
                f"x[{self.span()}] *= 0.75",
                f"A[{self.span()}, {self.span()}] += 0.125",
            )
        )

    def do_cumulative(self):
        i = self.index()
        self.emit(
            self.pick(
                "x[:] = np.tanh(np.cumsum(x))",
                f"A[{i}] = np.cumsum(A[{i}]) * 0.25",
                f"A -= 0.0625 * np.outer(x, A[{i}])",
                "x += 0.125 * (A @ x)",
                f"x = x + 0.125 * A[{i}]",
                "np.multiply(x, 0.5, out=x)",
                "np.add(x[1:], 0.25 * x[:-1], out=x[1:])",
                "A *= 0.75",
                "x[1:] = np.diff(x) * 0.5",
                "A[:, 0] = A.sum(axis=1) * 0.125",
                "x /= 1.0 + np.abs(x).max()",
                "x **= 2",
            )
        )

    def do_selected(self):
        """Augmented assignments of masks and of index arrays."""
        i, t = self.index(), self.scalar(2)
        self.emit(
            self.pick(
                f"x[x > {t}] += 0.25",
                "A[A > 0.3] *= 0.5",
                f"A[{i}, x > 0.2] -= 0.25",
                f"x[b] = {t}",
                "x[b & (x > 0.0)] *= 0.5",
                f"x[~b] += 0.25 * A[{i}, ~b]",
                "A[A < x] = 0.125",
                "x[k] *= 0.5",
                f"A[{i}][x < 0.0] = 0.25",
                f"x = np.where(x > {t}, x * 0.5, x)",
                "x[k[0]] += 0.25 * x[k[1]]",
                f"m = (x > 0.1) | (c > {i})\n{'    ' * self.depth}x[m] = 0.5 * x[m] + A[1][m] ** 2",
                f"s = s + 0.125 * x[x > {t}].sum()",
                "np.add.at(x, k, 0.125)",
                "x[[0, 2, -1]] *= 0.5",
                "A[k, c] *= 0.5",
                "A[:, b] = 0.5 * A[:, b]",
            )
        )

    def do_counted(self):
        """Integers and booleans."""
        i = self.index()
        self.emit(
            self.pick(
                f"cnt += {self.pick('1', '2', 'c[0]', 'k[1]')}",
                f"flag = {self.condition()}",
                f"flag = flag or {self.condition()}",
                f"if x[{i}] > 0.0:\n{'    ' * (self.depth + 1)}cnt += 1",
                "cnt = (3 * cnt + 1) % 7",
                f"c[{i}] = cnt + k[{self.index()}]",
                "c += b",
                f"b[{i}] = not b[{self.index()}]",
                "b &= x > -0.5",
                "b = ~b",
                "b[1:] ^= b[:-1]",
                f"c[{i}] ^= {self.pick('3', 'cnt')}",
                "c[c > 4] -= 3",
                "cnt = int(np.sum(b))",
                "cnt = int(np.argmax(x))",
                f"cnt += x[{i}] > 0.25",
                f"flag ^= b[{i}]",
                f"c[{self.span()}] += 1",
                f"cnt = c[{i}] >> 1",
                "q = q + 0.125 * cnt",
                f"cnt = min(cnt, {i})",
                f"cnt = max(c[{i}], 1) - 1",
            )
        )

    def do_integers(self):
        i, j = self.index(), self.index()
        self.emit(
            self.pick(
                f"c[{i}], c[{j}] = c[{j}], c[{i}]",
                f"c[{i}] = c[{j}] * 3 % 11",
                "c[1:] = c[:-1]",
                "c = c[::-1]",
                f"c[{i}] = x[{j}] * 8.0",
                f"c[{i}] = (c[{j}] & 5) | 1",
                "c = np.cumsum(c) % 7",
                f"x[c[{i}] % n] += 0.125",
                f"c[k[{i}]] += 1",
                f"s = s + 0.0625 * c[{self.span()}].sum()",
                "x += 0.0625 * c",
                f"A[c[{i}] % n, c[{j}] % n] *= 0.5",
            )
        )

    def do_rebound(self):
        """Variables that a branch rebinds, to views or copies of one another."""
        names = ["x", "A", "q", "both"]
        name = self.rng.choice(names)
        one, two = {
            "x": (
                self.pick("x[::-1]", "x * 0.5", "A[1]", "A[:, 2]", "np.tanh(x)"),
                self.pick("x.copy()", "x + 0.125", "A[0] * 0.5", "x"),
            ),
            "A": (
                self.pick("A.T", "A * 0.5", "A[::-1]", "A.copy()"),
                self.pick("A + 0.125", "np.tanh(A)", "A"),
            ),
            "q": (f"0.5 * {self.scalar(1)}", self.pick("q - 0.125", "1", "0.5")),
            "both": ("", ""),
        }[name]
        self.emit(f"if {self.condition()}:")
        pad = "    " * (self.depth + 1)
        if name == "both":
            self.lines.append(f"{pad}q, s = 0.5 * s, q + 0.125")
            return
        self.lines.append(f"{pad}{name} = {one}")
        if self.rng.random() < 0.5:
            self.emit("else:")
            self.lines.append(f"{pad}{name} = {two}")
        if name != "q" and self.rng.random() < 0.5:
            self.emit(f"{name}[{self.index()}] = 0.5 * {self.scalar(2)}")

    def do_bound_view(self):
        """A name for a part of an array, which is written and read through both."""
        i, j, e = self.index(), self.index(), self.end()
        self.names += 1
        v = f"e{self.names}"
        self.emit(
            self.pick(
                f"{v} = A[{i}]",
                f"{v} = A[:, {i}]",
                f"{v} = x[{e}:]",
                f"{v} = A[{i}, {e}:]",
                f"{v} = x[:{e}]",
                f"{v} = A.T[{i}]",
                f"{v} = x[::-1]",
                f"{v} = x",
                f"{v} = A[1:, {j}]",
                f"{v} = x[1:][::2]",
                f"{v} = x if {self.condition()} else A[{i}]",
                f"{v} = A[::-1][{i}]",
                f"{v} = half_of(x, {e})",
                f"{v} = half_of(A[{i}], {e}, upper=True)",
            )
        )
        for _ in range(self.rng.randint(1, 2)):
            self.emit(
                self.pick(
                    f"{v} *= 0.5",
                    f"{v}[:] = 0.5 * {v} + 0.125",
                    f"{v}[1:] += 0.25 * {v}[:-1]",
                    f"{v} += x[{i}]",
                    f"{v}[{v} > 0.3] = {self.scalar(2)}",
                    f"s = s + 0.125 * {v}.sum()",
                    f"x[{i}] = 0.5 * x[{j}]",
                    f"A[{i}] *= 0.5",
                    f"smooth({v})",
                    f"{v}[::2] -= 0.125",
                )
            )
        self.emit(f"s = s + 0.0625 * np.sum({v})")

    def do_written_by_call(self):
        """Calls of functions that write their arguments."""
        i, j, e = self.index(), self.index(), self.end()
        choices = [
            "smooth(x)",
            f"smooth(A[{i}])",
            f"smooth(A[:, {i}])",
            f"q = q * 0.5 + recurrence(x, {self.pick('n', e)})",
            "smooth(x[1:])",
            f"recurrence(A[{i}], n)",
            f"onto(x, A[{i}])",
            f"x = onto(x, A[:, {j}], by=0.125)",
            f"onto(A[{i}, 1:], A[{i}, :-1])",
            f"onto(x[:{e}], A[{i}, :{e}])",
            f"exchange(A, {i}, {j})",
            f"eliminate(A, {self.counter()})",
            f"half_of(x, {e})[:] *= 0.5".replace("[:]", ""),
            f"onto(half_of(x, {e}, upper=True), 0.5)",
            "onto(x, x[::-1])",
            f"s = s + 0.25 * first_above(A[{i}], x[{j}])",
            f"touch(half_of(A[{i}], {self.pick('3', '5')}), {self.pick('0', '2', '-1')})",
            "onto(A, A.T)",
            f"onto(A[{i}], x)[{j}] = 0.5",
        ]
        text = self.rng.choice(choices)
        if text.startswith("half_of("):
            text = f"t = half_of(x, {e})\n{'    ' * self.depth}t *= 0.5"
        if "nonlocal" in self.options and self.rng.random() < 0.5:
            text = self.pick(
                f"bump({self.scalar(1)})",
                f"store({i}, {self.scalar(1)})",
                f"rebind({self.pick('0.5', 'x[0]')})",
                f"fill({e}, {self.scalar(2)})",
            )
        self.emit(text)

    def do_state(self):
        """Attributes, entries of dicts and elements of lists."""
        i = self.index()
        choices = []
        if "state" in self.options:
            choices += [
                f"state.push({self.scalar(1)})",
                f"state.value += 0.25 * {self.scalar(1)}",
                f"s = s + 0.125 * state.write({i} // 3, s)",
                "state.v *= 0.5",
                "state.v = state.v * 0.5",
                "state.v[1:] += 0.25 * state.v[:-1]",
                f'table["a"] = 0.5 * {self.scalar(1)}',
                'table["a"] += 0.25 * state.value',
                'table["v"][1] = table["a"]',
                'table["v"] = table["v"] * 0.5',
                'table["n"] += 1',
                'state.value, table["a"] = table["a"], state.value * 0.5',
                "state.count -= 1",
                "state.v = x[:4]",
            ]
        if "parts" in self.options:
            choices += [
                f"parts[0] = 0.5 * {self.scalar(1)}",
                "parts[1] += 0.25 * parts[0]",
                "parts[0], parts[2] = parts[2], parts[0] * 0.5",
                "parts[-1] *= 0.5",
                "p0, p1 = p1, 0.5 * p0 + 0.25 * parts[1]",
                "parts[:2] = [parts[1], parts[0]]",
                "pair[0][1:] *= 0.5",
                "pair[1] = pair[0] * 0.5",
                "pair[0], pair[1] = pair[1], pair[0]",
                "s = s + 0.125 * sum(p.sum() for p in pair)",
            ]
        self.emit(self.rng.choice(choices or [f"q = 0.5 * {self.scalar(1)}"]))

    def do_single(self):
        """Operands of float32."""
        i, j = self.index(), self.index()
        if "single" not in self.options:
            return self.do_counted()
        self.emit(
            self.pick(
                f"f[{i}] = f[{j}] * 0.5 + x[{i}]",
                "f *= 0.5",
                "f[1:] += 0.25 * f[:-1]",
                f"f[{i}] += np.float32(0.25)",
                "x += 0.125 * f",
                f"h[{i}] = 0.5 * h[{j}]",
                "f = f * 0.5",
                "f[f > 0.4] = 0.25",
                f"A[{i}] *= f",
                "f = np.float32(0.5) * h + f",
                "h += f",
                "s = s + 0.125 * f @ h",
                "f[:] = x",
                f"q = q + f[{i}] * h[{j}]",
                "h = h + x.astype(np.float32)",
            )
        )

    def do_forever(self):
        """A `while` loop that is left from within, perhaps with `else`."""
        self.names += 1
        w = f"w{self.names}"
        start, head = self.pick(
            ("0", "while True:"),
            ("0", f"while {w} < n:"),
            ("n", f"while {w} > 0:"),
            ("0", "while np.abs(x).sum() > 1.5:"),
            ("0", f"while {w} < n and x[{w}] < 0.8:"),
            ("0", "while s < 3.0:"),
        )
        step = self.pick("1", "1", "2", "3")
        self.emit(f"{w} = {start}")
        self.emit(head)
        self.depth += 1
        self.emit(f"{w} {'-=' if start == 'n' else '+='} {step}")
        self.emit(
            f"if {w} > {self.pick('6', 'n', 'n - 2')}"
            f"{f' or {self.condition()}' if self.rng.random() < 0.6 else ''}:"
            if start == "0"
            else f"if {self.condition()}:"
        )
        self.lines.append(
            "    " * (self.depth + 1) + self.pick("break", "break", "break", "return s + x.sum()")
        )
        self.counters.append(f"({w} % n)")
        self.in_loop += 1
        for _ in range(self.rng.randint(1, 2)):
            self.statement()
        self.in_loop -= 1
        self.emit(self.pick("x *= 0.75", "s = s + 0.5", f"x[{w} % n] *= 0.5"))
        self.counters.pop()
        self.depth -= 1
        if "n" not in start and self.rng.random() < 0.3:
            self.emit("else:")
            self.lines.append("    " * (self.depth + 1) + "s = s + 0.25")

    def do_rows(self):
        """Loops over arrays."""
        self.names += 1
        i, r = f"i{self.names}", f"r{self.names}"
        head, counted = self.rng.choice(
            [
                (f"for {r} in A:", False),
                (f"for {r} in A[1:, ::-1]:", False),
                (f"for {i}, {r} in enumerate(A):", True),
                (f"for {i}, {r} in enumerate(A.T):", True),
                (f"for {r}, t{i} in zip(A, x):", False),
                (f"for {r} in A[{self.open_span()}]:", False),
                (f"for {i} in reversed(range(n)):", True),
                (f"for {i}, (t{i}, {r}) in enumerate(zip(x[::-1], A)):", True),
            ]
        )
        self.emit(head)
        self.depth += 1
        if counted:
            self.counters.append(i)
        self.in_loop += 1
        if r in head:
            self.emit(
                self.pick(
                    f"{r} *= 0.5",
                    f"{r}[1:] += 0.25 * {r}[:-1]",
                    f"s = s + 0.125 * {r}.sum()",
                    f"x += 0.125 * {r}",
                    f"{r}[0] = x[1]",
                    f"{r} = {r} * 0.5 + x",
                    f"s = s + 0.125 * {r} @ x",
                    f"smooth({r})",
                )
            )
        for _ in range(self.rng.randint(0 if r in head else 1, 2)):
            self.statement()
        if r in head and self.rng.random() < 0.3:
            self.emit(f"s = s + 0.125 * {r}[2]")
        self.in_loop -= 1
        if counted:
            self.counters.pop()
        self.depth -= 1

    def do_found(self):
        """A search, with `else` or with what it leaves behind."""
        self.names += 1
        i = f"i{self.names}"
        bound = self.pick("n", "1, n", "n - 1, -1, -1", "0, n, 2", self.end())
        self.emit(f"{i} = 0")
        self.emit(f"for {i} in range({bound}):")
        pad = "    " * (self.depth + 1)
        self.lines.append(
            f"{pad}if {self.pick('x', f'A[{self.index()}]')}[{i}] > "
            f"{self.pick('0.2', '0.7', 's', '5.0')}:"
        )
        self.lines.append(
            f"{pad}    {self.pick('flag = True', f'q = 0.5 * x[{i}]', 'cnt += 1', 's = s + 0.25')}"
        )
        self.lines.append(f"{pad}    break")
        if self.rng.random() < 0.5:
            self.lines.append(f"{pad}x[{i}] *= 0.5")
        if self.rng.random() < 0.5:
            self.emit("else:")
            self.lines.append(f"{pad}{self.pick('s = s - 0.25', 'x *= 0.5', 'return s * 0.5')}")
        self.emit(
            self.pick(
                f"x[{i}] += 0.25",
                f"s = s + 0.125 * x[:{i}].sum()",
                f"cnt += {i}",
                f"A[{i}, :{i}] *= 0.5",
            )
        )

    def do_filled(self):
        """A list that is filled, and then read."""
        self.names += 1
        out, i = f"out{self.names}", f"r{self.names}"
        self.emit(f"{out} = []")
        self.emit(f"for {i} in range({self.pick('n', '1, n', 'n - 1, -1, -1', '9')}):")
        self.depth += 1
        self.counters.append(i)
        exits, self.in_loop = self.in_loop, 0
        if self.rng.random() < 0.5:
            self.statement()
        rows = self.rng.random() < 0.3
        self.emit(f"{out}.append({self.vector() if rows else f'0.5 * {self.scalar(1)}'})")
        if self.rng.random() < 0.3:
            self.emit(f"x[{i}] = 0.5 * x[{i} - 1]")
        self.in_loop = exits
        self.counters.pop()
        self.depth -= 1
        if rows:
            self.emit(
                self.pick(
                    f"s = s + 0.0625 * np.sum(np.stack({out}))",
                    f"s = s + 0.125 * {out}[2].sum()",
                    f"x = x + 0.125 * {out}[-1]",
                    f"s = s + 0.125 * np.array({out})[1:, 2].sum()",
                )
            )
        else:
            self.emit(
                self.pick(
                    f"s = s + 0.125 * sum({out})",
                    f"s = s + 0.125 * {out}[-1] * {out}[1]",
                    f"s = s + 0.125 * max({out})",
                    f"for v in {out}:\n{'    ' * (self.depth + 1)}s = s + 0.125 * v",
                    f"s = s + 0.125 * np.cumsum({out})[-1]",
                    f"s = s + 0.125 * (np.array({out}[1:]) * np.array({out}[:-1])).sum()",
                    f"s = s + 0.0625 * len({out})",
                )
            )

    def do_minima(self):
        """Extremes and selections of slices."""
        i, e = self.index(), self.end()
        self.emit(
            self.pick(
                f"x[{i}] = np.min(A[{i}]) * 0.5",
                f"s = s + 0.25 * np.max(x[:{e} + 1])",
                "x = np.minimum(x, A.max(axis=0))",
                f"q = max(q, x[{i}])",
                f"q = min(q, s, x[{i}])",
                "x[1:] = np.maximum(x[1:], x[:-1])",
                f"A[{i}] = np.where(A[{i}] > x, A[{i}] * 0.5, x)",
                f"A[:, {i}] = np.where(b, 0.5, A[:, {i}])",
                f"s = s + 0.125 * np.where(x[:{e}] > 0.1, x[:{e}], 0.5).sum()",
                "x = np.sort(x)",
                "s = s + 0.125 * np.median(x)",
                "x = np.clip(x, -0.5, 0.5)",
                f"s += 0.125 * (x[{i}:] > 0.1).sum()",
            )
        )

    def do_last(self):
        """A variable that only some trips assign, read afterwards."""
        i = self.index()
        self.names += 1
        v = f"a{self.names}"
        self.emit(f"{v} = {self.pick('0', '0.5', 'None', 's')}")
        self.emit(f"if {self.condition()}:")
        self.lines.append("    " * (self.depth + 1) + f"{v} = 0.5 * {self.scalar(1)}")
        if self.lines[-2].strip().startswith("if") and f"{v} = None" in self.lines[-3]:
            self.emit("else:")
            self.lines.append(
                "    " * (self.depth + 1) + f"{v} = {self.pick('0.25', f'x[{i}]', '1')}"
            )
        self.emit(f"s = s + 0.25 * {v}")

    def do_chained(self):
        """Chained and parallel assignments, named expressions, conditional stores."""
        i, j = self.index(), self.index()
        self.emit(
            self.pick(
                f"q = x[{i}] = 0.5 * {self.scalar(1)}",
                f"x[{i}], q = q, x[{j}] * 0.5",
                f"s = s + (q := 0.5 * {self.scalar(1)})",
                f"x[{i}], A[{i}, {j}] = A[{i}, {j}], x[{i}]",
                f"x[{i}] = A[{j}, {i}] = 0.25",
                f"x[{i}] += 0.25 if {self.condition()} else q",
                f"A[{i}], x[:] = x.copy(), A[{i}] * 0.5",
                f"x, u = x * 0.5, x\n{'    ' * self.depth}x[{i}] += 0.25 * u[{j}]",
                f"(q, *_, t) = x\n{'    ' * self.depth}s = s + 0.125 * t",
                "del_, q = divmod(q, 2.0)",
                "q = (lambda v: v * 0.5)(q)",
                "q = math.sqrt(abs(q) + 0.25)",
                "q = q ** 2",
                "q = abs(q) ** 0.5" if False else "q = q % 1.5",
                "q -= q // 1.0",
                f"A[{i}, {j}] = x[{i}] if {self.condition()} else A[{j}, {i}]",
            )
        )

    # ---- the function --------------------------------------------------------------------------

    def preamble(self):
        if "arguments" not in self.options:
            self.emit("A = A * 1.0")
            self.emit("x = x * 1.0")
        for line in (
            "n = x.shape[0]",
            "c = np.arange(n)",
            "b = np.arange(n) % 3 == 0",
            "f = np.ones(n, np.float32)",
            "w = x[1] * 0.5",
            "q, cnt, flag = 0.25, 0, False",
        ):
            self.emit(line)
        self.emit("def closed(v):")
        self.emit("    return v * 0.5 + w * OFFSET")
        self.emit(self.pick("s = 0", "s = 0.0", "s = x[0]"))
        given = {
            "views": [
                "y = x[1:]",
                "z = x[:-1]",
                f"v2 = {self.pick('x[::-2]', 'A[1, ::2]', 'A[:, 3]', 'y[1:-1]')}",
            ],
            "state": [
                f"state = State({self.pick('0', '0.5', 'x[0]')}, "
                f"{self.pick('np.zeros(4)', 'x[:4]', 'A[0, 2:6]')})",
                f'table = {{"a": {self.pick("0.5", "x[1]")}, "v": np.ones(3) * 0.5, "n": 0}}',
            ],
            "nonlocal": [
                "def bump(v):",
                "    nonlocal q, cnt",
                "    q = 0.5 * q + 0.25 * v",
                "    cnt += 1",
                "    return q",
                "def peek(i):",
                "    return x[i] * 0.5",
                "def store(i, v):",
                "    x[i] = np.tanh(v)",
                "def rebind(v):",
                "    nonlocal x",
                "    x = x * 0.75 + 0.125 * v",
                "def fill(m, v):",
                "    for r in range(m):",
                "        x[r] = 0.5 * x[r] + 0.125 * v",
            ],
            "single": ["h = (x * 0.5).astype(np.float32)"],
            "matrix": [
                f"B = {self.pick('A.T', 'A[::-1]', 'np.zeros((n, n))', 'A.copy()', 'np.eye(n)')}"
            ],
            "parts": [
                "parts = [x[0], 0.5, s]",
                "p0, p1 = x[2], 0.5",
                "pair = [x * 0.5, np.ones(n)]",
            ],
        }
        for option, lines in given.items():
            if option in self.options:
                for line in lines:
                    self.emit(line)

    def text(self):
        self.preamble()
        for _ in range(self.rng.randint(2, 4)):
            self.statement()
        self.emit("typed = 0.0625 * np.sum(c) + np.sum(f, dtype=float) + 0.125 * np.sum(b)")
        self.emit("typed = typed + 0.25 * q + 0.0625 * cnt + (0.125 if flag else 0.0)")
        ends = {
            "views": "np.sum(y * 0.25) + np.sum(v2 * 0.125)",
            "state": 'state.value + np.sum(state.v) + table["a"] + np.sum(table["v"])'
            ' + 0.1 * table["n"]',
            "single": "np.sum(h, dtype=float)",
            "matrix": "0.5 * np.sum(B * B)",
            "parts": "sum(parts) + p0 + 0.5 * p1 + np.sum(pair[0]) + np.sum(pair[1])",
        }
        for option, text in ends.items():
            if option in self.options:
                self.emit(f"typed = typed + {text}")
        self.emit("return s * 1.0 + np.sum(x * 0.5) + np.sum(A * A) + typed")
        return WIDER_HEADER + "def f(A, x, k):\n" + "\n".join(self.lines) + "\n"


def wider_program(seed):
    """The source of a program."""
    return WiderWriter(seed).text()
