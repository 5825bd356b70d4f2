"""why, asked about every operation of the registry, at good and at bad points.

The gradient it looks at is the one that grad gives, it fails where and only where grad fails, and
it has an answer wherever the gradient is zero or not finite.
"""

import warnings

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.op import REGISTRY
from wengert.testing.laws.common import arguments_of


def pytest_generate_tests(metafunc):
    if "name" in metafunc.fixturenames:
        operations = metafunc.config.operations
        metafunc.parametrize("name", sorted(n for n, op in operations.items() if _examples(op)))


def _examples(op):
    return getattr(op, "make_examples", None) or getattr(op, "domain", None)


def summed(op, args, params, chosen):
    def f(*xs):
        full = list(args)
        for k, x in zip(chosen, xs, strict=True):
            full[k] = x
        out = op(*full, **params)
        parts = out if isinstance(out, tuple) else (out,)
        return sum((np.sum(np.real(p)) for p in parts if p.dtype.kind in "fc"), 0.0)

    return f


def gradient_or_error(f, values):
    try:
        return wg.grad(f, argnums=tuple(range(len(values))))(*values)
    except Exception as error:
        return error


@pytest.mark.sample(95)
@pytest.mark.parametrize(
    "scale",
    [
        0.0,
        pytest.param(np.nan, marks=pytest.mark.slow),
        pytest.param(1.0, marks=pytest.mark.slow),
        pytest.param(1e200, marks=pytest.mark.slow),
    ],
)
def test_an_answer_for_every_operation(name, scale):
    op = REGISTRY[name]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for args, params in list(arguments_of(op, np.random.default_rng(0)))[:2]:
            chosen = [k for k, a in enumerate(args) if np.asarray(a).dtype.kind in "fc"]
            values = [np.asarray(args[k])[()] * scale for k in chosen]
            if chosen:
                # The parts of these run one by one, and are added in another order.
                rounding = 1e-15 if op.kind in ("control", "opaque") else 0.0
                check(summed(op, args, params, chosen), values, rounding)


def check(f, values, rounding):
    expected = gradient_or_error(f, values)
    try:
        found = wg.why(f, *values, argnums=tuple(range(len(values))))
    except Exception as error:
        assert type(error) is type(expected), error
        return
    assert found.summary in str(found)
    if isinstance(expected, Exception):
        assert "error" in found.symptoms
        return
    for want, got in zip(expected, found.gradient, strict=True):
        if got is None:
            assert not np.any(want) and "disconnected" in found.symptoms
            continue
        np.testing.assert_allclose(got, want, rtol=rounding)
        if not np.all(np.isfinite(want)):
            assert {"nan", "infinite"} & set(found.symptoms)
        elif want.size and not np.any(want):
            assert found


@pytest.mark.sample(43)
def test_an_answer_for_every_element_of_zero(name):
    op = REGISTRY[name]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for args, params in list(arguments_of(op, np.random.default_rng(0)))[:2]:
            chosen = [k for k, a in enumerate(args) if np.asarray(a).dtype.kind in "fc"]
            for k in chosen:
                f, x = summed(op, args, params, [k]), np.asarray(args[k])[()]
                gradient = gradient_or_error(f, [x])
                if not isinstance(gradient, Exception):
                    check_elements(f, x, gradient[0])


def check_elements(f, x, gradient):
    for index in list(np.ndindex(*np.shape(gradient)))[:3]:
        found = wg.why(f, x, index=index)
        assert bool(found) == (not np.isfinite(gradient[index]) or gradient[index] == 0)
