"""agree: one program on arrays, on tensors, and through both namespaces, with its derivatives."""

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from wengert.core import tree
from wengert.core.handle import Handle, value_of
from wengert.testing import check_grads


def _plain(x):
    return tree.flatten(x)[0]


def _same(got, want, what):
    got, want = _plain(got), _plain(want)
    assert len(got) == len(want), what
    for g, w in zip(got, want, strict=True):
        g, w = np.asarray(value_of(g)), np.asarray(value_of(w))
        assert g.shape == w.shape, (what, g.shape, w.shape)
        assert g.dtype == w.dtype, (what, g.dtype, w.dtype)
        np.testing.assert_allclose(g, w, rtol=1e-13, atol=1e-14, err_msg=what)


@pytest.fixture
def agree():
    """`agree(f, *arrays)`: f(xp, *arrays) means the same everywhere, and differentiates."""

    def check(f, *arrays, order=1):
        want = f(np, *[np.array(a) for a in arrays])
        plain = f(wnp, *[np.array(a) for a in arrays])
        assert not any(isinstance(x, Handle) for x in _plain(plain)), "plain in, plain out"
        _same(plain, want, "arrays in wengert.numpy")
        for xp in (np, wnp):
            got = f(xp, *[wg.tensor(a) for a in arrays])
            assert any(isinstance(x, Handle) for x in _plain(got)), "tensor in, tensor out"
            _same(got, want, f"tensors in {xp.__name__}")
        check_grads(lambda *xs: f(np, *xs), arrays, order=order)
        single = [a.astype(np.float32) if a.dtype == float else a for a in map(np.asarray, arrays)]
        if all(a.dtype == np.float32 for a in single):
            out, pull = wg.vjp(lambda *xs: f(np, *xs), *single)
            for bar, a in zip(pull(tree.tree_map(np.ones_like, out)), single, strict=True):
                assert bar.dtype == np.float32
                assert bar.shape == a.shape

    return check
