"""Tables of numbers as constants of a module.

    constant_rows    the LLVM type and the text of the rows of a table

LLVM reads a string seven times faster than numbers, of which a table may have thousands.  Code that
is written to files has numbers, which are printed in C, too, and do not depend on the order of
bytes.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .llvm_types import in_register, literal
from .processors import foreign


def constant_rows(columns: Any) -> tuple[str, str]:
    """The type and the text of a constant: the rows of a table, given by its columns."""
    rows = np.ascontiguousarray(columns.T)
    processor = foreign()
    if sys.byteorder == "little" and (processor is None or processor.is_device):
        text = rows.tobytes().hex("\\").upper()
        return f"[{rows.nbytes} x i8]", f'c"\\{text}"'
    kind = in_register(rows.dtype)
    listed = ", ".join([f"{kind} {literal(x, rows.dtype)}" for x in rows.ravel()])
    return f"[{rows.size} x {kind}]", f"[{listed}]"
