"""Functions with custom derivatives.

    custom_jvp    the rule maps tangents; reverse mode is its transpose
    custom_vjp    the rule maps cotangents; forward mode is its transpose

Both are called like the function.  With plain arrays, the function itself is called.  With recorded
tensors, a call is one node of the tape, which stores the residuals of `fwd`.  In a graph it is a
`custom_call` node with the function as its body (custom.py, custom_calls.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle, is_traced
from wengert._engine.core.message_order import is_used
from wengert._engine.core.recording import is_recording
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.user_functions import known_signature
from wengert._engine.core.validation import function
from wengert._engine.ops.messages import apart
from wengert.errors import (
    ArgumentError,
    NotDifferentiableError,
    RuleError,
    StructureError,
    TraceError,
    at,
    user_line,
)

from .call_rule import is_transposed
from .custom_calls import BoundRule, is_recorded, is_starting
from .eager_loops import numeric

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


class _Custom:
    """A function with a rule; the base class of both."""

    kind: str

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: int | Iterable[int] = (),
        nondiff_argnames: str | Iterable[str] = (),
    ) -> None:
        function(fun, self.kind)
        functools.update_wrapper(self, fun, updated=())
        self.fun = fun
        self.name = getattr(fun, "__name__", type(fun).__name__)
        # The signature of a ufunc has `out`.
        self._signature = None if isinstance(fun, np.ufunc) else known_signature(fun)
        numbers = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else nondiff_argnums
        names = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else nondiff_argnames
        self.nondiff_argnums = self._positions(tuple(numbers), tuple(names))

    def _positions(self, numbers: tuple[int, ...], names: tuple[str, ...]) -> tuple[int, ...]:
        known = list(self._signature.parameters) if self._signature else []
        for name in names:
            if name not in known:
                raise ArgumentError(
                    f"{self.kind} of {self.name}: nondiff_argnames names {name!r}, but its "
                    f"arguments are {', '.join(known) or 'not known'}{at(user_line())}."
                )
        positions = {*numbers, *[known.index(n) for n in names]}
        if any(k < 0 for k in positions):
            raise ArgumentError(
                f"{self.kind} of {self.name}: nondiff_argnums contains {min(positions)}. Count "
                f"arguments from the first, which is 0{at(user_line())}."
            )
        return tuple(sorted(positions))

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<{self.kind} of {self.name}>"

    # ---- a call --------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function; if an argument is a tensor, its rule is recorded."""
        args = self._bound(args, kwargs)
        if is_starting(self):
            return converted(self.fun)(*args)
        own = is_transposed(self)
        return apart(self._run, *args, in_own_rule=own) if is_used() else self._run(*args)

    def _run(self, *args: Any) -> Any:
        differentiable = [a for k, a in enumerate(args) if k not in self.nondiff_argnums]
        leaves, structure = pytree.flatten(tuple(differentiable))
        if not any([isinstance(x, Handle | Dim) for x in leaves]):
            return self._plain(args, leaves, structure)
        call = self._call(args, leaves, structure)
        if any([is_traced(x) or isinstance(x, Dim) for x in leaves]):
            return call.record_in_graph(leaves)
        if is_recording() and any([is_recorded(x) for x in leaves]):
            return call.record_on_tape(leaves)
        return self._refuse_outside(converted(self.fun)(*args))

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, with defaults filled in."""
        if self._signature is None or not (kwargs or self._signature.parameters):
            return args
        bound = self._signature.bind(*args, **kwargs)
        named = bound.kwargs
        bound.apply_defaults()
        if named:
            raise ArgumentError(
                f"{self.name} has a rule, which takes its arguments by position, and "
                f"{', '.join(named)} cannot be given by position. Define {self.name} without "
                f"* and ** arguments{at(user_line())}."
            )
        return bound.args

    def _call(self, args: Sequence[Any], leaves: Sequence[Any], structure: Any) -> BoundRule:
        nondiff = [args[k] for k in self.nondiff_argnums if k < len(args)]
        for x in pytree.flatten(nondiff)[0]:
            if is_recorded(x) or is_traced(x):
                raise TraceError(
                    f"{self.kind} of {self.name}: an argument named by nondiff_argnums is a tensor "
                    "that is recorded or traced. These arguments are for functions and options, "
                    "not for arrays. Make it an ordinary argument, and return None as its "
                    f"cotangent{at(user_line())}."
                )
        for k, x in enumerate(leaves):
            if x is not None and not isinstance(x, Dim) and numeric(x) is None:
                path = pytree.paths(tuple(args))[k] if not nondiff else ""
                raise StructureError(
                    f"{self.kind} of {self.name}: an argument{' at ' * bool(path)}{path} is a "
                    f"{type(x).__name__}, which is not an array or a number. Name it in "
                    f"nondiff_argnums{at(user_line())}."
                )
        return BoundRule(self, nondiff, leaves, structure)

    def _plain(self, args: Sequence[Any], leaves: Sequence[Any], structure: Any) -> Any:
        """Call the function on plain arguments; captured values may be traced."""
        result = converted(self.fun)(*args)
        if any([is_recorded(x) and is_traced(x) for x in pytree.flatten(result)[0]]):
            return self._call(args, leaves, structure).record_in_graph(leaves)
        return self._refuse_outside(result)

    def _refuse_outside(self, result: Array | tuple[Array, ...]) -> Any:
        if is_recording() and any([is_recorded(x) for x in pytree.flatten(result)[0]]):
            raise self.outside()
        return result

    def outside(self) -> NotDifferentiableError:
        """The error for a captured tensor."""
        return NotDifferentiableError(
            f"{self.kind} of {self.name}: it captures a recorded tensor, and its rule has "
            "derivatives of its arguments only. Pass the tensor as an argument, or apply "
            f"wengert.stop_gradient to it{at(user_line())}."
        )

    def full(self, nondiff: Sequence[Any], differentiable: Sequence[Any]) -> list[Any]:
        """All arguments in their order, from the two groups."""
        args = list(differentiable)
        for k, x in zip(self.nondiff_argnums, nondiff, strict=False):
            args.insert(k, x)
        return args


class custom_jvp(_Custom):
    """Define the derivative of a function by a rule for tangents (a decorator).

    Parameters
    ----------
    fun : callable
        Of arrays, numbers and nested containers of them.
    nondiff_argnums : int or sequence of int, optional
        Arguments that are not arrays (functions, options). They are passed to the rule first.
    nondiff_argnames : str or sequence of str, optional
        The same by name.

    Returns
    -------
    custom_jvp
        Called like `fun`. `defjvp` or `defjvps` states the rule.

    Raises
    ------
    NotDifferentiableError
        The derivative with respect to a captured value is needed, or there is no rule.
    RuleError
        The result of the rule has the wrong structure, shape or dtype.

    See Also
    --------
    custom_vjp : a rule for cotangents.

    Notes
    -----
    Reverse mode is the transpose of the rule, which must be linear in the tangents. Derivatives
    of higher order differentiate the rule. In a graph `fun` and the rule are traced, and their
    operations are part of the graph.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> @wg.custom_jvp
    ... def log1pexp(x):
    ...     return np.log(1.0 + np.exp(x))
    >>> @log1pexp.defjvp
    ... def _(primals, tangents):
    ...     (x,), (x_dot,) = primals, tangents
    ...     return log1pexp(x), (1.0 - 1.0 / (1.0 + np.exp(x))) * x_dot
    >>> float(wg.grad(log1pexp)(0.0)), float(wg.jvp(log1pexp, (0.0,), (2.0,))[1])
    (0.5, 1.0)
    """

    __module__ = "wengert"

    kind = "custom_jvp"
    has_vjp = False

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: int | Iterable[int] = (),
        nondiff_argnames: str | Iterable[str] = (),
    ) -> None:
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable[..., Any] | None = None
        self._one_by_one: tuple[Callable[..., Any] | None, ...] | None = None

    @property
    def has_jvp(self) -> bool:
        """Whether there is a rule."""
        return self.jvp is not None or self._one_by_one is not None

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Define the rule: ``jvp(*nondiff, primals, tangents) -> (result, its tangent)``.

        Parameters
        ----------
        jvp : callable
            `primals` and `tangents` are tuples with an entry for each differentiable argument.
            Tangents of constants are zeros, of integers None.
        symbolic_zeros : bool, default False
            Not supported: zeros are arrays. When compiled, products with them are removed.

        Returns
        -------
        callable
            `jvp` itself.
        """
        _refuse_symbolic_zeros(symbolic_zeros, self.kind)
        function(jvp, "defjvp")
        self.jvp, self._one_by_one = jvp, None
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Define the rule for each argument: ``jvp(tangent, result, *primals) -> tangent``.

        Parameters
        ----------
        *jvps : callable or None
            One per argument, None for a derivative of zero; their results are summed.
        """
        if self.nondiff_argnums:
            raise ArgumentError(
                f"defjvps of {self.name}, which has nondiff_argnums. Use defjvp{at(user_line())}."
            )
        for rule in jvps:
            if rule is not None:
                function(rule, "defjvps")
        self.jvp, self._one_by_one = None, jvps

    def run_forward(self, args: Sequence[Any]) -> tuple[Any, Any]:
        """The result, and no residuals."""
        return converted(self.fun)(*args), None

    def tangents(
        self,
        call: BoundRule,
        primals: tuple[Array, ...],
        tangents: tuple[Array, ...],
        outs: Sequence[Any],
    ) -> list[Any]:
        """The leaves of the tangent of the result."""
        if self._one_by_one is not None:
            return self._summed(call, primals, tangents, call.results(outs))
        assert self.jvp is not None
        returned = self.jvp(*call.nondiff, primals, tangents)
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            raise RuleError(
                f"the rule of {self.name} returned a {type(returned).__name__}. Return a pair: the "
                f"result, and its tangent{at(user_line())}."
            )
        call.check_same_specs(returned[0], outs, "the rule")
        return call.of_out(returned[1], "the rule")

    def _summed(self, call: BoundRule, primals: Any, tangents: Any, out: Any) -> list[Any]:
        assert self._one_by_one is not None
        if len(self._one_by_one) != len(primals):
            raise RuleError(
                f"defjvps of {self.name} was given {len(self._one_by_one)} rules, and it is called "
                f"with {len(primals)} arguments. Give one for each, None where the derivative is "
                f"zero{at(user_line())}."
            )
        total: list[Any] | None = None
        for rule, dot in zip(self._one_by_one, tangents, strict=True):
            if rule is None or all(x is None for x in pytree.flatten(dot)[0]):
                continue
            leaves = call.of_out(rule(dot, out, *primals), "a rule")
            total = (
                leaves
                if total is None
                else [_plus(a, b) for a, b in zip(total, leaves, strict=True)]
            )
        return call.of_out(None, "") if total is None else total


def _plus(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b


class custom_vjp(_Custom):
    """Define the derivative of a function by a rule for cotangents (a decorator).

    Parameters
    ----------
    fun : callable
        Of arrays, numbers and nested containers of them.
    nondiff_argnums : int or sequence of int, optional
        Arguments that are not arrays (functions, options): they are passed to `fwd` like to `fun`,
        and to `bwd` first.
    nondiff_argnames : str or sequence of str, optional
        The same by name.

    Returns
    -------
    custom_vjp
        Called like `fun`. `defvjp` states the rule.

    Raises
    ------
    NotDifferentiableError
        The derivative with respect to a captured value is needed, or there is no rule.
    RuleError
        The result of the rule has the wrong structure, shape or dtype; or forward mode is needed,
        and `bwd` is not linear in the cotangent.

    See Also
    --------
    custom_jvp : a rule for tangents.

    Notes
    -----
    Forward mode is the transpose of `bwd`, which must be linear in the cotangent. Derivatives of
    higher order differentiate `fwd` and `bwd`. In a graph all three are traced, and their
    operations are part of the graph.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> @wg.custom_vjp
    ... def clipped(x, limit):
    ...     return x
    >>> def fwd(x, limit):
    ...     return x, limit
    >>> def bwd(limit, g):
    ...     return np.clip(g, -limit, limit), None
    >>> clipped.defvjp(fwd, bwd)
    >>> float(wg.grad(lambda x: 5.0 * clipped(x, 1.0))(2.0))
    1.0
    """

    __module__ = "wengert"

    kind = "custom_vjp"
    has_jvp = False

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: int | Iterable[int] = (),
        nondiff_argnames: str | Iterable[str] = (),
    ) -> None:
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None

    @property
    def has_vjp(self) -> bool:
        """Whether there is a rule."""
        return self.fwd is not None

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Define the rule.

        Parameters
        ----------
        fwd : callable
            Takes the arguments of `fun`; returns ``(result, residuals)``.
        bwd : callable
            ``bwd(*nondiff, residuals, cotangent)`` returns a tuple with a cotangent for each
            differentiable argument, or None for zero. The cotangent of an integer result is None.
        symbolic_zeros : bool, default False
            Not supported: zeros are arrays. When compiled, products with them are removed.
        optimize_remat : bool, default False
            No effect: unused results of `fwd` are always removed from a graph.
        """
        _refuse_symbolic_zeros(symbolic_zeros, self.kind)
        function(fwd, "defvjp")
        function(bwd, "defvjp")
        self.fwd, self.bwd = fwd, bwd

    def run_forward(self, args: Sequence[Any]) -> tuple[Any, Any]:
        """The result, and the residuals in a tuple; without a rule, the result alone."""
        if self.fwd is None:
            return converted(self.fun)(*args), None
        returned = converted(self.fwd)(*args)
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            raise RuleError(
                f"fwd of {self.name} returned a {type(returned).__name__}. Return a pair: the "
                f"result, and the residuals for bwd{at(user_line())}."
            )
        return returned[0], (returned[1],)


def _refuse_symbolic_zeros(requested: bool, kind: str) -> None:
    if requested:
        raise ArgumentError(
            f"{kind}: symbolic_zeros=True is not supported. Tangents and cotangents that are zero "
            "are arrays of zeros, and compiled programs omit products with them. "
            f"Leave symbolic_zeros at False{at(user_line())}."
        )
