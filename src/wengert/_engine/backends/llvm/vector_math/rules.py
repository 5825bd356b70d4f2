"""Rules of the scalar language whose files are imported at first use.

    computed    operations with a complex operand (complex/)

The other rules are registered where they are defined: in registry, integer_ops and conversions, and
in special_functions/scipy_symbols.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wengert._engine.backends.llvm.ir.llvm_types import Dtype
from wengert._engine.backends.llvm.ir.scalar_language import Language, rule
from wengert._engine.core.lazy_import import LazyModule

if TYPE_CHECKING:
    from . import complex as complexes
else:
    complexes = LazyModule("wengert._engine.backends.llvm.vector_math.complex")


@rule("complex")
def computed(s: Language, ufunc: str, outer: Dtype, operands: Sequence[Any]) -> Any:
    """An operation of which an operand is complex, in the dtype of NumPy's loop."""
    return complexes.computed(s, ufunc, outer, operands)
