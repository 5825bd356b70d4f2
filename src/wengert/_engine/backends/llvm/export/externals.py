"""Functions of other libraries in exported code.

Functions of wengert's kernels, sorting, and the usual routines of BLAS and LAPACK for real numbers
are added to the module.  Other routines of these, and all with ``blas="link"``, are called by the
names that Fortran compilers give them (`dgemm_`): the header lists them, and the program is linked
with a library that has them.  All others exist only in this process (special functions of SciPy,
random numbers of NumPy, messages), and are refused.

    included     functions of kernels that a module declares, and the memory that they allocate
    linked       the names under which external functions are linked
    refuse       raises for functions that exist only in this process
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wengert._engine.core.graph import BaseGraph
from wengert.errors import BackendError, at

from ..ir.ir_builder import ModuleBuilder
from ..kernels.gemm import blocked_gemm, streamed_gemm
from ..kernels.linalg import complex_solve, lu_in_cache, substitution_in_cache
from . import linear_algebra, sorting
from .memory_context import RUNTIME

_FORTRAN = ("blas.", "lapack.")
_C_LIBRARY = frozenset({"memcmp"})


def included(name: str, links_blas: bool) -> tuple[ModuleBuilder, int | None] | None:
    """The functions of a name, and the bytes that a call allocates; None if there are none.

    Parameters
    ----------
    links_blas : bool
        Whether BLAS and LAPACK are linked, and not included.
    """
    if name == blocked_gemm.NAME:
        return blocked_gemm.module(), blocked_gemm.largest_allocation()
    if name in streamed_gemm.DTYPES:
        return streamed_gemm.module(streamed_gemm.DTYPES[name]), 0
    if name == complex_solve.NAME:
        return complex_solve.module(), None
    if name == lu_in_cache.NAME:
        return lu_in_cache.module(), 0
    if substitution_in_cache.is_known(name):
        return substitution_in_cache.module(name), 0
    found = sorting.included(name)
    if found is None and not links_blas:
        found = linear_algebra.included(name)
    return None if found is None else (found, 0)


def declared(parts: Mapping[str, str]) -> list[str]:
    """The external functions that a module declares, without intrinsics and the runtime's."""
    return sorted(
        name
        for name, text in parts.items()
        if text.startswith("declare") and not name.startswith("llvm.") and name not in RUNTIME
    )


def linked(names: Iterable[str]) -> dict[str, str]:
    """The symbol of each external function that a program is linked with."""
    return {n: n.partition(".")[2] + "_" for n in names if n.startswith(_FORTRAN)}


def refuse(names: Iterable[str], graph: BaseGraph) -> None:
    """Raise if a function exists only in this process.

    Raises
    ------
    BackendError
        With the operation that calls it, and its line.
    """
    for name in names:
        if name.startswith(_FORTRAN) or name in _C_LIBRARY:
            continue
        words = name.split(".")
        node = next((n for n in graph.nodes if n.op.name.split(".")[-1] in words), None)
        operation = name if node is None else f"{node.op.name} ({name})"
        where = None if node is None else node.where
        raise BackendError(
            f"{operation} is a function of a library that exists only in this Python process, so "
            f"it cannot be exported. Use another function{at(where)}."
        )
