"""Random programs of sparse arrays agree with the same programs of dense arrays, in both modes."""

import numpy as np
import pytest
import scipy.sparse as sp

import wengert as wg
import wengert.scipy.sparse as ws

FORMATS = ("csr", "csc", "coo", "dia", "bsr")
STEPS = 5


def random_pattern(rng, shape):
    """An array with duplicates, empty rows and columns, in a random format."""
    count = int(rng.integers(0, shape[0] * shape[1] + 2))
    coords = tuple(rng.integers(0, max(n - 1, 1), count) for n in shape)
    array = sp.coo_array((rng.normal(size=count), coords), shape=shape)
    form = rng.choice(FORMATS)
    return array if form == "coo" else array.asformat(form)


def dense(A):
    return A.toarray() if hasattr(A, "toarray") else A


def steps(rng, shape):
    """Random functions of a sparse array, each with that of a dense one; and the last shape."""
    made = []
    for _ in range(STEPS):
        n, m = shape
        other = random_pattern(rng, shape)
        right = random_pattern(rng, (m, int(rng.integers(1, 6))))
        rows, columns = (np.sort(rng.integers(0, k, int(rng.integers(1, k + 1)))) for k in shape)
        scale = rng.normal(size=(n, 1))
        form = str(rng.choice(FORMATS))
        k = int(rng.integers(-n + 1, m))
        choices = [
            (lambda A, f=form: A.asformat(f), lambda D: D),
            (lambda A: A.T, lambda D: D.T),
            (lambda A, B=other: A + B, lambda D, B=other: D + B.toarray()),
            (lambda A, B=other: B - A, lambda D, B=other: B.toarray() - D),
            (lambda A, B=other: A * B + A, lambda D, B=other: D * B.toarray() + D),
            (lambda A, B=right: A @ B, lambda D, B=right: D @ B.toarray()),
            (lambda A: A @ A.T, lambda D: D @ D.T),
            (lambda A: 0.5 * A - A / 4.0, lambda D: 0.25 * D),
            (lambda A, s=scale: A * s, lambda D, s=scale: D * s),
            (lambda A: A.sin() + abs(A), lambda D: np.sin(D) + abs(D)),
            (lambda A, r=rows: A.tocsr()[r], lambda D, r=rows: D[r]),
            (lambda A, c=columns: A.tocsc()[:, c], lambda D, c=columns: D[:, c]),
            (lambda A, k=k: sp.tril(A, k), lambda D, k=k: np.tril(D, k)),
            (lambda A, k=k: sp.triu(A, k, "csc"), lambda D, k=k: np.triu(D, k)),
            (lambda A: sp.hstack([A, A * A]), lambda D: np.concatenate([D, D * D], axis=1)),
            (lambda A, B=other: sp.vstack([B, A]), lambda D, B=other: np.vstack([B.toarray(), D])),
            (
                lambda A: sp.diags_array(A.sum(axis=1)) @ A,
                lambda D: D.sum(axis=1)[:, None] * D,
            ),
            (lambda A: sp.kron(A.tocsr()[:2, :2], A), lambda D: np.kron(D[:2, :2], D)),
            (lambda A: A.reshape(A.shape[::-1]), lambda D: D.reshape(D.shape[::-1])),
        ]  # fmt: skip
        if n * m > 60:
            choices = choices[:14]
        chosen = choices[int(rng.integers(len(choices)))]
        shape = chosen[1](np.zeros(shape)).shape
        made.append(chosen)
    return made, shape


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(60))
def test_programs(seed):
    rng = np.random.default_rng(1000 + seed)
    shape = tuple(int(n) for n in rng.integers(2, 6, 2))
    plain = random_pattern(rng, shape)
    structure, data = ws.structure_of(plain), plain.data
    chain, end = steps(rng, shape)
    v, w = rng.normal(size=end[1]), rng.normal(size=end)

    def run(A, dense_too):
        for step in chain:
            A = step[dense_too](A)
        return np.sum(np.tanh(A @ v)) + np.sum(w * dense(A))

    def loss(data):
        return run(ws.from_structure(structure, data), 0)

    matrix = np.zeros((structure.size, shape[0] * shape[1]))
    for k in range(structure.size):
        unit = np.zeros(structure.size)
        unit[k] = 1.0
        matrix[k] = structure.filled(unit.reshape(structure.data_shape)).toarray().ravel()

    def dense_loss(data):
        return run((data.reshape(-1) @ matrix).reshape(shape), 1)

    tolerance = {"rtol": 1e-10, "atol": 1e-10}
    want, bar = wg.value_and_grad(dense_loss)(data)
    for value_and_grad in (wg.value_and_grad(loss), wg.jit(wg.value_and_grad(loss))):
        found, found_bar = value_and_grad(data)
        np.testing.assert_allclose(found, want, **tolerance)
        np.testing.assert_allclose(found_bar, bar, **tolerance)
    dot = rng.normal(size=data.shape)
    np.testing.assert_allclose(wg.jvp(loss, (data,), (dot,))[1], np.sum(bar * dot), **tolerance)
