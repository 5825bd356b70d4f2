"""`wengert.debug(nan=True)`: the first NaN or infinity, its operation, operands and line."""

import re
import threading

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.implicit_conversions import gate
from wengert._engine.core.recording import switches
from wengert.errors import ArgumentError, GuardError, NotFiniteError

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NaN is the subject
X = np.array([-1.0, 0.0, 4.0])


@pytest.fixture(autouse=True)
def nothing_stays_on():
    before = switches.count, int(gate.cell[0])
    yield
    assert (switches.count, int(gate.cell[0])) == before


def line_of(f, offset):
    return f.__code__.co_firstlineno + offset


def bad_value(x):
    y = x * 1.0
    z = np.log(y)  # line 2
    return np.sum(z)


def bad_slope(x):
    y = x * x
    return np.sum(np.sqrt(y))  # line 2: the slope is infinite at 0, times 2x there is NaN


def fine(x):
    safe = np.where(x > 0, x, 1.0)
    return np.sum(np.where(x > 0, np.sqrt(safe) * x, 0.0))


WAYS = {
    "grad": lambda f: wg.grad(f)(X),
    "jit": lambda f: wg.jit(f)(X),
    "interpreted graph": lambda f: wg.trace(f)(X)(X),
    "jit of grad": lambda f: wg.jit(wg.grad(f))(X),
    "grad of jit": lambda f: wg.grad(wg.jit(f))(X),
    "hessian": lambda f: wg.hessian(f)(X),
    "jvp": lambda f: wg.jvp(f, (X,), (np.ones(3),)),
    "rows": lambda f: wg.vmap(f)(np.stack([X, X])),
    "gradients of rows": lambda f: wg.vmap(wg.grad(f))(np.stack([X, X])),
    "jit of rows": lambda f: wg.jit(wg.vmap(f))(np.stack([X, X])),
    "tensor": lambda f: f(wg.tensor(X, requires_grad=True)),
}


# The gradient of log is 1/x: what only computes that has no NaN in it.
VALUES = [way for way in WAYS if way not in ("jit of grad", "gradients of rows")]


@pytest.mark.parametrize("way", VALUES)
def test_the_first_bad_value_is_named(way):
    run = WAYS[way]
    with wg.debug(nan=True), pytest.raises(NotFiniteError) as caught:
        run(bad_value)
    message = str(caught.value)
    assert message.startswith("log gives nan at index"), message
    assert re.search(r"float64\[(2,)?3\]", message) and "-1" in message
    assert f"{__file__}:{line_of(bad_value, 2)}, in bad_value" in message


SLOPES = ["grad", "jit of grad", "gradients of rows"]


@pytest.mark.parametrize("way", SLOPES)
def test_the_first_bad_derivative_is_named(way):
    with wg.debug(nan=True), pytest.raises(NotFiniteError) as caught:
        WAYS[way](bad_slope)
    message = str(caught.value)
    assert "multiply" in message and "nan" in message and "inf" in message
    assert f":{line_of(bad_slope, 1)}, in bad_slope" in message


def test_where_the_infinity_began_is_said_too():
    with (
        wg.debug(nan=True),
        pytest.raises(NotFiniteError, match="first infinite in the gradient of sqrt"),
    ):
        wg.grad(bad_slope)(X)


def test_backward_and_compiled_lines_of_a_tape():
    x = wg.tensor(X, requires_grad=True)
    with wg.debug(nan=True):
        y = bad_slope(x)
        with pytest.raises(NotFiniteError, match="multiply"):
            y.backward()
    with wg.debug(inf=True), pytest.raises(NotFiniteError, match=r"sqrt|divide"):
        wg.jit(lambda x: np.sum(np.sqrt(x + 1.0)))(x).backward()


@pytest.mark.parametrize("way", ["grad", "jit of grad", "interpreted graph", "hessian"])
def test_infinities(way):
    def f(x):
        return np.sum(np.exp(x * 1000.0))

    with wg.debug(nan=True):
        WAYS[way](lambda x: np.sum(np.exp(x)))
    with wg.debug(inf=True), pytest.raises(NotFiniteError, match=r"exp gives inf at index \(2,\)"):
        WAYS[way](f)


def test_forward_mode():
    with wg.debug(inf=True), pytest.raises(NotFiniteError, match="the derivative of sqrt is inf"):
        wg.jvp(lambda x: np.sum(np.sqrt(x)), (np.zeros(2),), (np.ones(2),))


def test_second_order_names_the_line():
    def f(x):
        y = x + 1.0
        return np.sum(y**1.5)  # the second slope is infinite at 0

    with wg.debug(inf=True), pytest.raises(NotFiniteError) as caught:
        wg.hessian(f)(np.array([-1.0]))
    assert f":{line_of(f, 2)}, in f" in str(caught.value)


@pytest.mark.parametrize("way", WAYS)
def test_what_was_not_chosen_does_no_harm(way):
    with wg.debug(nan=True, inf=True):
        WAYS[way](fine)


def test_loops_are_looked_into():
    def step(i, c):
        return np.log(c)

    def loop(c):
        return wg.fori_loop(0, 6, step, c)

    for run in (wg.jit(loop), wg.grad(loop), wg.trace(loop)(2.0)):
        with wg.debug(nan=True), pytest.raises(NotFiniteError) as caught:
            run(5.0)
        assert f":{line_of(step, 1)}, in step" in str(caught.value)
    with wg.debug(nan=True), pytest.raises(NotFiniteError, match="step 3 of scan, log"):
        wg.jit(loop)(5.0)


def test_what_was_given_is_said_to_be_given():
    with wg.debug(nan=True), pytest.raises(NotFiniteError, match="operand 0 already has it"):
        wg.grad(lambda x: np.sum(np.sin(x)))(np.array([1.0, np.nan]))


def test_large_operands_are_said_in_short():
    x = np.arange(-2.0, 8.0)
    with wg.debug(nan=True), pytest.raises(NotFiniteError, match=r"float64\[10\] from -2 to 7: "):
        wg.grad(lambda x: np.sum(np.log(x)))(x)
    x[3] = np.nan
    with wg.debug(nan=True), pytest.raises(NotFiniteError, match="from -2 to 7, 1 of 10 nan"):
        wg.grad(lambda x: np.sum(np.exp(x)))(x)
    with wg.debug(nan=True), pytest.raises(NotFiniteError, match=r"float64\[8\], 8 of 8 nan"):
        wg.grad(lambda x: np.sum(np.exp(x)))(np.full(8, np.nan))


def test_all_of_them_can_be_kept():
    with wg.debug(nan=True, raises=False) as checks:
        g = wg.grad(lambda x: np.sum(np.where(x > 0, np.log(x), 0.0) + np.sqrt(x)))(X)
    assert np.isnan(g[0]) and [str(e).split()[0] for e in checks.found] == ["log", "sqrt", "the"]


def test_it_is_an_error_that_existing_handlers_know():
    assert issubclass(NotFiniteError, FloatingPointError) and issubclass(NotFiniteError, GuardError)
    for wrong in ({"nan": 1}, {"inf": "yes"}, {"raises": None}):
        with pytest.raises(ArgumentError):
            wg.debug(**wrong)


def test_a_switch_lasts_until_it_is_turned_off():
    wg.debug(nan=True)
    try:
        with pytest.raises(NotFiniteError):
            wg.grad(bad_value)(X)
        with wg.debug(nan=False):
            wg.grad(bad_value)(X)
            assert switches.count == 0  # at no cost
        with pytest.raises(NotFiniteError):
            wg.jit(bad_value)(X)
    finally:
        wg.debug(nan=False)
    wg.grad(bad_value)(X)
    wg.debug(nan=False)
    assert switches.count == 0


def test_a_block_inside_a_block():
    with wg.debug(nan=True):
        with wg.debug(nan=False):
            wg.grad(bad_value)(X)
            with wg.debug(nan=True), pytest.raises(NotFiniteError):
                wg.grad(bad_value)(X)
            wg.jit(bad_value)(X)
        with pytest.raises(NotFiniteError):
            wg.jit(bad_value)(X)


def test_a_decorator():
    checked = wg.debug(nan=True)(wg.grad(bad_value))
    wg.grad(bad_value)(X)
    with pytest.raises(NotFiniteError):
        checked(X)


def test_other_threads_are_not_asked():
    found = []
    with wg.debug(nan=True):
        thread = threading.Thread(target=lambda: found.append(wg.grad(bad_value)(X)))
        thread.start()
        thread.join()
    assert np.isinf(found[0][1])


def test_results_are_the_same_while_it_is_on():
    def f(x):
        return np.sum(np.tanh(x) ** 2 * np.cumsum(x)) + wg.fori_loop(
            0, 3, lambda i, c: np.sin(c) + c, x[0]
        )

    ways = [wg.grad(f), wg.jit(wg.grad(f)), wg.hessian(f), wg.jit(wg.hessian(f))]
    ways.append(lambda x: wg.vmap(wg.grad(f))(np.stack([x, x])))
    for run in ways:
        want = run(X)
        with wg.debug(nan=True, inf=True):
            np.testing.assert_allclose(run(X), want, rtol=1e-13)


def test_training_keeps_nothing_alive():
    w = wg.tensor(np.ones(3), requires_grad=True)
    with wg.debug(nan=True):
        for _ in range(3):
            np.sum(w * w).backward()
            with wg.no_grad():
                w -= 0.1 * w.grad
            w.grad = None
    assert not w.node.args


def test_tracing_inside_a_block_and_a_block_inside_tracing():
    with wg.debug(nan=True):
        graph = wg.trace(lambda x: np.log(x))(wg.spec(3))

    def inner(x):
        with wg.debug(nan=True):
            return np.log(x)

    assert wg.trace(inner)(wg.spec(3)).equals(graph)
    assert np.isnan(graph(X)[0])
