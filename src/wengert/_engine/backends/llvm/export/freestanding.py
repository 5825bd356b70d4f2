"""Functions of the C library that code for targets without one needs (freestanding.ll).

WebAssembly has no instruction for a * b + c with one rounding, which the vector functions use.
Between numbers that are not subnormal, `fma` here is exact: the product and the sums are computed
with their errors, and the sum of the errors is rounded to odd (Boldo and Melquiond, 2008).
Results below 2.2e-308 are rounded twice.

    parts     fma, fmaf, memcpy, memset, and the product of 128-bit integers
"""

from __future__ import annotations

from ..ir.llvm_files import functions


def parts() -> dict[str, str]:
    """The functions, by name."""
    return functions(__file__)
