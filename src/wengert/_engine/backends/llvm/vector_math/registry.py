"""Functions of SIMD values by NumPy's names: `leaf` registers one, `call_leaf` calls it.

A function is written in the scalar language for lanes of one dtype, float32 or float64, and
registered under NumPy's name:

    @leaf("exp")
    def exp(s, x):
        ...

It has no branches, so that lanes do not diverge: it consists of the operators of lanes, `s.where`,
`s.fma`, `s.bits`, `s.number`, `s.table`, `s.cast`, and other such functions.  It is emitted once
per process for each dtype and width, as one LLVM function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from ..ir import execution_engine
from ..ir.ir_builder import Function, ModuleBuilder
from ..ir.llvm_types import Dtype, in_register, of_width, suffix
from ..ir.scalar_language import Language, rule
from ..ir.simd_value import Lane

# The module of each function, which is imported when a program first needs it.
_HOMES: dict[str, str] = {
    name: home
    for home, names in {
        "trigonometric": "sin cos tan",
        "erf": "erf bell erfc gelu ndtr",
        "exponential": "exp exp2 expm1 softplus log_sigmoid",
        "gamma": "gamma gammaln",
        "hyperbolic": "tanh sech_squared sinh cosh arcsinh arccosh arctanh",
        "inverse_trigonometric": "arcsin arccos arctan arctan2",
        "float_decomposition": "sign heaviside nextafter spacing ldexp fmod remainder "
        "floor_divide hypot",
        "power": "power cbrt log log2 log10 log1p",
        "normal_quantile": "normal_quantile normal_of_tail exponential_of_tail gumbel_of_tail "
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
    """The LLVM type of several results."""
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
    """An operation with a complex operand (complex/), in the dtype of NumPy's loop."""
    return import_module(".complex", __package__).computed(s, ufunc, outer, operands)
