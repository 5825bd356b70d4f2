"""check_op: all laws of one operation.

The laws are in laws/, each a function; this runs them in turn.  What the
operation says of itself (domain, oracle, examples) is all they need.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wengert._engine.core.op import Op, lookup

from .laws.common import LAWS, laws_of


@dataclass(frozen=True)
class OpReport:
    """What `check_op` has checked."""

    name: str
    kind: str
    laws: tuple[str, ...]

    def __str__(self) -> str:
        kept = "\n".join(f"  kept: {name.replace('_', ' ')}" for name in self.laws)
        return f"{self.name} ({self.kind})\n{kept}"


def check_op(op: Op | str, *, seed: int = 0) -> OpReport:
    """Check that an operation keeps every law.

    Values against its oracle, its body against NumPy's ufunc, its spec, both modes of derivative
    to second order against differences, their being transposes, dtypes, broadcasting, Python
    numbers, and that it does not write to its operands.

    Parameters
    ----------
    op : Op or str
        The operation, or its name in the registry.
    seed : int
        For the random operands.

    Returns
    -------
    OpReport
        What was checked.

    Raises
    ------
    CheckError
        A law is broken; the message names the operation, the input and both numbers.

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
