"""Shape rules that several operations share.

An operation defines its rule with `@op.spec`; without a rule it is run on examples (core/op.py; if
sizes are symbolic, core/shape_inference_by_example.py).  Dtypes are those of NumPy.

    of_elements      the shape that the operands broadcast to
    of_matrices      shapes by a rule for the last axes
    small_run        the spec of the result for operands with one element
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from wengert._engine.core.errors_ignored import call_ignoring_errors
from wengert._engine.core.spec import Spec, example_of, spec_of
from wengert._engine.core.static_params import sizes_of, substituted
from wengert._engine.core.symbolic.constraints import broadcast

if TYPE_CHECKING:
    from wengert._engine.core.dispatch import Operation


def small_run(op: Operation, specs: Sequence[Spec], params: dict[str, Any]) -> Any:
    """The spec of the result for operands whose axes have length one."""
    small = [s if s.weak else Spec((1,) * len(s.shape), s.dtype) for s in specs]
    names = sizes_of(params)
    if names:
        params = substituted(params, dict.fromkeys(names, 1))
    return spec_of(call_ignoring_errors(op.run, *map(example_of, small), **params))


def of_elements(*ops: Any) -> None:
    """Define that the result has the shape that the operands broadcast to."""
    for op in ops:
        _define(op, lambda specs, params: broadcast(*[s.shape for s in specs]))


def _define(op: Any, shape_of: Callable[[Any, Any], Any]) -> None:
    def rule(*specs: Spec, **params: Any) -> Any:
        one = small_run(op, specs, params)
        shape = shape_of(specs, params)
        if isinstance(one, tuple):
            return tuple(Spec(shape, s.dtype) for s in one)
        return Spec(shape, one.dtype)

    op.spec(rule)


def of_matrices(op: Any, rule: Callable[..., Any]) -> None:
    """Define the shapes of the results: `rule(*shapes, **params)`, from those of the operands.

    It returns one shape, or a list of them for an operation with several results.
    """

    def spec(*specs: Spec, **params: Any) -> Any:
        small = small_run(op, specs, params)
        shapes = rule(*[s.shape for s in specs], **params)
        if isinstance(small, tuple):
            return tuple(
                Spec(tuple(shape), s.dtype) for shape, s in zip(shapes, small, strict=True)
            )
        return Spec(tuple(shapes), small.dtype)

    op.spec(spec)
