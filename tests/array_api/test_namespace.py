"""The array API over tensors where the public suite does not look: devices, copies, gradients."""

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from wengert.errors import ArgumentError, ConversionError, ShapeError
from wengert.testing import array_api as xp


def test_every_array_of_the_namespace_is_a_tensor():
    made = [xp.asarray([1, 2]), xp.zeros(2), xp.arange(3), xp.linspace(0, 1, 3), xp.eye(2)]
    made += [*xp.meshgrid(xp.arange(2), xp.arange(3)), xp.fft.fftfreq(4), xp.tril(xp.ones((2, 2)))]
    made += [xp.full((2,), 3.0), xp.from_dlpack(np.ones(2)), *xp.unique_all(xp.asarray([2, 1]))]
    assert all(isinstance(x, wg.Tensor) for x in made)


def test_the_names_of_the_namespace_are_there():
    assert not [name for name in xp.__all__ if not hasattr(xp, name)]
    assert xp.__array_api_version__ == wnp.__array_api_version__ == np.__array_api_version__
    info = wg.tensor([1.0]).__array_namespace__().__array_namespace_info__()
    assert info.devices() == ["cpu"]


def test_descending_order_is_stable_and_differentiates():
    x = np.array([1.0, 3.0, 1.0, 2.0])
    np.testing.assert_array_equal(xp.argsort(xp.asarray(x), descending=True).numpy(), [1, 3, 0, 2])
    bar = wg.grad(lambda x: xp.sort(x, descending=True)[1] * 5.0)(x)
    np.testing.assert_array_equal(bar, [0, 0, 0, 5])


@pytest.mark.parametrize(
    "make",
    [
        lambda x: wnp.asarray(x, device="gpu"),
        lambda x: wnp.zeros_like(x, device="gpu"),
        lambda x: wnp.full_like(x, 1.0, device="gpu"),
        lambda x: wnp.linspace(x[0], 1.0, 3, device="gpu"),
        lambda x: wnp.arange(x[0], 3.0, device="gpu"),
        lambda x: wnp.astype(x, int, device="gpu"),
        lambda x: wnp.from_dlpack(x, device="gpu"),
        lambda x: x.to_device("gpu"),
        lambda x: x.to_device("cpu", stream=1),
    ],
)
def test_another_device_is_refused(make):
    with pytest.raises(ArgumentError, match=r"'cpu' only"):
        make(wg.tensor([1.0, 2.0]))


def test_to_device_keeps_the_derivative():
    assert wg.grad(lambda x: x.to_device("cpu") ** 2)(3.0) == 6.0


def test_dlpack_shares_memory_that_cannot_be_written_to():
    x = wg.tensor([1.0, 2.0])
    seen = np.from_dlpack(x)  # NumPy asks for version 1, which can say that memory is read-only
    assert np.shares_memory(seen, x.numpy()) and not seen.flags.writeable
    mine = np.from_dlpack(x, copy=True)
    mine[0] = 7.0
    np.testing.assert_array_equal(x.numpy(), [1.0, 2.0])


def test_dlpack_of_old_consumers_is_a_copy():
    class Old:
        """An array of which the version of DLPack is asked as before 1.0."""

        def __dlpack__(self, **_):
            return x.__dlpack__()

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    x = wg.tensor([1.0, 2.0])
    taken = np.from_dlpack(Old())
    assert not np.shares_memory(taken, x.numpy())


@pytest.mark.usefixtures("unconverted")
def test_dlpack_never_loses_a_derivative():
    with pytest.raises(ConversionError, match="derivative"):
        wg.grad(lambda x: np.sum(np.from_dlpack(x * 2.0)))(np.ones(2))
    bar = wg.grad(lambda x: np.sum(wnp.from_dlpack(x * 2.0, copy=True)))(np.ones(2))
    np.testing.assert_array_equal(bar, [2.0, 2.0])


def test_a_copy_that_must_not_be_is_refused():
    x = wg.tensor([1.0, 2.0])
    with pytest.raises(ValueError, match="copy=False"):
        wnp.asarray(x, dtype=np.float32, copy=False)
    assert wnp.asarray(x, copy=False) is x


@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod", "cumsum"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.bool_])
def test_integers_keep_the_dtype_that_is_asked_for(name, dtype):
    a = np.array([200, 100, 3, 0], np.uint8)
    got = getattr(wnp, name)(wg.tensor(a), dtype=dtype)
    want = getattr(np, name)(a, dtype=dtype)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize(
    "product, shapes",
    [
        ("vecdot", [(2,), (1,)]),
        ("vecdot", [(3, 1), (2,)]),
        ("inner", [(2,), (1,)]),
        ("matvec", [(3, 2), (1,)]),
        ("vecmat", [(1,), (3, 2)]),
    ],
)
def test_axes_that_are_multiplied_do_not_broadcast(product, shapes):
    a, b = map(np.ones, shapes)
    with pytest.raises(ValueError):
        getattr(np, product)(a, b)
    with pytest.raises(ShapeError, match=product):
        getattr(np, product)(wg.tensor(a), b)


@pytest.mark.parametrize(
    "args, named",
    [
        *[((3,), {}), ((1, 3), {}), ((1, 9, 3), {}), ((3, None), {}), ((1, 3, None), {})],
        *[((), {"stop": 3}), ((), {"start": 1, "stop": 3}), ((1,), {"stop": 3, "step": 2})],
    ],
)
def test_arange_takes_its_arguments_as_numpy(args, named):
    want = np.arange(*args, **named)
    for got in (wnp.arange(*args, **named), np.asarray(xp.arange(*args, **named))):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
    number = {k: wg.tensor(v) for k, v in named.items()}
    got = wnp.arange(*[a if a is None else wg.tensor(a) for a in args], **number)
    np.testing.assert_array_equal(got.numpy(), want)
