"""The user's side of a device: where arrays are accepted, errors, host callbacks, interrupts."""

import pickle
import weakref

import numpy as np
import pytest
from tests.interrupts import moments_in
from wengert.backends import emulated_device

import wengert as wg
from wengert._engine.core.op import lookup
from wengert.errors import BackendError, ConversionError, DeviceMemoryError, DtypeError


@pytest.fixture(autouse=True)
def device():
    with emulated_device() as found:
        yield found


X = np.linspace(0.5, 2.0, 6)


# ---- arrays of a device as arguments and captured values -----------------------------------------

EAGER = {
    "grad": lambda x: wg.grad(lambda x: np.sum(x * x))(x),
    "value_and_grad": lambda x: wg.value_and_grad(lambda x: np.sum(x * x))(x),
    "jacobian": lambda x: wg.jacobian(np.sin)(x),
    "hessian": lambda x: wg.hessian(lambda x: np.sum(x**3))(x),
    "vjp": lambda x: wg.vjp(np.sin, x),
    "linearize": lambda x: wg.linearize(np.sin, x),
    "vmap": lambda x: wg.vmap(np.sin)(x),
    "tensor on the left": lambda x: wg.tensor(X) * x,
    "tensor on the right": lambda x: x * wg.tensor(X),
    "ufunc": lambda x: np.add(x, wg.tensor(X)),
    "function": lambda x: np.stack([wg.tensor(X), x]),
    "a result": lambda x: wg.trace(lambda y: x)(X),
}


@pytest.mark.parametrize("name", EAGER)
def test_eager_transformations_say_what_to_write(name):
    with pytest.raises(ConversionError, match=r"graphics card.*wengert\.jit.*device_get.*test_in"):
        EAGER[name](wg.device_put(X))


def test_compiled_transformations_of_arrays_of_a_device():
    x = wg.device_put(X)
    for f in (
        wg.grad(lambda x: np.sum(x**3)),
        wg.hessian(lambda x: np.sum(x**3)),
        wg.vmap(lambda x: np.sin(x) * 2.0),
        wg.jacobian(np.sin),
    ):
        assert np.allclose(wg.device_get(wg.jit(f, backend="cuda")(x)), f(X))


def test_graphs_are_traced_for_arrays_of_a_device():
    graph = wg.trace(lambda x: np.sum(np.sin(x)))(wg.device_put(X))
    assert graph.inputs[0].spec == wg.trace(np.sin)(X).inputs[0].spec
    assert np.allclose(wg.device_get(wg.computation(graph, backend="cuda")(wg.device_put(X))),
                       np.sum(np.sin(X)))  # fmt: skip


def test_tensors_copy_arrays_of_a_device():
    x = wg.device_put(X)
    for made in (wg.tensor(x), wg.variable(x), wg.nn.Parameter(x)):
        assert np.array_equal(made.detach().numpy(), X)


def test_captured_arrays_of_a_device_are_inputs(device):
    held = {"x": wg.device_put(X)}
    f = wg.jit(lambda t: np.sum(t * held["x"]), backend="cuda")
    assert np.allclose(wg.device_get(f(X)), np.sum(X * X))
    held["x"][:] = 1.0
    assert np.allclose(wg.device_get(f(X)), np.sum(X))
    held["x"] = wg.device_put(2.0 * X)
    assert np.allclose(wg.device_get(f(X)), 2.0 * np.sum(X * X))
    held["x"] = X
    assert np.allclose(wg.device_get(f(X)), np.sum(X * X))
    assert f.cache_info().programs == 1
    held["x"] = wg.device_put(np.arange(3))
    assert np.allclose(wg.device_get(f(2.0)), 6.0)
    with pytest.raises(ConversionError, match=r"captured.*held\['x'\].*backend='cuda'"):
        wg.jit(lambda t: t * held["x"])(X[:3])


class OfPyTorch:
    """As a tensor of PyTorch on a card."""

    __module__ = "torch"
    requires_grad, typestr, dtype = False, "<f8", "torch.float64"

    @property
    def __cuda_array_interface__(self):
        if self.requires_grad:
            raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad.")
        return {"shape": (6,), "typestr": self.typestr, "data": (0, False), "version": 2}


def test_tensors_of_pytorch_that_cannot_be_passed():
    x = OfPyTorch()
    x.requires_grad = True
    with pytest.raises(ConversionError, match=r"OfPyTorch of torch.*x\.detach\(\)"):
        wg.jit(np.sin, backend="cuda")(x)
    x.requires_grad, x.typestr, x.dtype = False, "bfloat16", "torch.bfloat16"
    with pytest.raises(DtypeError, match=r"torch\.bfloat16.*float32"):
        wg.jit(np.sin, backend="cuda")(x)
    with pytest.raises(DtypeError, match=r"torch\.bfloat16"):
        wg.device_put(x)


def test_values_of_graphs_are_not_put():
    with pytest.raises(wg.errors.TraceError, match="backend='cuda'"):
        wg.jit(lambda x: wg.device_put(x))(X)


# ---- memory --------------------------------------------------------------------------------------


def test_memory_of_arrays_is_freed():
    f = wg.jit(lambda x: np.sum(np.sin(x) @ np.cos(x).T), backend="cuda")
    x = wg.device_put(np.ones((50, 50)))
    f(x)
    used = wg.memory.device_info().used
    for _ in range(3):
        f(x)
    assert wg.memory.device_info().used == used
    del x
    assert wg.memory.device_info().used == used - 50 * 50 * 8


def test_memory_of_old_values_of_variables_is_freed():
    w = wg.variable(np.zeros(1000), "w")
    step = wg.computation(np.sum(w), updates={w: w + 1.0}, backend="cuda")
    step()
    used = wg.memory.device_info().used
    for _ in range(5):
        step()
    assert wg.memory.device_info().used == used
    value = weakref.ref(w.node)
    del w, step
    assert value() is None


def outer(x):
    y = x[:, None] * x
    return np.sum(np.sort(np.sin(y), axis=0))


def test_out_of_memory_names_line_and_sizes():
    f = wg.jit(outer, backend="cuda")
    with emulated_device(memory=100_000):
        assert np.allclose(wg.device_get(f(X)), outer(X))
        with pytest.raises(DeviceMemoryError) as found:
            f(np.ones(200))
        text = str(found.value)
        assert "float64[200,200] (320.0 kB)" in text
        assert "of its 100.0 kB" in text
        assert "float64[200] (1.6 kB)" in text
        assert "test_interface.py" in text
        assert isinstance(found.value, MemoryError)
        assert np.allclose(wg.device_get(f(X)), outer(X))
        with pytest.raises(DeviceMemoryError, match=r"float64\[20000\].*device_put"):
            wg.device_put(np.ones(20_000))


def test_out_of_memory_keeps_all_variables():
    with emulated_device(memory=10_000):
        w, n = wg.variable(np.zeros(100), "w"), wg.input("n", shape="n")
        step = wg.computation(np.sum(n[:, None] * w), n, updates={w: w + 1.0}, backend="cuda")
        step(np.ones(2))
        with pytest.raises(DeviceMemoryError):
            step(np.ones(2000))
        assert np.array_equal(w.numpy(), np.ones(100))


# ---- host callbacks ------------------------------------------------------------------------------


def shown(x):
    wg.debug.show(np.sum(x), "total")
    return np.sin(x)


def test_operations_on_the_host_are_listed(capsys):
    f = wg.jit(shown, backend="cuda")
    assert "host callback debug_show" in f.lower(X).loops
    f(X)
    assert "total" in capsys.readouterr().out


def test_operations_on_the_host_can_be_errors():
    f = wg.jit(shown, backend="cuda", host_callbacks="forbid")
    with pytest.raises(BackendError, match=r"debug_show.*test_interface.*host_callbacks='allow'"):
        f(X)
    g = wg.jit(lambda x: np.sum(np.tanh(x) @ x), backend="cuda", host_callbacks="forbid")
    assert np.allclose(wg.device_get(g(X)), np.sum(np.tanh(X) @ X))


def test_what_the_device_lacks_at_run_time(monkeypatch):
    """CuPy lacks some functions for some dtypes, which is known when they run."""
    op = lookup("argsort")
    plain = op.run

    def lacking(x, **params):
        if not isinstance(x, np.ndarray):
            raise NotImplementedError("sort of this dtype")
        return plain(x, **params)

    monkeypatch.setattr(op, "run", lacking)
    f = wg.jit(lambda x: np.sort(x) * 2.0, backend="cuda")
    assert "call argsort" in f.lower(X).loops
    assert np.array_equal(wg.device_get(f(X[::-1])), 2.0 * X)
    after = f.lower(X).loops
    assert "host callback argsort (NotImplementedError: sort of this dtype)" in after
    strict = wg.jit(lambda x: np.sort(x) * 2.0, backend="cuda", host_callbacks="forbid")
    with pytest.raises(BackendError, match=r"argsort of float64\[6\].*this dtype.*test_interface"):
        strict(X)


def test_a_singular_matrix_is_not_a_missing_operation():
    f = wg.jit(np.linalg.solve, backend="cuda", host_callbacks="forbid")
    with pytest.raises(wg.errors.MatrixError, match="ingular"):
        f(np.ones((40, 40)), np.ones(40))


# ---- profiles ------------------------------------------------------------------------------------


def work(x):
    y = np.tanh(x) @ x.T
    return np.sum(np.exp(-y), axis=0)


def test_profiles_list_kernels_and_calls():
    seen = wg.profile(work, backend="cuda", repeats=4)(np.ones((30, 20)))
    kinds = [row.kind for row in seen.rows]
    assert kinds.count("kernel") == 2
    assert "call" in kinds
    assert seen.timing.backend == "cuda"
    assert seen.timing.runs == 4
    assert all(step.seconds > 0 for step in seen.timing.steps)
    assert seen.timing.inputs == 30 * 20 * 8
    assert seen.peak >= 30 * 30 * 8
    assert any("np.tanh(x) @ x.T" in line.text for line in seen.by_line())
    assert "kernel0" in str(seen)
    assert np.allclose(wg.device_get(seen.value), work(np.ones((30, 20))))
    assert "<svg" in seen.to_svg()
    f = wg.jit(shown, backend="cuda")
    assert "host callback" in [row.kind for row in wg.profile(f, repeats=2)(X).rows]


def test_profiles_of_steps_of_training_write_once():
    w = wg.nn.Parameter(np.zeros(5))

    @wg.jit(backend="cuda")
    def step(x):
        with wg.no_grad():
            w.__iadd__(x)
        return np.sum(x)

    seen = wg.profile(step, repeats=3)(np.ones(5))
    assert seen.timing.steps
    assert np.array_equal(w.numpy(), np.ones(5))


# ---- interrupts, pickling ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["loop", "step"])
def test_an_interrupt_keeps_variables_consistent(kind):
    a, b = wg.variable(np.zeros(3), "a"), wg.variable(np.zeros(3), "b")
    x = wg.input("x", shape=3)
    body = lambda i, s: np.roll(s, 1) * 0.5 + 1.0  # noqa: E731
    more = wg.fori_loop(0, 3, body, x) if kind == "loop" else np.sort(x)
    updates = {a: a + 1.0, b: b + 1.0 + 0.0 * np.sum(more)}
    run = wg.computation(np.sum(more), x, updates=updates, backend="cuda")
    run(X[:3])
    count, at = 1, 0
    while True:
        at += 7
        moments = moments_in(lambda: run(X[:3]), at)
        found = a.numpy()[0]
        assert np.array_equal(a.numpy(), b.numpy())
        assert found in (count, count + 1)
        count = found
        if moments < at:
            break
    assert at > 20
    run(X[:3])
    assert a.numpy()[0] == count + 1


def named(x):
    return np.sin(x) * 2.0


compiled = wg.jit(named, backend="cuda")


def test_pickled_functions():
    compiled(X)
    for f in (
        pickle.loads(pickle.dumps(compiled)),
        pickle.loads(pickle.dumps(wg.jit(named, backend="cuda"))),
        pickle.loads(pickle.dumps(wg.computation(wg.trace(named)(X), backend="cuda"))),
    ):
        assert np.allclose(wg.device_get(f(X)), named(X))
    strict = wg.backends.backend("cuda").without_host_callbacks()
    assert pickle.loads(pickle.dumps(strict)) is strict
