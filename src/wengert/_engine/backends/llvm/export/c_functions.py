"""A function of LLVM IR as a function of C99.

    FunctionPrinter    prints one function: declarations, and branches between blocks

A branch to the block that follows is left out; others become `goto`, from which compilers find the
loops.
"""

from __future__ import annotations

import re
from collections import Counter

from .c_calls import FunctionCalls
from .c_names import Line, typed
from .c_types import kind_of, literal, split
from .c_values import bare, c_name, declared, enclosed
from .c_vectors import is_vector

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
