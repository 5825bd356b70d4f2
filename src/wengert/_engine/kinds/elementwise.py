"""Elementwise operations, and the scalar language in which their bodies are written.

The scalar language: the functions available in the body of an elementwise operation.

A body is a function `body(s, x, ...)` of one element; `s` has the functions ("leaves") below, and
Python operators + - * / are the arithmetic.  Each target runs the body with its own `s`:

    Arrays    NumPy arrays: the reference semantics
    Formula   text, for the documentation and for `explain`
    ...       LLVM (backends/llvm/ir/scalar_language.py), ONNX (onnx/exporter/scalar_language.py)

`max` and `min` propagate NaN, as in NumPy (fmax in C drops it).  The functions of scipy.special are
called by name, `s.special("jv", order, x)`; scipy.special is imported at the first use.

Functions of random numbers, whose bits are the same in all targets, also use `bits` (of a float64
or float32, as an integer of its size), `number` (its inverse), the operators & | >> of integers and
`rows(table, row)`, the numbers of a row of a table (ops/random/tail_functions.py).

Elementwise operations: an element of the result depends on one element of each operand.

An operation defines a *body* in the scalar language and its *partials*;
shape and dtype rules, both modes of derivative, the formula and native code follow from them.

A partial is defined as a linear map `t -> partial * t`, a function of t, the output and the
operands, in wengert operations.  Because the Jacobian is diagonal, the same map is used for
tangents and cotangents.  Defining the product and not the factor saves work (`t / y`, not
`(1 / y) * t`) and keeps selections exact (`where(c, t, 0)`: no 0 * inf).

For complex operands a partial is the complex derivative f'(z) and the cotangent is
conj(f'(z)) t; a function from complex to real numbers states its gradient direction with
`to_real` instead (docs/conventions.md).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from math import inf
from types import FunctionType
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import scipy  # scipy.special is loaded when it is first used

from wengert._engine.core.dispatch import Operation
from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext, lookup, register
from wengert._engine.core.op_facts import Differentiation
from wengert._engine.core.spec import Spec, example_of, spec_of
from wengert._engine.core.symbolic.constraints import broadcast
from wengert._engine.core.thread_state import call_ignoring_errors
from wengert._engine.core.user_functions import signature_of

from .batching import aligned

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand, Scalar

UNARY_LEAVES = tuple(
    """abs sign floor ceil trunc rint sqrt cbrt exp exp2 expm1 log log2 log10 log1p
    sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh
    isnan isinf isfinite signbit logical_not conj""".split()
)
BINARY_LEAVES = tuple(
    """power arctan2 fmod copysign nextafter ldexp heaviside less less_equal equal not_equal
    logical_and logical_or logical_xor max min""".split()
)


_INTEGERS = {"d": np.int64, "f": np.int32}
_NUMBERS = {8: np.float64, 4: np.float32}
_GATHERED = 4096  # rows of a table read at once, which takes memory


class Arrays:
    """The scalar language on NumPy arrays."""

    max = staticmethod(np.maximum)
    min = staticmethod(np.minimum)

    @staticmethod
    def where(condition: Operand, x: Operand, y: Operand) -> Any:
        """np.where, but with a scalar result where a ufunc would return one."""
        out = np.where(condition, x, y)
        return out if out.ndim else out[()]

    @staticmethod
    def rectangular(x: Array, y: Array) -> Any:
        """The complex number of a real and an imaginary part: x + 1j * y, exact at infinities."""
        dtype = np.result_type(x, y, np.complex64)
        out = np.empty(np.broadcast_shapes(np.shape(x), np.shape(y)), dtype)
        out.real, out.imag = x, y
        return out[()]

    @staticmethod
    def special(name: str, *operands: Any) -> Any:
        """A function of scipy.special."""
        return getattr(scipy.special, name)(*operands)

    @staticmethod
    def bits(x: Any) -> Any:
        """The bits of numbers, as signed integers."""
        return x.view(_INTEGERS[x.dtype.char])

    @staticmethod
    def number(x: Any) -> Any:
        """The numbers with these bits."""
        return x.view(_NUMBERS[x.dtype.itemsize])

    @staticmethod
    def rows(table: Any, row: Any) -> Any:
        """The numbers of rows: an iterable with an array for each column of the table."""
        columns = table.columns
        if row.size <= _GATHERED:
            return columns.take(row, axis=1)
        return (column.take(row) for column in columns)

    def __getattr__(self, leaf: str) -> Any:
        raise AttributeError(f"the scalar language has no leaf {leaf!r}")


for _leaf in set(UNARY_LEAVES + BINARY_LEAVES) - {"max", "min"}:
    setattr(Arrays, _leaf, staticmethod(getattr(np, _leaf)))
ARRAYS = Arrays()


class Term:
    """A text with the precedence of its outermost operator."""

    def __init__(self, text: str, precedence: int = 3) -> None:
        self.text = text
        self.precedence = precedence

    def __str__(self) -> str:
        return self.text

    def __getitem__(self, k: int) -> Term:
        """One of several results."""
        return Term(f"{self}[{k}]")

    __iter__ = None  # the number of results is not known


def _term(x: Scalar) -> Term:
    return x if isinstance(x, Term) else Term(f"{x:g}" if isinstance(x, float) else str(x))


def _infix(symbol: str, precedence: int) -> tuple[Any, Any]:
    def join(a: Term, b: Term) -> Term:
        left = f"({a})" if a.precedence < precedence else str(a)
        right = f"({b})" if b.precedence <= precedence and b.precedence < 3 else str(b)
        return Term(f"{left} {symbol} {right}", precedence)

    return (
        lambda self, other: join(self, _term(other)),
        lambda self, other: join(_term(other), self),
    )


for _name, _symbol, _precedence in [
    ("add", "+", 1),
    ("sub", "-", 1),
    ("mul", "*", 2),
    ("truediv", "/", 2),
]:
    _plain, _reflected = _infix(_symbol, _precedence)
    setattr(Term, f"__{_name}__", _plain)
    setattr(Term, f"__r{_name}__", _reflected)
setattr(Term, "__neg__", lambda self: Term(f"-{self}" if self.precedence == 3 else f"-({self})", 2))  # noqa: B010


class Formula:
    """The scalar language as text."""

    @staticmethod
    def special(name: str, *operands: Any) -> Term:
        """The name and the operands."""
        term: Term = getattr(FORMULA, name)(*operands)
        return term

    def __getattr__(self, leaf: str) -> Any:
        def call(*args: Any) -> Term:
            return Term(f"{leaf}({', '.join(str(_term(a)) for a in args)})")

        return call


FORMULA = Formula()


Rule = Callable[..., Any]
REAL = (-inf, inf)
POSITIVE = (0.0, inf)
UNIT = (-1.0, 1.0)
CONDITION = (False, True)


def _operands(body: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the parameters of a body after the first, which is the scalar language."""
    plain = isinstance(body, FunctionType) and not hasattr(body, "__wrapped__")
    if plain and not body.__code__.co_flags & inspect.CO_VARARGS:
        code = body.__code__  # `inspect.signature` would take longer than everything else here
        return code.co_varnames[1 : code.co_argcount]
    return tuple(signature_of(body).parameters)[1:]


class Elementwise(Operation):
    """An elementwise operation; made by the decorator `elementwise`."""

    kind = "elementwise"
    promotes = True

    def __init__(
        self,
        body: Callable[..., Any],
        *,
        name: str | None = None,
        ufunc: Any = None,
        domain: Sequence[tuple[float, float]] = (),
        kinks: Sequence[float] = (),
        oracle: str | None = None,
        discrete: bool = False,
        complex_ok: bool = False,
        bounded: bool = False,
        masks: bool = False,
        singular: bool | Callable[[Node], bool] = False,
        commutative: bool = False,
        half: bool = True,
        single: bool = True,
        constant_partials: bool = False,
    ) -> None:
        super().__init__(name or body.__name__, inspect.getdoc(body))
        self.body = body
        self.arguments = _operands(body)
        self.ufunc = ufunc
        self.run = ufunc if ufunc is not None else self._run_body
        self.domain = tuple(domain) or (REAL,) * len(self.arguments)
        self.kinks = tuple(kinks)
        self.oracle = oracle
        self.discrete = discrete
        self.complex_ok = complex_ok
        self.bounded = bounded
        self.differentiation = Differentiation(masks, singular)
        self.commutative, self.constant_partials = commutative, constant_partials
        self.half, self.single = half and single, single
        self.differentiable = discrete
        self.rules: tuple[Rule | None, ...] = (None,) * len(self.arguments)
        self._gradient: Rule | None = None

    def _run_body(self, *xs: Any) -> Any:
        return self.body(ARRAYS, *xs)

    def partials(self, *rules: Rule | None) -> Elementwise:
        """Define the partials, one map `(t, out, *operands) -> partial * t` for each operand.

        None marks an operand without derivative (a condition).
        """
        if len(rules) != len(self.arguments):
            raise TypeError(f"{self.name} has {len(self.arguments)} operands, {len(rules)} rules")
        self.rules = rules
        self.differentiable = True
        self.pulls = rules if len(rules) <= 2 and None not in rules else None
        return self

    def to_real(self, gradient: Rule) -> Elementwise:
        """Define the gradient direction `(out, x) -> G` of a function from complex to real."""
        self._gradient = gradient
        self.differentiable = True
        return self

    @property
    def native(self) -> bool:  # type: ignore[override]
        """Whether it is defined in this package, and NumPy would need several passes or is slow."""
        slow = self.ufunc is None or (self.cost is not None and self.cost.is_call)
        return slow and self.is_built_in

    @property
    def is_built_in(self) -> bool:  # type: ignore[override]
        """Whether native code may run its body and its rule in eager derivatives of large arrays.

        They are defined in the engine; or it is a function of SciPy that is a function of the math
        library here, and not one whose code would take seconds to compile.
        """
        module = str(self.body.__module__)
        if module.startswith("wengert._engine."):
            return True
        return module.startswith("wengert.") and self.cost is not None and self.cost.is_call

    def formula(self) -> str:
        """The body as text."""
        return str(self.body(FORMULA, *map(Term, self.arguments)))

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> Spec:
        """Broadcast the shapes; the dtype is that of NumPy."""
        shape = broadcast(*[s.shape for s in specs])
        small = [s if s.weak else Spec((1,) * len(s.shape), s.dtype) for s in specs]
        one = call_ignoring_errors(self.run, *[example_of(s) for s in small], **params)
        return Spec(shape, spec_of(one).dtype)

    def batched_as_kind(self, args: Any, batched: Any, size: Any, params: dict[str, Any]) -> Any:
        """The operation itself, with aligned operands."""
        return self(*aligned(args, batched), **params)

    def vjp(self, node: Node, t: Array, out: Array, inputs: Sequence[Any], ctx: RuleContext) -> Any:
        """Each partial times the cotangent."""
        if not self.differentiable:
            raise self.no_rule(node)
        if self._gradient is not None:
            g = t * self._gradient(out, *inputs)
            return [strong_zero(t, g) if ctx.guarded else g]
        holomorphic = t.dtype.kind == "c"
        if holomorphic:
            t = t.conj()
        bars: list[Any] = []
        for rule, a in zip(self.rules, node.args, strict=True):
            if rule is None or not ctx.wants(a):
                bars.append(None)
                continue
            g = rule(t, out, *inputs)
            if ctx.guarded and not self.bounded:
                g = strong_zero(t, g)
                for j in ctx.linear_operands(node):
                    g = g if node.args[j] is a else strong_zero(inputs[j], g)
            bars.append(g.conj() if holomorphic else g)
        return bars

    def jvp(
        self, node: Node, dots: Sequence[Any], out: Array, inputs: list[Operand], ctx: RuleContext
    ) -> Any:
        """The sum of partials times tangents."""
        if not self.differentiable:
            raise self.no_rule(node)
        total = None
        for rule, dot, a in zip(self.rules, dots, node.args, strict=True):
            if dot is None:
                continue
            if self._gradient is not None:
                term = (self._gradient(out, *inputs).conj() * dot).real
            elif rule is None:
                continue
            else:
                term = rule(dot, out, *inputs)
            if ctx.guarded and not self.bounded:
                term = strong_zero(dot, term)
                for j in ctx.linear_operands(node):
                    term = term if node.args[j] is a else strong_zero(inputs[j], term)
            total = term if total is None else total + term
        return total


def strong_zero(t: Any, g: Any) -> Any:
    """`g` with 0 where the (co)tangent `t` is exactly zero and `g` is NaN, as for 0 * inf."""
    if is_traced(t) or is_traced(g):
        return lookup("strong_zero")(t, g)
    mask = np.logical_and(value_of(t) == 0, np.isnan(value_of(g)))
    if not np.any(mask):
        return g
    return lookup("where")(mask, 0.0, g)


@overload
def elementwise(body: Callable[..., Any], **options: Any) -> Elementwise: ...
@overload
def elementwise(**options: Any) -> Callable[[Callable[..., Any]], Elementwise]: ...
def elementwise(body: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Register the decorated function as an elementwise operation.

    Parameters
    ----------
    body : callable
        ``body(s, x, ...)``: the value of one element, in the scalar language `s`;
        ``s.special("psi", x)`` is the function of scipy.special with that name.
    name : str, optional
        The registered name, by default that of the body.
    ufunc : numpy.ufunc, optional
        The ufunc of NumPy or SciPy, if there is one: it computes eager values, a law compares the
        body with it, and calling it with tensors runs this operation.
    domain : sequence of (low, high)
        The open interval of test values of each operand; bounds of type int mean
        that the operand is an integer, (False, True) that it is a boolean.
    kinks : sequence of float
        Points in the domain where it is continuous but not differentiable.
    oracle : str
        The same function as an expression in mpmath's functions.
    discrete : bool
        The derivative is zero wherever it exists.
    complex_ok : bool
        Complex operands are allowed and the partials hold for them.
    bounded : bool
        The partials are finite for all operands: sums, selections.
    masks : bool
        It is a selection: the cotangent of an operand is exactly zero where it was not selected.
    singular : bool or callable
        A partial is infinite, or not a number, at some finite operands; a callable decides for a
        node, from its operands.
    commutative : bool
        The operation is commutative: nodes with the operands in either order are equal.
    half, single : bool
        Whether half (single) precision operands give a result of that precision, which not all
        functions of SciPy do.
    constant_partials : bool
        The partials are constants, so the rules read neither operands nor result.

    Returns
    -------
    Elementwise
        The operation, callable; state its derivative with ``.partials(...)``.

    Examples
    --------
    >>> from wengert._engine.kinds.elementwise import elementwise
    >>> @elementwise(oracle="x**3")
    ... def cube_of(s, x):
    ...     '''x * x * x.'''
    ...     return x * x * x
    >>> cube_of.partials(lambda t, out, x: t * (3.0 * x * x))
    <wengert elementwise operation cube_of>
    >>> float(cube_of(2.0))
    8.0
    """
    if body is None:
        return lambda f: elementwise(f, **options)
    replace = options.pop("replace", False)
    return register(Elementwise(body, **options), replace)
