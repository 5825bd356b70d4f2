"""What every test gets.

The suite is stricter than a user's session: warnings are errors (pyproject.toml), so a NaN or an
overflow that NumPy would only warn of fails the test; a test that means to make one says so with
`np.errstate`.  Everything random is seeded by the test's own name, so a test fails alone as it
fails in company, and the same commit always runs the same cases.  Compiled code is kept in a folder
of this run, which its workers share, so that the user's own cache is neither read nor written.

    rng          a generator seeded by the name of the test
    operations   on the configuration: the library's own, as test modules may register others
    fast, wide   hypothesis profiles: `pytest --hypothesis-profile=wide` searches afresh, and longer
"""

import atexit
import gc
import importlib.metadata
import os
import platform
import shutil
import signal
import tempfile
import zlib
from collections import Counter

import hypothesis
import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.lazy_import import load_families
from wengert._engine.core.op import REGISTRY

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A job in the background of a script ignores Ctrl-C, and so would the programs that tests run.
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ["MPLBACKEND"] = "Agg"  # a page or test that draws needs no screen
if "PYTEST_XDIST_WORKER" not in os.environ:  # workers have it from the process that began them
    os.environ["WENGERT_CACHE"] = tempfile.mkdtemp(prefix="wengert-tests-")
    atexit.register(shutil.rmtree, os.environ["WENGERT_CACHE"], ignore_errors=True)

# Files of few tests, some seconds each; of the others the number of tests says how long they take.
LONG = set(
    """test_examples test_random_loops test_loops test_versions test_entry_memory test_guard_pages
    test_random_gradients test_explorer_browser test_sweep test_parallel_results test_scale
    test_kernels_equations test_random_programs test_inplace test_memory test_samples
    test_small_linalg test_loop_benchmarks test_kernel_benchmarks test_gradbench
    test_gradbench_jacobians test_lifetimes test_checkpoints test_fuzz test_mixed""".split()
)

hypothesis.settings.register_profile(
    "fast", max_examples=50, deadline=None, derandomize=True, database=None
)
hypothesis.settings.register_profile("wide", max_examples=2000, deadline=None, print_blob=True)
hypothesis.settings.load_profile("fast")


def pytest_configure(config):
    if config.getoption("numprocesses", None) and "PYTEST_XDIST_WORKER" not in os.environ:
        return  # workers begin when this is done, and they collect
    for name in wg.SUBMODULES:  # they may register operations of their own
        getattr(wg, name)
    load_families()  # those of SciPy
    config.operations = dict(REGISTRY)


@pytest.hookimpl(trylast=True)  # when those that are left out are
def pytest_collection_modifyitems(items):
    """Files that take long begin, so that all workers end at about the same time."""
    size = Counter(item.path for item in items)
    items.sort(key=lambda item: (item.path.stem not in LONG, -size[item.path], str(item.path)))


def pytest_collection_finish():
    # Tens of thousands of tests, and all modules: each collection of garbage would look at them.
    gc.collect()
    gc.freeze()


def pytest_report_header():
    versions = [
        f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "scipy", "hypothesis")
    ]
    return f"{platform.machine()}, {', '.join(versions)}; seeds are the names of the tests"


@pytest.fixture
def rng(request):
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))
