"""An iterative method of SciPy as one operation, whose parameters are matrices and options.

In a compiled function it is a host callback, which calls SciPy with compiled products.

    IterativeMethod   the interface of a method
    iterative_method  the operation; it has no derivative (iterative_systems.py)
    run_method        the same for plain values
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.handle import is_traced
from wengert._engine.core.op_facts import BY_SCIPY
from wengert._engine.core.spec import Spec
from wengert._engine.kinds.opaque import opaque

from .linear_operator import LinearOperator
from .matrix_functions import MatrixFunction, of_operator


class IterativeMethod:
    """A method with its options; hashable, compared by content."""

    def __call__(self, matrices: Sequence[Any], starts: Sequence[Any]) -> tuple[Any, ...]:
        """The results, for SciPy's matrices and plain values."""
        raise NotImplementedError

    def specs(self, matrices: Sequence[MatrixFunction]) -> tuple[Spec, ...]:
        """The specs of the results."""
        raise NotImplementedError


def run_method(
    operands: Sequence[Any],
    matrices: Sequence[MatrixFunction],
    method: IterativeMethod,
    compiled: bool,
) -> tuple[Any, ...]:
    """The results for plain operands: captured values of each matrix, then the starts."""
    made, begin = [], 0
    for matrix in matrices:
        consts = list(operands[begin : begin + matrix.captured])
        made.append(matrix.scipy_matrix(consts, compiled))
        begin += matrix.captured
    results = method(made, [np.array(x) for x in operands[begin:]])
    specs = method.specs(matrices)
    return tuple([_fitted(x, s) for x, s in zip(results, specs, strict=True)])


def _fitted(x: Any, spec: Spec) -> Any:
    """A result with the dtype of its spec: some methods return complex numbers for real ones."""
    x = np.asarray(x)
    return (x.real if x.dtype.kind == "c" != spec.dtype.kind else x).astype(spec.dtype)


class _Example(IterativeMethod):
    """Richardson's iteration, for the example of the operation."""

    def __call__(self, matrices: Sequence[Any], starts: Sequence[Any]) -> tuple[Any, ...]:
        """Two hundred steps."""
        (b,), x = starts, np.zeros(1)
        for _ in range(200):
            x = x + 0.3 * (b - matrices[0].matvec(x))
        return x, np.int64(0)

    def specs(self, matrices: Sequence[MatrixFunction]) -> tuple[Spec, ...]:
        """A vector and a number."""
        return Spec((1,), np.dtype(float)), Spec((), np.dtype(np.int64))

    def __eq__(self, other: object) -> bool:
        return type(other) is _Example

    def __hash__(self) -> int:
        return hash(_Example)


def _oracle(c: Any, b: Any, **params: Any) -> Any:
    """The solution of the example."""
    return b / c, np.int64(0)


@opaque(name="sparse.iterative_method", trusted=True, oracle=_oracle)
def iterative_method(*operands: Any, matrices: Any, method: Any) -> Any:
    """The results of an iterative method of SciPy."""
    return run_method(operands, matrices, method, compiled=True)


iterative_method.host_callback = BY_SCIPY


@iterative_method.spec
def _(*operands: Spec, matrices: Any, method: Any) -> Any:
    return method.specs(matrices)


@iterative_method.examples
def _(rng: np.random.Generator) -> Any:
    from wengert._engine.core.handle import wrap
    from wengert._engine.core.recording import tracing_body
    from wengert._engine.core.tracing import placeholder

    with tracing_body():
        c = wrap(placeholder(Spec((1,), np.dtype(float))))
        operator = LinearOperator((1, 1), lambda x: c * x)
        matrix, _ = of_operator(operator, float, "an example")
    operands = np.array([rng.uniform(1.0, 2.0)]), np.array([rng.uniform(1.0, 9.0)])
    yield operands, {"matrices": (matrix,), "method": _Example()}


def results(
    operands: Sequence[Any], matrices: Sequence[MatrixFunction], method: IterativeMethod
) -> list[Any]:
    """The results of a method: computed, or as a node in a graph."""
    if any(map(is_traced, operands)):
        return list(iterative_method(*operands, matrices=tuple(matrices), method=method))
    return list(run_method(operands, matrices, method, compiled=False))
