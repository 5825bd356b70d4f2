"""Random programs with parts of unknown length, besides what those of `wider_programs.py` have.

Added are: masks along one axis of a matrix; elements that a mask selects, with NumPy's functions of
them; slices with computed bounds and steps, read, stored and bound to names; positions of true
elements, and loops over them; lists to which only some iterations append; ``match`` statements, and
``in``.

    unknown_length_program(seed)    the source of a program
"""

from .wider_programs import WiderWriter


class UnknownLengthWriter(WiderWriter):
    """One program."""

    def __init__(self, seed):
        super().__init__(seed)
        self.added = ["masked", "stepped", "reduced", "appended", "positions", "named", "matched"]

    def statement(self):
        if self.depth > 4 or self.rng.random() < 0.65:
            return super().statement()
        getattr(self, "do_" + self.rng.choice(self.added))()

    def mask(self):
        i = self.index()
        return self.pick(
            "x > 0.0", "b", f"x > {self.pick('0.2', 's', 'x[0]')}", f"A[{i}] > 0.1", "c % 3 == 0"
        )

    def part(self):
        """A part of a vector whose length may be unknown."""
        i, j = self.end(), self.index()
        return self.pick(
            f"x[{self.mask()}]",
            f"A[{j}, {self.mask()}]",
            f"A[{self.mask()}, {j}]",
            f"x[:{i}:2]",
            f"x[{i}::3]",
            f"x[{i}:k[{j}]:-1]",
            f"x[c[{j}] % n:{i}]",
            f"x[np.nonzero({self.mask()})[0]]",
            f"x[{self.mask()}][1:]",
        )

    def reduction(self, part):
        return self.pick(
            f"{part}.sum()",
            f"np.cumsum({part}).sum() * 0.125",
            f"np.sort({part})[:2].sum()",
            f"np.prod(1.0 + 0.25 * {part})",
            f"np.max({part}, initial=-0.5)",
            f"len({part}) * 0.0625",
            f"np.abs(np.diff({part})).sum() * 0.25",
            f"({part}[::-1] ** 2).sum() * 0.25",
            f"np.linalg.norm({part}) * 0.25",
            f"sum(v * v for v in {part}) * 0.125",
            f"np.outer({part}, x).sum() * 0.0625",
            f"({part} @ {part}) * 0.125",
            f"np.tanh({part}).sum() * 0.25",
            f"np.unique(np.round({part})).sum() * 0.125",
            f"np.count_nonzero({part} > 0.1) * 0.125",
        )

    def do_reduced(self):
        self.emit(f"s = s + {self.reduction(self.part())}")

    def do_masked(self):
        i, m = self.index(), self.mask()
        self.emit(f"m = {m}")
        self.emit(
            self.pick(
                "A[:, m] *= 0.5",
                f"A[{i}, m] += 0.25 * x[m]",
                f"A[m, {i}] = 0.5",
                "A[m] = 0.5 * A[m] + 0.125 * x",
                "A[m] -= 0.25 * A[m].mean(axis=0) if m.any() else 0.0",
                "x[m] = np.cumsum(x[m]) * 0.25",
                "x[m] = x[m][::-1] * 0.5",
                f"A[m, :{self.end()}] *= 0.75",
                "s = s + A[:, m].sum(axis=1)[1] * 0.125",
                "s = s + (A[m] @ x).sum() * 0.0625",
                "x += 0.0625 * A[m].sum(axis=0)",
                "A[np.ix_(m, m)] *= 0.5",
                "x[m] -= 0.25 * x[m].sum() / (1.0 + len(x[m]))",
            )
        )

    def do_stepped(self):
        i, j = self.end(), self.index()
        span = self.pick(f":{i}:2", f"{i}::3", f"{i}::-1", f"{j}:k[{j}]:-2", f"::1 + c[{j}] % 3")
        if span.startswith("n::-1"):
            span = "::-1"
        self.emit(
            self.pick(
                f"x[{span}] *= 0.5",
                f"A[{j}, {span}] = 0.25",
                f"x[{span}] += 0.125 * x[{j}]",
                f"A[{span}, {j}] -= 0.25 * x[{span}]",
                f"s = s + (x[{span}] * A[{j}, {span}]).sum() * 0.25",
                f"x[{span}] = x[{span}][::-1] * 0.5",
            )
        )

    def do_named(self):
        """A part with a name: a view of a slice, a copy of what a mask selects."""
        self.names += 1
        name, j = f"part{self.names}", self.index()
        self.emit(f"{name} = {self.part()}")
        self.emit(
            self.pick(
                f"{name} *= 0.5",
                f"{name} += 0.125",
                f"{name}[{name} > 0.2] = 0.25",
                f"{name}[1:] *= 0.75",
                f"x[{j}] = 0.5 * {name}.sum() * 0.25",
                f"same{self.names} = {name}; {name} *= 0.5; x[0] += 0.125 * same{self.names}.sum()",
            )
        )
        self.emit(f"s = s + 0.125 * {name}.sum()")

    def do_positions(self):
        m = self.mask()
        self.emit(
            f"for t in np.nonzero({m})[0]:" if self.rng.random() < 0.6 else f"for t in c[{m}] % n:"
        )
        self.lines.append("    " * (self.depth + 1) + self.pick(
            "x[t] *= 0.5", "s = s + 0.25 * x[t]", "A[t, 0] += 0.125 * x[t]", "x[t] = A[t, t] * 0.5"
        ))  # fmt: skip

    def do_appended(self):
        self.names += 1
        out, pad = f"out{self.names}", "    " * (self.depth + 1)
        self.emit(f"{out} = []")
        self.emit(self.pick("for v in x:", "for v in A[1]:", "for v in x[::-1]:"))
        self.lines.append(f"{pad}if v > {self.pick('0.0', '0.3', 's', 'x[0]')}:")
        last = self.pick("", "break", "continue")
        if last:
            self.lines.append(f"{pad}    {last}")
            self.lines.append(f"{pad}{out}.append({self.pick('v', 'v * v', '0.5 * v + x[1]')})")
        else:
            self.lines.append(f"{pad}    {out}.append({self.pick('v', 'v * v')})")
        self.emit(
            self.pick(
                f"s = s + 0.125 * sum({out})",
                f"s = s + 0.0625 * len({out})",
                f"s = s + 0.125 * np.cumsum(np.array({out})).sum()",
                f"s = s + 0.25 * max([0.5, *x[:2]]) + 0.125 * np.sum({out})",
            )
        )

    def do_matched(self):
        i, pad = self.index(), "    " * (self.depth + 1)
        self.emit(f"match c[{i}] % 3:")
        for case in ("0", "1 | 2" if self.rng.random() < 0.3 else "1", "_"):
            self.lines.append(f"{pad}case {case}:")
            self.lines.append(f"{pad}    " + self.pick(
                "s = s * 0.5", f"x[{i}] *= 0.5", "q = 0.5 * q + 0.125", "cnt += 1", "pass"
            ))  # fmt: skip


def unknown_length_program(seed):
    """The source of a program."""
    return UnknownLengthWriter(seed).text()
