"""check_op: all laws of one operation.

The laws are functions in laws/; this module runs them in turn.  They use only the facts stated by
the operation (domain, oracle, examples).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wengert._engine.core import display
from wengert._engine.core.op import Op, lookup

from .laws.common import LAWS, laws_of


@display.shown_fields
@dataclass(frozen=True)
class OpReport:
    """The laws that `check_op` has checked."""

    name: str
    kind: str
    laws: tuple[str, ...]

    def __str__(self) -> str:
        kept = "\n".join(f"  kept: {name.replace('_', ' ')}" for name in self.laws)
        return f"{self.name} ({self.kind})\n{kept}"


def check_op(op: Op | str, *, seed: int = 0) -> OpReport:
    """Check that an operation satisfies every law.

    Compare values with the oracle, the body with NumPy's ufunc, and both modes of derivative to
    second order with differences; check that the modes are transposes of each other, the spec,
    dtypes, broadcasting, Python numbers, and that operands are not modified.

    Parameters
    ----------
    op : Op or str
        The operation, or its name in the registry.
    seed : int
        Seed of the random operands.

    Returns
    -------
    OpReport
        The laws that were checked.

    Raises
    ------
    CheckError
        A law is violated; the message names the operation, the input and both numbers.

    Examples
    --------
    >>> from wengert.testing import check_op
    >>> print(check_op("sin").name)
    sin
    """
    op = lookup(op) if isinstance(op, str) else op
    names = laws_of(op)
    for name in names:
        LAWS[name](op, np.random.default_rng(seed))
    return OpReport(op.name, op.kind, names)
