"""Faults about what stood beside a tensor, or was given as an argument."""

import numpy as np
import pytest

import wengert as wg
from wengert import errors

X = np.array([1.0, 2.0, 3.0])


def test_a_list_given_to_a_ufunc_was_not_copied():
    factors = [1.0, 2.0, 3.0]
    w = wg.tensor(X, requires_grad=True)
    y = np.multiply(w, factors).sum()
    factors[0] = 100.0
    y.backward()
    assert w.grad.tolist() == [1.0, 2.0, 3.0]


def test_a_list_given_to_a_ufunc_broke_its_rule():
    assert wg.grad(lambda s: np.sum(np.power(s, [1.0, 2.0])))(2.0) == 5.0


def test_a_list_of_tensors_beside_a_tensor():
    assert wg.grad(lambda x: np.sum(np.multiply(x, [x[0], x[1], 2.0])))(X).tolist() == [2, 4, 2]
    assert wg.grad(lambda x: np.sum(x * (x[0], x[1], 2.0)))(X).tolist() == [2, 4, 2]


def test_memory_mapped_operands_were_not_copied(tmp_path):
    a = np.memmap(tmp_path / "a", dtype=float, mode="w+", shape=3)
    a[:] = X
    w = wg.tensor(X, requires_grad=True)
    y = np.sum(w * a) + np.sum(np.multiply(w, a))
    a[:] = 0.0
    y.backward()
    assert w.grad.tolist() == [2.0, 4.0, 6.0]
    a[:] = X
    assert type(wg.grad(lambda x: np.sum(x * x))(a)) is np.ndarray


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("make", [np.matrix, np.ma.array])
def test_arrays_with_operators_of_their_own_are_refused(make):
    other = make([[1.0, 2.0, 3.0]])
    with pytest.raises(errors.DtypeError, match=r"np\.asarray.*test_operands"):
        wg.grad(lambda x: np.sum(x * other))(X)
    with pytest.raises(errors.DtypeError, match=r"np\.asarray.*test_operands"):
        wg.grad(lambda x: np.sum(np.multiply(x, other)))(X)
    with pytest.raises(errors.NotDifferentiableError, match=r"np\.asarray.*test_operands"):
        wg.grad(np.sum)(other)


def test_round_of_a_number_was_refused():
    assert wg.grad(lambda x: x * round(x))(3.2) == 3.0
    assert np.isclose(wg.grad(lambda x: x * round(x, 1))(3.26), 3.3)
    assert wg.grad(lambda x: sum(x for _ in range(round(x))))(3.2) == 3.0
    with pytest.raises(TypeError, match=r"np\.round"):
        wg.grad(lambda x: round(x).sum())(X)


def test_a_real_tensor_as_a_count_is_a_type_error():
    with pytest.raises(TypeError, match="integer"):
        wg.grad(lambda x: sum(range(x)))(3.2)


def test_an_argument_chosen_twice_got_half_its_gradient():
    product = lambda a, b: a * b  # noqa: E731
    with pytest.raises(errors.StructureError, match="twice"):
        wg.grad(product, argnums=(0, -2))(3.0, 4.0)
    with pytest.raises(errors.StructureError, match="twice"):
        wg.grad(product, argnums=(1,), argnames="b")(3.0, 4.0)


def test_argnums_from_numpy():
    assert wg.grad(lambda a, b: a * b, argnums=np.int64(1))(3.0, 4.0) == 3.0


def test_complex_directions_of_real_arguments_lost_their_imaginary_part():
    with pytest.raises(errors.DtypeError, match="tangent is complex"):
        wg.jvp(np.sin, (X,), (1j * X,))
    with pytest.raises(errors.DtypeError, match="cotangent is complex"):
        wg.vjp(np.sin, X)[1](1j * X)


def test_backward_to_a_constant_did_nothing():
    w, c = wg.tensor(X, requires_grad=True), wg.tensor(X)
    with pytest.raises(errors.NotDifferentiableError, match="requires_grad"):
        np.sum(w * c).backward(inputs=[w, c])


def test_a_write_to_a_read_only_view_names_the_line():
    with pytest.raises(errors.OperandError, match="test_operands"):
        np.broadcast_to(wg.tensor(X, requires_grad=True), (2, 3))[0, 0] = 5.0


@pytest.mark.usefixtures("unconverted")
def test_a_line_of_numpy_was_named_as_the_users():
    with pytest.raises(errors.ConversionError, match="test_operands"):
        wg.grad(lambda x: np.sum(np.r_[x, x]))(X)


def test_where_warned_of_what_it_left_out():
    def f(x):
        return np.sum(np.log(x, out=np.zeros_like(x), where=x > 0))

    assert wg.grad(f)(np.array([-1.0, 2.0])).tolist() == [0.0, 0.5]  # warnings are errors here


def test_a_masked_array_lost_its_mask_in_a_tensor():
    with pytest.raises(errors.DtypeError, match=r"np\.where.*test_operands"):
        wg.tensor(np.ma.array(X, mask=[True, False, False]))


def test_indices_given_to_ufunc_methods_are_not_operands():
    def f(x):
        y = np.outer(x, x)
        np.add.at(y, ([0, 1], 2), x[:2])
        np.add.at(y, (slice(None), 0), [1.0, 2.0, 3.0])
        return np.sum(np.add.reduceat(y, [0, 2], axis=1) * np.multiply.outer(x, [1.0, 2.0]))

    value, slope = wg.value_and_grad(f)(X)
    assert np.isclose(value, f(X))
    steps = [(f(X + 1e-6 * e) - f(X - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    assert np.allclose(slope, steps)
