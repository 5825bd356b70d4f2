"""Exported functions as one file of C99.

    c_source     the text of the file, for functions that were generated for `targets.SCALAR`

The same loop nests, kernels and vector functions as in machine code, in the same order, written for
vectors of one element and printed as C (docs/design/0024-export.md).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from . import c_types
from .c_functions import FunctionPrinter
from .c_names import typed
from .c_types import CType, kind_of, literal, split
from .c_values import c_name
from .c_vectors import are_vectors
from .exported import Exported
from .header import arguments
from .memory_context import names_in

_GLOBAL = re.compile(r"@([-\w.$]+) = internal (?:constant|global) (.*), align \d+$", re.DOTALL)
_WORD = re.compile(r"\w+")
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
