"""Modules: traversal, modes, saving, copying, printing; parameters; layers."""

import copy
import pickle

import numpy as np
import pytest

import wengert as wg
from wengert import errors, nn
from wengert.testing import check_grads


class Forgetful(nn.Module):
    """Does not call super().__init__, and stores its layers in containers."""

    def __init__(self, rng=0):
        self.first = nn.Linear(4, 3, rng=rng)
        self.more = [nn.Linear(3, 3, rng=rng), {"last": nn.Linear(3, 2, rng=rng)}]
        self.scale = nn.Parameter(2.0)
        self.pairs = ((nn.Parameter([1.0]), "a name"),)
        self.count = 7

    def forward(self, x):
        x = np.tanh(self.first(x))
        x = np.tanh(self.more[0](x))
        return self.scale * self.more[1]["last"](x)


class Tied(nn.Module):
    def __init__(self):
        self.a = nn.Linear(3, 3, bias=False, rng=0)
        self.b = nn.Linear(3, 3, bias=False, rng=1)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.b(self.a(x))


NAMES = [
    "scale",
    "pairs.0.0",
    "first.weight",
    "first.bias",
    "more.0.weight",
    "more.0.bias",
    "more.1.last.weight",
    "more.1.last.bias",
]


def test_parameters_are_found_in_attributes_lists_and_dicts():
    model = Forgetful()
    assert [name for name, _ in model.named_parameters()] == NAMES
    assert len(list(model.parameters())) == len(NAMES)
    assert [name for name, _ in model.named_modules()] == ["", "first", "more.0", "more.1.last"]
    assert [name for name, _ in model.named_children()] == ["first", "more.0", "more.1.last"]


def test_what_is_set_later_belongs_and_what_is_deleted_does_not():
    model = Forgetful()
    model.late = nn.Parameter([1.0])
    model.more.append(nn.Linear(2, 1))
    del model.first
    names = dict(model.named_parameters())
    assert "late" in names and "more.2.weight" in names and "first.weight" not in names


def test_a_shared_parameter_comes_once_and_gets_both_gradients(rng):
    model, x = Tied(), rng.normal(size=(2, 3))
    assert [name for name, _ in model.named_parameters()] == ["a.weight"]
    assert list(model.state_dict()) == ["a.weight", "b.weight"]
    np.sum(model(x)).backward()
    w = model.a.weight.numpy()
    by_hand = wg.grad(lambda w: np.sum(x @ w.T @ w.T))(w)
    np.testing.assert_allclose(model.a.weight.grad.numpy(), by_hand)


def test_modules_that_contain_each_other_are_walked_once():
    model = Forgetful()
    model.more.append(model)
    model.more.append(model.more)
    assert len(list(model.modules())) == 4
    assert len(list(model.parameters())) == len(NAMES)


def test_train_and_eval_reach_everything():
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Dropout(0.5, rng=0)))
    x = np.ones((50, 2))
    assert model.training and not np.array_equal(model[1](x), x)
    assert model.eval() is model and not model[1][0].training
    np.testing.assert_array_equal(model[1](x), x)
    assert model.train()[1][0].training


def test_zero_grad_and_freezing(rng):
    model = Forgetful()
    np.sum(model(rng.normal(size=(5, 4)))).backward()
    assert model.first.weight.grad is not None and model.pairs[0][0].grad is None
    model.zero_grad()
    assert all(p.grad is None for p in model.parameters())
    model.requires_grad_(False)
    assert not model(np.ones((1, 4))).requires_grad
    model.requires_grad_()
    assert all(p.requires_grad for p in model.parameters())


def test_state_dict_goes_there_and_back(rng, tmp_path):
    x = rng.normal(size=(5, 4))
    one, other = Forgetful(1), Forgetful(2)
    assert not np.allclose(one(x).numpy(), other(x).numpy())
    np.savez(tmp_path / "state.npz", **one.state_dict())
    parameters = list(other.parameters())
    with np.load(tmp_path / "state.npz") as state:
        other.load_state_dict(state)
    np.testing.assert_array_equal(one(x).numpy(), other(x).numpy())
    assert all(a is b for a, b in zip(parameters, other.parameters(), strict=True))
    assert all(p.requires_grad and p.is_leaf for p in other.parameters())
    np.sum(other(x)).backward()
    assert other.first.weight.grad is not None


def test_a_state_is_a_copy():
    model = Forgetful()
    state = model.state_dict()
    state["first.weight"][:] = 0
    assert model.first.weight.numpy().any()


def test_a_wrong_state_changes_nothing():
    model = Forgetful()
    before = model.state_dict()
    state = {**before, "scale": np.array(9.0)}
    del state["first.weight"]
    with pytest.raises(errors.StructureError, match=r"missing \['first\.weight'\]"):
        model.load_state_dict(state)
    with pytest.raises(errors.StructureError, match=r"unknown \['other'\]"):
        model.load_state_dict({**before, "other": 1.0})
    with pytest.raises(errors.ShapeError, match=r"first\.bias has shape \(4,\)"):
        model.load_state_dict({**before, "scale": np.array(9.0), "first.bias": np.zeros(4)})
    assert model.scale.item() == 2.0
    model.load_state_dict(state, strict=False)
    assert model.scale.item() == 9.0


@pytest.mark.parametrize(
    "duplicate",
    [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))],
    ids=["deepcopy", "pickle"],
)
def test_copies_stand_alone(duplicate, rng):
    x = rng.normal(size=(5, 4))
    model = Forgetful().eval()
    twin = duplicate(model)
    assert all(isinstance(p, nn.Parameter) for p in twin.parameters())
    assert not twin.training and twin.count == 7
    np.testing.assert_array_equal(model(x).numpy(), twin(x).numpy())
    np.sum(twin(x)).backward()
    assert model.first.weight.grad is None and twin.first.weight.grad is not None
    with wg.no_grad():
        twin.scale += 1.0
    assert model.scale.item() == 2.0
    tied = duplicate(Tied())
    assert tied.a.weight is tied.b.weight


def test_printing():
    assert repr(nn.Sequential(nn.Linear(2, 3, bias=False), nn.Softmax(1), nn.Dropout(0.2))) == (
        "Sequential(\n"
        "  (0): Linear(in_features=2, out_features=3, bias=False)\n"
        "  (1): Softmax(axis=1)\n"
        "  (2): Dropout(p=0.2)\n"
        ")"
    )
    text = repr(Forgetful())
    assert text.startswith("Forgetful(scale: float64[], pairs.0.0: float64[1]\n  (first): Linear(")
    assert "\n  (more.1.last): Linear(in_features=3, out_features=2, bias=True)\n)" in text


def test_gradients_of_a_model_as_a_function_of_its_parameters(rng):
    model, x = Forgetful(), rng.normal(size=(3, 4))
    state = model.state_dict()

    def f(state):
        return np.sum(nn.functional_call(model, state, x) ** 2)

    check_grads(f, (state,), order=2, entries=False)
    np.sum(model(x) ** 2).backward()
    gradients = wg.grad(f)(state)
    for name, p in model.named_parameters():
        expected = np.zeros(p.shape) if p.grad is None else p.grad.numpy()
        np.testing.assert_allclose(gradients[name], expected, rtol=1e-13)


def test_functional_call_puts_everything_back():
    model = nn.Linear(2, 1, rng=0)
    before = model.weight.node
    with pytest.raises(errors.ShapeError):
        nn.functional_call(model, {"weight": np.ones((1, 2))}, np.ones(3))
    assert model.weight.node is before and model.weight.is_leaf
    with pytest.raises(errors.StructureError, match=r"no parameters \['wait'\]"):
        nn.functional_call(model, {"wait": 1.0}, np.ones(2))


def test_a_module_without_forward_says_so():
    class Empty(nn.Module):
        pass

    with pytest.raises(errors.StructureError, match=r"Empty was called.*test_modules\.py"):
        Empty()(1.0)


# ---- parameters --------------------------------------------------------------------------------


def test_a_parameter_survives_changes_in_place():
    p = nn.Parameter([1.0, 2.0])
    with wg.no_grad():
        p *= 2.0
        p[0] = 5.0
        p.data = p.numpy() + 1.0
    assert type(p) is nn.Parameter and p.requires_grad and p.is_leaf
    np.testing.assert_array_equal(p.numpy(), [6.0, 5.0])
    np.sum(p * p).backward()
    np.testing.assert_array_equal(p.grad.numpy(), [12.0, 10.0])
    assert not isinstance(p * 2.0, nn.Parameter)


def test_a_hook_on_a_parameter_outlives_steps():
    p, seen = nn.Parameter([1.0]), []
    hook = p.register_hook(lambda g: seen.append(g.item()))
    optimizer = wg.optim.SGD([p], lr=0.25)
    for _ in range(2):
        optimizer.zero_grad()
        np.sum(p * p).backward()
        optimizer.step()
    assert seen == [2.0, 1.0]
    hook.remove()
    np.sum(p * p).backward()
    assert seen == [2.0, 1.0]


def test_a_frozen_parameter_belongs_but_does_not_learn():
    layer = nn.Linear(2, 2, rng=0)
    layer.weight.requires_grad = False
    np.sum(layer(np.ones((1, 2)))).backward()
    assert layer.weight.grad is None and layer.bias.grad is not None
    assert "weight" in layer.state_dict()


def test_a_parameter_of_integers_is_refused():
    with pytest.raises(errors.NotDifferentiableError, match="int64"):
        nn.Parameter([1, 2])


# ---- layers ------------------------------------------------------------------------------------


def test_linear_is_x_times_weight_transposed_plus_bias(rng):
    layer = nn.Linear(4, 3, rng=0)
    x = rng.normal(size=(2, 5, 4))
    by_hand = x @ layer.weight.numpy().T + layer.bias.numpy()
    np.testing.assert_allclose(layer(x).numpy(), by_hand)
    assert layer(x[0, 0]).shape == (3,)
    g = rng.normal(size=(2, 5, 3))
    np.sum(layer(x) * g).backward()
    np.testing.assert_allclose(layer.weight.grad.numpy(), np.einsum("abi,abj->ij", g, x))
    np.testing.assert_allclose(layer.bias.grad.numpy(), g.sum(axis=(0, 1)))


def test_initial_values_follow_from_the_seed_and_stay_in_bounds():
    one, other = nn.Linear(100, 50, rng=3), nn.Linear(100, 50, rng=3)
    np.testing.assert_array_equal(one.weight.numpy(), other.weight.numpy())
    weight = one.weight.numpy()
    assert np.abs(weight).max() <= 0.1 and np.abs(one.bias.numpy()).max() <= 0.1
    assert weight.std() == pytest.approx(0.1 / np.sqrt(3), rel=0.05)
    assert nn.Linear(2, 2, dtype=np.float32).weight.dtype == np.float32
    assert nn.init.kaiming_uniform((50, 100), 0).std() == pytest.approx(np.sqrt(0.02), rel=0.05)
    assert nn.init.xavier_uniform((50, 100), 0).std() == pytest.approx(np.sqrt(2 / 150), rel=0.05)
    assert nn.init.fans((8, 3, 5, 5)) == (75, 200)


def test_single_precision_all_the_way():
    model = nn.Sequential(nn.Linear(3, 4, dtype=np.float32), nn.Tanh(), nn.Softmax())
    y = model(np.ones((2, 3), np.float32))
    np.sum(y * y).backward()
    assert y.dtype == model[0].weight.grad.dtype == np.float32


@pytest.mark.parametrize(
    "layer",
    [nn.ReLU(), nn.Tanh(), nn.Sigmoid(), nn.Softplus(), nn.Softmax(), nn.LogSoftmax(0)],
    ids=repr,
)
def test_layers_without_parameters(layer, rng):
    check_grads(layer, (rng.normal(size=(3, 4)),), order=2, entries=False)


def test_sequential_takes_functions_and_slices(rng):
    model = nn.Sequential(nn.Linear(4, 3, rng=0), np.tanh, nn.Linear(3, 2, rng=1))
    x = rng.normal(size=(5, 4))
    np.testing.assert_array_equal(model(x).numpy(), model[2](model[:2](x)).numpy())
    assert [n for n, _ in model.named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert next(iter(model)) is model[0] and len(model) == 3
    with pytest.raises(errors.ArgumentError, match="step 0 is a list"):
        nn.Sequential([nn.ReLU()])


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(errors.ShapeError, match=r"given shape \(2, 5\).*length 4"):
        nn.Linear(4, 3)(np.ones((2, 5)))
    assert nn.Flatten()(np.ones((2, 3, 4))).shape == (2, 12)


def test_gradient_of_an_mlp_by_differences_to_order_two(rng):
    model = nn.Sequential(nn.Linear(3, 4, rng=0), nn.Tanh(), nn.Linear(4, 3, rng=1))
    x, y = rng.normal(size=(6, 3)), rng.integers(0, 3, size=6)
    loss = nn.CrossEntropyLoss()
    check_grads(
        lambda s: loss(nn.functional_call(model, s, x), y),
        (model.state_dict(),),
        order=2,
        entries=False,
    )


def test_an_mlp_learns_exclusive_or():
    x = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = np.array([[0.0], [1.0], [1.0], [0.0]])
    model = nn.Sequential(nn.Linear(2, 8, rng=1), nn.Tanh(), nn.Linear(8, 1, rng=2))
    optimizer = wg.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        loss = nn.BCEWithLogitsLoss()(model(x), y)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.02
    np.testing.assert_array_equal(model(x).numpy() > 0, y > 0.5)
