"""Functions of SIMD values by NumPy's names, and the loops and polynomials that they consist of.

    leaf, call_leaf    registers a function; calls it
    repeat             a loop that runs until no lane needs another iteration
    polynomial         even and odd powers in two chains
    horner             one chain: one instruction less, and no sums that cancel
    Coefficients       a tuple of numbers for each of the two dtypes

A function is written in the scalar language for lanes of one dtype, float32 or float64, and
registered under NumPy's name:

    @leaf("exp")
    def exp(s, x):
        ...

It has no branches, so that lanes do not diverge: it consists of the operators of lanes, `s.where`,
`s.fma`, `s.bits`, `s.number`, `s.table`, `s.cast`, and other such functions.  It is emitted once
per process for each dtype and width, as one LLVM function.

Some functions have no fixed number of steps: the remainder of a huge quotient, the greatest common
divisor.  All lanes take the same steps; further steps must not change a lane that is finished.  The
values are in stack slots, as in all loops (ir/ir_builder.py).

Horner's rule in x**2, in two parallel chains, has half the latency of one chain, and costs one more
multiplication, which most functions need anyway.  More chains (G. Estrin, 1960) need more powers,
and vector code is limited by the number of instructions.  J.-M. Muller, Elementary Functions, 3rd
ed., sect. 5.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from wengert._engine.core.types import ScalarLanguage

from ..ir import execution_engine
from ..ir.ir_builder import Function, ModuleBuilder
from ..ir.llvm_types import Dtype, in_register, of_width, suffix
from ..ir.scalar_language import Language, rule
from ..ir.simd_value import Lane

# The module of each function, which is imported when a program first needs it.
_HOMES: dict[str, str] = {
    name: home
    for home, names in {
        "trigonometric": "sin cos tan arcsin arccos arctan arctan2",
        "exponential": "exp exp2 expm1 softplus log_sigmoid",
        "hyperbolic": "tanh sech_squared sinh cosh arcsinh arccosh arctanh",
        "float_decomposition": "sign heaviside nextafter spacing ldexp fmod remainder "
        "floor_divide hypot",
        "power": "power cbrt log log2 log10 log1p",
        "erf_and_gamma": "erf bell erfc gelu ndtr gamma gammaln normal_quantile normal_of_tail "
        "exponential_of_tail gumbel_of_tail "
        "laplace_of_tail logistic_of_tail cauchy_of_tail",
        "integer_ops": "gcd whole_power",
    }.items()
    for name in names.split()
}
# The function of a name, all names whose results it computes, and the index of the name; else -1.
_LEAVES: dict[str, tuple[Callable[..., Any], tuple[str, ...], int]] = {}
# The definitions that a function needs, by its name and the features of the processor.
_TEXTS: dict[tuple[str, str], dict[str, str]] = {}

# The attribute group of vector functions (see `ModuleBuilder.text`).
ATTRIBUTES = "#0"


def leaf(*names: str, together: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as a vector function under NumPy's names (a decorator).

    Parameters
    ----------
    *names : str
        The function is called as ``function(s, *lanes)``, all lanes of the same dtype, float32 or
        float64 (except for operands that are integers in NumPy), and returns a lane.
    together : bool
        It returns a tuple, with a lane for each name: for functions that share most of the work,
        which is done once if several of them are needed.
    """

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for k, name in enumerate(names):
            _LEAVES[name] = (function, names, k) if together else (function, (name,), -1)
        return function

    return enter


def has_leaf(name: str) -> bool:
    """Whether there is a vector function of that name."""
    return name in _LEAVES or name in _HOMES


def _entry(name: str) -> tuple[Callable[..., Any], tuple[str, ...], int]:
    """The registry entry of a vector function."""
    if name not in _LEAVES and name in _HOMES:
        import_module(f".{_HOMES[name]}", __package__)
    return _LEAVES[name]


@rule("float")
def call_leaf(s: Language, name: str, outer: Dtype, operands: Sequence[Lane]) -> Lane:
    """Call a vector function, which is added to the module if necessary.

    Raises
    ------
    KeyError
        There is no such function.
    """
    lanes, section, width = s.together(*operands)
    _, names, position = _entry(name)
    kinds = [of_width(in_register(x.dtype), width) for x in lanes]
    result = of_width(in_register(outer), width)
    ends = "".join(suffix(in_register(x.dtype), width) for x in lanes)
    full = f"leaf.{'.'.join(names)}{ends}"
    if full not in s.module:
        s.module.include(_parts_of(full, name, outer, [x.dtype for x in lanes], width))
    listed = ", ".join(f"{k} {x.name}" for k, x in zip(kinds, lanes, strict=True))
    if position < 0:
        s.module.count_call(full)
        return s.lane(section, f"call {result} @{full}({listed})", outer, width)
    several = _several(result, names)
    key = section, full, listed
    if key not in s.calls:
        s.module.count_call(full)
        s.calls[key] = section.value(f"call {several} @{full}({listed})")
    return s.lane(section, f"extractvalue {several} {s.calls[key]}, {position}", outer, width)


def _several(result: str, names: Sequence[str]) -> str:
    return "{" + ", ".join([result] * len(names)) + "}"


def _parts_of(
    full: str, name: str, outer: Dtype, dtypes: Sequence[Dtype], width: int
) -> dict[str, str]:
    key = (
        full,
        execution_engine.features(),
    )  # functions may use instructions that not all processors have
    if key not in _TEXTS:
        make, names, position = _entry(name)
        module = ModuleBuilder()
        s = Language(module)
        kinds = [of_width(in_register(d), width) for d in dtypes]
        arguments = [(kind, f"x{i}") for i, kind in enumerate(kinds)]
        result = of_width(in_register(outer), width)
        several = result if position < 0 else _several(result, names)
        function = Function(module, full, arguments, several, ATTRIBUTES)
        s.home = function.body
        operands = [Lane(s, function.body, f"%x{i}", d, width) for i, d in enumerate(dtypes)]
        made = make(s, *operands)
        found = [s.widened(s.cast(x, outer), width) for x in (made if position >= 0 else (made,))]
        if position < 0:
            function.body.write(f"ret {result} {found[0].name}")
        else:
            whole = "poison"
            for k, x in enumerate(found):
                whole = function.body.value(
                    f"insertvalue {several} {whole}, {result} {x.name}, {k}"
                )
            function.body.write(f"ret {several} {whole}")
        module.add(function)
        _TEXTS[key] = module.parts
    return _TEXTS[key]


@rule("complex")
def computed(s: Language, ufunc: str, outer: Dtype, operands: Sequence[Any]) -> Any:
    """An operation with a complex operand, in the dtype of NumPy's loop."""
    return import_module(".complex_functions", __package__).computed(s, ufunc, outer, operands)


# ---- loops and polynomials -----------------------------------------------------------------------


def repeat(
    s: ScalarLanguage,
    values: Sequence[Lane],
    unfinished: Callable[..., Lane],
    step: Callable[..., Sequence[Lane]],
) -> list[Lane]:
    """Repeat a step while any lane is unfinished; returns the values after it.

    Parameters
    ----------
    values : sequence of Lane
        The initial values.
    unfinished : callable
        Maps the values to booleans.
    step : callable
        Maps the values to the next ones, with the same dtypes.  Finished values, and NaN, must stay
        finished.
    """
    lanes, section, width = s.together(*values)
    kinds = [of_width(in_register(x.dtype), width) for x in lanes]
    slots = [section.function.slot(kind, align=64) for kind in kinds]
    number = section.function.number()

    def keep(found: Sequence[Lane]) -> None:
        for x, kind, slot in zip(found, kinds, slots, strict=True):
            section.write(f"store {kind} {s.widened(x, width).name}, ptr {slot}, align 64")

    def kept() -> list[Lane]:
        pieces = zip(lanes, kinds, slots, strict=True)
        return [
            s.lane(section, f"load {k}, ptr {p}, align 64", x.dtype, width) for x, k, p in pieces
        ]

    keep(lanes)
    section.block(f"again{number}")
    now = kept()
    flags = s.widened(unfinished(*now), width)
    assert flags.section is not None
    some = flags.section.any_lane(flags.name, width)
    section.write(f"br i1 {some}, label %turn{number}, label %rest{number}")
    section.label(f"turn{number}")
    keep(step(*now))
    section.write(f"br label %again{number}")
    section.label(f"rest{number}")
    return kept()


Coefficients = Mapping[int, Sequence[float]]  # by the size of the dtype in bytes


def polynomial(s: ScalarLanguage, x: Any, coefficients: Coefficients | Sequence[float]) -> Any:
    """The sum of c[j] * x**j.

    Parameters
    ----------
    coefficients : sequence of float, or a mapping to such from the size of the dtype in bytes
        Constant term first, at least two.
    """
    if isinstance(coefficients, Mapping):
        coefficients = coefficients[x.dtype.itemsize]
    square = x * x
    even, odd = horner(s, square, coefficients[::2]), horner(s, square, coefficients[1::2])
    return s.fma(x, odd, even)


def horner(s: ScalarLanguage, x: Any, coefficients: Coefficients | Sequence[float]) -> Any:
    """The same by Horner's rule.

    For coefficients of alternating signs and x near 1, whose even and odd sums would cancel, and
    if the latency of the chain is hidden by other instructions.
    """
    if isinstance(coefficients, Mapping):
        coefficients = coefficients[x.dtype.itemsize]
    total: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = s.fma(x, total, c)
    return total
