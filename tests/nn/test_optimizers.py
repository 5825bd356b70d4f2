"""Optimizers: hand-computed first steps, options, states, errors."""

import copy
import pickle

import numpy as np
import pytest

from wengert import errors, nn, optim

P0 = np.array([1.0, -2.0, 0.5])
G = [np.array([0.5, -1.0, 2.0]), np.array([-1.0, 0.25, 1.0]), np.array([3.0, 0.0, -0.5])]


def run(make, gradients=G):
    """The parameters after each step with the given gradients."""
    p = nn.Parameter(P0)
    optimizer = make([p])
    path = []
    for g in gradients:
        p.grad = g
        optimizer.step()
        path.append(p.numpy().copy())
    return path


def test_gradient_descent():
    for got, want in zip(run(lambda p: optim.SGD(p, lr=0.1)), np.cumsum(G, axis=0), strict=True):
        np.testing.assert_allclose(got, P0 - 0.1 * want, rtol=1e-15)


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_momentum(nesterov, decay):
    p, v, by_hand = P0, 0.0, []
    for g in G:
        g = g + decay * p
        v = 0.9 * v + g
        p = p - 0.1 * (g + 0.9 * v if nesterov else v)
        by_hand.append(p)
    path = run(lambda p: optim.SGD(p, 0.1, 0.9, nesterov=nesterov, weight_decay=decay))
    np.testing.assert_allclose(path, by_hand, rtol=1e-14)


@pytest.mark.parametrize("decoupled", [False, True])
def test_adam(decoupled):
    b1, b2, eps, lr, decay = 0.8, 0.95, 1e-6, 0.02, 0.1
    p, m, v, by_hand = P0, 0.0, 0.0, []
    for k, g in enumerate(G, start=1):
        if not decoupled:
            g = g + decay * p
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g**2
        shrunk = p * (1 - lr * decay) if decoupled else p
        p = shrunk - lr * (m / (1 - b1**k)) / (np.sqrt(v / (1 - b2**k)) + eps)
        by_hand.append(p)
    kind = optim.AdamW if decoupled else optim.Adam
    path = run(lambda p: kind(p, lr, (b1, b2), eps, decay))
    np.testing.assert_allclose(path, by_hand, rtol=1e-14)


def test_first_step_of_adam_has_length_lr():
    (p,) = run(lambda p: optim.Adam(p, lr=0.1), [np.array([1e-3, -5.0, 1e4])])
    np.testing.assert_allclose(p - P0, [-0.1, 0.1, -0.1], rtol=1e-4)


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam])
def test_parameters_without_gradient_are_skipped(kind):
    a, b = nn.Parameter(P0), nn.Parameter(P0)
    optimizer = kind([a, b], lr=0.1, weight_decay=0.5)
    a.grad = G[0]
    optimizer.step()
    assert not np.array_equal(a.numpy(), P0)
    np.testing.assert_array_equal(b.numpy(), P0)
    optimizer.zero_grad()
    assert a.grad is None and b.grad is None


def test_steps_are_not_recorded_and_update_in_place():
    p = nn.Parameter(P0)
    optimizer = optim.Adam([p])
    for _ in range(3):
        np.sum(p * p).backward()
        optimizer.step()
        assert p.is_leaf and p.requires_grad and type(p) is nn.Parameter


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW])
def test_single_precision_is_kept(kind):
    p = nn.Parameter(P0, dtype=np.float32)
    optimizer = kind([p], lr=np.float64(0.1), weight_decay=0.1)
    for g in G:
        p.grad = g.astype(np.float32)
        optimizer.step()
    assert p.dtype == np.float32


def test_steps_of_complex_parameters_decrease_the_loss():
    p = nn.Parameter(np.array([1.0 + 2.0j]))
    optimizer = optim.Adam([p], lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        np.sum(np.abs(p - (0.5 - 0.5j)) ** 2).backward()
        optimizer.step()
    np.testing.assert_allclose(p.numpy(), 0.5 - 0.5j, atol=1e-2)


def test_parameter_groups_have_their_own_options():
    a, b = nn.Parameter(P0), nn.Parameter(P0)
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 1.0}], lr=0.1)
    a.grad = b.grad = G[0]
    optimizer.step()
    np.testing.assert_allclose(a.numpy(), P0 - 0.1 * G[0])
    np.testing.assert_allclose(b.numpy(), P0 - G[0])
    optimizer.lr = 0.5
    assert [g["lr"] for g in optimizer.param_groups] == [0.5, 0.5] and optimizer.lr == 0.5
    assert repr(optimizer).count("1 parameters") == 2


def go_on_with(optimizer, p):
    for g in G[1:]:
        p.grad = g
        optimizer.step()
    return p.numpy()


@pytest.mark.parametrize("make", [lambda p: optim.SGD(p, 0.1, 0.9), lambda p: optim.Adam(p, 0.1)])
def test_saved_and_copied_optimizers_make_the_same_steps(make):
    p = nn.Parameter(P0)
    optimizer = make([p])
    p.grad = G[0]
    optimizer.step()
    pair = {"p": p, "optimizer": optimizer}
    copies = [copy.deepcopy(pair), pickle.loads(pickle.dumps(pair))]
    q = nn.Parameter(p.numpy())
    other = make([q])
    other.load_state_dict(pickle.loads(pickle.dumps(optimizer.state_dict())))
    want = go_on_with(optimizer, p)
    np.testing.assert_array_equal(go_on_with(other, q), want)
    for c in copies:
        np.testing.assert_array_equal(go_on_with(c["optimizer"], c["p"]), want)


def test_state_of_another_model_is_rejected():
    one, two = nn.Parameter(P0), nn.Parameter(P0)
    state = optim.SGD([one], 0.1).state_dict()
    with pytest.raises(errors.StructureError, match="1 parameters, this optimizer has 1 with 2"):
        optim.SGD([one, two], 0.1).load_state_dict(state)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: optim.SGD([], 0.1), "no parameters"),
        (lambda p: optim.SGD([p, p], 0.1), "twice"),
        (lambda p: optim.SGD([p, np.ones(2)], 0.1), "ndarray as a parameter"),
        (lambda p: optim.SGD([p], -0.1), r"lr=-0\.1"),
        (lambda p: optim.SGD([p], 0.1, momentum=2.0), "momentum must be from 0 to 1"),
        (lambda p: optim.SGD([p], 0.1, nesterov=True), "nesterov=True, momentum=0"),
        (lambda p: optim.SGD([{"params": p, "rate": 1}], 0.1), r"no option rate"),
        (lambda p: optim.Adam([p], betas=(0.9, 1.0)), "betas must be"),
        (lambda p: optim.Adam([p], weight_decay=-1.0), "weight_decay must be"),
    ],
)
def test_errors(make, message):
    with pytest.raises(errors.ArgumentError, match=message) as caught:
        make(nn.Parameter(P0))
    assert "test_optimizers.py" in str(caught.value)


def test_state_of_another_optimizer_is_rejected_and_changes_nothing():
    p, wide = nn.Parameter(P0), nn.Parameter(np.ones((2, 3)))
    other, sgd, adam = (
        optim.Adam([wide]),
        optim.SGD([p], lr=0.1, momentum=0.9),
        optim.Adam([p], lr=0.5),
    )
    for tensor, optimizer in ((wide, other), (p, sgd), (p, adam)):
        tensor.grad = np.ones(tensor.shape)
        optimizer.step()
    before = adam.state_dict()
    renamed = {**before, "states": [{"velocity": np.ones(3)}]}
    cases = [
        (None, errors.StructureError, "was given None, which is not the state"),
        ({"model": {}}, errors.StructureError, "a dict, which is not the state"),
        (sgd.state_dict(), errors.StructureError, r"options \['momentum', 'nesterov'\]"),
        (renamed, errors.StructureError, r"has entries \['velocity'\]"),
        (other.state_dict(), errors.ShapeError, r"mean has shape \(2, 3\) in the state, .* \(3,\)"),
    ]
    for state, error, message in cases:
        with pytest.raises(error, match=message):
            adam.load_state_dict(state)
        assert str(adam.state_dict()) == str(before)
    for options in ({"lr": "fast"}, {"betas": 0.9}, {"eps": None}):
        with pytest.raises(errors.ArgumentError, match=next(iter(options))):
            optim.Adam([p], **options)


def test_user_defined_optimizer():
    class Sign(optim.Optimizer):
        def update(self, p, g, state, options):
            return -options["lr"] * np.sign(g)

    path = run(lambda p: Sign(p, lr=0.1), G[:1])
    np.testing.assert_allclose(path[0], P0 - 0.1 * np.sign(G[0]))
    with pytest.raises(errors.StructureError, match="does not define update"):
        run(lambda p: optim.Optimizer(p, lr=0.1))


@pytest.mark.parametrize(
    ("make", "steps"),
    [
        (lambda p: optim.Adam([p], betas=(0.5, 0.5)), 140),
        (lambda p: optim.SGD([p], lr=0.1, momentum=0.5), 140),
        (lambda p: optim.Lion([p], betas=(0.5, 0.5)), 140),
        (lambda p: optim.RMSprop([p], alpha=0.5, momentum=0.5), 140),
    ],
)
def test_decaying_averages_do_not_become_subnormal(make, steps):
    """Operations on subnormal numbers are about a hundred times slower."""
    p = nn.Parameter(np.ones(3, np.float32))
    optimizer = make(p)
    for k in range(steps):
        p.grad = np.array([1.0, 1.0, 0.0], np.float32) * (k == 0) + np.array([0, 1, 0], np.float32)
        optimizer.step()
        for item in optimizer.state_dict()["states"][0].values():
            if np.ndim(item):
                assert np.all((item == 0) | (np.abs(item) >= np.finfo(np.float32).tiny))
    last = optimizer.state_dict()["states"][0]
    arrays = [x for x in last.values() if np.ndim(x)]
    assert all(x[0] == 0 and x[1] != 0 for x in arrays)
