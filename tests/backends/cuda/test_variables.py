"""Variables on a device: transfers are counted, and changes by the host are seen."""

import copy
import pickle
import threading
from collections import Counter

import numpy as np
import pytest

import wengert as wg
from wengert import nn, optim
from wengert._engine.backends.cuda import EmulatedDevice
from wengert._engine.backends.cuda.current_device import using
from wengert._engine.core.device_arrays import device_value

RNG = np.random.default_rng(0)
X = RNG.normal(size=(16, 4))
Y = np.sum(X, axis=1, keepdims=True)


class Counted(EmulatedDevice):
    """A device that counts its transfers."""

    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def put(self, x):
        """As of the device."""
        self.counts["uploads"] += not self.owns(x)
        return super().put(x)

    def get(self, x):
        """As of the device."""
        self.counts["downloads"] += 1
        return super().get(x)

    def transfers(self):
        """The uploads and downloads since the last call."""
        found = self.counts["uploads"], self.counts["downloads"]
        self.counts.clear()
        return found


@pytest.fixture
def device():
    with using(Counted()) as found:
        yield found


def network():
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    rng = np.random.default_rng(1)
    for p in model.parameters():
        p.data = rng.normal(size=p.shape)
    return model


def training(backend, make=lambda p: optim.Adam(p, lr=0.01), keeps_gradients=True):
    model = network()
    optimizer = make(model.parameters())

    def step(x, y):
        loss = np.mean((model(x) - y) ** 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not keeps_gradients:
            optimizer.zero_grad()
        return loss

    return model, optimizer, wg.jit(step, backend=backend)


def same(model, other):
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    return all(np.allclose(a.numpy(), b.numpy(), rtol=1e-11) for a, b in pairs)


OPTIMIZERS = {
    "Adam": lambda p: optim.Adam(p, lr=0.01),
    "AdamW with a schedule": lambda p: optim.AdamW(p, lr=lambda k: 0.01 / (1 + k)),
    "SGD": lambda p: optim.SGD(p, lr=0.05, momentum=0.9),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("keeps_gradients", [True, False])
def test_steps_of_training_transfer_nothing(device, name, keeps_gradients):
    make = OPTIMIZERS[name]
    model, _, step = training("cuda", make, keeps_gradients)
    wanted, _, plain = training("interpret", make, keeps_gradients)
    x, y = wg.device_put((X, Y))
    losses = [step(x, y) for _ in range(2)]
    device.transfers()
    losses += [step(x, y) for _ in range(6)]
    assert device.transfers() == (0, 0)
    # Read now, though the parameters have been updated since.
    assert np.allclose([float(x) for x in losses], [float(plain(X, Y)) for _ in range(8)])
    assert same(model, wanted)
    parameters = len(list(model.parameters()))
    assert device.transfers() == (0, 8 + parameters)
    assert same(model, wanted)
    assert device.transfers() == (0, 0)  # copies on the host are kept


def test_batches_of_the_host_are_uploaded(device):
    _, _, step = training("cuda")
    for _ in range(2):
        step(X, Y)
    device.transfers()
    step(X, Y)
    assert device.transfers() == (2, 0)


def test_gradients_stay_on_the_device_until_they_are_read(device):
    model, _, step = training("cuda")
    plain, _, interpreted = training("interpret")
    for _ in range(3):
        step(X, Y)
        interpreted(X, Y)
    first = next(model.parameters()).grad
    assert device_value(first.node) is not None
    assert np.allclose(first, next(plain.parameters()).grad)


def test_parameters_are_uploaded_once_for_inference(device):
    model = network()
    f = wg.jit(model, backend="cuda")
    x = wg.device_put(X)
    wanted = model(X).numpy()
    f(x)
    assert device.transfers()[0] == 1 + len(list(model.parameters()))
    found = f(x)
    assert device.transfers() == (0, 0)
    assert np.allclose(found, wanted)


def test_frozen_parameters_are_uploaded_once(device):
    model = network()
    for p in model[0].parameters():
        p.requires_grad = False
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = optim.SGD(trained, lr=0.01)

    def step(x, y):
        loss = np.mean((model(x) - y) ** 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    step = wg.jit(step, backend="cuda")
    x, y = wg.device_put((X, Y))
    for _ in range(2):
        step(x, y)
    device.transfers()
    step(x, y)
    assert device.transfers() == (0, 0)


CHANGES = {
    "data": lambda p: setattr(p, "data", p.numpy() * 0.5),
    "operator": lambda p: p.__imul__(0.5),
    "element": lambda p: p.__setitem__(0, p.numpy()[0] * 0.5),
    "slice": lambda p: p.__setitem__(slice(1, None), p.numpy()[1:] * 0.5),
    "twice": lambda p: (p.__imul__(0.5), p.__setitem__(0, 0.0), p.__setitem__(1, 3.0)),
    "view": lambda p: p[1:].__imul__(0.5),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("size", [3, 1000])
def test_changes_by_the_host_are_seen(device, name, size):
    w, w2 = (wg.variable(np.linspace(1.0, 2.0, size), "w") for _ in range(2))
    x = np.linspace(0.0, 1.0, size)
    pairs = []
    for v, backend in ((w, "cuda"), (w2, "interpret")):
        inp = wg.input("x", shape=size)
        value = wg.computation(np.sum(v * inp), inp, backend=backend)
        step = wg.computation(np.sum(v), inp, updates={v: v + inp}, backend=backend)
        pairs.append((v, value, step))
    found = []
    for v, value, step in pairs:
        got = []
        for k in range(3):
            got += [value(x), step(x), value(x)]
            with wg.no_grad():
                CHANGES[name](v)
            got.append(v.numpy().copy())
            if k == 1:  # read between two changes
                with wg.no_grad():
                    CHANGES[name](v)
            got.append(value(x))
        found.append(wg.device_get(got))
    for a, b in zip(*found, strict=True):
        assert np.allclose(a, b, rtol=1e-13)


def test_arrays_with_other_references_are_read_at_each_run(device):
    w = wg.variable(np.ones(5000), "w")
    total = wg.computation(np.sum(w), backend="cuda")
    held = w.node.value
    assert float(total()) == 5000.0
    held[:] = 2.0
    assert float(total()) == 10000.0
    del held
    device.transfers()
    for _ in range(2):
        assert float(total()) == 10000.0
    assert device.transfers()[0] == 1


def test_native_code_and_the_device_update_the_same_variables(device):
    w = wg.variable(np.zeros(2000), "w")
    x = wg.input("x", shape=2000)
    steps = [
        wg.jit(lambda x: _add(w, x), backend=backend) for backend in ("cuda", "llvm", "interpret")
    ]
    del x
    for k in range(12):
        steps[(k // 2) % 3](np.ones(2000))
        assert float(np.sum(w.numpy())) == 2000.0 * (k + 1)
    for k in range(12):
        steps[k % 3](np.ones(2000))
    assert np.all(w.numpy() == 24.0)


def _add(w, x):
    with wg.no_grad():
        w += x


def test_values_read_before_an_update_do_not_change(device):
    w = wg.variable(np.zeros(3), "w")
    step = wg.computation(w * 1.0, updates={w: w + 1.0}, backend="cuda")
    step()
    before = w.numpy()
    assert not before.flags.writeable
    step()
    assert np.array_equal(before, [1.0, 1.0, 1.0])
    assert np.array_equal(w.numpy(), [2.0, 2.0, 2.0])


def test_updates_that_are_other_variables_or_arguments(device):
    a, b = wg.variable(np.zeros(3), "a"), wg.variable(np.ones(3), "b")
    x = wg.input("x", shape=3)
    swap = wg.computation(x, x, updates={a: b, b: x}, backend="cuda")
    given = wg.device_put(np.full(3, 2.0))
    out = swap(given)
    given[:] = 7.0
    out[:] = 8.0
    assert np.array_equal(a.numpy(), np.ones(3))
    assert np.array_equal(b.numpy(), np.full(3, 2.0))
    out = wg.computation(np.reshape(a, (3, 1)) * 1, a, backend="cuda")
    view = wg.computation(b[:2], backend="cuda")()
    view[:] = 0.0
    assert np.array_equal(b.numpy(), np.full(3, 2.0))


def test_dtypes_and_shapes_of_updates(device):
    n = wg.variable(np.int64(3), "n")
    w = wg.variable(np.zeros(2, np.float32), "w")
    step = wg.computation(n * w, updates={n: n + 1, w: w + n * 0.5}, backend="cuda")
    for _ in range(2):
        step()
    assert n.numpy() == 5
    assert n.dtype == np.int64
    assert w.dtype == np.float32
    assert np.array_equal(w.numpy(), [3.5, 3.5])


def test_a_failed_run_keeps_all_variables(device):
    w, k = wg.variable(np.zeros(3), "w"), wg.input("k", shape=2, dtype=int)
    step = wg.computation(w[k], k, updates={w: w + 1.0}, backend="cuda")
    step(np.array([0, 1]))
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        step(np.array([0, 5]))
    assert np.array_equal(w.numpy(), np.ones(3))


def test_checks_of_finite_values(device):
    w = wg.variable(np.ones(3), "w")
    step = wg.computation(np.sum(np.log(w)), updates={w: w - 1.0}, backend="cuda")
    step()
    step()
    with wg.debug(nan=True), pytest.raises(wg.errors.NotFiniteError, match="log"):
        step()
    assert np.array_equal(w.numpy(), -np.ones(3))


def test_copies_and_files(device, tmp_path):
    model, optimizer, step = training("cuda")
    for _ in range(2):
        step(X, Y)
    twin = copy.deepcopy(model)
    read = pickle.loads(pickle.dumps(model))
    state = model.state_dict(), optimizer.state_dict()
    kept = [p.numpy() for p in model.parameters()]
    step(X, Y)
    for other in (twin, read):
        assert all(
            np.array_equal(a.numpy(), b) for a, b in zip(other.parameters(), kept, strict=True)
        )
    other, other_optimizer, again = training("cuda")
    again(X, Y)
    other.load_state_dict(state[0])
    other_optimizer.load_state_dict(state[1])
    again(X, Y)
    assert same(model, other)


def test_tensors_passed_on_stay_on_the_device(device):
    model = network()
    first = wg.jit(lambda x: model(x) * 2.0, backend="cuda")
    second = wg.jit(lambda y: np.sum(y * model[2].bias), backend="cuda")
    with wg.no_grad():
        x = wg.device_put(X)
        second(first(x))
        device.transfers()
        found = second(first(x))
        assert device.transfers() == (0, 0)
    wanted = np.sum(model(X).numpy() * 2.0 * model[2].bias.numpy())
    assert np.allclose(float(found), wanted)
    y = first(x)
    assert np.array_equal(wg.device_get(wg.device_put(y)), y)


def test_another_device_takes_over(device):
    w = wg.variable(np.zeros(3), "w")
    step = wg.computation(w * 1.0, updates={w: w + 1.0}, backend="cuda")
    step()
    with using(Counted()) as other:
        step()
        assert np.array_equal(w.numpy(), np.full(3, 2.0))
        assert other.transfers()[0] == 1
    step()
    assert np.array_equal(w.numpy(), np.full(3, 3.0))


def test_threads_lose_no_update():
    w = wg.variable(np.zeros(3), "w")
    step = wg.computation(np.sum(w), updates={w: w + 1.0}, backend="cuda")
    plain = wg.computation(np.sum(w), updates={w: w + 1.0}, backend="llvm")

    def work(run):
        with using(EmulatedDevice()):
            for _ in range(20):
                run()

    threads = [threading.Thread(target=work, args=(run,)) for run in (step, step, plain)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.array_equal(w.numpy(), np.full(3, 60.0))


@pytest.mark.parametrize("several", [False, True])
def test_a_backward_pass_uploads_no_operand_again(device, several):
    def f(x, a):
        y = np.sin(x) * a
        return (np.sum(y), y * x) if several else np.sum(y)

    run = wg.jit(f, backend="cuda")
    x, a = wg.tensor(X, requires_grad=True), np.full_like(X, 2.0)
    for _ in range(2):  # at first it is compiled
        device.transfers()
        y = run(x, a)
        loss = y[0] if several else y
        assert device.transfers() == (2, 0)
        a[...] = 2.0  # the program has read it
        loss.backward()
        # For several results, zeros are the cotangent of the second. Gradients are not counted.
        assert device.transfers() == (int(several), 0)
        assert np.allclose(x.grad.numpy(), 2.0 * np.cos(X), rtol=1e-12)
        x.grad = None


def test_a_backward_pass_reads_arrays_as_they_were(device):
    run = wg.jit(lambda x, a: np.sum(np.sin(x) * a), backend="cuda")
    x, a, there = wg.tensor(X, requires_grad=True), np.full_like(X, 2.0), wg.device_put(X)
    for given in (a, there):
        wanted = np.cos(X) * wg.device_get(given)
        loss = run(x, given)
        given[...] = 7.0
        loss.backward()
        assert np.allclose(x.grad.numpy(), wanted, rtol=1e-12)
        x.grad = None


def test_backward_passes_of_chained_calls(device):
    run = wg.jit(lambda x, w: np.tanh(x @ w), backend="cuda")
    last = wg.jit(lambda y: np.mean(y**2), backend="cuda")
    x, w = wg.tensor(X, requires_grad=True), wg.tensor(np.ones((4, 3)), requires_grad=True)
    plain = wg.tensor(X, requires_grad=True), wg.tensor(np.ones((4, 3)), requires_grad=True)
    loss = last(run(x, w)) + np.sum(x) * np.sum(w)
    (np.mean(np.tanh(plain[0] @ plain[1]) ** 2) + np.sum(plain[0]) * np.sum(plain[1])).backward()
    device.transfers()
    loss.backward()
    assert device.transfers() == (1, 0)  # the cotangent between the calls
    for one, other in zip((x, w), plain, strict=True):
        assert np.allclose(one.grad.numpy(), other.grad.numpy(), rtol=1e-11)
