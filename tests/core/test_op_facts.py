"""Laws: each operation of the engine states the facts that others look up."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import (
    ARITHMETIC,
    AT_ORIGIN,
    BRANCH,
    INTEGRAND,
    LOOPS,
    REPLAY,
    Cost,
    call,
    facts,
)
from wengert._engine.kinds.elementwise import Elementwise
from wengert._engine.serialization.specs_json import is_library
from wengert.onnx.exporter import elementwise as exporter
from wengert.testing.laws.common import arguments_of


@pytest.fixture
def ops(request):
    """The operations of the library, not those that tests have registered."""
    found = request.config.operations
    return {n: op for n, op in found.items() if is_library(op) and not n.startswith("special.")}


def ufunc_of(op):
    """NumPy's ufunc that the operation is, if it is one."""
    found = getattr(op, "ufunc", None)
    return found if found is not None and getattr(np, found.__name__, None) is found else None


def slope(op, x):
    """The derivative of a function of one operand."""
    return op.rules[0](np.float64(1.0), np.float64(op.run(x)), np.float64(x))


def test_each_ufunc_states_its_cost(ops):
    ufuncs = [n for n, op in ops.items() if op.kind == "elementwise" and ufunc_of(op) is not None]
    assert len(ufuncs) > 80
    assert [n for n in ufuncs if ops[n].cost is None] == []


def test_each_operation_with_a_pole_states_a_remedy(ops):
    singular = [n for n, op in ops.items() if op.differentiation.singular]
    assert len(singular) >= 20
    assert [n for n in singular if ops[n].remedy.singular is None] == []


def test_each_function_that_becomes_flat_states_it(ops):
    found = set()
    for name, op in ops.items():
        if not isinstance(op, Elementwise) or len(op.arguments) > 1 or op.rules[0] is None:
            continue
        if op.discrete or op.differentiation.masks:
            continue
        with np.errstate(all="ignore"):
            ends = [x for x in (-800.0, 800.0) if np.isfinite(op.run(x))]
            if any(slope(op, x) == 0 for x in ends) and slope(op, 0.3) != 0:
                found.add(name)
    assert {"tanh", "silu", "exp", "erf"} <= found
    assert [n for n in found if not ops[n].zero_slope] == []


def test_a_flat_activation_is_diagnosed_as_saturated():
    found = wg.why(lambda x: np.sum(lookup("silu")(x)), np.full(3, -900.0))
    assert "flat in floating point" in str(found)


def test_each_operation_exported_by_name_states_it():
    names = {*exporter._UNARY, *exporter._SINGLE, *exporter._BINARY, *exporter._COMPARISONS}
    assert [n for n in names if lookup(n).onnx is None] == []


@pytest.mark.parametrize(
    ("cost", "weight", "recomputed"),
    [(ARITHMETIC, 1, True), (Cost(18.0), 4, True), (Cost(31.0), 4, False), (call(), 20, False)],
)
def test_weights_of_costs(cost, weight, recomputed):
    assert cost.weight == weight and cost.is_recomputed is recomputed


def test_facts_are_stated_at_the_operation():
    class Anything:
        pass

    op = facts(cost=call(2.0), zero_slope=AT_ORIGIN)(Anything())
    assert vars(op) == {"cost": call(2.0), "zero_slope": AT_ORIGIN}


def test_operations_with_bodies_state_what_these_are(ops):
    found = {n: op.control_flow for n, op in ops.items() if op.kind == "control"}
    assert {"scan", "while", "cond", "switch", "checkpointed", "replay"} <= set(found)
    assert set(found.values()) == {*LOOPS, BRANCH, REPLAY, INTEGRAND}


def test_operands_that_select_are_stated(ops, rng):
    for name, op in ops.items():
        if op.kind not in ("view", "indexing", "elementwise") or op.discrete:
            continue
        for args, _ in arguments_of(op, rng):
            selectors = range(len(args))[op.selectors]
            for k, x in enumerate(args):
                is_selector = np.asarray(x).dtype.kind in (
                    "b" if op.kind == "elementwise" else "bi"
                )
                is_array = any(np.asarray(a).dtype.kind in "fc" for a in args)
                assert not is_array or not is_selector or k in selectors, (name, k)


def test_arrays_of_equal_elements_are_stated(ops, rng):
    for name, op in ops.items():
        if op.kind == "creation":
            values = [np.asarray(op.run(**params)) for _, params in op.make_examples(rng)]
            equal = all((x == x.flat[0]).all() for x in values if x.size)
            assert equal == op.aliasing.uniform, name
