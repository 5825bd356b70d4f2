"""Substitution with LU factors of real matrices that fit into a first-level cache.

    solve_vector     the solution for one right-hand side, in place (vector_substitution.py)
    solve_columns    the solutions for several (column_substitution.py)
    address_of       the addresses of the functions that compute them

A function does not depend on sizes, so all programs share it, and it is compiled once for a
machine.
"""

from __future__ import annotations

import functools

from wengert._engine.core.fork_safe_locks import lock

from ...ir import execution_engine
from ...ir.ir_builder import ModuleBuilder, Name, Section
from ...ir.processors import foreign
from ...runtime import runtime_library
from ..kernel_call import ArrayPointer, KernelCall
from . import column_substitution, vector_substitution

_NAMES = (*vector_substitution.NAMES.values(), column_substitution.NAME)
_LOCK = lock()


def solve_vector(
    call: KernelCall,
    s: Section,
    n: int,
    factors: Name,
    pivots: Name,
    x: Name,
    is_transposed: bool = False,
) -> None:
    """Replace x, with memory for `padded(n)` numbers, by the solution; fails for a zero pivot.

    factors, pivots : as getrf returns them, column-major.
    """
    arguments = [("i64", str(n)), ("ptr", factors), ("ptr", pivots), ("ptr", x)]
    _run(call, s, vector_substitution.NAMES[is_transposed], arguments)


def solve_columns(
    call: KernelCall,
    s: Section,
    factors: Name,
    pivots: Name,
    b: ArrayPointer,
    x: ArrayPointer,
    is_transposed: bool = False,
) -> None:
    """Write the solutions x for the columns of b; fails for a zero pivot."""
    arguments = [("i64", call.number(n)) for n in x.shape]
    arguments += [("i64", str(int(is_transposed))), ("ptr", factors), ("ptr", pivots)]
    for array in (b, x):
        strides = [("i64", call.number(n)) for n in array.strides]
        arguments += [("ptr", array.pointer), *strides]
    _run(call, s, column_substitution.NAME, arguments)


def _run(call: KernelCall, s: Section, name: str, arguments: list[tuple[str, Name]]) -> None:
    callee = call.external(name, address_of(name), "i64", [kind for kind, _ in arguments])
    status = s.value(f"call i64 {callee}({', '.join(f'{t} {v}' for t, v in arguments)})")
    call.fail_if(s.value(f"icmp ne i64 {status}, 0"), 1, s)


def address_of(name: str) -> int:
    """The address of a function, which is compiled when it is needed first.

    ``i64 (n, a, pivots, x)`` and ``i64 (n, m, is_transposed, a, pivots, b, row, column, x, row,
    column)``: strides count elements.  Returns 1 if a pivot is zero.

    Examples
    --------
    >>> address_of("wengert_lu_vector") != address_of("wengert_lu_columns")
    True
    """
    if foreign() is not None:
        return 0
    with _LOCK:
        return _compiled(name)


@functools.cache
def _compiled(name: str) -> int:
    text = module(name).text(execution_engine.heading())
    return runtime_library.loaded(text, {}, [name])[name]


def is_known(name: str) -> bool:
    """Whether a function of this name is here."""
    return name in _NAMES


def module(name: str) -> ModuleBuilder:
    """A function, and those that it calls."""
    made = ModuleBuilder()
    if name == column_substitution.NAME:
        column_substitution.ColumnSubstitution(made).write()
    else:
        is_transposed = name == vector_substitution.NAMES[True]
        vector_substitution.VectorSubstitution(made, is_transposed).write()
    return made
