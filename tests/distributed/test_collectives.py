"""The collective operations with one, two and four processes."""

import pytest
from tests.distributed.launch import failures, mpirun

pytestmark = pytest.mark.skipif(mpirun() is None, reason="mpi4py or mpirun is not installed")
COUNTS = [2, pytest.param(1, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.slow)]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(
    "module",
    ["checks_of_operations", "checks_of_programs", "checks_of_placed", "checks_of_pipeline"],
)
def test_checks(module, count):
    assert failures(count, module) == {}
