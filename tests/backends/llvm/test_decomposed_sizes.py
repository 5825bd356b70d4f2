"""Operations that are defined by others: for symbolic sizes the definition must permit all.

Otherwise nobody checks the sizes, and the program reads elements that were never written.
"""

import numpy as np
import pytest

from wengert._engine.backends.llvm.lowering.registry import composed
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import dim
from wengert._engine.graphs.trace import trace


def norm(a):
    return np.linalg.norm(a, "nuc", axis=(-2, -1))


def node_of(shape):
    graph = trace(norm)(Spec(shape, np.dtype(float)))
    return next(n for n in graph.nodes if n.op.name == "nuclear_norm")


def test_a_definition_that_needs_more_rows_than_columns_is_not_used_for_all_sizes():
    assert composed(node_of((dim("n"), dim("m")))) is None
    assert composed(node_of((dim("n"), dim("n")))) is not None
    assert composed(node_of((3, 5))) is not None


@pytest.mark.parametrize("shape", [(2, 2, 5), (2, 5, 2), (3, 3, 5)])
def test_values_for_all_sizes(shape):
    graph = trace(norm)(Spec((dim("b"), dim("n"), dim("m")), np.dtype(float)))
    a = np.random.default_rng(0).normal(size=shape)
    np.testing.assert_allclose(graph.run(a, backend="llvm"), norm(a), rtol=1e-12)
