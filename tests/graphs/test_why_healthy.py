"""why: ordinary programs have no findings."""

import inspect

import numpy as np
import pytest

import wengert as wg


def marked(f):
    """The number of the line of a function that bears the mark `# here`."""
    lines, first = inspect.getsourcelines(f)
    return first + next(k for k, text in enumerate(lines) if "# here" in text)


X = np.array([1.5, 0.5, 2.5])


# ---- no false alarms ---------------------------------------------------------------------------


def regression(w):
    rng = np.random.default_rng(0)
    a, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    return np.mean((a @ w - y) ** 2)


def network(w):
    rng = np.random.default_rng(1)
    h = rng.normal(size=(8, 3))
    for _ in range(3):
        h = wg.nn.functional.relu(h @ (np.eye(3) + np.outer(w, w) * 0.1))
    return np.mean(h)


def guarded_entropy(p):
    return np.sum(np.where(p > 0, -p * np.log(np.where(p > 0, p, 1.0)), 0.0))


def unguarded_entropy(p):
    return np.sum(np.where(p > 0, -p * np.log(p), 0.0))


def softmax_loss(x):
    return -wg.nn.functional.log_softmax(x)[0]


def in_place(x):
    h = np.zeros(3, like=x)
    for i in range(3):
        h[i] = x[i] ** 2
    h += 1.0
    return np.sum(np.sqrt(h))


def partly_dead(x):
    return np.sum(np.maximum(x, 1.0)) + np.sum(np.clip(x, 0.0, 1.0))


def masked_scores(x):
    scores = np.where(np.array([True, False, True]), x, -np.inf)
    return np.log(np.sum(np.exp(scores)))


def sorted_values(x):
    return np.sum(np.sort(x) * np.arange(1.0, 4.0))


def linear_algebra(x):
    a = np.outer(x, x) + np.eye(3)
    return np.linalg.slogdet(a)[1] + np.linalg.norm(np.linalg.solve(a, x))


def spectral(x):
    waves = np.exp(2j * np.pi * np.outer(np.arange(3), np.arange(3)) / 3)
    return np.sum(np.abs(waves @ x) ** 4)


@pytest.mark.parametrize(
    "f",
    [
        regression,
        network,
        guarded_entropy,
        unguarded_entropy,
        softmax_loss,
        in_place,
        partly_dead,
        masked_scores,
        sorted_values,
        linear_algebra,
        spectral,
    ],
)
def test_ordinary_programs_have_no_findings(f):
    x = np.array([0.0, 0.3, 0.7]) if "entropy" in f.__name__ else X
    found = wg.why(f, x)
    assert not found, str(found)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found.gradient, wg.grad(f)(x))
    assert not wg.why(f, x.astype(np.float32))


@pytest.mark.parametrize("f", [regression, softmax_loss, in_place, linear_algebra])
def test_second_derivatives_of_ordinary_programs(f):
    direction = np.array([0.3, -0.2, 0.5])
    found = wg.why(lambda x: np.sum(wg.grad(f)(x) * direction), X)
    assert not found, str(found)


def test_complex_programs_have_no_findings():
    def f(z):
        return np.sum(np.abs(np.exp(z) * z) ** 2)

    z = np.array([0.5 + 1.0j, -0.3j])
    found = wg.why(f, z)
    assert not found
    np.testing.assert_allclose(found.gradient, wg.grad(f)(z))


def test_containers():
    params = {"w": X, "b": 0.5}
    found = wg.why(lambda p: np.sum(p["w"] * 2.0 + p["b"]), params)
    assert not found and set(found.gradient) == {"w", "b"}
    found = wg.why(lambda p: np.sum(p["w"] * 2.0), params)
    assert found.kinds == ("unused",) and "['b']" in found[0].message


def test_modules():
    model = wg.nn.Linear(3, 2)
    loss = (model(wg.tensor(X)) ** 2).sum()
    assert not wg.why(loss, model)
    assert not wg.why(loss)
    model.weight.data = 0.0 * model.weight.numpy()
    model.bias.data = np.full(2, -1.0)
    found = wg.why(wg.nn.functional.relu(model(wg.tensor(X))).sum(), model)
    assert found.kinds == ("saturated",) and not found[0].message.startswith("[by")
    found = wg.why((model(wg.tensor(0.0 * X)) ** 2).sum(), model)
    assert found.kinds == ("multiplied",) and found[0].message.startswith("[x['weight']]")
