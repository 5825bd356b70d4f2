"""Losses, normalization and activations against PyTorch: values and gradients, eager and compiled.

The numbers in torch_values.json were written by torch_cases.py with PyTorch 2.
"""

import json

import numpy as np
import pytest

import wengert as wg
import wengert.nn.functional as F
from wengert import nn
from wengert.testing import check_grads

from .torch_cases import CASES, MODELS, VALUES, upstream

WANTED = json.loads(VALUES.read_text())
EXACT = {"rtol": 2e-11, "atol": 1e-12}


def floats(arrays):
    return tuple(k for k, a in enumerate(arrays) if a.dtype.kind == "f")


def checked(name, value, slopes, places, tolerance):
    want = WANTED[name]
    np.testing.assert_allclose(value, want["value"], **tolerance)
    for k, got in zip(places, slopes, strict=True):
        if want["gradients"][k] is not None:  # not available for all targets and weights
            there = np.array(want["gradients"][k])
            known = ~np.isnan(there)  # PyTorch: 0 * inf for a count of 0 in Stirling's formula
            assert np.all(np.isfinite(got))
            np.testing.assert_allclose(got[known], there[known], **tolerance)


def weighed(name):
    f, *arrays = CASES[name]

    def total(*arrays):
        y = f(F, *arrays)
        return np.sum(y * upstream(np.shape(y)).astype(y.dtype)), y

    return wg.value_and_grad(total, floats(arrays), has_aux=True), arrays


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name):
    derived, arrays = weighed(name)
    (_, value), slopes = derived(*arrays)
    checked(name, value, slopes, floats(arrays), EXACT)


def test_single_precision():
    for name in CASES:
        derived, arrays = weighed(name)
        small = [a.astype(np.float32) if a.dtype.kind == "f" else a for a in arrays]
        (_, value), slopes = derived(*small)
        assert value.dtype == np.float32, name
        assert all(g.dtype == np.float32 for g in slopes), name
        checked(name, value, slopes, floats(arrays), {"rtol": 2e-4, "atol": 2e-5})


def test_compiled():
    """All cases as one native program without host callbacks."""
    every = [weighed(name) for name in CASES]

    @wg.jit(host_callbacks="forbid")
    def together(inputs):
        return [derived(*arrays) for (derived, _), arrays in zip(every, inputs, strict=True)]

    results = together([arrays for _, arrays in every])
    for name, (_, arrays), ((_, value), slopes) in zip(CASES, every, results, strict=True):
        checked(name, value, slopes, floats(arrays), EXACT)


@pytest.mark.parametrize("name", MODELS)
def test_states_of_models_load(name):
    make, x = MODELS[name]
    theirs, model = WANTED["models"][name], make(nn)
    assert list(model.state_dict()) == list(theirs["before"])
    model.load_state_dict({n: np.array(v) for n, v in theirs["before"].items()})
    np.testing.assert_allclose(model(x).numpy(), theirs["trained"], rtol=1e-11, atol=1e-13)
    for n, value in model.state_dict().items():
        if n != "2.num_batches_tracked" or name == "rows":  # PyTorch does not count
            np.testing.assert_allclose(value, theirs["after"][n], rtol=1e-12)
    out = model.eval()(x).numpy()
    np.testing.assert_allclose(out, theirs["evaluated"], rtol=1e-11, atol=1e-13)


ROW, COLUMN = np.array([0.3, -1.2, 0.7]), np.array([1.5, -0.4, 0.2])
SQUARE, WEIGHT = np.stack([ROW, COLUMN, ROW * COLUMN]), np.array([0.5, 2.0, 1.5])
LABEL = np.array([2, 0, 2])
SMOOTH = {
    "huber": lambda x: F.huber_loss(x, COLUMN, delta=0.9),
    "gaussian": lambda x: F.gaussian_nll_loss(x, COLUMN, np.exp(x)),
    "poisson": lambda x: F.poisson_nll_loss(x, COLUMN**2),
    "kl": lambda x: F.kl_div(x, np.exp(x), reduction="sum"),
    "cross": lambda x: F.cross_entropy(
        x * SQUARE, LABEL, weight=WEIGHT, ignore_index=0, label_smoothing=0.2
    ),
    "bce": lambda x: F.binary_cross_entropy_with_logits(x, F.sigmoid(x), pos_weight=WEIGHT),
    "focal": lambda x: F.sigmoid_focal_loss(x, np.array([1.0, 0.0, 1.0])),
    "dice": lambda x: F.dice_loss(F.sigmoid(x * SQUARE), np.abs(SQUARE)),
    "soft_margin": lambda x: F.soft_margin_loss(x, np.sign(COLUMN)),
    "distance": lambda x: F.pairwise_distance(x, COLUMN, p=3.0),
    "cosine": lambda x: F.cosine_similarity(x * SQUARE, SQUARE**2),
    "batch_norm": lambda x: F.batch_norm(x * SQUARE, None, None, WEIGHT, ROW, training=True),
    "instance_norm": lambda x: F.instance_norm((x * SQUARE)[None], weight=WEIGHT, bias=ROW),
    "group_norm": lambda x: F.group_norm((x * SQUARE), 1, WEIGHT),
    "layer_norm": lambda x: F.layer_norm(x, 3, WEIGHT),
    "rms_norm": lambda x: F.rms_norm(x, 3),
    "bilinear": lambda x: F.bilinear(x, x, SQUARE[None], None),
    "embedding": lambda x: F.embedding(LABEL, x * SQUARE, padding_idx=1),
    "glu": lambda x: F.glu(np.concatenate([x, COLUMN])[:4]),
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
}


@pytest.mark.sample(9)
@pytest.mark.parametrize("name", SMOOTH)
def test_second_order(name):
    check_grads(lambda x: np.sum(np.sin(SMOOTH[name](x))), (ROW,), order=2, entries=False)
