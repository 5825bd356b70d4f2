"""Containers, and operations on whole models: freezing, precision, hooks, apply, summaries."""

import copy
import pickle

import numpy as np
import pytest

import wengert as wg
from wengert import errors, nn, optim


def named(module):
    return [name for name, _ in module.named_parameters()]


class Body(nn.Module):
    def __init__(self):
        self.layers = nn.ModuleList([nn.Linear(3, 3, rng=0)])
        self.heads = nn.ModuleDict({"a": nn.Linear(3, 1, rng=1)})
        self.scales = nn.ParameterList([1.0, [2.0]])
        self.offsets = nn.ParameterDict({"b": np.zeros(3)})

    def forward(self, x, head="a"):
        for layer, scale in zip(self.layers, self.scales, strict=False):
            x = np.tanh(layer(x)) * scale + self.offsets["b"]
        return self.heads[head](x)


def test_lists_and_dicts_of_modules_and_parameters(rng):
    model = Body()
    assert named(model) == [
        *("layers.0.weight", "layers.0.bias", "heads.a.weight", "heads.a.bias"),
        *("scales.0", "scales.1", "offsets.b"),
    ]
    assert all(isinstance(p, nn.Parameter) for p in (*model.scales, *model.offsets.values()))
    model.layers.append(nn.Linear(3, 3, rng=5)).extend([nn.ReLU()])
    assert len(model.layers) == 3 and "layers.1.weight" in named(model)
    assert isinstance(model.layers[1:], nn.ModuleList) and model.layers.pop() is not None
    model.heads["b"] = nn.Linear(3, 2, rng=2)
    assert list(model.heads) == ["a", "b"] and "b" in model.heads and len(model.heads) == 2
    assert model(rng.normal(size=(4, 3)), "b").shape == (4, 2)
    del model.heads["b"], model.layers[1]
    assert "heads.b.weight" not in named(model) and "layers.1.weight" not in named(model)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert named(twin) == named(model) and twin.scales[1] is not model.scales[1]


def test_sequential_with_names(rng):
    model = nn.Sequential({"body": nn.Linear(4, 3, rng=0), "act": np.tanh})
    model.append(nn.Linear(3, 2, rng=1))
    assert named(model) == ["body.weight", "body.bias", "2.weight", "2.bias"]
    assert model["body"] is model[0] is model.body and len(model) == 3
    assert named(model[:2]) == ["body.weight", "body.bias"]
    x = rng.normal(size=(5, 4))
    np.testing.assert_array_equal(model(x).numpy(), model[2](model[:2](x)).numpy())
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model(x).numpy(), copy.deepcopy(twin)(x).numpy())
    with pytest.raises(errors.ArgumentError, match="no step is named 'tail'"):
        model["tail"]
    with pytest.raises(AttributeError, match="tail"):
        model.tail  # noqa: B018
    del model[0]
    assert named(model) == ["2.weight", "2.bias"]


def test_parallel_and_residual(rng):
    x = rng.normal(size=(5, 4))
    one, two = nn.Linear(4, 3, rng=0), nn.Linear(4, 2, rng=1)
    side = [one(x).numpy(), two(x).numpy()]
    both = nn.Parallel(one, two)
    np.testing.assert_array_equal(both(x).numpy(), np.concatenate(side, axis=1))
    assert named(both) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    a, b = nn.Parallel(one, two, join=None)(x)
    np.testing.assert_array_equal((a.numpy(), b.numpy())[1], side[1])
    np.testing.assert_array_equal(nn.Parallel(np.sin, np.cos, join=sum)(x), np.sin(x) + np.cos(x))
    square = nn.Linear(4, 4, rng=2)
    np.testing.assert_allclose(nn.Residual(square)(x).numpy(), x + square(x).numpy())
    bent = nn.Residual(one, shortcut=nn.Linear(4, 3, rng=3))
    assert bent(x).shape == (5, 3) and len(named(bent)) == 4
    with pytest.raises(errors.ArgumentError, match=r"Residual: the body is a list"):
        nn.Residual([square])


def test_compiled_functions_notice_changes(rng):
    model = nn.Sequential(nn.Linear(3, 3, rng=0))
    f, x = wg.jit(lambda x: model(x)), rng.normal(size=(2, 3))

    def same():
        np.testing.assert_allclose(f(x).numpy(), model(x).numpy(), rtol=1e-13)

    same()
    model.append(nn.Linear(3, 2, rng=1))
    same()
    model[1] = nn.Linear(3, 4, rng=2)
    same()
    model[0].bias = nn.Parameter(np.ones(3))
    same()
    model[0].bias = None
    same()
    hook = model[1].register_forward_hook(lambda module, args, out: out * 2.0)
    same()
    hook.remove()
    same()
    model.float()
    x = x.astype(np.float32)
    assert f(x).dtype == np.float32
    model.double()
    same()


# ---- freezing, precision -----------------------------------------------------------------------


def test_frozen_parts_are_not_trained(rng):
    model = nn.Sequential(nn.Linear(3, 3, rng=0), nn.Linear(3, 1, rng=1))
    model[0].freeze()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    before = model.state_dict()

    @wg.jit
    def step(x):
        optimizer.zero_grad()
        np.sum(model(x) ** 2).backward()
        optimizer.step()

    x = rng.normal(size=(4, 3))
    step(x)
    after = model.state_dict()
    np.testing.assert_array_equal(after["0.weight"], before["0.weight"])
    assert np.all(after["1.weight"] != before["1.weight"])
    model.unfreeze()
    step(x)
    assert np.any(model.state_dict()["0.weight"] != before["0.weight"])


def test_precision_of_a_whole_model(rng):
    model = nn.Sequential(nn.Linear(3, 2, rng=0), nn.BatchNorm1d(2), nn.Embedding(3, 2, rng=0))
    weight, exact = model[0].weight, model[0].weight.numpy().copy()
    model[1].bias.requires_grad_(False)
    np.sum(model[:2](rng.normal(size=(4, 3)))).backward()
    assert model.float() is model and model[0].weight is weight
    kinds = {n: v.dtype for n, v in model.state_dict().items()}
    assert kinds.pop("1.num_batches_tracked").kind == "i" and set(kinds.values()) == {
        np.dtype("f4")
    }
    assert weight.requires_grad and weight.is_leaf and weight.grad.dtype == np.float32
    assert not model[1].bias.requires_grad and isinstance(model[1].running_mean, nn.Buffer)
    out = model[:2](rng.normal(size=(4, 3)).astype(np.float32))
    np.sum(out).backward()
    assert out.dtype == np.float32
    np.testing.assert_array_equal(model.to("float64")[0].weight.numpy(), exact.astype(np.float32))
    assert model.half()[0].bias.dtype == np.float16
    with pytest.raises(errors.DtypeError, match=r"Sequential\.to\(int64\)"):
        model.to(int)


def test_parts_by_name():
    model = Body()
    assert model.get_parameter("heads.a.bias") is model.heads["a"].bias
    assert model.get_submodule("layers.0") is model.layers[0] and model.get_submodule("") is model
    assert [type(m).__name__ for m in model.children()] == [
        *("ModuleList", "ModuleDict", "ParameterList", "ParameterDict"),
    ]
    with pytest.raises(errors.StructureError, match=r"Body has no module 'layer'.*'layers\.0'"):
        model.get_submodule("layer")
    late = nn.Module()
    late.add_module("body", nn.ReLU())
    late.register_parameter("scale", nn.Parameter(1.0))
    assert named(late) == ["scale"] and late.get_submodule("body") is late.body


def test_apply_goes_inner_first():
    model, seen = nn.Sequential(nn.Linear(2, 2, rng=0), nn.Residual(nn.ReLU())), []
    assert model.apply(lambda m: seen.append(type(m).__name__)) is model
    assert seen == ["Linear", "ReLU", "Residual", "Sequential"]


def test_loading_what_does_not_match():
    model = nn.Linear(2, 2, rng=0)
    found = model.load_state_dict({"weight": np.ones((2, 2)), "more": 1.0}, strict=False)
    assert found == (["bias"], ["more"]) and found.missing_keys == ["bias"]
    assert model.weight.numpy().all()
    with pytest.raises(errors.DtypeError, match=r"weight has dtype complex128 in the state"):
        model.load_state_dict({"weight": np.ones((2, 2)) * 1j}, strict=False)
    assert model.float().load_state_dict({"bias": np.ones(2)}, strict=False).missing_keys
    assert model.bias.dtype == np.float32


# ---- hooks and summaries -----------------------------------------------------------------------


def test_hooks_see_and_change(rng):
    layer, seen = nn.Linear(3, 2, rng=0), []
    x = rng.normal(size=(4, 3))
    plain = layer(x).numpy()
    one = layer.register_forward_pre_hook(lambda module, args: (args[0] * 2.0,))
    two = layer.register_forward_hook(lambda module, args, out: seen.append(out.shape))
    np.testing.assert_allclose(layer(x).numpy() - plain, x @ layer.weight.numpy().T)
    assert seen == [(4, 2)]
    one.remove(), one.remove()
    np.testing.assert_array_equal(layer(x).numpy(), plain)
    two.remove()
    layer(x)
    assert len(seen) == 2


def test_summary_counts(rng):
    model = nn.Sequential(
        nn.Linear(4, 3, rng=0), nn.Residual(nn.Linear(3, 3, rng=1)), nn.Dropout(0.5)
    )
    model[0].freeze()
    table = nn.summary(model, wg.spec(("batch", 4)))
    assert [row.path for row in table.rows] == ["", "0", "1", "1.body", "2"]
    assert table.parameters == 27 and table.trained == 12 and table.bytes == 27 * 8
    assert [row.parameters for row in table.rows] == [0, 15, 0, 12, 0]
    assert str(table.rows[1].flops) == "27*batch" and str(table.flops) == "51*batch"
    assert str(table.rows[0].shape) == str((wg.dim("batch"), 3)) and model.training
    assert nn.summary(model, np.ones((8, 4))).flops == 51 * 8
    assert "12 of 27 parameters are trained" in str(table)
    assert not any(m.forward_hooks.key()[1] for m in model.modules())
    with pytest.raises(errors.StructureError, match="with 0 inputs"):
        nn.summary(model)
