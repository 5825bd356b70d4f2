"""Messages in branches, and random programs with messages.

`make test` runs the checks in two processes, with fewer compiled programs: test_all_checks.py.
"""

import pytest
from tests.distributed import random_programs
from tests.distributed.launch import failures, mpirun

pytestmark = pytest.mark.skipif(mpirun() is None, reason="mpi4py or mpirun is not installed")


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 3])
def test_branches(count):
    assert failures(count, "checks_of_branches") == {}


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
def test_random_programs(count):
    found = random_programs.outcomes(count, 0, 20)
    assert {k: v for k, v in found.items() if v not in ("right", "not finite")} == {}
