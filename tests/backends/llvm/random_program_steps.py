"""The steps of which random programs consist (random_programs.py): plain NumPy, guarded.

A step takes a random generator and gives a function of one or more values that is the same for all
lengths, so that a program serves arrays, traces, and symbolic lengths.  What would run away is
guarded: values stay of the size of one, steps and comparisons stand away from the values that
programs often meet (0, 1), so that a last bit decides nothing.
"""

import numpy as np


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def normalized(x, axis=-1):
    centered = x - np.mean(x, axis=axis, keepdims=True)
    return centered / np.sqrt(0.1 + np.mean(centered * centered, axis=axis, keepdims=True))


def logsumexp(x):
    top = np.max(x, axis=-1, keepdims=True)
    return top + np.log(np.sum(np.exp(x - top), axis=-1, keepdims=True))


# ---- one floating operand, element by element ----

SMOOTH = {
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "arctan": np.arctan,
    "negative": np.negative,
    "exp": lambda x: np.exp(np.tanh(x)),
    "exp2": lambda x: np.exp2(np.sin(x)),
    "sigmoid": sigmoid,
    "expm1": lambda x: np.expm1(np.tanh(x)),
    "log": lambda x: np.log(0.5 + np.abs(x)),
    "log1p": lambda x: np.log1p(x * x),
    "sqrt": lambda x: np.sqrt(0.3 + x * x),
    "square": lambda x: np.square(np.tanh(x)),
    "cube": lambda x: np.sin(x) ** 3,
    "arcsinh": np.arcsinh,
    "reciprocal": lambda x: 1.0 / (0.5 + x * x),
    "third": lambda x: x / 3.0,
    "arcsin": lambda x: np.arcsin(0.9 * np.tanh(x)),
    "sinh": lambda x: np.sinh(np.tanh(x)),
    "tan": lambda x: np.tan(np.tanh(x)),
    "log2": lambda x: np.log2(2.5 + np.sin(x)),
    "power": lambda x: (1.2 + np.sin(x)) ** 1.7,
    "affine": lambda x: 0.7 - x * 1.3,
    "complex": lambda x: (np.exp(1j * x) * (0.5 + 0.2j)).real,
    "cosh": lambda x: np.cosh(np.sin(x)),
    "inverse": lambda x: (1.5 + np.sin(x)) ** -2,
    "twice": lambda x: x + x,
    "polynomial": lambda x: (0.1 * np.sin(x) + 0.3) * x - 0.2 * x * x / (1.0 + x * x),
    "arctanh": lambda x: np.arctanh(0.8 * np.sin(x)),
    "degrees": lambda x: np.radians(x * 20.0),
    "cbrt": lambda x: np.cbrt(1.1 + np.sin(x)),
}

# With kinks and steps: only of values whose last bits are those of double precision.
ROUGH = {
    "abs": lambda x: np.abs(x + 0.0371),
    "relu": lambda x: np.maximum(x, 0.0193),
    "leaky": lambda x: np.where(x > 0.0513, x, 0.3 * x),
    "clip": lambda x: np.clip(x, -0.813, 0.917),
    "floor": lambda x: np.floor(x * 3.31 + 0.137),
    "sign": lambda x: np.sign(x + 0.0831),
    "rint": lambda x: np.rint(x * 2.7 + 0.213),
    "whole": lambda x: (x * 3.3 + 0.137).astype("int64"),
    "positive": lambda x: x > 0.0417,
    "isfinite": np.isfinite,
    "short": lambda x: x.astype("float32"),
    "int8": lambda x: (np.tanh(x) * 50.31).astype("int8"),
    "trunc": lambda x: np.trunc(x * 2.17),
    "remainder": lambda x: np.remainder(x + 0.0137, 1.7),
    "fmod": lambda x: np.fmod(x + 0.0137, 1.7),
}

WHOLE = {
    "half": lambda x: x * 0.5,
    "modulo": lambda x: x % 5,
    "quotient": lambda x: x // 3,
    "square": lambda x: x * x % 7,
    "float": lambda x: (x % 4).astype("float64"),
    "odd": lambda x: x & 1,
    "xor": lambda x: x ^ 5,
    "invert": lambda x: ~x,
    "left": lambda x: x << 1,
    "int16": lambda x: x.astype("int16"),
    "large": lambda x: x > 2,
    "right": lambda x: x >> 1,
    "single": lambda x: x.astype("float32"),
    "abs": np.abs,
    "sqrt": lambda x: np.sqrt(np.abs(x)),
    "uint8": lambda x: x.astype("uint8"),
    "neither": lambda x: (x != 2) & (x <= 4),
}

TRUTH = {
    "not": np.logical_not,
    "number": lambda x: x * 1.5,
    "select": lambda x: np.where(x, 0.7, -0.2),
    "whole": lambda x: x.astype("int32"),
    "inverse": lambda x: ~x,
    "count": lambda x: x + x * 2,
}

# ---- two floating operands, broadcast ----

SMOOTH_PAIRS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": lambda x, y: np.tanh(x) * y,
    "divide": lambda x, y: x / (1.0 + y * y),
    "hypot": lambda x, y: np.hypot(x, 1.0 + y * y),
    "arctan2": lambda x, y: np.arctan2(x, 1.0 + y * y),
    "logaddexp": np.logaddexp,
    "power": lambda x, y: (1.3 + np.sin(x)) ** np.tanh(y),
    "minus": lambda x, y: -x - 0.5 * y,
    "square": lambda x, y: (x - y) ** 2 / (1.0 + (x + y) ** 2),
}
ROUGH_PAIRS = {
    "maximum": lambda x, y: np.maximum(x + 0.0119, y),
    "where": lambda x, y: np.where(x > y + 0.0217, x, y),
    "minimum": lambda x, y: np.minimum(x, y - 0.0173),
    "less": lambda x, y: x < y + 0.0311,
    "copysign": lambda x, y: np.copysign(x, y + 0.0093),
    "gated": lambda x, y: np.where(y > 0.0217, x, 0.1),
}
WHOLE_PAIRS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "and": np.bitwise_and,
    "maximum": np.maximum,
    "less": np.less,
    "equal": np.equal,
    "quotient": lambda x, y: x // (y * y + 1),
    "modulo": lambda x, y: x % (y * y + 2),
    "divide": lambda x, y: x / (y * y + 1.0),
    "or": np.bitwise_or,
}
TRUTH_PAIRS = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
    "equal": np.equal,
}

# ---- reductions: given the axes and whether they stay ----

REDUCTIONS = {
    "sum": lambda x, **k: np.sum(x, **k) * 0.3,
    "mean": np.mean,
    "var": np.var,
    "std": lambda x, **k: np.sqrt(0.2 + np.var(x, **k)),
    "prod": lambda x, **k: np.prod(1.0 + 0.1 * np.sin(x), **k),
    "squares": lambda x, **k: np.log1p(np.sum(x * x, **k)),
    "norm": lambda x, **k: np.sqrt(0.1 + np.sum(x * x, **k)),
    "logsum": lambda x, **k: np.log(1.0 + np.sum(np.exp(x), **k)),
}
ROUGH_REDUCTIONS = {
    "max": np.max,
    "min": np.min,
    "any": lambda x, **k: np.any(x > 0.0417, **k),
    "all": lambda x, **k: np.all(x > -0.417, **k),
    "spread": lambda x, **k: np.max(x, **k) - np.min(x, **k),
    "count": lambda x, **k: np.count_nonzero(x > 0.0417, **k),
}
WHOLE_REDUCTIONS = {
    "sum": np.sum,
    "max": np.max,
    "min": np.min,
    "mean": np.mean,
    "any": np.any,
    "prod": np.prod,
}

# ---- rows, in several passes; arrays with at least one axis ----

ROWS = {
    "softmax": softmax,
    "normalized": normalized,
    "logsumexp": logsumexp,
    "log softmax": lambda x: x - logsumexp(x),
    "columns": lambda x: normalized(x, 0),
    "cumsum": lambda x: np.cumsum(x, axis=-1) * 0.1,
    "cumsum 0": lambda x: np.cumsum(x, axis=0) * 0.1,
    "cumprod": lambda x: np.cumprod(1.0 + 0.1 * np.sin(x), axis=-1),
    "diff": lambda x: np.diff(x, axis=-1),
    "centered": lambda x: x - np.mean(x, axis=0),
    "shares": lambda x: np.exp(x) / np.sum(np.exp(x)),
    "weighted": lambda x: np.sum(softmax(x) * x, axis=-1),
    "twice": lambda x: normalized(softmax(x)),
}
ROUGH_ROWS = {
    "sort": lambda x: np.sort(x, axis=-1),
    "argmax": lambda x: np.argmax(x, axis=-1),
    "argmin": lambda x: np.argmin(x),
    "argmax 0": lambda x: np.argmax(x, axis=0),
    "best": lambda x: np.take_along_axis(x, np.argmax(x, axis=-1, keepdims=True), -1),
    "argsort": lambda x: np.argsort(x, axis=0),
    "from the best": lambda x: x - np.max(x, axis=0),
}

# ---- the same elements elsewhere; arrays with at least one axis ----

PLACES = {
    "reversed": lambda x: x[::-1],
    "flip": np.flip,
    "last reversed": lambda x: x[..., ::-1],
    "rest": lambda x: x[1:],
    "but last": lambda x: x[..., :-1],
    "even": lambda x: x[::2],
    "odd": lambda x: x[..., 1::2],
    "backwards": lambda x: x[..., ::-2],
    "inner": lambda x: x[..., 1:-1],
    "first": lambda x: x[0],
    "last": lambda x: x[..., -1],
    "third": lambda x: x[-1:0:-3],
    "transposed": lambda x: np.transpose(x),
    "ravel": np.ravel,
    "row": lambda x: x[None],
    "column": lambda x: x[..., None],
    "moved": lambda x: np.moveaxis(x, 0, -1),
    "joined": lambda x: x.reshape(-1),
    "joined by columns": lambda x: np.ravel(x, order="F"),
    "folded by columns": lambda x: np.reshape(x, (-1, x.shape[-1]), order="F"),
    "folded": lambda x: x.reshape(x.shape[0], -1),
    "twice": lambda x: np.concatenate([x, x[::-1]]),
    "beside": lambda x: np.concatenate([x, 0.5 * x], axis=-1),
    "stack": lambda x: np.stack([x, -x], axis=-1),
    "repeat": lambda x: np.repeat(x, 2, axis=0),
    "tile": lambda x: np.tile(x, 2),
    "few": lambda x: x[np.array([0, -1, 0])],
    "corner": lambda x: x[:2],
    "roll": lambda x: np.roll(x, 1, axis=0),
    "pad": lambda x: np.concatenate([np.zeros_like(x[:1]), x]),
    "shifted": lambda x: x[1:] + x[:-1],
    "rows apart": lambda x: x[:, None] * x[None, :] if x.ndim == 1 else np.sum(x, axis=0),
    "wide": lambda x: np.broadcast_to(x, (3, *x.shape)),
    "swapped": lambda x: np.swapaxes(x, 0, -1),
}
SQUARE = {
    "lower": np.tril,
    "upper": lambda x: np.triu(x, 1),
    "diagonal": np.diagonal,
    "trace": np.trace,
    "corner": lambda x: x[1:, :-1],
    "T": lambda x: x.T,
    "block": lambda x: x[::-1, 1:],
    "sums": lambda x: x + np.sum(x, axis=0, keepdims=True) * np.sum(x, axis=1, keepdims=True) * 0.1,
    "gram": lambda x: np.tanh(x @ x.T),
    "outer": lambda x: np.outer(x[0], x[:, 0]),
}


def written(x, y):
    z = x * (1.0 + 0.1 * np.tanh(np.sum(y)))
    z[1:] = z[1:] * 0.5 + np.sum(y) * 0.1
    return z


def added(x, y):
    z = x * 1.0
    z[..., ::2] += 0.3
    z[0] = z[-1]
    return z * np.tanh(np.mean(y))


def written_through_views(x, y):
    z = x * (1.0 + 0.1 * np.tanh(np.sum(y)))
    z[None][0, :1] = 0.5
    np.einsum("...i->i...", z)[1:] *= 0.7
    squares = np.outer(z[0], z[0]) * 0.1
    np.einsum("ii->i", squares)[...] += np.tanh(y.reshape(-1)[:1])
    z[0] += np.sum(squares, 0).reshape(z[0].shape)
    for row in (z[1:], z[None, :1]):
        row[...] = row * 2.0
    return z


TOGETHER = {
    "written through views": written_through_views,
    "matmul": lambda x, y: np.tanh(x @ y),
    "matmul t": lambda x, y: np.tanh(x.T @ y) if x.ndim == 2 else x @ y,
    "matmul nt": lambda x, y: np.tanh(x @ y.T),
    "concatenate": lambda x, y: np.concatenate([x, y]),
    "beside": lambda x, y: np.concatenate([x, y], axis=-1),
    "stack": lambda x, y: np.stack([x, y]),
    "einsum": lambda x, y: np.tanh(np.einsum("ij,kj->ik", x, y)),
    "written": written,
    "added": added,
    "outer": lambda x, y: np.outer(x, y),
    "inner": lambda x, y: np.sum(x * y, axis=-1),
    "attention": lambda x, y: softmax(x @ y.T) @ y,
    "distances": lambda x, y: np.sum((x[:, None] - y[None]) ** 2, -1),
}
