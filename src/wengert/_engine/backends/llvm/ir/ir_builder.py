"""A builder of LLVM text.

    ModuleBuilder  functions, constants and declarations by name; each is written once
    Function       one function: its arguments, its sections, unique names
    Section        a part of its text; sections nest as loops do

A value is computed in the innermost section of its operands, so loop-invariant code is hoisted as
it is written.  Sections have a rank: of two that are nested, or follow one another, the later has
the higher.  Counters and accumulators are stack slots (`slot`), which LLVM turns into registers; so
no phis are written.

Text, because building LLVM's objects in Python is ten times slower.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from ..tuning import thresholds

Name = str  # of a value, "%v7", or a constant, "3"
# Vectors of 512 bits are used where there are such registers, whatever LLVM thinks of their speed.
_WIDE = '"min-legal-vector-width"="512" "prefer-vector-width"="512"'


class Section:
    """A stretch of a function's text.

    Attributes
    ----------
    function : Function
    rank : int
        Higher for what comes later on the way that leads here.
    """

    __slots__ = ("function", "pieces", "rank")

    def __init__(self, function: Function) -> None:
        self.function = function
        self.pieces: list[str | Section] = []
        self.rank = function.next_rank()

    def write(self, line: str) -> None:
        """Add an instruction without a value."""
        self.pieces.append("  " + line)

    def value(self, instruction: str) -> Name:
        """Add an instruction; the name of its value."""
        name = self.function.fresh()
        self.pieces.append(f"  {name} = {instruction}")
        return name

    def label(self, name: str) -> None:
        """Begin a basic block; the block before has to end with a branch."""
        self.pieces.append(f"{name}:")

    def block(self, name: str) -> None:
        """End a basic block, and begin the one after it."""
        self.write(f"br label %{name}")
        self.label(name)

    def inside(self) -> Section:
        """A new section at this point, in which more is written later."""
        section = Section(self.function)
        self.pieces.append(section)
        return section

    def lines(self) -> list[str]:
        """All its text, in order."""
        found: list[str] = []
        self._gather(found)
        return found

    def _gather(self, found: list[str]) -> None:
        for piece in self.pieces:
            if type(piece) is str:
                found.append(piece)
            else:
                piece._gather(found)  # type: ignore[union-attr]

    # ---- arithmetic of i64, with constants folded ----------------------------------------------

    def plus(self, x: Name, y: Name) -> Name:
        """x + y."""
        a, b = _number(x), _number(y)
        if a is not None and b is not None:
            return str(a + b)
        return y if a == 0 else x if b == 0 else self.value(f"add nsw i64 {x}, {y}")

    def minus(self, x: Name, y: Name) -> Name:
        """x - y."""
        a, b = _number(x), _number(y)
        if a is not None and b is not None:
            return str(a - b)
        return x if b == 0 else self.value(f"sub nsw i64 {x}, {y}")

    def times(self, x: Name, y: Name) -> Name:
        """x * y."""
        a, b = _number(x), _number(y)
        if a is not None and b is not None:
            return str(a * b)
        if a == 0 or b == 0:
            return "0"
        return y if a == 1 else x if b == 1 else self.value(f"mul nsw i64 {x}, {y}")

    def smaller(self, x: Name, y: Name) -> Name:
        """The smaller one, of signed integers."""
        return self._extreme("smin", min, x, y)

    def larger(self, x: Name, y: Name) -> Name:
        """The larger one, of signed integers."""
        return self._extreme("smax", max, x, y)

    def _extreme(self, word: str, pick: Callable[[int, int], int], x: Name, y: Name) -> Name:
        a, b = _number(x), _number(y)
        if a is not None and b is not None:
            return str(pick(a, b))
        callee = self.function.module.declare(f"llvm.{word}.i64", "i64", ["i64", "i64"])
        return self.value(f"call i64 {callee}(i64 {x}, i64 {y})")

    def copy_bytes(self, to: Name, of: Name, size: Name) -> None:
        """Copy memory."""
        kinds = ["ptr", "ptr", "i64", "i1"]
        callee = self.function.module.declare("llvm.memcpy.p0.p0.i64", "void", kinds)
        self.write(f"call void {callee}(ptr {to}, ptr {of}, i64 {size}, i1 false)")

    # ---- control -------------------------------------------------------------------------------

    @contextmanager
    def loop(self, start: Name, stop: Name, step: Name = "1") -> Iterator[tuple[Section, Name]]:
        """Count an i64 from start to before stop: the section of the body, and the counter."""
        n = self.function.number()
        counter = self.function.slot("i64")
        self.write(f"store i64 {start}, ptr {counter}")
        self.block(f"head{n}")
        now = self.value(f"load i64, ptr {counter}")
        more = self.value(f"icmp slt i64 {now}, {stop}")
        self.write(f"br i1 {more}, label %body{n}, label %done{n}")
        self.label(f"body{n}")
        body = self.inside()
        yield body, now
        following = body.value(f"add nsw i64 {now}, {step}")
        body.write(f"store i64 {following}, ptr {counter}")
        body.write(f"br label %head{n}")
        self.label(f"done{n}")

    @contextmanager
    def when(self, condition: Name) -> Iterator[Section]:
        """Code that runs only if an i1 holds."""
        n = self.function.number()
        self.write(f"br i1 {condition}, label %then{n}, label %done{n}")
        self.label(f"then{n}")
        body = self.inside()
        yield body
        body.write(f"br label %done{n}")
        self.label(f"done{n}")

    def unless(self, condition: Name) -> AbstractContextManager[Section]:
        """Code that runs only if an i1 does not hold."""
        return self.when(self.value(f"xor i1 {condition}, true"))


def _number(x: Name) -> int | None:
    return int(x) if x.lstrip("-").isdigit() else None


class Function:
    """One function.

    Parameters
    ----------
    arguments : sequence of (type, name)
        Names without the percent sign.
    result : str
        LLVM's type.
    attributes : str
        As LLVM writes them behind the arguments.
    """

    def __init__(
        self,
        module: ModuleBuilder,
        name: str,
        arguments: Sequence[tuple[str, str]],
        result: str = "void",
        attributes: str = "",
        linkage: str = "internal ",
    ) -> None:
        self.module, self.name = module, name
        listed = ", ".join(f"{t} %{n}" for t, n in arguments)
        self._opening = f"define {linkage}{result} @{name}({listed}) {attributes} {{"
        self._count = self._ranks = 0
        self._slots: list[str] = []
        self.body = Section(self)

    def fresh(self) -> Name:
        """A name for a value."""
        self._count += 1
        return f"%v{self._count}"

    def number(self) -> int:
        """A number for labels."""
        self._count += 1
        return self._count

    def next_rank(self) -> int:
        """The rank of the next section."""
        self._ranks += 1
        return self._ranks

    def slot(self, kind: str, align: int | None = None) -> Name:
        """A place on the stack for one value of a type."""
        name = self.fresh()
        self._slots.append(f"  {name} = alloca {kind}" + (f", align {align}" if align else ""))
        return name

    def text(self) -> str:
        """The whole definition."""
        lines = self.body.lines()
        return "\n".join([self._opening, "entry:", *self._slots, *lines, "}"])


class ModuleBuilder:
    """Functions, constants and declarations, each written once under its name.

    Attributes
    ----------
    parts : dict of str to str
    symbols : dict of str to int
        Addresses of the special functions from outside that it declares.
    cold : list of str
        Functions that hardly ever run, each written for no optimising.
    """

    def __init__(self) -> None:
        self.parts: dict[str, str] = {}
        self.symbols: dict[str, int] = {}
        self.cold: list[str] = []
        self._calls = 0

    def __contains__(self, name: str) -> bool:
        return name in self.parts

    def include(self, parts: Mapping[str, str]) -> None:
        """Enter pieces of text of another module."""
        for name, text in parts.items():
            self.parts.setdefault(name, text)

    def count_call(self, name: str) -> None:
        """Count a call of a vector function: beyond a number they are not inlined."""
        self._calls += 1

    def add(self, function: Function) -> None:
        """Enter a finished function."""
        self.parts[function.name] = function.text()

    def declare(
        self, name: str, result: str, arguments: Sequence[str], attributes: str = ""
    ) -> str:
        """Enter the declaration of a function from outside, or of LLVM's own; return `@name`."""
        if name not in self.parts:
            listed = ", ".join(arguments)
            self.parts[name] = f"declare {result} @{name}({listed}) {attributes}".rstrip()
        return f"@{name}"

    def constant(self, name: str, kind: str, value: str, align: int = 64) -> str:
        """Enter a constant of the module; return `@name`."""
        self.parts.setdefault(name, f"@{name} = internal constant {kind} {value}, align {align}")
        return f"@{name}"

    def text(self, heading: str = "") -> str:
        """The whole module.

        A leaf that is called a few times is written into its callers, where LLVM can take out what
        calls have in common; of many calls it makes a function, or compiling would take long.
        """
        inline = (
            "alwaysinline " if self._calls <= thresholds.inlined_function_calls else "noinline "
        )
        marks = [
            f"attributes #0 = {{ {inline}nounwind willreturn memory(none) {_WIDE} }}",
            f"attributes #1 = {{ nounwind {_WIDE} }}",
        ]
        return "\n\n".join([heading, *self.parts.values(), *marks]) + "\n"

    def halves(self, names: Container[str], heading: str = "") -> tuple[str, str]:
        """The module as two that need each other: the functions of these names, and the others.

        What is always inlined is in both; variables and constants are in the second.
        """
        chosen, others = ModuleBuilder(), ModuleBuilder()
        chosen._calls = others._calls = self._calls
        inlined = {
            name: set(_NAME.findall(text))
            for name, text in self.parts.items()
            if "alwaysinline" in text.split("\n", 1)[0]
        }
        needed: tuple[set[str], set[str]] = set(), set()
        for name, text in self.parts.items():
            if not text.startswith("declare") and name not in inlined:
                needed[name not in names].update(_NAME.findall(text))
        for found in needed:
            pending = found & inlined.keys()
            while pending:
                new = inlined[pending.pop()] - found
                found |= new
                pending |= new & inlined.keys()
        for name, text in self.parts.items():
            if text.startswith("declare") or name in inlined:
                for half, found in ((chosen, needed[0]), (others, needed[1])):
                    if name in found or name not in inlined:
                        half.parts[name] = text
                continue
            first = text.split("\n", 1)[0]
            here, there = (chosen, others) if name in names else (others, chosen)
            if name in needed[there is others]:
                text = text.replace(" internal ", " ", 1)
                there.parts[name] = _declared(first)
            here.parts[name] = text
        return chosen.text(heading), others.text(heading)


_NAME = re.compile(r"@([-\w.$]+)")
_VARIABLE = re.compile(r"(@\S+ =)(?: internal)? (global|constant) (\[\d+ x \w+\])")
_DEFINITION = re.compile(r"define (?:internal )?(.*?@[-\w.$]+)\((.*?)\)")


def _declared(first: str) -> str:
    """The declaration of a function or a variable, by the first line of its definition."""
    found = _VARIABLE.match(first)
    if found is not None:
        return f"{found[1]} external {found[2]} {found[3]}"
    found = _DEFINITION.match(first)
    assert found is not None, first
    kinds = ", ".join(a.rpartition(" ")[0] for a in found[2].split(", ") if a)
    # Called through a table of addresses: a direct call between two object files is a distance of
    # 32 bits for LLVM's loader, and they may be further from each other than that.
    return f"declare {found[1]}({kinds}) nonlazybind"
