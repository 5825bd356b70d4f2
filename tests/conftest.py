"""What every test gets.

The suite is stricter than a user's session: warnings are errors (pyproject.toml), so a NaN or an
overflow that NumPy would only warn of fails the test; a test that means to make one says so with
`np.errstate`.  Everything random is seeded by the test's own name, so a test fails alone as it
fails in company, and the same commit always runs the same cases.  Compiled code is kept in a folder
of this run, which its processes share, so that the user's own cache is neither read nor written.

    rng          a generator seeded by the name of the test
    unconverted  functions run as they are, as those of libraries do
    calls        counts the calls that a function makes, where a clock would do
    operations   on the configuration: the library's own, as test modules may register others
    --quick      a few cases of each function (tests/selection.py)
    garbage      looked for after 100,000 objects: a twentieth of the time of all tests otherwise
    machine code made in a hurry where a test is of something else (tests/machine_code.py)
    fast, wide   hypothesis profiles: `pytest --hypothesis-profile=wide` searches afresh, and longer
"""

import atexit
import gc
import importlib
import importlib.metadata
import os
import platform
import shutil
import signal
import tempfile
import zlib

import hypothesis
import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.conversion_hook import conversion
from wengert._engine.core.lazy_import import load_families
from wengert._engine.core.message_order import _MessageUse
from wengert._engine.core.op import REGISTRY

from . import browsers, counting, machine_code, selection

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A job in the background of a script ignores Ctrl-C, and so would the programs that tests run.
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ["MPLBACKEND"] = "Agg"  # a page or test that draws needs no screen
DURATIONS = os.environ.pop("WENGERT_TESTS_DURATIONS", None)
if DURATIONS is None:  # tests/run.py has made a folder for all its processes
    os.environ["WENGERT_CACHE"] = tempfile.mkdtemp(prefix="wengert-tests-")
    atexit.register(shutil.rmtree, os.environ["WENGERT_CACHE"], ignore_errors=True)

ERRSTATE = np.geterr()
GARBAGE = 100_000  # objects between collections of the youngest: 700 in Python

hypothesis.settings.register_profile(
    "fast", max_examples=50, deadline=None, derandomize=True, database=None
)
hypothesis.settings.register_profile("wide", max_examples=2000, deadline=None, print_blob=True)
hypothesis.settings.load_profile("fast")


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="a few cases of each function")


def pytest_configure(config):
    machine_code.begin(config)
    if DURATIONS is not None:
        config.pluginmanager.register(selection.Durations(DURATIONS))
    for name in wg.SUBMODULES:  # they may register operations of their own
        getattr(wg, name)
    load_families()  # those of SciPy
    importlib.import_module("wengert.testing.laws")  # examples of loops and branches
    config.operations = dict(REGISTRY)


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(config, items):
    """Mark the cases that this run leaves out."""
    selection.sampled(items, config.getoption("--quick"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Most tests are compiled in a hurry."""
    undo = machine_code.quick_code() if machine_code.is_quick(item) else None
    try:
        return (yield)
    finally:
        if undo is not None:
            undo()


_states = {}  # of the generators of each module of tests, as it was imported
_current = []  # the module of the tests that run


def pytest_runtest_setup(item):
    """A generator of a module starts anew: which tests have run before makes no difference."""
    module = getattr(item, "module", None)
    if _current != [module]:  # what earlier modules have left is not looked at again either
        _current[:] = [module]
        gc.collect(1)
        gc.freeze()
    if module not in _states:
        found = [x for x in vars(module or object).values() if isinstance(x, np.random.Generator)]
        _states[module] = [(x.bit_generator, x.bit_generator.state) for x in found]
    for generator, state in _states[module]:
        generator.state = state


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    """A test that leaves `np.errstate` changed fails, not a later one."""
    try:
        return (yield)
    finally:
        _MessageUse.count = 0  # a test of wengert.distributed starts counting tokens
        left = np.geterr()
        if left != ERRSTATE:
            np.seterr(**ERRSTATE)
            pytest.fail(f"np.geterr() is {left} after this test", pytrace=False)


def pytest_collection_finish():
    _MessageUse.count = 0  # modules of tests import wengert.distributed
    # Tens of thousands of tests, and all modules: each collection of garbage would look at them,
    # and would take half a second in tests that collect.
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE, *gc.get_threshold()[1:])


def pytest_report_header():
    versions = [
        f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "scipy", "hypothesis")
    ]
    return f"{platform.machine()}, {', '.join(versions)}; seeds are the names of the tests"


def pytest_terminal_summary(terminalreporter):
    """Say loudly that pages were not looked at."""
    skipped = [
        (report.nodeid.partition("::")[0], report.longrepr[2])
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple)
    ]
    if line := browsers.shortfall(skipped):
        terminalreporter.section("not looked at in a browser", sep="!", red=True, bold=True)
        terminalreporter.write_line(line)


@pytest.fixture
def rng(request):
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture
def unconverted():
    """A test whose functions run as they are, as functions of libraries do."""
    with conversion(False):
        yield


@pytest.fixture
def calls():
    """What counts the work of a function: see tests/counting.py."""
    return counting.calls
