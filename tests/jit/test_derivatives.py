"""Functions of functions: derivatives and rows of compiled functions, compiled ones of those."""

import numpy as np
import pytest

import wengert as wg
from wengert import nn, optim

X = np.array([0.5, -1.0, 2.0])


def f(x):
    return np.sum(np.sin(x) * x**2) + np.exp(0.1 * x[0] * x[1])


def close(a, b):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12, atol=1e-14)


WAYS = {
    "grad of jit": (lambda j: wg.grad(j), wg.grad(f)),
    "jit of grad": (lambda j: wg.jit(wg.grad(f)), wg.grad(f)),
    "jit of grad of jit": (lambda j: wg.jit(wg.grad(j)), wg.grad(f)),
    "jit of jit": (lambda j: wg.jit(j), f),
    "hessian of jit": (lambda j: wg.hessian(j), wg.hessian(f)),
    "jacfwd of jit": (lambda j: wg.jacfwd(j), wg.grad(f)),
    "jacrev of jit": (lambda j: wg.jacrev(j), wg.grad(f)),
    "grad of grad": (
        lambda j: wg.grad(lambda x: np.sum(wg.grad(j)(x) ** 2)),
        wg.grad(lambda x: np.sum(wg.grad(f)(x) ** 2)),
    ),
    "third order": (
        lambda j: wg.grad(lambda x: np.sum(wg.hessian(j)(x) ** 2)),
        wg.grad(lambda x: np.sum(wg.hessian(f)(x) ** 2)),
    ),
    "jvp of jit": (
        lambda j: lambda x: wg.jvp(j, (x,), (x + 1.0,))[1],
        lambda x: wg.jvp(f, (x,), (x + 1.0,))[1],
    ),
    "vjp of jit": (
        lambda j: lambda x: wg.vjp(j, x)[1](2.0)[0],
        lambda x: wg.vjp(f, x)[1](2.0)[0],
    ),
    "grad of jvp of jit": (
        lambda j: wg.grad(lambda x: wg.jvp(j, (x,), (x + 1.0,))[1]),
        wg.grad(lambda x: wg.jvp(f, (x,), (x + 1.0,))[1]),
    ),
    "hvp of jit": (
        lambda j: lambda x: wg.hvp(j, (x,), (x,)),
        lambda x: wg.hvp(f, (x,), (x,)),
    ),
    "linearize": (
        lambda j: lambda x: wg.linearize(j, x)[1](x),
        lambda x: wg.linearize(f, x)[1](x),
    ),
    "checkpoint": (lambda j: wg.grad(wg.checkpoint(j)), wg.grad(f)),
}


@pytest.mark.sample(12)
@pytest.mark.parametrize("way", WAYS)
def test_by_one_argument(way):
    make, want = WAYS[way]
    got = make(wg.jit(f))
    for x in (X, X + 0.25, X):
        close(got(x), want(x))


def test_rows():
    rows = np.stack([X, X + 1.0, X * 2.0, X - 3.0])
    j = wg.jit(f)
    close(wg.vmap(j)(rows), [f(x) for x in rows])
    close(wg.jit(wg.vmap(wg.hessian(f)))(rows), [wg.hessian(f)(x) for x in rows])
    close(wg.jit(wg.vmap(wg.grad(j)))(rows), [wg.grad(f)(x) for x in rows])
    close(wg.vmap(wg.grad(j))(rows), [wg.grad(f)(x) for x in rows])


def test_several_outputs_and_arguments():
    def g(p, y):
        a = np.sin(p["a"]) * y
        return {"a": a, "n": np.argmax(a), "sum": np.sum(a * p["b"])}

    j = wg.jit(g)
    p = {"a": X, "b": X + 2.0}

    def loss(g):
        return lambda p, y: g(p, y)["sum"] ** 2 + np.sum(g(p, y)["a"])

    got, want = wg.grad(loss(j), (0, 1))(p, X), wg.grad(loss(g), (0, 1))(p, X)
    for k in "ab":
        close(got[0][k], want[0][k])
    close(got[1], want[1])
    assert not j({"a": wg.tensor(X, requires_grad=True), "b": X}, X)["n"].requires_grad


def test_through_tensors_with_history():
    def way(g):
        w = wg.tensor(X, requires_grad=True)
        loss = np.sum(g(w * 2.0, 3.0) ** 2)
        loss.backward(create_graph=True)
        first = w.grad
        w.grad = None
        np.sum(first**2).backward()
        return first.detach().numpy(), w.grad.detach().numpy()

    g = lambda x, k: np.tanh(x) * k  # noqa: E731
    for a, b in zip(way(wg.jit(g)), way(g), strict=True):
        close(a, b)


def test_one_line_is_recorded():
    w = wg.tensor(X, requires_grad=True)
    y = wg.jit(f)(w)
    assert [n.op.name for n in wg.Graph(y).nodes if n.args] == ["jit_f"]
    assert y.grad_fn.name() == "JitFBackward"
    wg.Graph(y).verify()


def test_branches_not_taken():
    g = lambda x: np.where(x > 0, x**0.5, 0.0)  # noqa: E731
    x = np.array([0.0, 4.0, 9.0])
    close(wg.grad(lambda x: np.sum(g(x)))(x), [0.0, 0.25, 1.0 / 6.0])
    close(wg.grad(lambda x: np.sum(wg.jit(g)(x)))(x), [0.0, 0.25, 1.0 / 6.0])
    root = wg.jit(np.sqrt)  # the choice is outside
    close(wg.grad(lambda x: np.sum(np.where(x > 0, root(x), 0.0)))(x), [0.0, 0.25, 1.0 / 6.0])


def test_python_numbers():
    g = lambda x, k: x * k + k**2  # noqa: E731
    j = wg.jit(g)
    assert wg.grad(j, 1)(2.0, 3.0) == wg.grad(g, 1)(2.0, 3.0)
    assert wg.grad(wg.grad(j, 1), 1)(2.0, 3.0) == 2.0
    x = X.astype("f4")
    assert wg.grad(lambda x: np.sum(j(x, 2.0)))(x).dtype == np.float32


def test_complex_numbers():
    g = lambda z: np.sum(np.abs(z * z + 1.0) ** 2)  # noqa: E731
    z = X + 1j * X[::-1]
    close(wg.grad(wg.jit(g))(z), wg.grad(g)(z))


def test_closures_over_recorded_tensors():
    w = wg.tensor(X, requires_grad=True)

    def total(make):
        y = w * 2.0
        g = make(lambda x: np.sum(x * y * y))
        w.grad = None
        g(X).backward()
        return w.grad.numpy()

    close(total(wg.jit), total(lambda g: g))


def test_closures_over_variables_of_derivatives():
    def outer(make):
        return wg.grad(lambda x: make(lambda y: np.sum(x * y))(x * 2.0))

    close(outer(wg.jit)(X), outer(lambda g: g)(X))
    close(wg.jit(outer(wg.jit))(X), outer(lambda g: g)(X))


def test_integers_and_no_derivative():
    g = wg.jit(lambda x, i: x[i] * 2.0)
    close(wg.grad(lambda x: np.sum(g(x, np.array([0, 0, 2]))))(X), [4.0, 0.0, 2.0])


def net():
    gen = np.random.default_rng(0)
    return nn.Sequential(nn.Linear(4, 5, rng=gen), nn.ReLU(), nn.Linear(5, 3, rng=gen))


def trained(compiled):
    model, loss_fn = net(), nn.CrossEntropyLoss()
    call = wg.jit(model) if compiled else model
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    gen = np.random.default_rng(1)
    losses = []
    for step in range(12):
        n = 5 + step % 3
        x, y = gen.normal(size=(n, 4)), gen.integers(0, 3, n)
        optimizer.zero_grad()
        loss = loss_fn(call(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_training_with_a_compiled_model():
    close(trained(True), trained(False))


def test_a_model_depends_on_its_mode():
    model = nn.Sequential(nn.Linear(3, 3, rng=0), nn.Dropout(0.5, wg.random.Stream(1)))
    j = wg.jit(lambda x: model(x))
    model.eval()
    close(j(X).detach(), model(X).detach())
    model.train()
    a, b = j(X).numpy(), j(X).numpy()
    assert np.any(a != b)
    model.eval()
    close(j(X).detach(), model(X).detach())
    model.steps[1].training = True
    assert np.any(j(X).numpy() != j(X).numpy())
    assert j.cache_info().traces == 3
    model.eval()
    j(X)
    model.train()
    j(X)
    assert j.cache_info().traces == 3  # all are kept


def test_frozen_parameters():
    model = net()
    j = wg.jit(model)
    x = np.ones((2, 4))
    for frozen in (False, True, False):
        model.steps[0].requires_grad_(not frozen)
        model.zero_grad()
        np.sum(j(x) ** 2).backward()
        assert (model.steps[0].weight.grad is None) == frozen
        got = model.steps[2].weight.grad.numpy()
        model.zero_grad()
        np.sum(model(x) ** 2).backward()
        close(got, model.steps[2].weight.grad.numpy())


def test_no_grad():
    model = net()
    j = wg.jit(model)
    with wg.no_grad():
        assert not j(np.ones((2, 4))).requires_grad
    assert j(np.ones((2, 4))).requires_grad
