"""Remedies: what to write instead, by the operation where something went wrong.

singular   the slope is infinite, or not a number, at a finite operand
outside    the value itself is not a finite number there
overflow   the exact number is finite, and too large for the precision
"""

from __future__ import annotations

_GUARD = (
    "Keep the operand away from there before the function is applied: "
    "np.where(ok, x, 1.0) inside, and np.where(ok, ..., value) around it"
)
_CLIP = "Clip the operand to just inside, np.clip(x, -1 + eps, 1 - eps), or use arctan2"

SINGULAR = {
    "sqrt": f"{_GUARD}; or add a small number under the root, np.sqrt(x + eps); for a length "
    "use np.linalg.norm or np.hypot, and np.abs for the root of a square",
    "cbrt": _GUARD,
    "log": f"{_GUARD}; or np.log(x + eps); near 1 use np.log1p, of sums of exp use np.logaddexp",
    "log2": _GUARD,
    "log10": _GUARD,
    "log1p": _GUARD,
    "divide": f"{_GUARD} for the denominator",
    "reciprocal": _GUARD,
    "power": f"{_GUARD}; a power below 1 has an infinite slope at 0, and a negative number no "
    "real slope by its exponent (make the exponent a plain number)",
    "float_power": _GUARD,
    "arcsin": _CLIP,
    "arccos": _CLIP,
    "arctanh": "Clip the operand to just inside (-1, 1)",
    "arccosh": "Keep the operand above 1",
    "eigh": "Equal eigenvalues: their vectors are not unique. Use functions of the matrix that "
    "do not depend on the choice, or break the tie",
    "eig": "Equal eigenvalues: their vectors are not unique. Break the tie, or use eigh",
    "svd": "Equal or zero singular values: their vectors are not unique. Break the tie, or use "
    "functions of the singular values",
    "prod": "Use sums of logarithms, or keep the factors finite",
}
OUTSIDE = {
    **SINGULAR,
    "subtract": "inf - inf: find what overflowed before",
    "multiply": "0 * inf: choose with np.where instead of multiplying by a mask",
    "arctan2": "Its operands are not numbers",
    "solve": "The matrix is singular, or nearly so: add a multiple of the identity",
    "inv": "The matrix is singular, or nearly so: add a multiple of the identity",
}
OVERFLOW = {
    "exp": "Subtract the largest operand first, or use np.logaddexp, logsumexp or softmax",
    "exp2": "Subtract the largest operand first, or use np.logaddexp2",
    "expm1": "Keep the operand below 700, or work with logarithms",
    "cosh": "Use np.logaddexp(x, -x) for its logarithm",
    "sinh": "Work with logarithms",
    "square": "Rescale first; for a length use np.hypot or np.linalg.norm",
    "power": "Work with logarithms, or rescale first",
    "sum": "Rescale first, or sum logarithms with logsumexp",
    "prod": "Use sums of logarithms",
    "cumprod": "Use np.cumsum of logarithms",
    "multiply": "Work with logarithms, or rescale first",
    "divide": "Rescale first, or keep the denominator away from 0",
}


def remedy(table: dict[str, str], name: str) -> str:
    """The advice for an operation, as the end of a message; something general if there is none."""
    return table.get(name, "Choose another form of the formula, or keep away from that point")
