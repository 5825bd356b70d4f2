"""What an operation of the library states about itself (core/op_facts.py) is true, and is there.

    range            holds of all values; elementwise operations that are never negative state it
    host_callback    exactly where native code calls the operation back in Python

Costs, remedies and zero slopes have tests of their own (tests/core/test_op_facts.py).  An operation
without an operator of ONNX is refused by name when it is exported.
"""

from itertools import islice
from math import inf

import numpy as np
import pytest
from wengert.backends import backend, backends

from wengert._engine.core.spec import is_inexact
from wengert._engine.graphs.trace import trace
from wengert._engine.rewrite.value_properties import facts_of_value
from wengert.errors import TraceError
from wengert.testing.laws.common import arguments_of
from wengert.testing.laws.tracing import special_operands

COMPILED = 4  # examples
ENOUGH = 40  # values that are all nonnegative


def values_of(op, rng):
    for args, params in (*arguments_of(op, rng), *special_operands(op)):
        with np.errstate(all="ignore"):
            out = op.run(*args, **params)
        if isinstance(out, tuple) or not is_inexact(np.asarray(out).dtype):
            return
        yield np.asarray(out)


def has_whole_domain(op):
    """Whether the examples of an elementwise operation are drawn from all real numbers."""
    domain = getattr(op, "domain", None)
    return domain is not None and all(low == -inf and high == inf for low, high in domain)


def test_the_range_of_values_is_stated(op, rng):
    found = list(values_of(op, rng))
    for out in found:
        assert op.range.always <= facts_of_value(out, max_elements=None), out
    real = [out for out in found if out.dtype.kind == "f"]
    if has_whole_domain(op) and sum(out.size for out in real) >= ENOUGH:
        is_nonnegative = all(
            "nonnegative" in facts_of_value(out, max_elements=None) for out in real
        )
        assert is_nonnegative == ("nonnegative" in op.range.always)


@pytest.mark.skipif("llvm" not in backends(), reason="needs the native backend")
def test_host_callbacks_are_stated(op, rng):
    called = False
    for args, params in islice(arguments_of(op, rng), COMPILED):
        run = (lambda *xs, p=params: op(*xs, **p)) if args else (lambda p=params: op.record(**p))
        try:
            graph = trace(run)(*args)
        except TraceError:  # the shape of the result depends on values
            return
        called |= any(node.op is op for node in backend("llvm").program(graph).host_callbacks)
    assert called == bool(op.host_callback)
