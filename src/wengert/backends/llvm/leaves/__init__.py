"""Leaves: the scalar functions that we write ourselves, as LLVM functions of lanes.

    exponential    exp, exp2, expm1
    logarithms     log, log2, log10, log1p
    powers         power, cbrt
    circular, inverse_circular      sin, cos, tan; arcsin, arccos, arctan, arctan2
    hyperbolic, inverse_hyperbolic  sinh, cosh, tanh; arcsinh, arccosh, arctanh
    numbers        fmod, remainder, floor_divide, nextafter, ldexp, heaviside, sign, hypot
    erf            erf, erfc
    whole          gcd and powers of whole numbers
    repeat         a loop inside a leaf
    polynomials    sums of powers
    floats         signs, exponents and whole parts of numbers
    reduction, payne_hanek          arguments less multiples of pi

A leaf is a function of the language and of lanes of one dtype, float32 or float64, entered under
the name that NumPy gives it:

    @leaf("exp")
    def exp(s, x):
        ...

It is written without branches, so that lanes go side by side, in the operators of lanes, `s.where`,
`s.fma`, `s.bits`, `s.number`, `s.table`, `s.cast`, and other leaves.  For each dtype and width it
is made once in a process, as the text of one LLVM function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..assembly import Function, Module
from ..dtypes import Dtype, in_register, of_width, suffix
from ..lane import Lane

if TYPE_CHECKING:
    from ..language import Language

_LEAVES: dict[str, Callable[..., Lane]] = {}
_TEXTS: dict[str, dict[str, str]] = {}  # for a function's name the parts of a module it needs

# How a leaf's function is marked; the program says what `leaf` means (see Module.attributes).
ATTRIBUTES = "#0"


def leaf(*names: str) -> Callable[[Callable[..., Lane]], Callable[..., Lane]]:
    """Enter the function below it as a leaf under NumPy's names (a decorator).

    Parameters
    ----------
    *names : str
        The function is called as ``function(s, *lanes)``, all lanes of the same dtype, float32 or
        float64 (an operand that NumPy wants as a whole number excepted), and returns a lane.
    """

    def enter(function: Callable[..., Lane]) -> Callable[..., Lane]:
        for name in names:
            _LEAVES[name] = function
        return function

    return enter


def has_leaf(name: str) -> bool:
    """Whether there is a leaf of that name."""
    return name in _LEAVES


def call_leaf(s: Language, name: str, outer: Dtype, operands: Sequence[Lane]) -> Lane:
    """A call of a leaf's function, which the module is given if it lacks it.

    Raises
    ------
    KeyError
        There is no such leaf.
    """
    lanes, section, width = s.together(*operands)
    kinds = [of_width(in_register(x.dtype), width) for x in lanes]
    result = of_width(in_register(outer), width)
    ends = "".join(suffix(in_register(x.dtype), width) for x in lanes)
    full = f"leaf.{name}{ends}"
    if full not in s.module:
        s.module.include(_parts_of(full, name, outer, [x.dtype for x in lanes], width))
    s.module.count_call(full)
    listed = ", ".join(f"{k} {x.name}" for k, x in zip(kinds, lanes, strict=True))
    return s.lane(section, f"call {result} @{full}({listed})", outer, width)


def _parts_of(
    full: str, name: str, outer: Dtype, dtypes: Sequence[Dtype], width: int
) -> dict[str, str]:
    if full not in _TEXTS:
        make = _LEAVES[name]
        module = Module()
        s = _language(module)
        kinds = [of_width(in_register(d), width) for d in dtypes]
        arguments = [(kind, f"x{i}") for i, kind in enumerate(kinds)]
        result = of_width(in_register(outer), width)
        function = Function(module, full, arguments, result, ATTRIBUTES)
        operands = [Lane(s, function.body, f"%x{i}", d, width) for i, d in enumerate(dtypes)]
        (found,) = s.together(s.cast(make(s, *operands), outer))[0]
        found = s.widened(found, width)
        function.body.write(f"ret {result} {found.name}")
        module.add(function)
        _TEXTS[full] = module.parts
    return _TEXTS[full]


def _language(module: Module) -> Language:
    from ..language import Language  # the language calls leaves, which are written in it

    return Language(module)


from . import (  # noqa: E402, F401 - they enter themselves
    circular,
    erf,
    exponential,
    hyperbolic,
    inverse_circular,
    inverse_hyperbolic,
    logarithms,
    numbers,
    powers,
    whole,
)
