"""Exported functions as one file of C99.

    FunctionPrinter    prints one function: declarations, and branches between blocks

A branch to the block that follows is left out; others become `goto`, from which compilers find the
loops.

    c_source     the text of the file, for functions that were generated for `targets.SCALAR`

The same loop nests, kernels and vector functions as in machine code, in the same order, written for
vectors of one element and printed as C (docs/design/0024-export.md).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from . import c_types
from .c_calls import FunctionCalls
from .c_names import Line, typed
from .c_types import CType, kind_of, literal, split
from .c_values import bare, c_name, declared, enclosed
from .c_vectors import are_vectors, is_vector
from .entry_points import arguments
from .exported import Exported
from .workspace import names_in

# ---- one function --------------------------------------------------------------------------------


_WORD = re.compile(r"\w+")
_CASE = re.compile(r"i\d+ (-?\d+), label %([-\w.$]+)")


class FunctionPrinter(FunctionCalls):
    """Prints one function; see `FunctionValues`."""

    def text(self) -> str:
        """The definition of the function in C."""
        for kind, name in self._arguments:
            plain = name.lstrip("%")
            self._bind(plain, kind_of(kind), self._c(plain))
        position = 0
        while position < len(self._lines):
            position = self._print(position)
        self._remove_unused()
        return "\n".join([self.head() + " {", *self._declarations(), *self._body, "}"])

    def _remove_unused(self) -> None:
        """Remove lanes and members that nothing reads."""
        while True:
            counts = Counter(_WORD.findall("\n".join(self._body)))
            unused = {v for names in self._declared.values() for v in names if counts[v] <= 1}
            if not unused:
                return
            self._body = [x for x in self._body if x.strip().split(" = ")[0] not in unused]
            self._declared = {
                c: [v for v in names if v not in unused] for c, names in self._declared.items()
            }

    @property
    def is_external(self) -> bool:
        """Whether other files call it."""
        return bool(self._signature)

    def head(self) -> str:
        """The declaration."""
        if self._signature:
            return self._signature
        listed = []
        for kind, name in self._arguments:
            k = kind_of(kind)
            for lane, scalar in zip(
                self._names(c_name(name.lstrip("%")), k), k.scalars, strict=True
            ):
                listed.append(declared(kind_of(scalar).c, lane))
        result = "void" if self.result == "void" else self._struct(kind_of(self.result)).c
        return f"static {declared(result, c_name(self.name))}({', '.join(listed) or 'void'})"

    def _declarations(self) -> list[str]:
        words = set(_WORD.findall("\n".join(self._body)))
        lines = []
        for name, kind in self._slots.items():
            for variable, scalar in zip(
                self._names(self._c(name), kind), kind.scalars, strict=True
            ):
                if variable in words:
                    zero = "NULL" if scalar == "ptr" else "{0}" if is_vector(scalar) else "0"
                    lines.append(f"  {declared(kind_of(scalar).c, variable)} = {zero};")
        for line in self._lines:
            if line.op == "alloca" and line.result not in self._slots:
                name = self._c(line.result)
                if name in words:
                    size = (kind_of(split(line.rest)[0]).size + 7) // 8
                    lines.append(f"  uint64_t {name}_s[{size}];")
                    lines.append(f"  char *const {name} = (char *){name}_s;")
        for c, variables in self._declared.items():
            star = "*" if c.endswith("*") else ""
            for k in range(0, len(variables), 8):
                row = ", ".join(star + v for v in variables[k : k + 8])
                lines.append(f"  {c.rstrip('* ')} {row};")
        for _, name in self._arguments:
            plain = name.lstrip("%")
            if plain in self._prefix:
                lines.append(f"  {self._prefix[plain]}")
            lines += [f"  (void){lane};" for lane in self._values[plain] if lane not in words]
        return lines

    # ---- control -------------------------------------------------------------------------------

    def _print(self, position: int) -> int:
        """Print one line; returns the position of the next one."""
        line = self._lines[position]
        if line.op == "label":
            return self._label(position)
        if line.op == "br":
            return self._branch(position)
        if line.op == "switch":
            self._switch(line)
        elif line.op == "ret":
            self._return(line)
        elif line.op == "store":
            self._store(line)
        elif line.op == "load":
            self._load(line)
        elif line.op == "call":
            self._call(line)
        elif line.op == "alloca":
            if line.result not in self._slots:
                self._kinds[line.result] = kind_of("ptr")
                self._values[line.result] = [self._c(line.result)]
        else:
            assert line.result, line
            self._pure(line)
        return position + 1

    def _label(self, position: int) -> int:
        line = self._lines[position]
        if self._uses[line.rest] and line.rest != "entry":
            self._body.append(f"{self._label_name(line.rest)}:;")
        return position + 1

    def _label_name(self, label: str) -> str:
        return f"L_{c_name(label)}"

    def _is_next(self, position: int, label: str) -> bool:
        following = self._lines[position + 1] if position + 1 < len(self._lines) else None
        return following is not None and following.op == "label" and following.rest == label

    def _branch(self, position: int) -> int:
        line = self._lines[position]
        parts = split(line.rest)
        if len(parts) == 1:
            label = parts[0].split("%")[1]
            self._evaluate(None)
            if self._is_next(position, label):
                self._uses[label] -= 1
            else:
                self._write(f"goto {self._label_name(label)};")
            return position + 1
        condition, yes, no = parts
        (test,), _ = self._lanes(kind_of("i1"), typed(condition)[1])
        self._evaluate(None)
        yes, no = yes.split("%")[1], no.split("%")[1]
        if self._is_next(position, yes):
            self._uses[yes] -= 1
            self._write(f"if (!{enclosed(test)}) goto {self._label_name(no)};")
        elif self._is_next(position, no):
            self._uses[no] -= 1
            self._write(f"if ({bare(test)}) goto {self._label_name(yes)};")
        else:
            self._write(f"if ({bare(test)}) goto {self._label_name(yes)};")
            self._write(f"goto {self._label_name(no)};")
        return position + 1

    def _switch(self, line: Line) -> None:
        """A branch for each value of an integer, and one for others."""
        number, rest = split(line.rest)
        kind_text, operand = typed(number)
        (value,), _ = self._lanes(kind_of(kind_text), operand)
        self._evaluate(None)
        otherwise, _, cases = rest.partition("[")
        self._write(f"switch ({bare(value)}) {{")
        for constant, label in _CASE.findall(cases):
            shown = literal(constant, kind_text)
            self._write(f"case {shown}: goto {self._label_name(label)};")
        self._write(f"default: goto {self._label_name(otherwise.split('%')[1].strip())};")
        self._write("}")

    def _return(self, line: Line) -> None:
        if line.rest == "void":
            self._evaluate(None)
            if line is not self._lines[-1]:
                self._write("return;")
            return
        kind_text, operand = typed(line.rest)
        kind = kind_of(kind_text)
        lanes, _ = self._lanes(kind, operand)
        self._evaluate(None)
        if kind.is_several:
            self._write(f"return ({self._struct(kind).c}){{{', '.join(map(bare, lanes))}}};")
        elif self._signature:
            result = self._signature.split(" ", 1)[0]
            self._write(f"return ({result}){lanes[0]};")
        else:
            self._write(f"return {bare(lanes[0])};")


# ---- the file ------------------------------------------------------------------------------------


_GLOBAL = re.compile(r"@([-\w.$]+) = internal (?:constant|global) (.*), align \d+$", re.DOTALL)
_PER_LINE = 8  # numbers of a table
_INLINED_CALLS = 3  # vector functions with more are not inlined
_HEADING = """/* {stem}.c: written by wengert {version}; {stem}.h describes the functions. */
#include "{stem}.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "compile without -ffast-math: results depend on the order of operations, NaN and infinity"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif
"""


def c_source(
    stem: str, functions: Sequence[Exported], parts: Mapping[str, str], version: str
) -> str:
    """The text of the file.

    Parameters
    ----------
    stem : str
        The name of the file, without its suffix.
    functions : sequence of Exported
    parts : mapping from str to str
        The module (`object_code.merged`).
    version : str
        That of wengert.
    """
    signatures: dict[str, tuple[str, dict[str, str]]] = {}
    for made in functions:
        signatures[made.name] = _signature(made)
        sizes = ", ".join(f"int64_t {n}" for _, n in made.sizes) or "void"
        prefix = {
            f"n{k}": f"const uint64_t n{k}__ = (uint64_t){n};"
            for k, (_, n) in enumerate(made.sizes)
        }
        signatures[f"{made.name}_work"] = f"int64_t {made.name}_work({sizes})", prefix
    found = _reachable(parts, list(signatures))
    structs: dict[str, CType] = {}
    tables = {c_name(n): _table(text) for n, text in found.items() if text.startswith("@")}
    printers = []
    external = []
    for name, text in found.items():
        if text.startswith("define"):
            signature, prefix = signatures.get(name, ("", {}))
            printers.append(FunctionPrinter(text, structs, signature, prefix))
        elif text.startswith("declare") and not name.startswith("llvm."):
            external.append(_declaration(name, text))
    bodies = _called(printers)
    if are_vectors():
        bodies = _inlined(bodies)
    heads = [f"{p.head()};" for p in printers if c_name(p.name) in bodies and not p.is_external]
    code = "\n\n".join(bodies.values())
    words = set(_WORD.findall(code))
    read = [text for name, text in tables.items() if name in words]
    types = [_struct(name, kind) for name, kind in structs.items()]
    text = "\n".join([*types, *heads, code])
    helpers = c_types.used(text)
    parts_of_file = [
        _HEADING.format(stem=stem, version=version), helpers, "\n".join(types),
        "\n".join(external), "\n".join(read), "\n".join(heads), code,
    ]  # fmt: skip
    return "\n\n".join(p.strip() for p in parts_of_file if p.strip()) + "\n"


def _called(printers: Sequence[FunctionPrinter]) -> dict[str, str]:
    """The text of each function that is called: not those whose results are not used."""
    texts = {c_name(p.name): p.text() for p in printers}
    uses = {name: texts.keys() & set(_WORD.findall(text)) for name, text in texts.items()}
    pending = [c_name(p.name) for p in printers if p.is_external]
    found = set(pending)
    while pending:
        new = uses[pending.pop()] - found
        found |= new
        pending += new
    return {name: text for name, text in texts.items() if name in found}


def _inlined(bodies: Mapping[str, str]) -> dict[str, str]:
    """The functions, with vector functions that are called a few times inlined.

    Vectors are passed in registers only to functions that are inlined.
    """
    uses = Counter(word for text in bodies.values() for word in _WORD.findall(text))
    mark = "static inline __attribute__((always_inline)) "
    return {
        name: text.replace("static ", mark, 1)
        if name.startswith("leaf_") and uses[name] - 1 <= _INLINED_CALLS
        else text
        for name, text in bodies.items()
    }


def _signature(made: Exported) -> tuple[str, dict[str, str]]:
    """The head of a function, and the definitions of its arguments under their names in LLVM."""
    prefix = {}
    for kind, listed in (("in", made.inputs), ("out", made.outputs)):
        for k, (name, _) in enumerate(listed):
            prefix[f"{kind}{k}"] = f"char *const {kind}{k}__ = (char *){name};"
    prefix.update(_sizes(made))
    prefix["work"] = "char *const work__ = (char *)work;"
    prefix["bytes"] = "const uint64_t bytes__ = (uint64_t)work_bytes;"
    return f"int {made.name}({', '.join(arguments(made))})", prefix


def _sizes(made: Exported) -> dict[str, str]:
    names = [name for _, name in made.sizes]
    return {f"n{k}": f"const uint64_t n{k}__ = (uint64_t){n};" for k, n in enumerate(names)}


def _reachable(parts: Mapping[str, str], first: Sequence[str]) -> dict[str, str]:
    """The parts that functions need, in the order of the module."""
    found, pending = set(first), list(first)
    while pending:
        new = {n for n in names_in(parts[pending.pop()]) if n in parts} - found
        found |= new
        pending += new
    return {name: text for name, text in parts.items() if name in found}


def _table(text: str) -> str:
    """A constant array."""
    match = _GLOBAL.match(text)
    assert match is not None, text[:80]
    kind_text, values = typed(match[2])
    kind = kind_of(kind_text)
    scalar, count = kind.scalar, max(kind.count, 1)
    if values == "zeroinitializer":
        listed = [literal("0", scalar)] * count
    elif kind.count:
        listed = [literal(typed(v)[1], scalar) for v in split(values[1:-1])]
    else:
        listed = [literal(values, scalar)]
    zero = literal("0", scalar)
    others = [k for k, x in enumerate(listed) if x != zero]
    if len(others) * 4 < count:  # such as a unit matrix
        listed = [f"[{k}] = {listed[k]}" for k in others] or [zero]
    rows = [", ".join(listed[k : k + _PER_LINE]) for k in range(0, len(listed), _PER_LINE)]
    body = ",\n    ".join(rows)
    c = CType((scalar,)).c
    return f"static const {c} {c_name(match[1])}[{count}] = {{\n    {body}\n}};"


def _struct(name: str, kind: CType) -> str:
    members = " ".join(f"{CType((s,)).c} m{k};" for k, s in enumerate(kind.scalars))
    return f"struct {name} {{ {members} }};"


def _declaration(name: str, text: str) -> str:
    """The declaration of a function of another library."""
    head = text.removeprefix("declare ")
    result = head.split(" @")[0]
    kinds = split(head[head.index("(") + 1 : head.rindex(")")])
    given = ", ".join("const void *" if k == "ptr" else kind_of(k).c for k in kinds) or "void"
    c = "void" if result == "void" else kind_of(result).c
    return f"extern {c} {c_name(name)}({given});"
