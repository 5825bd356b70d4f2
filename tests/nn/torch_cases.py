"""Test cases for functions with the same name in PyTorch.

Run as a program, with PyTorch installed, it writes torch_values.json: values and gradients with 16
digits, used by test_against_torch.py.  Each case is a function of `F`, the module of functions, and
of arrays; it is differentiated with respect to those of floats.
"""

import json
from pathlib import Path

import numpy as np

VALUES = Path(__file__).with_name("torch_values.json")
rng = np.random.default_rng(7)

X = rng.normal(size=(4, 5)) * 2
Y = rng.normal(size=(4, 5))
Z = rng.normal(size=(4, 5))
P = rng.uniform(0.05, 0.95, size=(4, 5))
SHARES = rng.dirichlet(np.ones(5), size=4)
CLASSES = np.array([3, 0, 4, 0])
SOME = np.array([3, -100, 4, -100])
SIGNS = np.array([[1, -1, 1, 1, -1], [-1, -1, 1, 1, 1], [1, 1, 1, -1, 1], [-1, 1, -1, 1, 1]]) * 1.0
ROWS = np.array([1.0, -1.0, -1.0, 1.0])
BITS = (SIGNS + 1) / 2
W = np.array([0.5, 1.0, 2.0, 0.25, 1.5])
LABELS = np.array([[3, 0, -1, 1, 1], [2, -1, 0, 0, 0], [0, 1, 2, 3, 4], [-1, 0, 0, 0, 0]])
COUNTS = rng.poisson(2.0, size=(4, 5)) * 1.0
IMAGE = rng.normal(size=(2, 4, 2, 4)) * 2 + 1
SEQUENCE = rng.normal(size=(2, 4, 4))
GAIN, SHIFT = rng.uniform(0.5, 1.5, size=(2, 4))
TABLE = rng.normal(size=(6, 3))
NUMBERS = np.array([[0, 3, 3], [5, 1, 3]])

CASES = {
    "mse": (lambda F, x, y: F.mse_loss(x, y), X, Y),
    "l1": (lambda F, x, y: F.l1_loss(x, y, reduction="sum"), X, Y),
    "smooth_l1": (lambda F, x, y: F.smooth_l1_loss(x, y, beta=0.7), X, Y),
    "huber": (lambda F, x, y: F.huber_loss(x, y, delta=0.7, reduction="none"), X, Y),
    "gaussian": (lambda F, x, y, v: F.gaussian_nll_loss(x, y, v, full=True), X, Y, P),
    "gaussian_rows": (lambda F, x, y, v: F.gaussian_nll_loss(x, y, v), X, Y, P[:, :1]),
    "poisson": (lambda F, x, y: F.poisson_nll_loss(x, y, full=True), X, COUNTS),
    "poisson_rate": (lambda F, x, y: F.poisson_nll_loss(x, y, log_input=False), P, COUNTS),
    "kl": (lambda F, x, y: F.kl_div(x, y, reduction="batchmean"), X, SHARES),
    "kl_logs": (lambda F, x, y: F.kl_div(x, y, log_target=True, reduction="sum"), X, np.log(P)),
    "cross": (lambda F, x, y: F.cross_entropy(x, y), X, CLASSES),
    "cross_weights": (lambda F, x, y, w: F.cross_entropy(x, y, weight=w), X, CLASSES, W),
    "cross_ignored": (lambda F, x, y: F.cross_entropy(x, y, ignore_index=-100), X, SOME),
    "cross_smooth": (lambda F, x, y: F.cross_entropy(x, y, label_smoothing=0.2), X, CLASSES),
    "cross_all": (
        lambda F, x, y, w: F.cross_entropy(x, y, weight=w, ignore_index=-100, label_smoothing=0.2),
        X,
        SOME,
        W,
    ),
    "cross_none": (
        lambda F, x, y, w: F.cross_entropy(
            x, y, weight=w, ignore_index=0, label_smoothing=0.1, reduction="none"
        ),
        X,
        CLASSES,
        W,
    ),
    "cross_shares": (
        lambda F, x, y, w: F.cross_entropy(x, y, weight=w, label_smoothing=0.3),
        X,
        SHARES,
        W,
    ),
    "nll": (lambda F, x, y, w: F.nll_loss(x, y, weight=w, ignore_index=4), X, CLASSES, W),
    "bce_logits": (
        lambda F, x, y, w, p: F.binary_cross_entropy_with_logits(x, y, weight=w, pos_weight=p),
        X,
        P,
        W,
        W[::-1].copy(),
    ),
    "bce": (lambda F, x, y, w: F.binary_cross_entropy(x, y, weight=w), P, BITS, np.tile(W, (4, 1))),
    "soft_margin": (lambda F, x, y: F.soft_margin_loss(x, y), X, SIGNS),
    "hinge_embedding": (lambda F, x, y: F.hinge_embedding_loss(x, y, margin=0.8), X, SIGNS),
    "multi_margin": (lambda F, x, y, w: F.multi_margin_loss(x, y, weight=w), X, CLASSES, W),
    "multi_margin_2": (lambda F, x, y: F.multi_margin_loss(x, y, p=2, margin=0.6), X, CLASSES),
    "multilabel_margin": (lambda F, x, y: F.multilabel_margin_loss(x, y), X, LABELS),
    "multilabel_soft": (
        lambda F, x, y, w: F.multilabel_soft_margin_loss(x, y, weight=w),
        X,
        BITS,
        W,
    ),
    "ranking": (lambda F, x, y, s: F.margin_ranking_loss(x, y, s, margin=0.3), X, Y, SIGNS),
    "cosine_embedding": (
        lambda F, x, y, s: F.cosine_embedding_loss(x, y, s, margin=0.1, reduction="none"),
        X,
        Y,
        ROWS,
    ),
    "triplet": (lambda F, x, y, z: F.triplet_margin_loss(x, y, z, margin=2.0), X, Y, Z),
    "triplet_swap": (
        lambda F, x, y, z: F.triplet_margin_loss(x, y, z, margin=3.0, p=1, swap=True),
        X,
        Y,
        Z,
    ),
    "distance": (lambda F, x, y: F.pairwise_distance(x, y, p=3.0), X, Y),
    "cosine": (lambda F, x, y: F.cosine_similarity(x, y), X, Y),
    "normalize": (lambda F, x: F.normalize(x, p=3.0), X),
    "batch_norm": (
        lambda F, x, g, b: F.batch_norm(x, None, None, g, b, training=True, eps=1e-3),
        IMAGE,
        GAIN,
        SHIFT,
    ),
    "batch_norm_eval": (
        lambda F, x, m, v, g, b: F.batch_norm(x, m, v, g, b),
        IMAGE,
        SHIFT,
        GAIN,
        GAIN,
        SHIFT,
    ),
    "instance_norm": (
        lambda F, x, g, b: F.instance_norm(x, weight=g, bias=b),
        SEQUENCE,
        GAIN,
        SHIFT,
    ),
    "group_norm": (lambda F, x, g, b: F.group_norm(x, 2, g, b), IMAGE, GAIN, SHIFT),
    "layer_norm": (lambda F, x, g, b: F.layer_norm(x, (5,), g, b), X, W, W[::-1].copy()),
    "layer_norm_2": (lambda F, x: F.layer_norm(x, (2, 4), eps=0.1), IMAGE),
    "rms_norm": (lambda F, x, g: F.rms_norm(x, (5,), g), X, W),
    "embedding": (lambda F, i, t: F.embedding(i, t, padding_idx=3), NUMBERS, TABLE),
    "bilinear": (
        lambda F, x, y, w, b: F.bilinear(x, y, w, b),
        X,
        Y,
        rng.normal(size=(2, 5, 5)),
        rng.normal(size=2),
    ),
    "nearest": (lambda F, x: F.interpolate(x, size=(3, 8)), IMAGE),
    "linear": (lambda F, x: F.interpolate(x, scale_factor=1.5, mode="linear"), SEQUENCE),
    "bilinear_corners": (
        lambda F, x: F.interpolate(x, size=(4, 3), mode="bilinear", align_corners=True),
        IMAGE,
    ),
    "pixel_shuffle": (lambda F, x: F.pixel_shuffle(x, 2), IMAGE),
    "pixel_unshuffle": (lambda F, x: F.pixel_unshuffle(x, 2), IMAGE),
    "prelu": (lambda F, x, w: F.prelu(x, w), IMAGE, GAIN),
    "glu": (lambda F, x: F.glu(x), SEQUENCE),
    "softmin": (lambda F, x: F.softmin(x, -1), X),
    "rrelu": (lambda F, x: F.rrelu(x, 0.1, 0.4), X),
}
for _name in (
    "elu selu relu6 hardtanh hardsigmoid hardswish softshrink hardshrink tanhshrink "
    "gelu silu mish softsign logsigmoid leaky_relu softplus"
).split():
    _points = np.array([-1e4, -6.5, -2.0, -0.75, -0.5, 0.0, 0.25, 0.5, 1.5, 5.0, 7.0, 1e4])
    if _name == "hardsigmoid":  # PyTorch's derivative has 1/6 in single precision
        _points = _points[:2]
    CASES[_name] = (lambda F, x, name=_name: getattr(F, name)(x), _points)
CASES["gelu_tanh"] = (lambda F, x: F.gelu(x, approximate="tanh"), X)


MODELS = {
    "rows": (
        lambda nn: nn.Sequential(
            nn.Linear(5, 6),
            nn.BatchNorm1d(6),
            nn.PReLU(6),
            nn.LayerNorm(6),
            nn.GELU(),
            nn.Linear(6, 3, bias=False),
            nn.RMSNorm(3),
        ),
        X,
    ),
    "images": (
        lambda nn: nn.Sequential(
            nn.BatchNorm2d(4, momentum=None),
            nn.GroupNorm(2, 4),
            nn.InstanceNorm2d(4, affine=True, track_running_stats=True),
            nn.PReLU(),
            nn.Flatten(),
            nn.Linear(32, 2),
        ),
        IMAGE,
    ),
    "words": (
        lambda nn: nn.Sequential(nn.Embedding(6, 3, padding_idx=0), nn.Flatten(), nn.Linear(9, 2)),
        NUMBERS,
    ),
}


def upstream(shape):
    """The weights of a result in the sum that is differentiated."""
    return np.cos(1.0 + np.arange(np.prod(shape, dtype=int))).reshape(shape)


def made():
    """Values and gradients of all cases from PyTorch; states and results of models."""
    import torch
    import torch.nn.functional as F

    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    out = {"models": {name: by_model(torch, *case) for name, case in MODELS.items()}}
    for name, (f, *arrays) in CASES.items():
        inputs = [torch.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
        try:
            y = f(F, *inputs)
        except RuntimeError:  # some are not differentiable with respect to target or weights
            inputs = [t.detach().requires_grad_(k == 0) for k, t in enumerate(inputs)]
            y = f(F, *inputs)
        loss = (y * torch.tensor(upstream(tuple(y.shape)))).sum()
        wanted = [t for t in inputs if t.requires_grad]
        slopes = iter(torch.autograd.grad(loss, wanted, allow_unused=True))
        grads = [next(slopes) if t.requires_grad else None for t in inputs]
        out[name] = {
            "value": y.detach().numpy().tolist(),
            "gradients": [None if g is None else g.numpy().tolist() for g in grads],
        }
    return out


def by_model(torch, make, x):
    """States and results of a model, in training and then in evaluation."""
    model, x = make(torch.nn), torch.tensor(x)
    before = {n: v.numpy().tolist() for n, v in model.state_dict().items()}
    trained = model(x).detach().numpy().tolist()
    after = {n: v.numpy().tolist() for n, v in model.state_dict().items()}
    evaluated = model.eval()(x).detach().numpy().tolist()
    return {"before": before, "trained": trained, "after": after, "evaluated": evaluated}


if __name__ == "__main__":
    VALUES.write_text(json.dumps(made(), separators=(",", ":")) + "\n")
