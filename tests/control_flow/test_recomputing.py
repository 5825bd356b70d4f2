"""`wengert.checkpoint` in graphs and compiled: computed again, and not kept."""

import io

import numpy as np
import pytest

import wengert as wg
from wengert.errors import MutatedError, TraceError

RNG = np.random.default_rng(0)
W = RNG.normal(size=(20, 20)) * 0.2
X = RNG.normal(size=(30, 20))
V = RNG.normal(size=5) * 0.5


def block(x):
    for _ in range(6):
        x = np.tanh(x @ W)
    return x


def network(layer):
    def f(x):
        for _ in range(5):
            x = layer(x)
        return np.sum(x * x)

    return f


def cell(c):
    for _ in range(4):
        c = np.sin(c) * c + 0.1 * np.tanh(c)
    return c


def looped(layer):
    return lambda x: np.sum(wg.scan(lambda c, _: (layer(c), None), x, None, length=40)[0])


def workspace(f, x):
    return wg.explain(wg.grad(f), simplify=True, backend="llvm")(x).program.workspace / x.nbytes


def test_what_the_forward_pass_computed_is_not_kept():
    kept, again = workspace(network(block), X), workspace(network(wg.checkpoint(block)), X)
    assert kept >= 30 and again <= 12  # 5 blocks of 6 layers; 5 arguments and the 6 of one block
    kept, again = workspace(looped(cell), V), workspace(looped(wg.checkpoint(cell)), V)
    assert kept > 4 * 40 and again < 1.5 * 40  # of a loop the carry of each step


def test_nothing_merges_what_is_computed_again():
    once, again = (
        [n.op.name for n in wg.trace(wg.grad(network(f)))(wg.spec(X.shape)).simplify().nodes]
        for f in (block, wg.checkpoint(block))
    )
    lowered = str(wg.jit(wg.grad(network(wg.checkpoint(block)))).lower(X).graph)
    # A tanh keeps its result, so the first of them does not need its own argument again.
    assert once.count("matmul") + 30 == lowered.count("matmul") and again.count("matmul") >= 30
    assert lowered.count("tanh") >= 2 * once.count("tanh") - 5


def singular(x):
    return np.where(x > 0, np.sqrt(np.abs(x)), 0.0)


def branching(x):
    return wg.cond(np.sum(x) > 0, np.sin, np.cos, wg.fori_loop(0, 3, lambda i, y: y * x, x))


LAYERS = {
    "cell": cell,
    "singular": lambda x: singular(x - x[0]),
    "loops": branching,
    "captured": lambda x: np.sin(x * V),
    "an integer beside": lambda x: x * np.argmax(x),
    "views": lambda x: np.concatenate([x[1:] ** 2, x[:1]])[::-1],
}


@pytest.mark.sample(1)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_every_derivative_is_that_of_the_function(layer):
    f = lambda x: np.sum(layer(x) ** 2)  # noqa: E731
    g = lambda x: np.sum(wg.checkpoint(layer)(x) ** 2)  # noqa: E731
    for of in (
        wg.grad,
        wg.hessian,
        lambda f: wg.jacfwd(wg.grad(f)),
        lambda f: lambda x: wg.jvp(f, (x,), (np.cos(x),))[1],
        lambda f: lambda x: wg.vmap(wg.grad(f))(np.stack([x, 2.0 * x])),
        lambda f: wg.grad(wg.checkpoint(f)),
    ):
        wanted = of(f)(V)
        for found in (wg.jit(of(g))(V), wg.trace(of(g))(wg.spec(5))(V)):
            np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


def test_containers_static_arguments_and_captured_tensors():
    w = wg.tensor(V, requires_grad=True)

    def f(p, power, scale=1.0):
        return {"loss": np.sum(np.sin(p["x"] * w) ** power) * scale, "n": p["n"], "none": None}

    def loss(x, s):
        return wg.checkpoint(f)({"x": x, "n": 3}, 2, scale=s)["loss"]

    plain = lambda x, s: np.sum(np.sin(x * V) ** 2) * s  # noqa: E731
    for a, b in zip(
        wg.jit(wg.grad(loss, (0, 1)))(V, 2.0), wg.grad(plain, (0, 1))(V, 2.0), strict=True
    ):
        np.testing.assert_allclose(wg.stop_gradient(a), b, rtol=1e-13)
    wg.jit(loss)(V, 2.0).backward()
    np.testing.assert_allclose(w.grad, wg.grad(lambda w: np.sum(np.sin(V * w) ** 2) * 2.0)(V))
    inner = lambda s: wg.checkpoint(lambda: np.sum(s * V) ** 2)()  # noqa: E731
    assert np.isclose(wg.jit(wg.grad(inner))(2.0), 4.0 * np.sum(V) ** 2)


def test_kept_in_a_file():
    f = lambda x: np.sum(wg.checkpoint(cell)(x) ** 2)  # noqa: E731
    file = io.BytesIO()
    wg.save(wg.trace(f)(wg.spec("n")), file)
    file.seek(0)
    graph = wg.load(file)
    for of in (wg.grad, lambda f: wg.jit(wg.grad(f))):
        np.testing.assert_allclose(of(lambda x: graph(x))(V), wg.grad(f)(V), rtol=1e-13)
    assert workspace(lambda x: graph(x), V) == workspace(f, V)


def test_a_rule_with_a_derivative_inside_is_kept_in_a_file():
    @wg.custom_vjp
    def double(x):
        return np.sin(x)

    double.defvjp(lambda x: (np.sin(x), x), lambda x, g: (wg.vjp(np.sin, x)[1](g)[0],))
    file = io.BytesIO()
    wg.save(wg.trace(lambda x: np.sum(double(x)))(wg.spec("n")), file)
    file.seek(0)
    graph = wg.load(file)
    np.testing.assert_allclose(wg.grad(lambda x: graph(x))(V), np.cos(V))


def test_what_would_happen_twice_is_refused():
    rng = wg.random.default_rng(0)
    total = wg.tensor(np.zeros(5), requires_grad=True)

    def writes(x):
        total[...] = total + x
        return x

    def overwrites(x):
        x[0] = 0.0
        return x

    for f, error, message in (
        (lambda x: (wg.debug.show(x), x)[1], TraceError, "would be repeated.*as an argument"),
        (lambda x: x * rng.random(5), TraceError, "would be repeated.*as an argument"),
        (writes, TraceError, "would be repeated"),
        (overwrites, MutatedError, r"x\.copy\(\)"),
    ):
        loss = lambda x, f=f: np.sum(wg.checkpoint(f)(x * 1.0))  # noqa: E731
        with pytest.raises(error, match=rf"(?s){message}.*test_recomputing\.py"):
            wg.trace(wg.grad(loss))(V)
