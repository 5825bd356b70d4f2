"""Every rule, on its own example: what matches becomes what the rule says, and means the same."""

import functools

import numpy as np
import pytest
from wengert.rewrite import NodeRule, Rule, simplify

import wengert as wg
import wengert.nn  # the operations softmax and log_softmax
from wengert._engine.core.graph_fingerprint import equals
from wengert._engine.core.op import lookup
from wengert._engine.rewrite.pattern import signature, together, traced
from wengert._engine.rewrite.rules import (
    algebra,
    constant_folding,
    contractions,
    derivative_guards,
    exponentials,
    overflowed_values,
    shapes,
    stabilize,
    store_forwarding,
)

FAMILIES = (
    algebra, contractions, derivative_guards, exponentials, constant_folding,
    overflowed_values, shapes, stabilize, store_forwarding,
)  # fmt: skip
RULES = [r for family in FAMILIES for r in family.RULES]
PATTERNS = [r for r in RULES if isinstance(r, Rule) and not callable((*r.example, None)[0])]
OTHERS = [r for r in RULES if r not in PATTERNS]


def name(r):
    return r.name


def arguments(rule):
    """The arrays and the parameters of an example."""
    if len(rule.example) == 2 and isinstance(rule.example[1], dict):
        return rule.example
    return rule.example, {}


def assert_same(got, wanted, exact):
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    if not exact:
        np.testing.assert_allclose(got, wanted, rtol=1e-13, atol=1e-15)
        return
    np.testing.assert_array_equal(got, wanted)
    if got.dtype.kind in "fc":
        number = ~np.isnan(got)
        np.testing.assert_array_equal(np.signbit(got.real)[number], np.signbit(wanted.real)[number])


def test_names_are_unique():
    assert len({r.name for r in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", PATTERNS, ids=name)
def test_a_pattern_becomes_its_replacement(rule):
    arrays, params = arguments(rule)
    assert arrays, "a rule needs an example"
    before = wg.trace(lambda *xs: rule.pattern(*xs, **params))(*arrays)
    after = simplify(before, [[rule]], history=True)
    assert {a.rule for step in after.history for a in step.applied} == {rule.name}
    after.verify()
    kept = [arrays[rule.operands.index(n)] for n in rule.operands]
    names = rule.replacement.__code__.co_varnames[: rule.replacement.__code__.co_argcount]

    def replacement(*xs):
        return rule.replacement(*[xs[rule.operands.index(n)] for n in names], **params)

    wanted = wg.trace(replacement)(*kept)
    if wanted.outputs[0].op.name != "constant":  # it has the dtype and shape of what it replaces
        assert equals(after, wanted), f"{after}\n\n{wanted}"
    with np.errstate(all="ignore"):
        assert_same(after(*arrays), before(*arrays), rule.exact)


@pytest.mark.parametrize("rule", [r for r in OTHERS if r.example], ids=name)
def test_a_function_of_a_line_applies_to_its_example(rule):
    fun, *arrays = rule.example
    before = wg.trace(fun)(*arrays)
    after = simplify(before, [[rule]], history=True)
    assert rule.name in {a.rule for step in after.history for a in step.applied}
    after.verify()
    assert not equals(after, before)
    with np.errstate(all="ignore"):
        assert_same(after(*arrays), before(*arrays), rule.exact)


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_a_rule_says_why(rule):
    assert rule.example or rule is stabilize.log_of_softmax
    if isinstance(rule, NodeRule) or not rule.exact:
        assert rule.reason


def test_log_of_the_operation_softmax():
    x = np.array([[0.0, 800.0], [1.0, 2.0]])
    graph = wg.trace(lambda x: np.log(wg.nn.functional.softmax(x, axis=0)))(x)
    after = simplify(graph, [[stabilize.log_of_softmax]])
    assert equals(after, wg.trace(lambda x: wg.nn.functional.log_softmax(x, axis=0))(x))
    assert np.isfinite(after(x)).all()


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, 1e308, 0.1, -3.5, 2.0])


@pytest.mark.parametrize(
    "rule", [r for r in PATTERNS if r.exact and "f" in r.kinds and r.condition is None], ids=name
)
def test_exact_rules_keep_every_bit_of_special_values(rule):
    pairs = np.stack(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)
    arrays = [pairs[i % 2] for i in range(len(rule.operands))]
    for i, operand in enumerate(rule.operands):
        if operand == "c":
            arrays[i] = pairs[1] > 0
    before = wg.trace(rule.pattern)(*arrays)
    after = simplify(before, [[rule]])
    assert after is not before or rule.name.startswith("conj(x)")
    with np.errstate(all="ignore"):
        assert_same(after(*arrays), before(*arrays), True)


@pytest.mark.sample(214)
@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64", "int64", "int8", "uint8"])
@pytest.mark.parametrize("rule", PATTERNS, ids=name)
def test_other_dtypes_are_kept_or_left_alone(rule, dtype):
    arrays, params = arguments(rule)
    cast = [a if a.dtype == bool else np.abs(np.nan_to_num(a)).astype(dtype) for a in arrays]
    try:
        before = wg.trace(lambda *xs: rule.pattern(*xs, **params))(*cast)
    except (wg.WengertError, TypeError):
        return  # NumPy has no such operation of this dtype
    after = simplify(before, [[rule]])
    after.verify()
    try:
        with np.errstate(all="ignore"):
            wanted = np.asarray(before(*cast))
    except OverflowError:
        return  # -1 as a uint8
    with np.errstate(all="ignore"):
        got = np.asarray(after(*cast))
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    if rule.exact or dtype in ("int64", "int8", "uint8"):
        np.testing.assert_allclose(got, wanted, rtol=1e-14 if wanted.dtype.kind == "f" else 0)
    else:
        # At least as accurate, so they may differ by what the original is wrong.
        np.testing.assert_allclose(got, wanted, rtol=2e-2 if dtype == "float16" else 1e-5)


def test_arguments_of_patterns():
    def decorated(f):
        return functools.wraps(f)(lambda *args, **kwargs: f(*args, **kwargs))

    for fun, wanted in [
        (lambda x, y: x + y, (("x", "y"), ())),
        (lambda x, /, y, *, axis, keep=False: x + y, (("x", "y"), ("axis", "keep"))),
        (lambda: 1.0, ((), ())),
        (decorated(lambda x, *, axis: x), (("x",), ("axis",))),
        (functools.partial(lambda x, y: x + y, 1.0), (("y",), ())),
    ]:
        assert signature(fun) == wanted
    for fun in (lambda *xs: xs, lambda x, **kw: x):
        with pytest.raises(wg.errors.ArgumentError, match="Name every operand"):
            signature(fun)


def test_patterns_traced_together_are_those_traced_alone():
    rules = [r for r in RULES if isinstance(r, Rule)]
    alone = [repr(traced(r.pattern, r.operands, *r._options)) for r in rules]
    seen = together(lambda: [repr(traced(r.pattern, r.operands, *r._options)) for r in rules])
    assert len(rules) > 40 and seen == alone


def test_patterns_are_traced_whatever_is_open():
    rule = next(r for r in RULES if isinstance(r, Rule))
    alone = repr(traced(rule.pattern, rule.operands, *rule._options))

    def inside(x):
        with wg.scope("model"), wg.no_grad():
            assert repr(traced(rule.pattern, rule.operands, *rule._options)) == alone
        return x * 2.0

    wg.trace(inside)(1.0)


def test_parameters_that_are_not_given_have_their_defaults():
    """The rule for norms that overflow passes `keepdims` on, which a node need not have."""
    norm = lookup("norm2")
    with np.errstate(over="ignore"):
        slope = wg.grad(lambda x: np.sum(norm(x, axis=1)))(np.full((2, 3), 1e200))
    np.testing.assert_allclose(slope, np.full((2, 3), 3**-0.5))
