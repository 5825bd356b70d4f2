"""A range is divided into parts that depend on its length only; each is computed once."""

import ctypes
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg

import wengert as wg
from wengert._engine.backends.llvm.ir import execution_engine
from wengert._engine.backends.llvm.ir.ir_builder import Function, ModuleBuilder
from wengert._engine.backends.llvm.runtime import (
    library_symbols,
    runtime_library,
    settings,
    thread_pool,
)
from wengert._engine.backends.llvm.runtime import settings as threads
from wengert._engine.backends.llvm.tuning import thresholds

PART = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
parallel = runtime_library.function("wengert_parallel")
parts = runtime_library.function("wengert_parts")


def compiled(module):
    return execution_engine.Code(
        execution_engine.object_of(module.text(execution_engine.heading())),
        runtime_library.symbols(),
    )


@pytest.fixture(scope="module")
def marks():
    """`frame[i] += part + 1` for each i of a part, natively."""
    module = ModuleBuilder()
    arguments = [("ptr", "frame"), ("i64", "lo"), ("i64", "hi"), ("i64", "part")]
    f = Function(module, "marks", arguments, linkage="")
    with f.body.loop("%lo", "%hi") as (s, i):
        where = s.value(f"getelementptr i64, ptr %frame, i64 {i}")
        before = s.value(f"load i64, ptr {where}")
        after = s.value(f"add i64 {before}, {s.value('add i64 %part, 1')}")
        s.write(f"store i64 {after}, ptr {where}")
    f.body.write("ret void")
    module.add(f)
    code = compiled(module)
    yield code.address("marks")
    del code


def marked(function, start, stop, grain, threads):
    out = np.zeros(max(stop, 1), np.int64)
    parallel(function, out.ctypes.data, start, stop, grain, threads)
    return out


def expected(start, stop, grain, threads):
    """The same cut, computed once more in Python."""
    out = np.zeros(max(stop, 1), np.int64)
    units = -(-(stop - start) // max(grain, 1))
    count = max(min(units, threads, thread_pool.MAX_THREADS), 1) if stop > start else 0
    low = start
    for part in range(count):
        high = min(low + (units // count + (part < units % count)) * max(grain, 1), stop)
        out[low:high] = part + 1
        low = high
    assert low == stop or not count
    return out, count


RANGES = [
    (0, 100, 1, 4),
    (0, 100, 64, 4),
    (3, 100, 7, 3),
    (0, 1, 1, 8),
    (0, 0, 1, 8),
    (5, 2, 1, 8),
    (0, 7, 1, 7),
    (0, 1000, 8, 13),
    (0, 1000, 1, 300),
    (0, 10, 0, 2),
    (0, 10, -5, 2),
    (0, 10, 1, 0),
    (0, 10, 1, -3),
    (0, 10, 1 << 40, 4),
]


@pytest.mark.parametrize("numbers", RANGES, ids=str)
def test_parts_are_fixed_and_each_is_computed_once(marks, numbers):
    want, count = expected(*numbers)
    assert parts(*numbers) == count
    for _ in range(5):
        assert np.array_equal(marked(marks, *numbers), want)


def test_ranges_at_random(marks, rng):
    for _ in range(500):
        start = int(rng.integers(0, 50))
        numbers = (start, start + int(rng.integers(0, 3000)), *map(int, rng.integers(1, 40, 2)))
        want, count = expected(*numbers)
        assert parts(*numbers) == count
        assert np.array_equal(marked(marks, *numbers), want)


def test_part_zero_is_the_callers():
    seen = {}

    @PART
    def note(frame, lo, hi, part):
        seen[part] = threading.get_ident()
        time.sleep(0.02)

    parallel(note, None, 0, 4, 1, 4)
    assert sorted(seen) == [0, 1, 2, 3]
    assert seen[0] == threading.get_ident()


def test_parts_run_at_the_same_time():
    barrier = threading.Barrier(3, timeout=20)

    @PART
    def meet(frame, lo, hi, part):
        barrier.wait()

    parallel(meet, None, 0, 3, 1, 3)
    assert not barrier.broken


def test_one_part_stays_on_the_calling_thread(marks):
    size = runtime_library.function("wengert_team_size")()
    marked(marks, 0, 1000, 1, 1)
    marked(marks, 0, 1000, 1000, 50)
    assert runtime_library.function("wengert_team_size")() == size


def test_a_range_within_a_part_is_computed_in_order():
    seen = []

    @PART
    def inner(frame, lo, hi, part):
        seen.append((threading.get_ident(), part))

    @PART
    def outer(frame, lo, hi, part):
        parallel(inner, None, 0, 5, 1, 5)

    parallel(outer, None, 0, 3, 1, 3)
    assert len(seen) == 15
    for thread in {thread for thread, _ in seen}:
        mine = [part for who, part in seen if who == thread]
        assert mine == list(range(5)) * (len(mine) // 5)


def test_many_threads_of_python_at_once(marks):
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(200):
            numbers = (0, int(rng.integers(1, 2000)), *map(int, rng.integers(1, 9, 2)))
            if not np.array_equal(marked(marks, *numbers), expected(*numbers)[0]):
                wrong.append(numbers)

    callers = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []


def test_more_threads_than_the_team_may_have(marks):
    assert parts(0, 10**6, 1, 10**6) == thread_pool.MAX_THREADS
    size = runtime_library.function("wengert_team_size")()
    assert size < thread_pool.MAX_THREADS


def test_without_threads_all_parts_run_here(marks):
    """As on Windows."""
    module = ModuleBuilder()
    thread_pool.emit_thread_pool(module, threaded=False)
    assert "pthread" not in module.text()
    code = compiled(module)
    ctypes.CFUNCTYPE(None)(code.address("wengert_team_start"))()
    kinds = [ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * 4]
    alone = ctypes.CFUNCTYPE(None, *kinds)(code.address("wengert_parallel"))
    seen = []

    @PART
    def note(frame, lo, hi, part):
        seen.append((lo, hi, part, threading.get_ident()))

    alone(ctypes.cast(note, ctypes.c_void_p), None, 0, 10, 1, 3)
    here = threading.get_ident()
    assert seen == [(0, 4, 0, here), (4, 7, 1, here), (7, 10, 2, here)]


def run(program, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


COUNTED = """
import ctypes, os, threading, time
from wengert._engine.backends.llvm.runtime import runtime_library as library
PART = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
parallel = library.function("wengert_parallel")
seen = []
@PART
def note(frame, lo, hi, part):
    seen.append(part)
    time.sleep(0.01)
def count():
    seen.clear()
    parallel(note, None, 0, 4, 1, 4)
    return sorted(seen)
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads Linux's /proc")
def test_workers_sleep_between_calls():
    """And while they sleep they take no time of a processor: S in proc(5), not R."""
    program = (
        COUNTED
        + """
from pathlib import Path
def states():
    found = []
    for task in Path("/proc/self/task").iterdir():
        if int(task.name) != threading.get_native_id():
            found.append((task / "stat").read_text().rpartition(")")[2].split()[0])
    return found
assert count() == [0, 1, 2, 3] and len(states()) >= 3
while set(states()) != {"S"}:
    time.sleep(0.01)
assert count() == [0, 1, 2, 3]
"""
    )
    assert run(program) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_after_a_fork():
    """The child has none of the workers; it starts its own."""
    program = (
        COUNTED
        + """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
size = library.function("wengert_team_size")
assert size() == 0 and count() == [0, 1, 2, 3] and size() == 3
child = os.fork()
if not child:
    assert size() == 0
    os._exit(count() != [0, 1, 2, 3] or size() != 3)
assert os.waitpid(child, 0)[1] == 0
assert count() == [0, 1, 2, 3]
# Native parts: CPython 3.11 itself hangs if it forks while another thread begins a callback.
native = library.symbols()["wengert_memory_read"]
out = (ctypes.c_int64 * 7)()
stop = []
def work():
    while not stop: parallel(native, out, 0, 3, 1, 3)
caller = threading.Thread(target=work)
caller.start()
for _ in range(10):
    child = os.fork()
    if not child:
        os._exit(count() != [0, 1, 2, 3])
    assert os.waitpid(child, 0)[1] == 0
stop.append(1)
caller.join()
print("done")
"""
    )
    assert run(program) == ["done"]


def test_the_process_ends_while_workers_sleep_and_spin():
    assert run(COUNTED + "print(count())") == ["[0,", "1,", "2,", "3]"]


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="needs Linux's /proc")
def test_workers_leave_signals_to_the_main_thread():
    program = (
        COUNTED
        + """
import signal
def blocked(task):
    with open(f"/proc/self/task/{task}/status") as file:
        return next(int(line.split()[1], 16) for line in file if line.startswith("SigBlk"))
before = set(os.listdir("/proc/self/task"))
mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
count()
made = set(os.listdir("/proc/self/task")) - before
assert len(made) == 3
for task in made:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        assert blocked(task) >> (number - 1) & 1
assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == mask
print("done")
"""
    )
    assert run(program) == ["done"]


# ---- the setting -------------------------------------------------------------------------------


@pytest.fixture
def setting():
    before = wg.get_threads()
    yield before
    wg.set_threads(before)


def test_the_number_is_set_and_native_code_knows(setting):
    native = runtime_library.function("wengert_get_threads")
    assert native() == setting
    wg.set_threads(7)
    assert wg.get_threads() == native() == 7


def test_for_a_while(setting):
    with wg.set_threads(3):
        assert wg.get_threads() == 3
        with wg.set_threads(np.int64(1)):
            assert wg.get_threads() == 1
        assert wg.get_threads() == 3
    assert wg.get_threads() == setting
    with pytest.raises(RuntimeError), wg.set_threads(5):
        raise RuntimeError
    assert wg.get_threads() == runtime_library.function("wengert_get_threads")() == setting


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "2", None, True, 1 << 31], ids=str)
def test_what_is_no_number_of_threads(wrong, setting):
    with pytest.raises(wg.errors.ArgumentError, match="at least 1"):
        wg.set_threads(wrong)
    assert wg.get_threads() == setting


def test_the_number_at_the_beginning():
    program = "import wengert as wg; print(wg.get_threads())"
    plain = {"WENGERT_THREADS": "", "OMP_NUM_THREADS": ""}
    assert run(program, **plain) == [str(settings.cores())]
    assert run(program, **plain | {"OMP_NUM_THREADS": "3,2"}) == ["3"]
    assert run(program, **plain | {"OMP_NUM_THREADS": "many"}) == [str(settings.cores())]
    assert run(program, OMP_NUM_THREADS="3", WENGERT_THREADS="5") == ["5"]


def test_a_container_has_the_cores_of_its_quota(monkeypatch, tmp_path):
    monkeypatch.setattr(settings, "_GROUP", tmp_path)
    every = settings.cores()
    for quota, want in (("max 100000", every), ("100000 100000", 1), ("10000 100000", 1)):
        (tmp_path / "cpu.max").write_text(quota)
        assert settings.cores() == want
    (tmp_path / "cpu.max").write_text("99900000 100000")
    assert settings.cores() == every
    whole = settings.memory()
    (tmp_path / "memory.max").write_text("max\n")
    assert settings.memory() == whole
    (tmp_path / "memory.max").write_text("1048576\n")
    assert settings.memory() == 1048576


# ---- BLAS --------------------------------------------------------------------------------------


def number():
    return ctypes.CFUNCTYPE(ctypes.c_int)(library_symbols.blas_functions()["blas_get"])()


BLAS = library_symbols.blas_symbols()
enter = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(BLAS["wengert_blas_enter"])
leave = ctypes.CFUNCTYPE(None)(BLAS["wengert_blas_leave"])
set_number = ctypes.CFUNCTYPE(None, ctypes.c_int)(
    library_symbols.blas_functions().get("blas_set", 0)
)


@pytest.fixture
def two_for_blas():
    """Two threads are set for BLAS itself: more than are set it never uses."""
    before = number()
    set_number(2)
    yield
    set_number(before)


needs_blas = pytest.mark.skipif(
    not library_symbols.blas_functions(), reason="a BLAS that cannot be asked"
)


@needs_blas
def test_small_products_use_one_thread_and_the_number_comes_back(two_for_blas):
    before = number()
    enter(1000, 2)
    assert number() == 1
    leave()
    assert number() == before
    enter(thresholds.blas_parallel_flops, 2)
    assert number() == 2
    leave()
    assert number() == before


@needs_blas
def test_calls_that_overlap_do_not_lose_the_number():
    before = number()
    enter(1000, 2)
    enter(1 << 60, 2)
    leave()
    assert number() == 1
    leave()
    assert number() == before

    def work():
        for _ in range(300):
            enter(1000, 2)
            time.sleep(0)
            leave()

    callers = [threading.Thread(target=work) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert number() == before


def test_a_blas_that_is_not_known_is_left_alone():
    module = ModuleBuilder()
    library_symbols.emit_blas_threads(module, available=False)
    code = compiled(module)
    ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(code.address("wengert_blas_enter"))(1, 1)
    ctypes.CFUNCTYPE(None)(code.address("wengert_blas_leave"))()


@needs_blas
@pytest.mark.parametrize(
    "f",
    [scipy.linalg.expm, lambda a: np.linalg.solve(a + 0j, a)],
    ids=["expm", "complex solve"],
)
def test_routines_that_use_all_threads_are_limited(f):
    """OpenBLAS uses all threads for row exchanges of any size."""
    text = wg.jit(f).lower(np.eye(8)).llvm_ir
    assert "wengert_blas_enter" in text
    assert "wengert_blas_enter" not in wg.jit(np.linalg.cholesky).lower(np.eye(8)).llvm_ir


def test_the_setting_is_a_module_without_the_compiler():
    assert threads.get_threads is wg.get_threads
