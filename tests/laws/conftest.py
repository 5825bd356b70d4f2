"""Every law for every registered operation.

A test of a law takes `op`; it is run for each operation that the packages of wengert have
registered and that the law speaks of, whoever added it.  What a law says and how it is checked
stands in `wengert.testing`, where users find it for their own operations; a file only names it.

The functions of scipy.special have the same form: an entry of each names the ufunc and states
partials.  The laws that cost most are run for one in SAMPLE of them (selected by the checksum of
the name, so the selection does not change when functions are added), and for all of them by
`make test-all`; their values against the oracle, which tests/scipy/test_special_*.py check again,
for one in SAMPLE_OF_VALUES.  The first derivatives of all of them against differences are in every
run (tests/scipy/test_special_partials.py).

SHARES are the laws that are run for one operation in some.  A derivative in native code consists of
operations whose values in native code are checked for each operation; a derivative of a traced
function is the traced derivative that native code is compared with; strong zeros are those of a
branch that was not taken, of which tests/correctness has programs; a batch is what the rule of its
kind makes of it, and most kinds have many operations.
"""

import zlib

import pytest

from wengert.testing.laws.common import LAWS, laws_of

ALIKE = "special."
SAMPLE = 16
SAMPLE_OF_VALUES = 3
COSTLY = {
    "test_partials_keep_their_digits",
    "test_derivatives_are_right",
    "test_native_derivatives_agree",
    "test_native_sizes_agree",
    "test_strong_zeros_agree",
    "test_traced_derivatives_agree",
    "test_series_agree",
    "test_broadcasting_is_undone",
    "test_batching_is_right",
    "test_complex_numbers_are_operands",
    "test_native_values_agree",
    "test_device_values_agree",
    "test_symbolic_sizes_agree",
    "test_host_callbacks_are_stated",
    "test_operands_are_not_changed",
    "test_memory_does_not_matter",
}
ORACLE = "test_value_agrees_with_oracle"
SHARES = {
    "test_native_derivatives_agree": 12,
    "test_native_sizes_agree": 9,
    "test_symbolic_sizes_agree": 2,
    "test_traced_derivatives_agree": 8,
    "test_strong_zeros_agree": 6,
    "test_partials_keep_their_digits": 3,
    "test_series_agree": 4,
    "test_batching_is_right": 4,
    "test_device_values_agree": 16,
    "test_native_values_agree": 3,
}
# Laws that are checked more thoroughly under another name, for operations of which they speak.
THOROUGH = {"test_every_example_in_both_precisions": "test_native_derivatives_agree"}
# Pairs of laws and operations that take seconds, in mpmath, in SciPy's own code or in compiling.
SLOW = {
    ("test_value_agrees_with_oracle", "special.iti0k0.1"),
    ("test_value_agrees_with_oracle", "special.itj0y0.1"),
    ("test_partials_keep_their_digits", "special.betaln"),
    ("test_partials_keep_their_digits", "erf"),
    ("test_partials_keep_their_digits", "erfc"),
    ("test_traced_derivatives_agree", "cholesky"),
    ("test_traced_derivatives_agree", "linalg.fractional_matrix_power"),
    ("test_traced_derivatives_agree", "linalg.logarithm"),
    ("test_native_sizes_agree", "linalg.fractional_matrix_power"),
    ("test_native_sizes_agree", "linalg.logarithm"),
    ("test_strong_zeros_agree", "special.chndtrix"),
    ("test_broadcasting_is_undone", "special.chndtrix"),
    ("test_series_agree", "cholesky"),
    ("test_series_agree", "cholesky_cotangent"),
}


def pytest_generate_tests(metafunc):
    if "op" not in metafunc.fixturenames:
        return
    law = metafunc.function.__name__
    law = THOROUGH.get(law, law)
    parameters = [
        pytest.param(op, id=name, marks=[pytest.mark.slow] * is_passed_over(name, law))
        for name, op in metafunc.config.operations.items()
        if op.kind != "collective"  # tests/distributed checks them in several processes
        if law.removeprefix("test_") not in LAWS or law.removeprefix("test_") in laws_of(op)
    ]
    metafunc.parametrize("op", parameters)


def is_passed_over(name, law):
    """Whether this law of an operation is for `make test-all`."""
    if (law, name) in SLOW:
        return True
    sample = SHARES.get(law, 1)
    if name.startswith(ALIKE):
        sample = SAMPLE if law in COSTLY else SAMPLE_OF_VALUES if law == ORACLE else sample
    return zlib.crc32(name.encode()) % sample != 0
