"""Test cases for resampling, sampling and rearranging functions with the same name in PyTorch.

Run as a program, with PyTorch installed, it writes sampling_of_torch.json: values and gradients,
rounded to 12 digits, used by test_sampling_against_torch.py.  Each case is a function of `F`, the
module of functions, and of arrays; it is differentiated with respect to those of floats.
"""

import itertools
import json
from pathlib import Path

import numpy as np

VALUES = Path(__file__).with_name("sampling_of_torch.json")
rng = np.random.default_rng(11)

IMAGE, VOLUME = rng.normal(size=(2, 1, 3, 4)), rng.normal(size=(1, 2, 2, 3, 2))
POINTS, PLACES = rng.uniform(-2.4, 2.4, size=(2, 1, 3, 2)), rng.uniform(-2, 2, size=(1, 1, 2, 2, 3))
SIGNAL = rng.normal(size=(1, 2, 5))
CHANNELS = rng.normal(size=(1, 6, 2))
WIDE = rng.normal(size=(1, 2, 4, 5))
COLUMNS = rng.normal(size=(1, 12, 6))
ROWS = rng.normal(size=(4, 3))
MAPS, TURNS = rng.normal(size=(2, 2, 3)), rng.normal(size=(1, 3, 4))
MAXIMA = rng.normal(size=(2, 3))
SLOTS = np.array([[1, 3, 4], [0, 2, 5]])
LARGEST, WHERE = rng.normal(size=(1, 1, 2, 2)), np.array([[[[6, 2], [10, 13]]]])
PEAKS, SPOTS = rng.normal(size=(1, 1, 1, 2, 1)), np.array([[[[[5], [10]]]]])

CASES = {}


def case(name, f, *arrays):
    CASES[name] = (f, *arrays)


for _mode, _pad, _align in itertools.product(
    ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (True, False)
):
    _options = {"mode": _mode, "padding_mode": _pad, "align_corners": _align}
    _name = f"{_mode} {_pad}{' aligned' * _align}"
    case(_name, lambda F, x, g, o=_options: F.grid_sample(x, g, **o), IMAGE, POINTS)
    if _mode != "bicubic":
        case(f"{_name} 3d", lambda F, x, g, o=_options: F.grid_sample(x, g, **o), VOLUME, PLACES)

for _align in (True, False):
    _name = "affine" + " aligned" * _align
    case(_name, lambda F, t, a=_align: F.affine_grid(t, (2, 1, 2, 3), align_corners=a), MAPS)
    case(
        f"{_name} 3d",
        lambda F, t, a=_align: F.affine_grid(t, (1, 1, 1, 2, 2), align_corners=a),
        TURNS,
    )

_RESIZED = {
    "nearest": (IMAGE, {"size": (5, 3)}),
    "nearest-exact": (IMAGE, {"size": (5, 3)}),
    "linear": (SIGNAL, {"scale_factor": 1.7}),
    "bilinear": (IMAGE, {"scale_factor": (1.4, 0.8)}),
    "bicubic": (IMAGE, {"size": (5, 3)}),
    "trilinear": (VOLUME, {"size": (3, 2, 3)}),
    "area": (VOLUME, {"size": (1, 2, 3)}),
}
for _mode, (_x, _size) in _RESIZED.items():
    case(_mode, lambda F, x, m=_mode, s=_size: F.interpolate(x, mode=m, **s), _x)
    if _mode in ("linear", "bilinear", "bicubic", "trilinear"):
        case(
            f"{_mode} aligned",
            lambda F, x, m=_mode, s=_size: F.interpolate(x, mode=m, align_corners=True, **s),
            _x,
        )
for _mode, _align in itertools.product(("bilinear", "bicubic"), (True, False)):
    case(
        f"{_mode} smoothed" + " aligned" * _align,
        lambda F, x, m=_mode, a=_align: F.interpolate(
            x, size=(7, 2), mode=m, align_corners=a, antialias=True
        ),
        WIDE,
    )
case(
    "recomputed",
    lambda F, x: F.interpolate(x, scale_factor=1.7, mode="linear", recompute_scale_factor=True),
    SIGNAL,
)
case("response", lambda F, x: F.local_response_norm(x, 4, alpha=0.7, beta=0.6, k=1.5), CHANNELS)
case("response 3", lambda F, x: F.local_response_norm(x, 3, alpha=0.7), WIDE)
case("channel_shuffle", lambda F, x: F.channel_shuffle(x, 3), CHANNELS)
case("unfold", lambda F, x: F.unfold(x, (2, 3), (1, 2), (2, 1), (2, 1)), WIDE)
case("unfold 2", lambda F, x: F.unfold(x, 2, stride=2), IMAGE)
case("fold", lambda F, x: F.fold(x, (4, 5), (2, 3), (1, 1), (0, 1), (2, 2)), COLUMNS)
for _p in (0.0, 0.7, 1.0, 2.0, 3.5, np.inf):
    case(f"pdist {_p}", lambda F, x, p=_p: F.pdist(x, p), ROWS)
case("unpool 1d", lambda F, x, i: F.max_unpool1d(x, i, 2), MAXIMA, SLOTS)
case(
    "unpool 2d", lambda F, x, i: F.max_unpool2d(x, i, 2, padding=0, output_size=(4, 5)),
    LARGEST, WHERE,
)  # fmt: skip
case("unpool 3d", lambda F, x, i: F.max_unpool3d(x, i, (2, 2, 2), (2, 2, 2)), PEAKS, SPOTS)
for _mode in ("reflect", "replicate", "circular"):
    case(f"pad {_mode}", lambda F, x, m=_mode: F.pad(x, (2, 1, 1, 0), m), WIDE)
case("pad", lambda F, x: F.pad(x, (1, -2, 0, 1, 1, 0), value=1.5), WIDE)
case("power pool 1d", lambda F, x: F.lp_pool1d(x, 3.0, 2), SIGNAL**2)
case("power pool 2d", lambda F, x: F.lp_pool2d(x, 2.0, (2, 3), 2, True), WIDE)
case("power pool 3d", lambda F, x: F.lp_pool3d(x, 1.5, 2, 1), VOLUME**2)


def upstream(shape):
    """The weights of a result in the sum that is differentiated."""
    return np.cos(1.0 + np.arange(np.prod(shape, dtype=int))).reshape(shape)


def rounded(x):
    return [rounded(e) for e in x] if isinstance(x, list) else float(f"{x:.12g}")


def made():
    """Values and gradients of all cases from PyTorch."""
    import torch
    import torch.nn.functional as F

    torch.set_default_dtype(torch.float64)
    out = {}
    for name, (f, *arrays) in CASES.items():
        inputs = [torch.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
        y = f(F, *inputs)
        wanted = [t for t in inputs if t.requires_grad]
        loss = (y * torch.tensor(upstream(tuple(y.shape)))).sum()
        slopes = torch.autograd.grad(loss, wanted)
        out[name] = {
            "value": rounded(y.detach().numpy().tolist()),
            "gradients": [rounded(g.numpy().tolist()) for g in slopes],
        }
    return out


if __name__ == "__main__":
    VALUES.write_text(json.dumps(made(), separators=(",", ":")) + "\n")
