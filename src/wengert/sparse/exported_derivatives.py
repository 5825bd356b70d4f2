"""Sparse derivatives of exported functions (wengert.compiling.export).

The function computes the vector of entries; the header has their positions as tables: the row and
the column of each entry, row by row, and where each row begins.

    sparse_jacobian, sparse_hessian    derivatives that `export` finds by their names
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.jit.exporting import DerivativeRequest, DerivativeToExport, derivative
from wengert.errors import ArgumentError, at, user_line

from . import sparse_derivatives


@derivative("sparse_jacobian")
def _sparse_jacobian(r: DerivativeRequest) -> DerivativeToExport:
    made = sparse_derivatives.sparse_jacobian(r.fun, _number(r, "sparse_jacobian"))
    return _entries(r, made, "the Jacobian")


@derivative("sparse_hessian")
def _sparse_hessian(r: DerivativeRequest) -> DerivativeToExport:
    made = sparse_derivatives.sparse_hessian(r.fun, _number(r, "sparse_hessian"))
    return _entries(r, made, "the Hessian")


def _number(r: DerivativeRequest, what: str) -> int:
    if len(r.numbers) != 1:
        raise ArgumentError(
            f"{r.name}: {what!r} is exported with respect to one argument. Give argnums as an "
            f"integer{at(user_line())}."
        )
    return r.numbers[0]


def _entries(r: DerivativeRequest, made: Any, what: str) -> DerivativeToExport:
    plan = made.plan(*r.args)
    rows, columns = (np.asarray(x).tolist() for x in (plan.rows, plan.cols))
    starts = np.searchsorted(plan.rows, np.arange(plan.shape[0] + 1)).tolist()
    tables = {"shape": plan.shape, "rows": rows, "columns": columns, "starts": starts}
    return DerivativeToExport(
        made.values,
        "entries",
        f"the entries of {what} ({plan.shape[0]} rows, {plan.shape[1]} columns), row by row,",
        tables={name: tuple(int(v) for v in values) for name, values in tables.items()},
    )
