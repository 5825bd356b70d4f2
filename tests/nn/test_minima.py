"""L-BFGS, minimize and least_squares: known minima, all methods of SciPy."""

import pickle

import numpy as np
import pytest
import scipy.optimize

import wengert as wg
from wengert import errors, nn, optim

START = {"a": -1.2, "b": np.array([1.0, 0.5])}


def rosenbrock(x):
    return (1 - x["a"]) ** 2 + 100 * np.sum((x["b"] - x["a"] ** 2) ** 2)


# ---- LBFGS -------------------------------------------------------------------------------------


def steps_of(p, loss, compiled=False, **options):
    optimizer = optim.LBFGS([p], **options)

    def closure():
        optimizer.zero_grad()
        value = loss(p)
        value.backward()
        return value

    return optimizer, wg.jit(closure) if compiled else closure


def quadratic(rng, n):
    a = rng.normal(size=(n, n))
    a = a @ a.T + np.eye(n)
    b = rng.normal(size=n)
    return (lambda p: 0.5 * p @ a @ p - b @ p), np.linalg.solve(a, b)


@pytest.mark.parametrize("compiled", [False, True])
def test_lbfgs_finds_the_minimum_of_a_quadratic(rng, compiled):
    loss, want = quadratic(rng, 8)
    p = nn.Parameter(np.zeros(8))
    optimizer, closure = steps_of(p, loss, compiled, max_iter=60, tolerance_change=0.0)
    first = optimizer.step(closure)
    assert first.item() == 0.0
    np.testing.assert_allclose(p.numpy(), want, atol=1e-7)


def test_lbfgs_direction_agrees_with_the_dense_bfgs_update(rng):
    """The two-loop recursion agrees with the dense update of the inverse Hessian."""
    from wengert.optim.lbfgs import Memory

    a = np.diag([1.0, 2.0, 5.0, 9.0])
    memory, dense = Memory(), None
    for _ in range(3):
        s = rng.normal(size=4)
        y = a @ s
        memory.add(s, y, 10)
    pairs = memory.pairs
    s, y = pairs[-1]
    dense = np.eye(4) * (s @ y) / (y @ y)
    for s, y in pairs:
        left = np.eye(4) - np.outer(s, y) / (y @ s)
        dense = left @ dense @ left.T + np.outer(s, s) / (y @ s)
    g = rng.normal(size=4)
    np.testing.assert_allclose(memory.direction(g), -dense @ g, rtol=1e-12)


def test_lbfgs_solves_rosenbrock_in_few_evaluations():
    p = nn.Parameter(np.array([-1.2, 1.0]))
    optimizer, closure = steps_of(p, lambda p: (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2)
    for _ in range(4):
        optimizer.step(closure)
    np.testing.assert_allclose(p.numpy(), 1.0, atol=1e-6)


def test_lbfgs_without_line_search_uses_lr():
    p = nn.Parameter(np.array([1.0]))
    optimizer, closure = steps_of(
        p, lambda p: np.sum(p * p), lr=0.25, max_iter=1, line_search_fn=None
    )
    optimizer.step(closure)
    assert p.numpy()[0] == 1.0 - 0.25 * min(1.0, 1 / 2.0) * 2.0


def test_lbfgs_makes_no_step_if_none_decreases_the_loss():
    p = nn.Parameter(np.array([0.0, 0.0]))
    optimizer, closure = steps_of(p, lambda p: np.sum(np.abs(p)) + np.sum(p))
    optimizer.step(closure)
    assert np.sum(np.abs(p.numpy())) + np.sum(p.numpy()) <= 0.0


def test_lbfgs_resumes_from_its_state(rng):
    loss, _ = quadratic(rng, 6)
    p, q = nn.Parameter(np.ones(6)), nn.Parameter(np.ones(6))
    one, closure = steps_of(p, loss, max_iter=4)
    one.step(closure)
    q.data = p.numpy().copy()
    two, again = steps_of(q, loss, max_iter=4)
    two.load_state_dict(pickle.loads(pickle.dumps(one.state_dict())))
    one.step(closure)
    two.step(again)
    assert np.array_equal(p.numpy(), q.numpy())


def test_lbfgs_preserves_frozen_parameters_and_float32(rng):
    layer = nn.Linear(3, 1, rng=0, dtype=np.float32)
    layer.bias.requires_grad_(False)
    before = layer.bias.numpy().copy()
    x, y = rng.normal(size=(20, 3)).astype("f"), rng.normal(size=(20, 1)).astype("f")
    optimizer = optim.LBFGS(layer.parameters())

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(layer(x), y)
        loss.backward()
        return loss

    optimizer.step(closure)
    want = np.linalg.lstsq(x, (y - before)[:, 0], rcond=None)[0]
    assert layer.weight.dtype == np.float32
    assert np.array_equal(layer.bias.numpy(), before)
    np.testing.assert_allclose(layer.weight.numpy()[0], want, atol=2e-3)


@pytest.mark.parametrize(
    "options", [{"max_iter": 0}, {"history_size": 0}, {"line_search_fn": "golden"}, {"lr": -1.0}]
)
def test_lbfgs_rejects_options_out_of_range(options):
    with pytest.raises(errors.ArgumentError, match=r"LBFGS\("):
        optim.LBFGS([nn.Parameter(1.0)], **options)


def test_lbfgs_rejects_parameter_groups_and_a_missing_closure():
    p, q = nn.Parameter(1.0), nn.Parameter(2.0)
    with pytest.raises(errors.ArgumentError, match="several parameter groups"):
        optim.LBFGS([{"params": [p]}, {"params": [q]}])
    with pytest.raises(errors.StructureError, match="closure"):
        optim.LBFGS([p]).step()


# ---- minimize ----------------------------------------------------------------------------------

METHODS = {
    "L-BFGS-B": 1e-4, "BFGS": 1e-6, "CG": 1e-6, "Newton-CG": 1e-2, "trust-ncg": 1e-4,
    "trust-krylov": 1e-3, "trust-exact": 1e-4, "trust-constr": 1e-6, "SLSQP": 2e-3,
    "Nelder-Mead": 1e-3, "Powell": 1e-4,
}  # fmt: skip


@pytest.mark.sample(5)
@pytest.mark.parametrize("method", METHODS)
def test_minimize_with_every_method(method):
    found = optim.minimize(
        rosenbrock, START, method=method, compile=False, options={"maxiter": 2000}
    )
    assert found.success
    np.testing.assert_allclose(found.x["a"], 1.0, atol=METHODS[method])
    np.testing.assert_allclose(found.x["b"], 1.0, atol=2 * METHODS[method])


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", ["BFGS", "Newton-CG", "trust-exact"])
def test_compiled_minimize_agrees_with_eager(method):
    """Both converge: with the default `tol` Newton-CG stops 4e-3 from the minimum, where rounding
    that accumulated in a hundred steps exceeds 1e-9."""
    plain, compiled = (
        optim.minimize(rosenbrock, START, method=method, compile=c, tol=1e-10)
        for c in (False, True)
    )
    assert plain.success and compiled.success
    assert plain.nit == compiled.nit
    np.testing.assert_allclose(plain.x["b"], compiled.x["b"], rtol=1e-9)


def test_minimize_passes_the_exact_gradient():
    found = optim.minimize(rosenbrock, START, method="BFGS")
    want = wg.grad(rosenbrock)(found.x)
    np.testing.assert_allclose(found.jac["b"], want["b"], atol=1e-9)


def test_minimize_with_bounds_and_arguments():
    seen = []
    found = optim.minimize(
        lambda x, shift: np.sum((x[0] - shift) ** 2) + x[1] ** 2,
        [np.zeros(2), 3.0],
        (np.array([2.0, -5.0]),),
        bounds=([np.array([-1.0, -1.0]), 0.5], None),
        callback=lambda intermediate_result: seen.append(intermediate_result),
    )
    np.testing.assert_allclose(found.x[0], [2.0, -1.0], atol=1e-6)
    assert found.x[1] == 0.5
    assert seen


def test_minimize_preserves_dtypes():
    found = optim.minimize(lambda x: np.sum((x - 1) ** 2), np.zeros(3, np.float32))
    assert found.x.dtype == np.float32


def test_minimize_rejects_invalid_arguments():
    with pytest.raises(errors.DtypeError, match="complex"):
        optim.minimize(lambda x: np.sum(abs(x)), np.zeros(2, complex))
    with pytest.raises(errors.ArgumentError, match="no numbers"):
        optim.minimize(lambda x: 0.0, {})
    with pytest.raises(errors.ArgumentError, match="structure"):
        optim.minimize(rosenbrock, START, bounds=([0.0], None))
    with pytest.raises(errors.ArgumentError, match="above"):
        optim.minimize(rosenbrock, START, bounds=(1.0, 0.0))
    with pytest.raises(errors.ShapeError, match="does not broadcast"):
        optim.minimize(rosenbrock, START, bounds=({"a": 0.0, "b": np.zeros(3)}, None))


# ---- least_squares -----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_least_squares_recovers_the_rate(method):
    t = np.linspace(0, 1, 20)
    y = 2 * np.exp(-3 * t)
    found = optim.least_squares(
        lambda x, t: {"far": (x["h"] * np.exp(-x["r"] * t) - y)[10:], "near": x["h"] - 2.0},
        {"h": 1.0, "r": 1.0},
        (t,),
        method=method,
    )
    np.testing.assert_allclose([found.x["h"], found.x["r"]], [2.0, 3.0], rtol=1e-6)
    assert found.jac.shape == (11, 2)


def test_least_squares_with_options_and_bounds():
    rows = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    y = np.array([1.0, 0.0, 40.0])
    found = optim.least_squares(
        lambda x: rows @ x - y, np.zeros(2), bounds=(-1.0, 5.0), loss="soft_l1", f_scale=0.5
    )
    want = scipy.optimize.least_squares(
        lambda x: rows @ x - y, np.zeros(2), lambda x: rows, bounds=(-1, 5), loss="soft_l1",
        f_scale=0.5,
    )  # fmt: skip
    np.testing.assert_allclose(found.x, want.x, rtol=1e-10)


# ---- parameters in dicts keep the user's order of keys -----------------------------------------

UNSORTED = {"z": 1.0, "m": [np.array([2.0, 3.0]), {"q": 4.0, "b": 5.0}], "a": 6.0}


def line_of(x):
    return [x["z"], *x["m"][0], x["m"][1]["q"], x["m"][1]["b"], x["a"]]


def test_least_squares_preserves_insertion_order_in_x_and_jac():
    factors = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])

    def residuals(x):
        scaled = [f * v for f, v in zip(factors, line_of(x), strict=True)]
        return {"w": np.stack(scaled[:4]), "c": np.stack(scaled[4:])}

    lower = {"a": -5.0, "z": -1.0, "m": [-2.0, {"b": -4.0, "q": -3.0}]}
    found = optim.least_squares(residuals, UNSORTED, bounds=(lower, np.inf))
    assert list(found.x) == ["z", "m", "a"] == list(found.grad)
    assert list(found.x["m"][1]) == ["q", "b"]
    np.testing.assert_allclose(found.jac, np.diag(factors))
    np.testing.assert_allclose(line_of(found.x), np.zeros(6), atol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
def test_minimize_preserves_insertion_order_in_matrices(compiled):
    def bowl(x):
        return 0.5 * (x["z"] - 1.0) ** 2 + 5.0 * (x["a"] - 1.0) ** 2

    start = {"z": 3.0, "a": 3.0}
    found = optim.minimize(bowl, start, method="BFGS", compile=compiled, options={"gtol": 1e-9})
    assert list(found.x) == list(found.jac) == ["z", "a"]
    np.testing.assert_allclose(found.hess_inv, np.diag([1.0, 0.1]), atol=1e-3)


def test_dicts_of_another_key_order_compile_another_program():
    def residuals(x):
        return np.stack([2.0 * x["z"], 3.0 * x["a"]])

    one = optim.least_squares(residuals, {"z": 1.0, "a": 1.0})
    other = optim.least_squares(residuals, {"a": 1.0, "z": 1.0})
    np.testing.assert_allclose(one.jac, [[2.0, 0.0], [0.0, 3.0]])
    np.testing.assert_allclose(other.jac, [[0.0, 2.0], [3.0, 0.0]])
