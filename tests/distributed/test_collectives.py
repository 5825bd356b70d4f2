"""The collective operations with one, two and four processes.

All checks run in one program, because to start it and to import the library takes longer than most
of them.  `make test` runs them in two processes, with fewer compiled programs.
"""

import pytest
from tests.distributed.launch import failures, mpirun

pytestmark = pytest.mark.skipif(mpirun() is None, reason="mpi4py or mpirun is not installed")
MODULES = [
    *("checks_of_operations", "checks_of_programs", "checks_of_placed", "checks_of_pipeline"),
    "checks_of_bad_input",
]


def test_checks_with_two_processes():
    assert failures(2, "--quick", *MODULES) == {}


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 4])
def test_checks(count):
    assert failures(count, *MODULES) == {}
