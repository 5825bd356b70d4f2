"""All checks of programs with messages, in two processes that are started once.

To start processes and to import the library takes longer than most checks, so `make test` runs them
together, with fewer compiled programs (sampling.py).  `make test-all` runs each list of checks in
full, with one process and more: test_collectives.py, test_domain_decomposition.py,
test_messages_in_branches.py and test_training.py.
"""

import pytest
from tests.distributed import test_collectives, test_domain_decomposition
from tests.distributed.launch import failures, mpirun

pytestmark = pytest.mark.skipif(mpirun() is None, reason="mpi4py or mpirun is not installed")
MODULES = [
    *test_collectives.MODULES,
    *test_domain_decomposition.MODULES,
    "checks_of_branches",
    "checks_of_training",
]


def test_checks_with_two_processes():
    assert failures(2, "--quick", *MODULES) == {}
