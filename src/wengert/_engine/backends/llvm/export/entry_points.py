"""The C functions of an exported graph, and the header that declares them.

    int NAME(inputs..., outputs..., int64_t sizes..., void *work, int64_t work_bytes)
    int64_t NAME_work(int64_t sizes...)        bytes of workspace; -1 for sizes that cannot be

Inputs and outputs are addresses of C-contiguous data.  The function checks what it is given, writes
the frame of the kernel on the stack (abi/ports.py), and runs it; STATUS has the codes it returns.
Nothing is written before all checks have passed.

    STATUS        codes and their meanings
    entry_parts   the two functions, by name

For each function: names, dtypes, shapes and strides of its inputs and outputs, its sizes, the bytes
of its workspace, and the positions of the entries of sparse results as tables.

    Described    a function with what the header says of it
    c_type       the type of C for a dtype
    prototype    the declaration of a function
    header       the text of the file
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import Length

from ..abi.entry_builder import FunctionBuilder
from ..abi.ports import Port
from ..ir.index_analysis import size_of
from ..ir.ir_builder import ModuleBuilder, Name
from ..ir.llvm_types import part_of
from .c_names import identifier
from .exported import Exported
from .workspace import STATE_WORDS

OK, FAILED, SIZE, WORKSPACE, POINTER, OVERLAP = range(6)
STATUS = {
    "OK": (OK, "success"),
    "FAILED": (FAILED, "the computation failed: an index out of range, a singular matrix, ..."),
    "SIZE": (SIZE, "a size is less than 1, or the sizes do not fit together"),
    "WORKSPACE": (WORKSPACE, "the workspace is too small"),
    "POINTER": (POINTER, "a pointer is null, or not aligned to its type"),
    "OVERLAP": (OVERLAP, "the memory of an output overlaps that of an input or another output"),
}
_NO_MEMORY = 3  # the status of a kernel that could not allocate
_LINE = 64
_LABELS = {SIZE: "miss", WORKSPACE: "short", POINTER: "address", OVERLAP: "overlap"}


def entry_parts(made: Exported, allocates: bool) -> dict[str, str]:
    """The functions that C calls, by name.

    Parameters
    ----------
    allocates : bool
        Whether the kernel takes the state of the allocator.
    """
    module = ModuleBuilder()
    _Work(module, made).build()
    _CFunction(module, made, allocates).build()
    return module.parts


class _Work(FunctionBuilder):
    """Builds the function that returns the bytes of workspace."""

    def __init__(self, module: ModuleBuilder, made: Exported) -> None:
        sizes = [("i64", f"n{k}") for k in range(len(made.sizes))]
        super().__init__(module, f"{made.name}_work", sizes, "i64", "nounwind")
        self._made = made

    def build(self) -> None:
        """Write the function."""
        made = self._made
        for k, (size, _) in enumerate(made.sizes):
            self.lengths.bound[size] = f"%n{k}"
            self.check(self.value(f"icmp sge i64 %n{k}, 1"))
        for requirement in made.requirements:
            relation = "eq" if requirement.equal else "sge"
            number = self.lengths.number(requirement.length)
            self.check(self.value(f"icmp {relation} i64 {number}, 0"))
        for _, spec in (*made.inputs, *made.outputs):
            self.lengths.number(size_of(spec.shape) * spec.dtype.itemsize)  # fits in 64 bits
        total: Name = "0"
        for length in made.bound.lengths:
            total = self.section.plus(total, self.lengths.number(length))
        self.check(self.value(f"icmp sge i64 {total}, 0"))
        self.branch_on_checks()
        self.write(f"ret i64 {total}")
        self.label("miss")
        self.write("ret i64 -1")
        self.module.add(self.function)


class _CFunction(FunctionBuilder):
    """Builds the function that runs the kernel."""

    def __init__(self, module: ModuleBuilder, made: Exported, allocates: bool) -> None:
        arguments = [("ptr", f"in{k}") for k in range(len(made.inputs))]
        arguments += [("ptr", f"out{k}") for k in range(len(made.outputs))]
        arguments += [("i64", f"n{k}") for k in range(len(made.sizes))]
        arguments += [("ptr", "work"), ("i64", "bytes")]
        super().__init__(module, made.name, arguments, "i32", "nounwind")
        self._made, self._allocates = made, allocates

    def build(self) -> None:
        """Write the function."""
        made = self._made
        sizes = ", ".join(f"i64 %n{k}" for k in range(len(made.sizes)))
        needed = self.value(f"call i64 @{made.name}_work({sizes})")
        self.unless(self.value(f"icmp sge i64 {needed}, 0"), _LABELS[SIZE])
        for k, (size, _) in enumerate(made.sizes):
            self.lengths.bound[size] = f"%n{k}"
        places = [*self._places("in", made.inputs), *self._places("out", made.outputs)]
        self._refuse_addresses(places)
        self._refuse_overlaps(places)
        self.unless(self.value(f"icmp sge i64 %bytes, {needed}"), _LABELS[WORKSPACE])
        state = self._state() if self._allocates else None
        frame = self._frame()
        arguments = f"ptr {frame}" + ("" if state is None else f", ptr {state}")
        status = self.value(f"call i64 @{made.kernel}({arguments})")
        full = self.same(status, str(_NO_MEMORY), "i64")
        failed = self.value(f"icmp ne i64 {status}, 0")
        code = self.value(f"select i1 {failed}, i32 {FAILED}, i32 {OK}")
        self.write(f"ret i32 {self.value(f'select i1 {full}, i32 {WORKSPACE}, i32 {code}')}")
        for number, label in _LABELS.items():
            self.label(label)
            self.write(f"ret i32 {number}")
        self.module.add(self.function)

    def _places(
        self, prefix: str, arguments: Sequence[tuple[str, Spec]]
    ) -> list[tuple[Name, Spec, bool]]:
        """Each argument as an integer, its spec, and whether it is an output."""
        return [
            (self.value(f"ptrtoint ptr %{prefix}{k} to i64"), spec, prefix == "out")
            for k, (_, spec) in enumerate(arguments)
        ]

    def _refuse_addresses(self, places: Sequence[tuple[Name, Spec, bool]]) -> None:
        for address, spec, _ in places:
            item = spec.dtype.itemsize // (2 if spec.dtype.kind == "c" else 1)
            rest = self.value(f"and i64 {address}, {item - 1}")
            aligned = self.same(rest, "0", "i64")
            given = self.value(f"icmp ne i64 {address}, 0")
            self.unless(self.value(f"and i1 {aligned}, {given}"), _LABELS[POINTER])

    def _refuse_overlaps(self, places: Sequence[tuple[Name, Spec, bool]]) -> None:
        ends = [
            self.value(f"add i64 {at}, {self.lengths.roughly(_bytes_of(spec))}")
            for at, spec, _ in places
        ]
        pairs = [*zip(places, ends, strict=True)]
        for k, ((start, _, is_output), end) in enumerate(pairs):
            if not is_output:
                continue
            for (other, _, _), other_end in pairs[:k]:
                before = self.value(f"icmp ule i64 {end}, {other}")
                behind = self.value(f"icmp ule i64 {other_end}, {start}")
                self.unless(self.value(f"or i1 {before}, {behind}"), _LABELS[OVERLAP])

    def _state(self) -> Name:
        """The state of the allocator: the aligned start of the workspace, its end, no block."""
        state = self.function.slot(f"[{STATE_WORDS} x i64]", 8)
        number = self.value("ptrtoint ptr %work to i64")
        skipped = self.value(f"and i64 {self.value(f'sub i64 0, {number}')}, {_LINE - 1}")
        enough = self.value(f"icmp sge i64 %bytes, {skipped}")
        skipped = self.value(f"select i1 {enough}, i64 {skipped}, i64 0")
        start = self.value(f"getelementptr i8, ptr %work, i64 {skipped}")
        end = self.value("getelementptr i8, ptr %work, i64 %bytes")
        for k, value in enumerate((start, end, "null")):
            self.store("ptr", value, state, 8 * k)
        return state

    def _frame(self) -> Name:
        """The frame of the kernel."""
        made = self._made
        frame = self.function.slot(f"[{max(made.slots, 1)} x i64]", 8)
        for prefix, ports in (("in", made.input_ports), ("out", made.output_ports)):
            for k, port in enumerate(ports):
                self._put(port, frame, f"%{prefix}{k}")
        for k, slot in enumerate(made.size_slots):
            self.store("i64", f"%n{k}", frame, 8 * slot)
        for slot, name in made.constants:
            self.store("ptr", f"@{name}", frame, 8 * slot)
        return frame

    def _put(self, port: Port, frame: Name, address: Name) -> None:
        assert not port.strided and not port.fortran, port
        self.store("ptr", address, frame, 8 * port.slot)


def _bytes_of(spec: Spec) -> Length:
    size: Length = size_of(spec.shape) * spec.dtype.itemsize
    return size


# ---- the header ----------------------------------------------------------------------------------


_TYPES = {
    "b1": "uint8_t", "i1": "int8_t", "i2": "int16_t", "i4": "int32_t", "i8": "int64_t",
    "u1": "uint8_t", "u2": "uint16_t", "u4": "uint32_t", "u8": "uint64_t",
    "f2": "uint16_t", "f4": "float", "f8": "double",
}  # fmt: skip
_PER_LINE = 12  # numbers of a table


@dataclass(frozen=True)
class Described:
    """A function, and what the header says of it.

    Attributes
    ----------
    function : Exported
    what : str
        What it computes.
    tables : mapping from str to tuple of int
        Tables of integers, by the ends of their names.
    """

    function: Exported
    what: str
    tables: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def c_type(spec: Spec) -> str:
    """The type of C for the elements of an array; of a complex one, for its parts."""
    return _TYPES[part_of(spec.dtype).str[1:]]


def arguments(made: Exported) -> list[str]:
    """The declarations of the arguments of a function."""
    listed = [f"const {c_type(s)} *{n}" for n, s in made.inputs]
    listed += [f"{c_type(s)} *{n}" for n, s in made.outputs]
    listed += [f"int64_t {n}" for _, n in made.sizes]
    return [*listed, "void *work", "int64_t work_bytes"]


def prototype(made: Exported) -> str:
    """The declarations of a function, and of the one that returns its workspace."""
    sizes = ", ".join(f"int64_t {n}" for _, n in made.sizes) or "void"
    return f"int {made.name}({', '.join(arguments(made))});\nint64_t {made.name}_work({sizes});"


def header(stem: str, described: Sequence[Described], version: str) -> str:
    """The text of the header.

    Parameters
    ----------
    stem : str
        The name of the file, without its suffix: the prefix of its macros.
    described : sequence of Described
    version : str
        That of wengert.
    """
    prefix = identifier(stem.upper())
    codes = ",\n".join(
        f"    {prefix}_{name} = {code} /* {meaning} */" for name, (code, meaning) in STATUS.items()
    )
    symbols = sorted({s for d in described for s in d.function.linked.values()})
    links = (
        f"\n   Link with a library of BLAS and LAPACK (32-bit integers) for {', '.join(symbols)}.\n"
        if symbols
        else "\n   Needs no library except that of C's mathematical functions.\n"
    )
    blocks = "\n".join(_block(d) for d in described)
    return f"""/* {stem}.h: written by wengert {version}.

   Inputs and outputs are addresses of C-contiguous arrays; numbers have one element, complex
   numbers two, the real and the imaginary part. Outputs may not overlap inputs or each other.
   `work` is memory of `work_bytes` bytes, at least as many as the function NAME_work returns; it
   may be null if that is 0. Functions keep no state, allocate nothing, and may be called by several
   threads at the same time, each with its own workspace. A function that fails returns a code; the
   content of its outputs is then undefined. NaN and infinity are numbers like others.
{links}*/
#ifndef {prefix}_H
#define {prefix}_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

#define {prefix}_VERSION "wengert {version}"

enum {{
{codes}
}};

{blocks}
#ifdef __cplusplus
}}
#endif

#endif
"""


def _block(described: Described) -> str:
    made = described.function
    lines = [f"/* {made.name}: {_comment(described.what)}", ""]
    for word, listed in (("input", made.inputs), ("output", made.outputs)):
        for name, spec in listed:
            lines.append(f"   {word:6} {name}: {_shape(spec, made)}")
    lines += [f"   size   {name}: {size}" for size, name in made.sizes if size != name]
    lines += [f"   workspace: {_workspace(made)}", "*/"]
    tables = [_table(f"{made.name}_{end}", values) for end, values in described.tables.items()]
    return "\n".join([*lines, prototype(made), *tables, ""])


def _comment(text: str) -> str:
    return text.replace("*/", "* /").replace("/*", "/ *")


def _shape(spec: Spec, made: Exported) -> str:
    names = dict(made.sizes)
    shape = "".join(f"[{_spelled(n, names)}]" for n in spec.shape)
    text = f"{spec.dtype.name}{shape}"
    if not spec.shape:
        return text
    strides: list[object] = []
    step: object = spec.dtype.itemsize
    for n in reversed(spec.shape):
        strides.append(step)
        step = step * n
    return f"{text}, strides {', '.join(_spelled(s, names) for s in reversed(strides))} bytes"


def _spelled(length: object, names: Mapping[str, str]) -> str:
    text = str(length)
    for size, name in names.items():
        text = text.replace(size, name) if size != name else text
    return text


def _workspace(made: Exported) -> str:
    if made.bound.is_zero:
        return "none"
    if all(isinstance(n, int) for n in made.bound.lengths):
        return f"{sum(map(int, made.bound.lengths))} bytes"
    return f"{made.name}_work({', '.join(n for _, n in made.sizes)}) bytes"


def _table(name: str, values: Sequence[int]) -> str:
    if not values:
        return f"static const int64_t {name}[1] = {{0}}; /* empty */"
    rows = [values[k : k + _PER_LINE] for k in range(0, len(values), _PER_LINE)]
    listed = ",\n".join("    " + ", ".join(str(int(v)) for v in row) for row in rows)
    return f"static const int64_t {name}[{len(values)}] = {{\n{listed}\n}};"
