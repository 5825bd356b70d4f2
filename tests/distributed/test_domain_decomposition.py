"""Borders of divided arrays, and time loops over them, with one, two and four processes.

`make test` runs the checks in two processes, with fewer compiled programs: test_all_checks.py.
"""

from pathlib import Path

import pytest
from tests.distributed.launch import failures, mpirun, started

pytestmark = pytest.mark.skipif(mpirun() is None, reason="mpi4py or mpirun is not installed")
MODULES = "checks_of_halos", "checks_of_time_loops"


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("module", MODULES)
def test_checks(module, count):
    assert failures(count, module) == {}


@pytest.mark.parametrize("way", [pytest.param("eager", marks=pytest.mark.slow), "compiled"])
def test_the_first_message_of_a_process_may_be_in_a_gradient(way):
    status, output = started(2, Path(__file__).parent / "first_gradients.py", way)
    assert status == 0 and output.count("equal") == 2, output


WAYS = [(2, "eager"), (1, "forward"), (1, "batch"), (2, "compiled"), (2, "forward"), (2, "batch")]
SLOW = [pytest.param(*way, marks=pytest.mark.slow) for way in WAYS]


@pytest.mark.parametrize(("count", "way"), [(1, "eager"), (1, "compiled"), *SLOW])
def test_the_first_import_in_a_function_that_is_transformed_is_refused(count, way):
    status, output = started(count, Path(__file__).parent / "first_imports.py", way)
    assert status == 0 and output.count("refused") == count, output
