"""benchmarks/gradbench, the evals with large Jacobians or loops: all of what they compute.

Messages of GradBench repeat one observation and ask for the first rows; here observations differ
and everything is compared: C, which a person differentiated, with differences of its own values,
and wengert with C.
"""

import importlib
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import wengert as wg

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


@pytest.fixture(scope="module", autouse=True)
def path():
    sys.path.insert(0, str(BENCHMARKS))
    yield
    sys.path.remove(str(BENCHMARKS))


def module(name):
    return importlib.import_module(f"gradbench.{name}")


def differences(f, x, h=1e-5):
    """The Jacobian of f, a column for each number of x, by central differences of fourth order."""
    columns = []
    for k in range(x.size):
        step = np.zeros_like(x)
        step.flat[k] = h
        near, far = f(x + step) - f(x - step), f(x + 2 * step) - f(x - 2 * step)
        columns.append((8.0 * near - far) / (12.0 * h))
    return np.stack(columns, axis=-1)


# ---- ba ------------------------------------------------------------------------------------------


def bundle():
    """Observations by different cameras, one of which is not turned."""
    random = np.random.default_rng(5)
    n, m, p = 3, 4, 7
    cameras = module("cases.ba").CAM + random.normal(scale=0.05, size=(n, 11))
    cameras[1, :3] = 0.0
    points = module("cases.ba").POINT + random.normal(scale=0.3, size=(m, 3))
    pairs = np.stack([random.integers(n, size=p), random.integers(m, size=p)], axis=1)
    features = module("cases.ba").FEATURE + random.normal(size=(p, 2))
    return (n, m, p), [cameras, points, random.random(p) + 0.2, features, pairs]


def bundle_in_c(sizes, arrays):
    p = sizes[-1]
    outputs = [np.zeros(3 * p + 1, np.int32), np.zeros(31 * p, np.int32), 31 * p]
    return module("byhand").task("ba", "jacobian", sizes, arrays, outputs, lambda out: out).once()


def test_bundle_adjustment_in_c_by_differences():
    from scipy.sparse import csr_array

    sizes, (cameras, points, weights, features, pairs) = bundle()
    (n, m, p) = sizes

    def residuals(x):
        given = x[: 11 * n].reshape(n, 11), x[11 * n : 11 * n + 3 * m].reshape(m, 3), x[-p:]
        out = module("byhand").task(
            "ba", "objective", sizes, [*given, features, pairs], [2 * p, p], lambda out: out
        )
        return np.concatenate(out.once())

    x = np.concatenate([cameras.ravel(), points.ravel(), weights])
    starts, columns, values = bundle_in_c(sizes, [cameras, points, weights, features, pairs])
    dense = csr_array((values, columns, starts), shape=(3 * p, x.size)).toarray()
    expected = differences(residuals, x)
    np.testing.assert_allclose(dense, expected, 1e-6, 1e-8 * np.abs(expected).max())


@pytest.mark.slow
def test_bundle_adjustment_agrees_with_c():
    ba = module("evals.ba")
    sizes, arrays = bundle()
    for mine, by_hand in zip(wg.jit(ba.jacobian)(*arrays), bundle_in_c(sizes, arrays), strict=True):
        assert mine.dtype == by_hand.dtype
        np.testing.assert_allclose(mine, by_hand, 1e-11, 1e-9)


# ---- ht ------------------------------------------------------------------------------------------


def hand(places, mirrored, turned=True):
    """A small hand, and four points."""
    random = np.random.default_rng([6, places, mirrored])
    model = module("cases.ht").hand(random, 30)
    model["triangles"] = random.integers(30, size=(8, 3)).tolist()
    theta = random.normal(size=26)
    theta[:3] *= turned
    return {
        "theta": theta.tolist(),
        "data": {
            "model": model | {"is_mirrored": mirrored},
            "correspondences": random.integers(8, size=4).tolist(),
            "points": random.normal(size=(4, 3)).tolist(),
        },
        "us": random.random((4, 2)).tolist() if places else [],
    }


def in_c(function, given):
    return np.array(module("cases.ht").contestants(function, given)["C"]().once()[0])


@pytest.mark.parametrize("places", [False, True])
@pytest.mark.parametrize("mirrored", [False, True])
def test_hand_tracking_in_c_by_differences(places, mirrored):
    given = hand(places, mirrored)
    found = in_c("jacobian", given)
    if places:
        each = np.tile(np.eye(2)[:, None], (1, 4, 1))
        for column, direction in zip(found, each, strict=False):

            def moved(h, direction=direction):
                us = (given["us"] + h * direction).tolist()
                return in_c("objective", given | {"us": us})

            np.testing.assert_allclose(column, differences(moved, np.zeros(1))[:, 0], 1e-7, 1e-8)
        found = found[2:]

    def pose(theta):
        return in_c("objective", given | {"theta": theta})

    np.testing.assert_allclose(found.T, differences(pose, np.array(given["theta"])), 1e-7, 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("places", [False, True])
@pytest.mark.parametrize(("mirrored", "turned"), [(True, True), (False, False)])
def test_hand_tracking_agrees_with_c(places, mirrored, turned):
    given = hand(places, mirrored, turned)
    functions = module("evals.ht").FUNCTIONS
    mine = functions["objective"](given).once()
    np.testing.assert_allclose(mine, in_c("objective", given), 1e-12, 1e-13)
    mine = functions["jacobian"](given).once()
    np.testing.assert_allclose(mine, in_c("jacobian", given).T, 1e-12, 1e-13)


# ---- lstm, particle, saddle ----------------------------------------------------------------------


def test_lstm_in_c_by_differences():
    case = module("cases.lstm")
    random = np.random.default_rng(7)
    layers, n, bits = 2, 4, 3
    shapes = [(2 * layers, 4 * bits), (3, bits), (2 * layers, bits)]
    main, extra, state = [random.normal(size=s) for s in shapes]
    text = random.integers(2, size=(n, bits)).astype(float)

    def message(x):
        parts = np.split(x, [main.size])
        return {
            "main_params": parts[0].reshape(main.shape), "extra_params": parts[1].reshape(3, bits),
            "state": state, "sequence": text,
        }  # fmt: skip

    def loss(x):
        return case.contestants("objective", message(x))["C"]().once()[0]

    x = np.concatenate([main.ravel(), extra.ravel()])
    found = case.contestants("jacobian", message(x))["C"]().once()[0]
    np.testing.assert_allclose(found, differences(loss, x), 1e-7, 1e-10)


@pytest.mark.parametrize("name", ["particle", "saddle"])
def test_c_gives_what_gradbench_expects(name):
    case = module(f"cases.{name}")
    ((_, given),) = case.inputs(True)
    task = case.contestants("rr", given)["C"]()
    np.testing.assert_allclose(task.answer(task.once()), case.EXPECTED, 1e-12)


def test_programs_differentiate_nothing_by_hand():
    """What is compared is the library: no seeds, no blocks and no clamps but those of the eval."""
    words = {
        "ba": ("-2.0 * weights", "wg.vjp", "TOGETHER"), "gmm": ("np.maximum",),
        "ht": ("einsum", "FINGERS"), "llsq": ("t = -1.0 + np.arange(n) *",),
    }  # fmt: skip
    for name, unwanted in words.items():
        text = (BENCHMARKS / "gradbench" / "evals" / f"{name}.py").read_text(encoding="utf-8")
        program = text.partition('"""')[2].partition('"""')[2]
        assert not [word for word in unwanted if word in program], name


def test_every_eval_has_jax_on_the_same_program():
    for name in ("ba", "det", "gmm", "ht", "kmeans", "llsq", "ode", "particle", "saddle"):
        case = module(f"cases.{name}")
        _, given = next(iter(case.inputs(True)))
        for function in module(f"evals.{name}").FUNCTIONS:
            assert "JAX" in case.contestants(function, given), name


def test_mean_over_gradbench_without_other_algorithms():
    page = module("page")
    said = {"arguments": "", "valid": 1, "errors": 0}
    means = (("det", 0.01), ("ode", 8.0), ("gmm", 0.5), ("llsq", 2.0))
    own = {name: said | {"mean": value, "worst": value} for name, value in means}
    text = "\n".join(page.of_checkout(own))
    assert "same algorithm: 1.00; with det and ode: 0.53." in text
