"""A builder of LLVM IR text.

    ModuleBuilder  functions, constants and declarations by name; each is written once
    Function       one function: its arguments, its sections, unique names
    Section        a part of its text; sections nest like loops
    write_task     writes the function by which the thread pool calls a part of a kernel: it loads
                   the arguments, addresses and sizes, from a frame (`KernelCall.in_parts`)
    word           the address of a word of a frame

A value is computed in the innermost section of its operands, so loop-invariant code is hoisted as
it is written.  Sections have a rank: of two that are nested, or follow one another, the later has
the higher.  Counters and accumulators are stack slots (`slot`), which LLVM turns into registers, so
no phi instructions are written.

Text is used because building LLVM's objects from Python is ten times slower.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from wengert._engine.core.symbolic.dim import Length

from ..tuning import thresholds

Name = str  # a value, "%v7", or a constant, "3"
# Use 512-bit vectors if the processor has them, whatever LLVM's cost model says.
_WIDE = '"min-legal-vector-width"="512" "prefer-vector-width"="512"'


class Section:
    """A part of a function's text.

    Attributes
    ----------
    function : Function
    rank : int
        Later sections have a higher rank.
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
        """Add an instruction; returns the name of its value."""
        name = self.function.fresh()
        self.pieces.append(f"  {name} = {instruction}")
        return name

    def label(self, name: str) -> None:
        """Begin a basic block; the previous one must end with a branch."""
        self.pieces.append(f"{name}:")

    def block(self, name: str) -> None:
        """Branch to a new basic block, and begin it."""
        self.write(f"br label %{name}")
        self.label(name)

    def inside(self) -> Section:
        """A new section at this point, to be filled later."""
        section = Section(self.function)
        self.pieces.append(section)
        return section

    def lines(self) -> list[str]:
        """The text of the section, in order."""
        lines: list[str] = []
        self._gather(lines)
        return lines

    def _gather(self, lines: list[str]) -> None:
        for piece in self.pieces:
            if type(piece) is str:
                lines.append(piece)
            else:
                piece._gather(lines)  # type: ignore[union-attr]

    # ---- i64 arithmetic, with constants folded --------------------------------------------------

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
        """The minimum of signed integers."""
        return self._extreme("smin", min, x, y)

    def larger(self, x: Name, y: Name) -> Name:
        """The maximum of signed integers."""
        return self._extreme("smax", max, x, y)

    def _extreme(self, intrinsic: str, pick: Callable[[int, int], int], x: Name, y: Name) -> Name:
        a, b = _number(x), _number(y)
        if a is not None and b is not None:
            return str(pick(a, b))
        callee = self.function.module.declare(f"llvm.{intrinsic}.i64", "i64", ["i64", "i64"])
        return self.value(f"call i64 {callee}(i64 {x}, i64 {y})")

    def any_lane(self, flags: Name, width: int) -> Name:
        """Whether any of the flags, a boolean or a vector of `width` of them, is set: an i1."""
        if width <= 1:
            return flags
        kind = f"<{width} x i1>"
        callee = self.function.module.declare(f"llvm.vector.reduce.or.v{width}i1", "i1", [kind])
        return self.value(f"call i1 {callee}({kind} {flags})")

    def copy_bytes(self, target: Name, source: Name, size: Name) -> None:
        """Copy memory."""
        kinds = ["ptr", "ptr", "i64", "i1"]
        callee = self.function.module.declare("llvm.memcpy.p0.p0.i64", "void", kinds)
        self.write(f"call void {callee}(ptr {target}, ptr {source}, i64 {size}, i1 false)")

    # ---- control -------------------------------------------------------------------------------

    @contextmanager
    def loop(self, start: Name, stop: Name, step: Name = "1") -> Iterator[tuple[Section, Name]]:
        """Count an i64 from start up to stop; yields the section of the body and the counter."""
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
        """Code that runs if a condition holds."""
        n = self.function.number()
        self.write(f"br i1 {condition}, label %then{n}, label %done{n}")
        self.label(f"then{n}")
        body = self.inside()
        yield body
        body.write(f"br label %done{n}")
        self.label(f"done{n}")

    def unless(self, condition: Name) -> AbstractContextManager[Section]:
        """Code that runs if a condition does not hold."""
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
        The LLVM type of the result.
    attributes : str
        LLVM function attributes.
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
        self.hidden: dict[str, Name] = {}  # constants that it loads from variables
        self.body = Section(self)

    def fresh(self) -> Name:
        """A new name for a value."""
        self._count += 1
        return f"%v{self._count}"

    def number(self) -> int:
        """A new number for labels."""
        self._count += 1
        return self._count

    def next_rank(self) -> int:
        """The rank of the next section."""
        self._ranks += 1
        return self._ranks

    def slot(self, kind: str, align: int | None = None) -> Name:
        """A stack slot for one value of a type."""
        name = self.fresh()
        self._slots.append(f"  {name} = alloca {kind}" + (f", align {align}" if align else ""))
        return name

    def text(self) -> str:
        """The definition of the function."""
        lines = self.body.lines()
        return "\n".join([self._opening, "entry:", *self._slots, *lines, "}"])


class ModuleBuilder:
    """Functions, constants and declarations, each written once under its name.

    Attributes
    ----------
    parts : dict of str to str
    symbols : dict of str to int
        Addresses of external special functions that it declares.
    cold : list of str
        Functions that rarely run, each compiled without optimization.
    allocations : list of (str, Length or None)
        The function and the number of bytes of each allocation; None if it is computed by the run.
    """

    def __init__(self) -> None:
        self.parts: dict[str, str] = {}
        self.allocations: list[tuple[str, Length | None]] = []
        self.symbols: dict[str, int] = {}
        self.cold: list[str] = []
        self._calls = 0

    def __contains__(self, name: str) -> bool:
        return name in self.parts

    def include(self, parts: Mapping[str, str]) -> None:
        """Add definitions of another module."""
        for name, text in parts.items():
            self.parts.setdefault(name, text)

    def count_call(self, name: str) -> None:
        """Count a call of a vector function; above a limit they are not inlined."""
        self._calls += 1

    def add(self, function: Function) -> None:
        """Add a finished function."""
        self.parts[function.name] = function.text()

    def declare(
        self, name: str, result: str, arguments: Sequence[str], attributes: str = ""
    ) -> str:
        """Add the declaration of an external function or an intrinsic; returns `@name`."""
        if name not in self.parts:
            listed = ", ".join(arguments)
            self.parts[name] = f"declare {result} @{name}({listed}) {attributes}".rstrip()
        return f"@{name}"

    def constant(self, name: str, kind: str, value: str, align: int = 64) -> str:
        """Add a constant; returns `@name`."""
        self.parts.setdefault(name, f"@{name} = internal constant {kind} {value}, align {align}")
        return f"@{name}"

    def variable(self, name: str, kind: str, value: str, align: int = 64) -> str:
        """Enter a variable of the module that nobody writes to; return `@name`."""
        self.parts.setdefault(name, f"@{name} = internal global {kind} {value}, align {align}")
        return f"@{name}"

    def text(self, heading: str = "") -> str:
        """The text of the module.

        Vector functions that are called a few times are inlined, so that LLVM can share common
        subexpressions; with many calls they are functions, because compiling would take long.
        """
        inline = (
            "alwaysinline " if self._calls <= thresholds.inlined_function_calls else "noinline "
        )
        marks = [
            f"attributes #0 = {{ {inline}nounwind willreturn memory(none) {_WIDE} }}",
            f"attributes #1 = {{ nounwind {_WIDE} }}",
        ]
        if any(["!nontemporal" in text for text in self.parts.values()]):
            marks.append("!0 = !{i32 1}")  # of nontemporal stores
        return "\n\n".join([heading, *self.parts.values(), *marks]) + "\n"

    def halves(self, names: Container[str], heading: str = "") -> tuple[str, str]:
        """The module as two that call each other: the functions with these names, and the others.

        Functions that are always inlined are in both; variables and constants are in the second.
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
        for used in needed:
            pending = used & inlined.keys()
            while pending:
                new = inlined[pending.pop()] - used
                used |= new
                pending |= new & inlined.keys()
        for name, text in self.parts.items():
            if text.startswith("declare") or name in inlined:
                for half, used in ((chosen, needed[0]), (others, needed[1])):
                    if name in used or name not in inlined:
                        half.parts[name] = text
                continue
            first = text.split("\n", 1)[0]
            own, other = (chosen, others) if name in names else (others, chosen)
            if name in needed[other is others]:
                text = text.replace(" internal ", " ", 1)
                other.parts[name] = _declared(first)
            own.parts[name] = text
        return chosen.text(heading), others.text(heading)


_NAME = re.compile(r"@([-\w.$]+)")
_VARIABLE = re.compile(r"(@\S+ =)(?: internal)? (global|constant) (\[\d+ x \w+\])")
_DEFINITION = re.compile(r"define (?:internal )?(.*?@[-\w.$]+)\((.*?)\)")


def _declared(first: str) -> str:
    """The declaration of a function or variable, from the first line of its definition."""
    match = _VARIABLE.match(first)
    if match is not None:
        return f"{match[1]} external {match[2]} {match[3]}"
    match = _DEFINITION.match(first)
    assert match is not None, first
    kinds = ", ".join(a.rpartition(" ")[0] for a in match[2].split(", ") if a)
    # Called through a table of addresses: LLVM's loader limits direct calls between object files
    # to 32-bit offsets, and they may be farther apart.
    return f"declare {match[1]}({kinds}) nonlazybind"


# ---- tasks of the thread pool --------------------------------------------------------------------


def word(s: Section, frame: Name, k: int) -> Name:
    """The address of a word of a frame."""
    return s.value(f"getelementptr i64, ptr {frame}, i64 {k}")


def write_task(module: ModuleBuilder, title: str, kinds: Sequence[str]) -> None:
    """Write the function that the thread pool calls for a part.

    The frame contains the status, and then the arguments of the part.
    """
    arguments = [("ptr", "frame"), ("i64", "start"), ("i64", "stop"), ("i64", "part")]
    function = Function(module, f"{title}.team", arguments, "void", "nounwind")
    s = function.body
    loaded = [
        kind + " " + s.value(f"load {kind}, ptr {word(s, '%frame', k)}")
        for k, kind in enumerate(kinds, 1)
    ]
    listed = ", ".join([*loaded, "i64 %start", "i64 %stop"])
    status = s.value(f"call i64 @{title}({listed})")
    with s.when(s.value(f"icmp ne i64 {status}, 0")) as t:
        t.write(f"store i64 {status}, ptr %frame")
    s.write("ret void")
    module.add(function)
