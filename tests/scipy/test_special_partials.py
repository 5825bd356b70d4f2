"""First derivatives of every operation of scipy.special, in both modes, against differences.

One point and one direction for each: a wrong partial is found in every run.  Second derivatives and
all digits are those of tests/laws and tests/scipy/test_special_*.py, of which a run has a part.
"""

import wengert as wg
from wengert.testing.laws.common import arguments_of, function_of, has_derivative


def pytest_generate_tests(metafunc):
    if "op" in metafunc.fixturenames:
        operations = metafunc.config.operations.items()
        found = {k: op for k, op in operations if k.startswith("special.") and has_derivative(op)}
        metafunc.parametrize("op", found.values(), ids=found)


def test_first_derivatives_agree_with_differences(op, rng):
    args, params = next(iter(arguments_of(op, rng)))
    wg.check_grads(function_of(op, params), args, order=1, entries=False)


def test_no_operation_is_left_out(pytestconfig):
    assert sum(name.startswith("special.") for name in pytestconfig.operations) > 200
