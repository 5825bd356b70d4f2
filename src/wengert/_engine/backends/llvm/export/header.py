"""The C header of exported functions.

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

from ..ir.llvm_types import part_of
from .c_names import identifier
from .entry_points import STATUS
from .exported import Exported

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
