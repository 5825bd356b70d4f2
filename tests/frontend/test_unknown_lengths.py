"""Slices and masks whose number of elements is not known: NumPy's functions of them, and stores.

Values and gradients of compiled functions are compared with those of plain NumPy and of the eager
tape.
"""

import numpy as np
import pytest

import wengert as wg

RNG = np.random.default_rng(7)
X = RNG.normal(size=11)
A = RNG.normal(size=(5, 11))
K = np.array([3, 8, 2])

PARTS = {
    "to": lambda x, k: x[: k[0]],
    "from": lambda x, k: x[k[0] :],
    "between": lambda x, k: x[k[0] : k[1]],
    "even": lambda x, k: x[: k[1] : 2],
    "every third": lambda x, k: x[k[2] :: 3],
    "computed step": lambda x, k: x[:: k[2]],
    "backward": lambda x, k: x[k[1] : k[0] : -1],
    "negative": lambda x, k: x[-k[0] :],
    "positive": lambda x, k: x[x > 0],
    "chosen": lambda x, k: x[(x > -0.5) & (x < 2 * k[2])],
    "column": lambda x, k: (x[:, None] * A.T)[x > 0, 2],
    "indexed": lambda x, k: x[np.nonzero(x > 0)[0]],
    "part": lambda x, k: x[x > -1][1:],
}

FUNCTIONS = {
    "sum": lambda y: y.sum(),
    "prod": np.prod,
    "mean": lambda y: np.mean(y),
    "var": lambda y: y.var(ddof=1),
    "std": np.std,
    "max": lambda y: y.max(),
    "min": lambda y: np.min(y),
    "initial": lambda y: np.max(y, initial=0.25),
    "ptp": np.ptp,
    "any": lambda y: np.any(y > 1) * 1.0,
    "all": lambda y: (y > -1).all() * 1.0,
    "median": np.median,
    "quantile": lambda y: np.quantile(y, 0.3),
    "percentile": lambda y: np.percentile(y, [20, 70]).sum(),
    "argmax": lambda y: y.argmax() * 1.0,
    "argmin": lambda y: np.argmin(y) * y[0],
    "size": lambda y: y.size * 1.0,
    "len": lambda y: len(y) * 1.0,
    "shape": lambda y: y.shape[0] * 1.0,
    "first": lambda y: y[0] * y[-1],
    "cumsum": lambda y: (np.cumsum(y) ** 2).sum(),
    "cumprod": lambda y: y.cumprod().sum(),
    "running maximum": lambda y: np.maximum.accumulate(y).sum(),
    "sort": lambda y: np.sort(y)[0] + np.sort(y)[-1] * 2,
    "sorted": lambda y: (np.sort(y) * np.cumsum(y)).sum(),
    "argsort": lambda y: (y[np.argsort(y)] * np.cumsum(y)).sum(),
    "diff": lambda y: np.abs(np.diff(y)).sum(),
    "second differences": lambda y: (np.diff(y, n=2) ** 2).sum(),
    "trapezoid": lambda y: np.trapezoid(y, dx=0.5),
    "norm": np.linalg.norm,
    "norm of order one": lambda y: np.linalg.norm(y, 1),
    "dot": lambda y: y @ y + np.dot(y, 2 * y),
    "outer": lambda y: np.outer(y, y * y).sum(),
    "elementwise": lambda y: np.sum(np.exp(y) / (1 + y * y)),
    "clip": lambda y: np.clip(y, -0.5, 0.5).sum(),
    "where": lambda y: np.where(y > 0, y, 2 * y).sum(),
    "reversed": lambda y: (y[::-1] * np.cumsum(y)).sum(),
    "flip": lambda y: np.flip(y)[0],
    "roll": lambda y: (np.roll(y, 1) * y).sum(),
    "step": lambda y: (y[::2] ** 2).sum(),
    "tail": lambda y: (y[1:] * y[:-1]).sum(),
    "concatenate": lambda y: (np.concatenate([y, np.ones(2), y]) ** 2).cumsum()[-1],
    "append": lambda y: np.append(y, 2.0)[-2],
    "unique": lambda y: np.unique(np.round(y)).sum() * 1.0,
    "counts": lambda y: (np.unique(np.round(y), return_counts=True)[1] ** 2).sum() * 1.0,
    "count": lambda y: np.count_nonzero(y > 0) * 1.0,
    "nested mask": lambda y: y[y > 0.3].sum(),
    "positions": lambda y: np.flatnonzero(y > -1)[0] * 1.0,
    "builtin sum": lambda y: sum(y),
    "builtin max": lambda y: max(y) - min(y),
    "generator": lambda y: sum(v * v for v in y),
    "enumerate": lambda y: sum(i * v for i, v in enumerate(y)),
    "pairs": lambda y: (np.abs(y[:, None] - y[None, :]) ** 3).sum(),
    "copy": lambda y: y.copy().sum(),
    "weights": lambda y: np.average(y, weights=y * y),
    "searchsorted": lambda y: np.searchsorted(np.sort(y), 0.1) * 1.0,
    "standardized": lambda y: (((y - y.mean()) / y.std()) ** 3).sum(),
    "logsumexp": lambda y: np.log(np.sum(np.exp(y - y.max()))),
    "nansum": np.nansum,
    "gather": lambda y: X[np.abs(np.round(y)).astype(int) % 3].sum(),
}


def agrees(f, *arguments, first=(0,)):
    """Values and gradients: plain, eager, compiled."""
    want = f(*[a.copy() for a in arguments])
    found = wg.jit(f)(*[a.copy() for a in arguments])
    np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-12)
    eager = wg.grad(f, first)(*[a.copy() for a in arguments])
    compiled = wg.jit(wg.grad(f, first))(*[a.copy() for a in arguments])
    for a, b in zip(eager, compiled, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-8, atol=1e-10)


@pytest.mark.sample(7)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(part, name):
    def f(x, k):
        return FUNCTIONS[name](PARTS[part](x, k)) * 1.0

    agrees(f, X, K)


# ---- matrices ----------------------------------------------------------------------------------

MATRICES = {
    "rows": lambda A, x, k: A[x[:5] > 0].sum(),
    "row means": lambda A, x, k: (A[x[:5] > 0].mean(axis=0) ** 2).sum(),
    "columns": lambda A, x, k: (A[:, x > 0].sum(axis=1) ** 2).sum(),
    "part of a row": lambda A, x, k: A[k[2], x > 0].prod(),
    "part of a column": lambda A, x, k: np.max(A[A[:, 0] > 0, 1]),
    "both": lambda A, x, k: (A[: k[0], x > 0] ** 2).sum(),
    "a slice and a mask": lambda A, x, k: (A[1:4][:, A[1] > 0].std(axis=1)).sum(),
    "elements": lambda A, x, k: np.median(A[A > 0.2]),
    "grid": lambda A, x, k: np.linalg.det(A[np.ix_(x[:5] > 0, x[:5] > 0)]),
    "system": lambda A, x, k: np.linalg.solve(
        (A @ A.T + np.eye(5))[: k[0], : k[0]], x[:5][: k[0]]
    ).sum(),
    "inverse": lambda A, x, k: np.linalg.inv((A @ A.T)[k[2] :, k[2] :]).sum(),
    "products": lambda A, x, k: ((A[:, : k[0]] @ A[:, : k[0]].T) ** 2).sum(),
    "positions": lambda A, x, k: A[np.nonzero(A > 0.3)].sum(),
    "pairs": lambda A, x, k: sum(A[i, j] * (i + j) for i, j in np.argwhere(A > 0.3)),
    "keepdims": lambda A, x, k: (A[x[:5] > 0] - A[x[:5] > 0].mean(axis=0, keepdims=True))[0, 1],
    "sorted rows": lambda A, x, k: (np.sort(A[:, : k[1]], axis=1)[:, 0] * x[:5]).sum(),
    "scanned": lambda A, x, k: np.cumsum(A[x[:5] > 0], axis=0)[-1].sum(),
    "largest": lambda A, x, k: x[np.argmax(A[:, x > 0], axis=1)].sum(),
    "first axes": lambda A, x, k: (A.reshape(5, 11, 1) * x[:3])[A > 0].sum(axis=0).prod(),
    "broadcast": lambda A, x, k: (A[x[:5] > 0] * x[None, :]).sum(),
    "compressed": lambda A, x, k: (np.compress(x > 0, A, axis=1) ** 2).sum(),
    "extracted": lambda A, x, k: np.extract(A > 0.5, A).mean(),
    "two masks": lambda A, x, k: (x[x > 0][: (x < 0).sum()] * 1.5).sum(),
    "different masks": lambda A, x, k: np.dot(np.sort(x[x > np.median(x)]), x[x < np.median(x)]),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", MATRICES)
def test_matrices(name):
    agrees(MATRICES[name], A, X, K, first=(0, 1))


# ---- stores ------------------------------------------------------------------------------------


def _stores():
    """Statements that store to parts of `A` and `x`, each with another name of the array."""
    return [
        "A[:, m] = 0.5",
        "A[:, m] *= 2",
        "A[i, m] += x[m]",
        "A[r, 0] += 1",
        "A[r, j] = 3 * x[0]",
        "A[r] *= x",
        "A[r] = A[r][::-1] * 2",
        "A[:, m] = A[:, m] - A[:, m].mean(axis=1, keepdims=True)",
        "A[:j, m] = -1",
        "A[A > 0] = x[0]",
        "A[A > 0] = np.sort(A[A > 0])",
        "x[m] = np.sin(x[m][::-1]) ** 2",
        "x[m] = x[::-1][m[::-1]] * 2",
        "x[m] = np.cumsum(x[m])",
        "x[np.nonzero(m)[0]] *= 2",
        "x[np.flatnonzero(m)[0]] = 5 * x[1]",
        "x[:i:2] = 7 * x[2]",
        "x[i::3] *= 2",
        "x[j::-1] = np.cumsum(x)[: j + 1] * x[0]",
        "x[::i] += 1",
        "y = x[::2]; y[:i] *= 3",
        "y = x[j::-1]; y[0] = 4 * x[3]; y *= 2",
        "y = x[:j:2]; z = y[1:]; z += 1; z[0] = x[5]",
        "y = x[:j]; z = y[::-1]; z[1:] = 2 * x[0]",
        "y = x[i:]; y[y > 0] = 0.25",
        "y = x[i:j]; y[y > 0] *= y[y > 0]",
        "y = x[m]; z = y; y += 1; x[0] = z.sum()",
        "y = x[m]; z = y[1:]; z *= 2; x[0] = y.sum()",
        "y = x[m]; y[0] = 3.0; y[-1] *= 2; x[1] = y.prod()",
        "y = x[m]; y[y > 0.5] = 0.5 * x[2]; x[1] = y.prod()",
        "q = m.copy(); y = x[q]; q[:] = False; x[1] = y.sum()",
        "y = x[:j]; x[0] = 9 * x[1]; x[2] = y.sum()",
        "y = x[:j:2]; x[0] = 9 * x[1]; x[2] = y.sum()",
        "y = x[m].copy(); y *= 2; x[0] = y.sum()",
        "y = x[:j].copy(); y *= 2; x[0] = y.sum()",
        "y = np.sort(x[m]); y[0] = 2.0; x[0] = y.sum()",
        "B = A[:, :j]; B[1] = 0; B[:, 0] *= 2",
        "B = A[:, ::-1][:, :j]; B[B > 0] = x[0]",
        "A[np.ix_(r, m)] *= 3",
        "A[np.nonzero(A > 0.5)] = 0.5",
    ]


@pytest.mark.sample(3)
@pytest.mark.parametrize("statements", _stores())
@pytest.mark.parametrize("where", ["straight", "loop", "branch"])
def test_stores(statements, where, tmp_path):
    body = {
        "straight": statements,
        "loop": f"for t in range(9):\n        i = k[0] + t % 2 - 1; {statements}",
        "branch": f"if x[0] < 9:\n        {statements}",
    }[where]
    source = f"""import numpy as np
def f(A, x, k):
    A, x = A * 1.0, x * 1.0
    i, j, m, r = k[0], k[1], x > 0, A[:, 1] > 0
    {body}
    return (A ** 2).sum() + (x * np.arange(1, 12)).sum()
"""
    path = tmp_path / "program.py"
    path.write_text(source)
    names = {}
    exec(compile(source, str(path), "exec"), names)
    agrees(names["f"], A, X, K, first=(0, 1))
