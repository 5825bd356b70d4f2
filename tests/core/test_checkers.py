"""check_grads and check_op as users meet them: what they accept, find, and say."""

import re

import numpy as np
import pytest

import wengert as wg
from wengert._engine.kinds.opaque import Opaque
from wengert.errors import CheckError, StructureError
from wengert.testing import check_grads, check_op


def wrong_at(index, factor):
    """x * x with a rule that is wrong in one entry."""

    def rule(t, out, x):
        bar = 2.0 * t * x
        scale = np.ones(np.shape(x))
        scale[index] = factor
        return (bar * scale,)

    return Opaque(lambda x: x * x, name="nearly_square", vjp=rule)


def test_the_message_names_input_index_and_both_numbers():
    op = wrong_at((1,), 1.001)
    with pytest.raises(CheckError) as error:
        check_grads(lambda a, b: np.sum(op(b)) * a, (1.0, np.array([3.0, 5.0])), order=1, seed=3)
    message = str(error.value)
    assert "reverse mode" in message and "argument [1] at index (1,)" in message
    got, want = (float(x) for x in re.findall(r"-?\d+\.\d+", message)[:2])
    assert got / want == pytest.approx(1.001, rel=1e-9)


@pytest.mark.parametrize("modes", [("fwd",), ("rev",), ("fwd", "rev")])
def test_each_mode_finds_the_fault(modes):
    op = wrong_at((0,), 1.01)
    with pytest.raises(CheckError):
        check_grads(op, (np.array([1.0, 2.0]),), order=1, modes=modes)


def test_a_fault_of_the_second_derivative_is_found_at_order_two_only():
    def rule(t, out, x):
        return (t * wg.stop_gradient(2.0 * x),)  # right in value, not differentiable again

    op = Opaque(lambda x: x * x, name="once", vjp=rule)
    check_grads(op, (np.array([1.0, 2.0]),), order=1)
    with pytest.raises(CheckError, match="the vjp of"):
        check_grads(op, (np.array([1.0, 2.0]),), order=2)


def test_containers_complex_and_single_precision():
    check_grads(lambda p: {"y": p["a"] * p["b"][0]}, ({"a": np.ones(2), "b": [2.0]},))
    check_grads(lambda z: np.abs(z * z + 1.0), (np.array([1.0 + 2.0j]),))
    check_grads(lambda x: np.exp(x) * 2, (np.array([0.5], np.float32),))
    check_grads(lambda x, n: x**n, (np.array([0.5, 2.0]), 3))


def test_nothing_is_said_where_differences_do_not_converge():
    jump = lambda x: np.where(x > 0.3, 1.0, 0.0) + x  # noqa: E731
    with pytest.raises(CheckError, match="do not converge"):
        check_grads(jump, (np.array([0.3]),), order=1)


def test_bad_arguments():
    with pytest.raises(StructureError, match="tuple"):
        check_grads(np.sin, np.ones(3))
    with pytest.raises(ValueError, match="modes"):
        check_grads(np.sin, (1.0,), modes=("forward",))


def test_check_op_reports_what_it_checked():
    report = check_op("tanh")
    assert report.name == "tanh" and "derivatives_are_right" in report.laws
    assert "kept: modes are transposes" in str(report)
    with pytest.raises(CheckError, match=r"neither a domain nor examples|no oracle"):
        check_op(Opaque(lambda x: x, name="bare", vjp=lambda t, out, x: (t,)))
