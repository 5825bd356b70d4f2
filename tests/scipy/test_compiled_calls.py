"""Functions as SciPy's solvers call them: machine code with captured values of the solve."""

import threading

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.graph_classes import evaluated
from wengert._engine.core.spec import Spec
from wengert._engine.implicit.functions import GraphFunction
from wengert.scipy import optimize
from wengert.scipy.optimize import solver_operation
from wengert.scipy.optimize.solver_operation import bound, compiled_body


def _body(f, *specs):
    return GraphFunction.traced_alone(lambda *xs: [f(*xs)], list(specs), "f").body


VECTOR, NUMBER = Spec((3,), np.dtype(float)), Spec((), np.dtype(float))


@pytest.mark.parametrize(
    ("f", "specs"),
    [
        (lambda a, x: np.sum(np.exp(a * x)), (VECTOR, VECTOR)),
        (lambda a, x: a * np.sin(x), (VECTOR, VECTOR)),
        (lambda a, x: a[:2] @ np.stack([x, x**2]), (VECTOR, NUMBER)),
        (lambda k, a, x: np.outer(a, x)[:, :2] * k, (Spec((), np.dtype(int)), VECTOR, VECTOR)),
    ],
    ids=["number", "vector", "of a number", "matrix"],
)
def test_results_are_those_of_the_graph(f, specs):
    """Machine code called by its address, for captured values of several types."""
    body = _body(f, *specs)
    random = np.random.default_rng(0)
    values = [
        np.int64(3) if s.dtype.kind == "i" else random.normal(size=s.shape)[()] for s in specs
    ]
    run = bound(body, values[:-1])
    assert compiled_body(body).pointer is not None
    for _ in range(2):
        values[-1] = random.normal(size=specs[-1].shape)[()]
        found = run(values[-1])
        np.testing.assert_allclose(found, evaluated(body)(values)[0], rtol=1e-14)
        assert np.shape(found) == body.outputs[0].spec.shape


def test_results_are_not_overwritten():
    """SciPy keeps results of earlier calls."""
    run = bound(_body(lambda a, x: a * x, VECTOR, VECTOR), [np.ones(3)])
    first = run(np.array([1.0, 2.0, 3.0]))
    run(np.zeros(3))
    np.testing.assert_array_equal(first, [1.0, 2.0, 3.0])


def test_other_threads():
    """The memory belongs to the thread that solves; calls of others have their own."""
    run, found = bound(_body(lambda a, x: a * x, VECTOR, VECTOR), [np.ones(3)]), []
    thread = threading.Thread(target=lambda: found.append(run(np.arange(3.0))))
    thread.start()
    thread.join()
    np.testing.assert_array_equal(found[0], np.arange(3.0))


def test_errors_of_a_run():
    """A function that fails raises the error that it has without compilation."""

    def f(a, x):
        return np.linalg.solve(np.outer(x, a), a)

    body = _body(f, VECTOR, VECTOR)
    with pytest.raises(np.linalg.LinAlgError):
        bound(body, [np.ones(3)])(np.zeros(3))


def test_functions_that_call_python_are_called_by_python():
    """Without an address, the compiled function is called."""
    body = _body(lambda a, x: np.sort(x * a), VECTOR, VECTOR)
    x = np.array([3.0, 1.0, 2.0])
    np.testing.assert_array_equal(bound(body, [np.ones(3)])(x), np.sort(x))


def test_many_calls_are_compiled(monkeypatch):
    """Functions of repeated eager solves are compiled; what they capture is that of the call."""
    monkeypatch.setattr(solver_operation, "_CALLS_BEFORE_COMPILATION", 20)
    scale = np.array([1.0, 2.0, 5.0])

    def loss(a):
        def f(x):
            return np.sum(scale * (x - a) ** 2) + np.sum(x**4)

        return optimize.minimize(f, np.zeros(3), tol=1e-10).x[1]

    def check():
        a = np.array([1.0, 2.0, -1.0])
        x = optimize.minimize(
            lambda x: np.sum(scale * (x - a) ** 2) + np.sum(x**4), np.zeros(3), tol=1e-10
        ).x
        wanted = 2 * scale[1] / (2 * scale[1] + 12 * x[1] ** 2)
        np.testing.assert_allclose(wg.grad(loss)(a), [0.0, wanted, 0.0], rtol=1e-5, atol=1e-7)

    for _ in range(6):
        check()
        scale[1] += 0.5
