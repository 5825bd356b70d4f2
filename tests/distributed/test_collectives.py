"""The collective operations with one, two and four processes.

All checks run in one program, because to start it and to import the library takes longer than most
of them.  `make test` runs them in two processes, with fewer compiled programs: test_all_checks.py.
"""

import re
from pathlib import Path

import pytest
from tests.distributed import checks_of_peer_tests
from tests.distributed.launch import failures, mpirun

HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(mpirun() is None, reason="mpi4py or mpirun is not installed")
MODULES = [
    *("checks_of_operations", "checks_of_programs", "checks_of_placed", "checks_of_pipeline"),
    *("checks_of_bad_input", "checks_of_peer_tests", "checks_of_solvers"),
]


def test_every_test_of_mpi4jax_has_a_counterpart_or_a_reason():
    others = ["checks_of_halos", "checks_of_time_loops"]
    checks = {n for m in [*MODULES, *others] for n in _checks(m)}
    for file, tests in checks_of_peer_tests.MPI4JAX.items():
        for name, ours in tests.items():
            is_check = ours.startswith("check_")
            assert name.startswith("test_") and ours, (file, name)
            assert not is_check or ours in checks, (file, name, ours)


def _checks(module):
    return re.findall(r"^def (check_\w+)", (HERE / f"{module}.py").read_text(), re.M)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 4])
def test_checks(count):
    assert failures(count, *MODULES) == {}
