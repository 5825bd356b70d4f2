"""`wengert.debug(nan=True)` on a device: kernels look at values, the host repeats what fails."""

import numpy as np
import pytest
from tests.backends.cuda.test_variables import Counted, training

import wengert as wg
from wengert._engine.backends.cuda.current_device import using
from wengert._engine.backends.interpreter import InterpretedProgram
from wengert.errors import BackendError, NotFiniteError

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NaN is the subject
X = np.array([-1.0, 0.0, 4.0])
NAN, INF, BOTH = {"nan": True}, {"inf": True}, {"nan": True, "inf": True}


class NamedDevice(Counted):
    """A device that counts its transfers, and the elements of those to the host."""

    def get(self, x):
        """As of the device."""
        self.counts["elements"] += x.size
        return super().get(x)


@pytest.fixture
def device():
    with using(NamedDevice()) as found:
        yield found


@pytest.fixture
def interpreted(monkeypatch):
    """The programs that the interpreter has made."""
    made = []
    begin = InterpretedProgram.__init__

    def noted(self, *args, **kwargs):
        made.append(self)
        begin(self, *args, **kwargs)

    monkeypatch.setattr(InterpretedProgram, "__init__", noted)
    return made


def outcome(f, backend, x, options):
    """The error of a compiled function under the checks, or None."""
    with wg.debug(**options):
        try:
            wg.device_get(wg.jit(f, backend=backend)(x))
        except NotFiniteError as error:
            return str(error)
    return None


def chosen(x):
    return np.sum(np.where(x > 0, np.log(x), 0.0))  # NaN in a register, and not in the result


def stored(x):
    y = np.log(x)
    return np.sort(y) + y


def rows(x):
    y = wg.scipy.special.softmax(np.outer(x, x) * 1e308, axis=-1)
    return y * 2.0


def row_sum(x):
    y = np.outer(x, np.ones(40)) * 1e307
    return np.exp(-(np.sum(y, axis=1, keepdims=True) ** 2)) * y  # inf in a register of a row


def column_sum(x):
    return np.exp(-np.sum(np.outer(x, np.ones(5)) * 1e308, axis=0))


def parts(x):
    return np.exp(-np.sum(np.broadcast_to(x, (700, 3)) * 1e306))


def product(x):
    return np.exp(-np.abs(np.outer(x, x) * 1e200 @ np.outer(x, x) * 1e200))


def strong(x):
    return wg.grad(lambda x: np.sum(np.where(x > 0, np.outer(x, x) @ np.sqrt(x), 0.0)))(x)


def solved(x):
    return np.linalg.solve(np.eye(3) * np.log(x), x)


def decomposed(x):
    return np.linalg.svd(np.outer(np.log(x), x))[1]


def loop(x):
    return np.exp(-(wg.fori_loop(0, 5, lambda i, c: np.log(c), x[2]) ** 2))


def batch(x):
    return wg.vmap(lambda s: wg.fori_loop(0, 5, lambda i, c: np.log(c), s))(x)


def branch(x):
    return wg.cond(x[0] < 0, lambda x: np.log(x), lambda x: x, x)


def slope(x):
    return wg.grad(lambda x: np.sum(np.sqrt(x * x)))(x)


def complex_numbers(x):
    return np.abs(np.log(x + 0j) * 2.0)


def half(x):
    return np.tanh(np.float16(300.0) * x.astype(np.float16) * np.float16(300.0))


def gathered(x):
    return np.log(x)[np.array([2, 2])] * 1.0


def stacked(x):
    return np.concatenate([np.log(x[2:]), np.zeros(2), x[:2]])[1:]


FAILING = [chosen, stored, rows, row_sum, column_sum, parts, product, solved, decomposed, loop]
FAILING += [batch, branch, slope, complex_numbers, half]


@pytest.mark.parametrize("f", FAILING, ids=lambda f: f.__name__)
def test_the_error_is_that_of_native_code(device, f):
    wanted = outcome(f, "llvm", X, BOTH)
    assert wanted is not None
    assert outcome(f, "cuda", X, BOTH) == wanted


@pytest.mark.sample(6)
@pytest.mark.parametrize("options", [NAN, INF], ids=["nan", "inf"])
@pytest.mark.parametrize("f", [*FAILING, stacked, strong], ids=lambda f: f.__name__)
def test_nan_and_infinities_apart(device, f, options):
    assert outcome(f, "cuda", X, options) == outcome(f, "llvm", X, options)


FINE = np.array([1.5, 2.0, 4.0])


@pytest.mark.parametrize("f", [chosen, stored, solved, slope, gathered, branch, complex_numbers])
def test_finite_values_stay_on_the_device(device, interpreted, f):
    run = wg.jit(f, backend="cuda")
    x = wg.device_put(FINE)
    wanted = wg.device_get(run(x))
    with wg.debug(nan=True, inf=True):
        run(x)
        interpreted.clear()
        device.counts.clear()
        got = run(x)
        # The status: one number up, one down, and one each for a branch that the host decides.
        selectors = f is branch
        assert device.counts["elements"] == 1 + selectors and not interpreted
        assert device.transfers() == (1, 1 + selectors)
    assert np.array_equal(wg.device_get(got), wanted)
    run(x)
    assert device.transfers()[1] <= 1 + selectors  # a status is read for positions and matrices


def test_values_of_derivatives_that_are_not_used_are_no_error(device, interpreted):
    def f(x):
        safe = np.where(x > 0, x, 1.0)
        return np.sum(np.where(x > 0, np.sqrt(safe) * x, 0.0))

    run = wg.jit(wg.grad(f), backend="cuda")
    with wg.debug(nan=True, inf=True):
        got = run(wg.device_put(X))
    assert not interpreted
    assert np.array_equal(wg.device_get(got), wg.grad(f)(X))


def test_errors_that_are_collected(device):
    f = wg.jit(lambda x: np.sqrt(x) + np.log(x), backend="cuda")
    with wg.debug(nan=True, raises=False) as checks:
        y = f(wg.device_put(X))
    assert [str(e).split()[0] for e in checks.found] == ["sqrt", "log"]
    assert np.array_equal(wg.device_get(y), np.sqrt(X) + np.log(X), equal_nan=True)


def test_named_sizes_and_few_rows(device):
    f = wg.trace(lambda x: np.log(wg.scipy.special.softmax(x, axis=-1)))(wg.spec(("n", "m")))
    run = wg.computation(f, backend="cuda")
    x = np.ones((2, 1600))
    with wg.debug(inf=True):
        run(x)
        x[1, 3] = -1e5
        with pytest.raises(NotFiniteError, match=r"log gives -inf at index \(1, 3\)"):
            run(x)
        with pytest.raises(NotFiniteError, match=r"log gives -inf at index \(0, 3\)"):
            run(x[1:, :5])


def test_a_loop_that_does_not_end_because_of_nan(device):
    @wg.jit(backend="cuda")
    def f(x):
        y = np.log(x[0])
        return wg.while_loop(lambda c: ~(c[0] > 1.0), lambda c: (c[0] + y,), (y,), max_steps=20)

    with wg.debug(nan=True), pytest.raises(NotFiniteError, match="log gives nan"):
        f(X)


def test_training(device):
    x, y = np.random.default_rng(0).normal(size=(2, 16, 4))
    y = y[:, :1]
    model, _, step = training("cuda")
    batch = wg.device_put((x, y))
    with wg.debug(nan=True):
        for _ in range(2):
            step(*batch)
        device.transfers()
        step(*batch)
        assert device.transfers() == (1, 1)
        kept = [p.numpy().copy() for p in model.parameters()]
        x[2, 1] = np.nan
        with pytest.raises(NotFiniteError, match="operand 0 already has it"):
            step(wg.device_put(x), batch[1])
    assert all(np.array_equal(a, p.numpy()) for a, p in zip(kept, model.parameters(), strict=True))


def test_what_has_side_effects_is_run_once(device, capsys):
    def f(x):
        wg.debug.show(np.sum(x), "total")
        return np.log(x)

    with wg.debug(nan=True), pytest.raises(NotFiniteError):
        wg.jit(f, backend="cuda")(X)
    assert capsys.readouterr().out.count("total") == 1


def test_what_may_not_run_on_the_host_is_still_refused(device):
    draw = lambda key: wg.random.poisson(key, 2.0, (4,))  # noqa: E731
    f = wg.jit(draw, backend="cuda", host_callbacks="forbid")
    with wg.debug(nan=True), pytest.raises(BackendError, match="host_callbacks='forbid'"):
        f(wg.random.key(0))


def test_listings_are_those_of_programs_without_checks(device):
    f = wg.jit(lambda x: np.sum(np.log(x)), backend="cuda")
    f(FINE)
    before = f.lower(FINE).llvm_ir
    with wg.debug(nan=True):
        f(FINE)
    assert f.lower(FINE).llvm_ir == before
