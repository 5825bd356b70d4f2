"""wengert.numpy has all names of NumPy, and each function supports tensors or raises."""

import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from wengert._engine.tensor.numpy_protocols import FUNCTIONS
from wengert.numpy import SUBMODULES

# Functions that dispatch but have no meaning for tensors: errors that name them.
NOT_FOR_TENSORS = set("busday_count busday_offset is_busday datetime_as_string".split())
DISPATCHING = [
    n for n in sorted(dir(np)) if hasattr(getattr(np, n), "_implementation") and n[0] != "_"
]


@pytest.mark.sample(114)
@pytest.mark.parametrize("name", DISPATCHING)
def test_every_function_of_numpy_takes_tensors(name):
    known = getattr(np, name) in FUNCTIONS
    assert known or name in NOT_FOR_TENSORS


def test_unsupported_functions_raise():
    with pytest.raises(TypeError, match="busday_count"):
        np.busday_count(wg.tensor([1.0]), wg.tensor([2.0]))


def test_every_name_of_numpy_is_there():
    missing = [n for n in np.__all__ if not hasattr(wnp, n)]
    assert not missing
    assert set(np.__all__) <= set(dir(wnp))
    with pytest.raises(AttributeError):
        _ = wnp.no_such_name


def test_other_names_are_those_of_numpy():
    assert wnp.pi is np.pi and wnp.newaxis is None and wnp.inf == np.inf and wnp.e == np.e
    assert np.isnan(wnp.nan)
    for name in """float64 float32 int64 bool_ complex128 finfo iinfo errstate dtype ndarray
        set_printoptions issubdtype promote_types ndindex ndenumerate s_ mgrid ogrid
        broadcast_shapes isscalar testing""".split():
        assert getattr(wnp, name) is getattr(np, name), name


def test_modules_define_distinct_names():
    seen = {}
    for info in pkgutil.iter_modules(wnp.__path__):
        if info.name in SUBMODULES:
            continue
        module = importlib.import_module(f"wengert.numpy.{info.name}")
        for name in getattr(module, "__all__", ()):
            assert hasattr(module, name)
            assert name not in seen, (name, info.name, seen[name])
            seen[name] = info.name
            assert not inspect.ismodule(getattr(np, name, None)), name


def test_arrays_and_tensors_name_their_namespace():
    x = wg.tensor([1.0, 2.0])
    xp = x.__array_namespace__()
    assert xp is wnp
    np.testing.assert_array_equal(xp.sum(xp.asarray(x) ** 2).numpy(), 5.0)


def test_inspection():
    x = wg.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    assert np.shape(x) == (2, 3) and np.ndim(x) == 2 and np.size(x) == 6 and np.size(x, 1) == 3
    assert np.result_type(x, np.float32) == np.float64
    assert np.result_type(wg.tensor(np.float32([1])), 2.0) == np.float32
    assert np.can_cast(x.dtype, complex) and np.min_scalar_type(x) == np.float64
    assert np.iscomplexobj(x * 1j) and np.isrealobj(x) and not np.iscomplexobj(x)
    assert np.array_equal(x, x.numpy()) is True and np.array_equal(x, x + 1.0) is False
    assert np.allclose(x, x + 1e-12) is True and np.array_equiv(x[:1], x[:1]) is True
    assert not np.isscalar(x) and np.common_type(x) is np.float64
    assert np.array2string(x) == np.array2string(x.numpy())
    assert np.array_str(x) == str(x) and np.array_repr(x) == repr(x)
    assert x[0].base is x and x.base is None and x.strides == (24, 8)
    rows, _ = np.tril_indices_from(wg.tensor(np.eye(2)))
    np.testing.assert_array_equal(rows, [0, 1, 1])
    np.testing.assert_array_equal(np.unravel_index(wg.tensor(4), (2, 3)), [1, 1])
    np.testing.assert_array_equal(np.ravel_multi_index((wg.tensor(1), 1), (2, 3)), 4)


def test_memory():
    x = wg.tensor(np.zeros((4, 4)))
    assert np.shares_memory(x, x) and np.may_share_memory(x, x.T)
    assert np.shares_memory(x[0], x[:, 0]) and not np.shares_memory(x[0], x[1])
    assert not np.shares_memory(x, x.copy()) and not np.shares_memory(x, np.zeros(3))


def test_saving(tmp_path):
    x = wg.tensor([1.5, 2.5], requires_grad=True)
    np.save(tmp_path / "x.npy", x)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), [1.5, 2.5])


def test_plain_arrays_pay_little(calls):
    x = np.ones(3)

    for name in ("ravel", "transpose", "squeeze", "zeros_like", "reshape"):
        f, g = getattr(wnp, name), getattr(np, name)
        if name == "reshape":
            f, g = (lambda x: wnp.reshape(x, 3)), (lambda x: np.reshape(x, 3))
        f(x)
        assert calls(f, x) - calls(g, x) <= 5, name
