"""The allocator recycles blocks, within a bound, aligned, also after a fork; arrays own them."""

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm.ir import execution_engine
from wengert._engine.backends.llvm.ir.ir_builder import Function, ModuleBuilder
from wengert._engine.backends.llvm.runtime import allocator, os_calls, runtime_library, settings
from wengert._engine.backends.llvm.tuning import thresholds

LARGE = thresholds.pooled_block_bytes
MEGABYTE = 1 << 20

alloc = runtime_library.function("wengert_alloc")
free = runtime_library.function("wengert_free")
realloc = runtime_library.function("wengert_realloc")


@pytest.fixture(autouse=True)
def fresh():
    """Nothing is kept before and after, and the limit is what it was."""
    limit = settings.info().limit
    settings.trim()
    yield
    settings.limit(limit)
    settings.trim()


@pytest.fixture
def arrays():
    """While it lasts, NumPy takes the memory of new arrays from the pool."""
    switch = set_handler()
    before = switch(runtime_library.handler())
    yield before
    switch(before)


def set_handler():
    """NumPy's PyDataMem_SetHandler, from the table of its C interface."""
    table = np._core._multiarray_umath._ARRAY_API
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    entry = ctypes.cast(get(table, None), ctypes.POINTER(ctypes.c_void_p))[304]
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(entry)


def written(address, size, value):
    ctypes.memset(address, value, size)
    return address


SIZES = [0, 1, 63, 64, 65, 4096, LARGE - 1, LARGE, LARGE + 1, 3 * LARGE, MEGABYTE + 1]
SIZES += [2 * MEGABYTE - 1, 2 * MEGABYTE, 2 * MEGABYTE + 1, 9 * MEGABYTE, 80_000_000]


@pytest.mark.sample(7)
@pytest.mark.parametrize("size", SIZES)
def test_a_block_is_aligned_and_all_of_it_can_be_written(size):
    block = alloc(size)
    assert block % 64 == 0
    written(block, size, 7)
    if size:
        assert ctypes.string_at(block, size).count(7) == size
    free(block)


def test_blocks_do_not_overlap(rng):
    live = {}
    for turn in range(400):
        size = int(rng.choice([10, 1000, LARGE + 1, 200_000, MEGABYTE, 3 * MEGABYTE]))
        if len(live) > 12:
            block = list(live)[int(rng.integers(len(live)))]
            length, mark = live.pop(block)
            assert ctypes.string_at(block, length) == bytes([mark]) * length
            free(block)
        live[written(alloc(size), size, turn % 251)] = (size, turn % 251)
    for block, (length, mark) in live.items():
        assert ctypes.string_at(block, length) == bytes([mark]) * length
        free(block)


def test_the_block_freed_last_is_handed_out_first():
    first, second = alloc(MEGABYTE), alloc(MEGABYTE)
    free(first)
    free(second)
    before = settings.info()
    assert alloc(MEGABYTE) == second
    assert alloc(MEGABYTE - 1000) == first  # the same class
    after = settings.info()
    assert after.hits == before.hits + 2 and after.misses == before.misses
    assert after.kept == 0
    free(first)
    free(second)


def test_classes_waste_at_most_an_eighth_or_a_huge_page():
    for size in [LARGE + 1, 150_000, 1_000_001, 3_900_000, 4 * MEGABYTE + 1, 20_000_001, 1 << 28]:
        before = settings.info().used
        block = alloc(size)
        given = settings.info().used - before
        free(block)
        assert size <= given <= size + max(size // 8, 2 * MEGABYTE * (size > 4 * MEGABYTE))


def test_a_power_of_two_is_a_class_of_its_own():
    for size in (1 << 18, 1 << 21, 1 << 22, 1 << 23, 1 << 24):
        before = settings.info().used
        block = alloc(size)
        assert settings.info().used - before == size
        free(block)


def test_every_class_has_its_own_list():
    """Two classes that shared a list would hand out blocks that are too small."""
    sizes = sorted({int(LARGE * 2 ** (k / 37)) + 1 for k in range(37 * 10)})
    for size in sizes:
        free(alloc(size))
    for size in sizes:
        before = settings.info().used
        block = alloc(size)
        assert settings.info().used - before >= size
        free(block)


def test_small_blocks_are_not_counted_nor_kept():
    before = settings.info()
    block = alloc(LARGE)
    assert settings.info() == before
    free(block)
    assert settings.info() == before


def test_there_is_no_block_beyond_all_memory():
    before = settings.info()
    for size in (1 << 45, 1 << 46, (1 << 46) + 1, 1 << 62, -1):
        assert alloc(size) is None
    assert settings.info().used == before.used
    free(None)


def test_what_is_kept_is_bounded_and_the_oldest_goes_first():
    settings.limit(3 * MEGABYTE)
    taken = [alloc(MEGABYTE) for _ in range(5)]
    before = settings.info().returned
    for block in taken:
        free(block)
    info = settings.info()
    assert info.kept == 3 * MEGABYTE and info.returned - before == 2 * MEGABYTE
    assert [alloc(MEGABYTE) for _ in range(3)] == taken[:1:-1]
    for block in taken[2:]:
        free(block)


def test_a_block_larger_than_the_limit_does_not_push_the_others_out():
    settings.limit(3 * MEGABYTE)
    free(alloc(MEGABYTE))
    free(alloc(16 * MEGABYTE))
    assert settings.info().kept == MEGABYTE


def test_the_limit_holds_at_once_and_zero_keeps_nothing():
    for block in [alloc(MEGABYTE) for _ in range(4)]:
        free(block)
    wg.memory.limit(2 * MEGABYTE)
    assert wg.memory.info().kept == 2 * MEGABYTE
    wg.memory.limit(0)
    free(alloc(MEGABYTE))
    assert wg.memory.info().kept == 0


def test_trim_gives_back_and_says_how_much():
    for block in [alloc(MEGABYTE) for _ in range(4)]:
        free(block)
    assert wg.memory.trim(MEGABYTE) == 3 * MEGABYTE
    assert wg.memory.trim() == MEGABYTE
    assert wg.memory.trim() == 0


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux's /proc")
def test_trimmed_memory_is_the_systems_again():
    size = 64 * MEGABYTE
    block = written(alloc(size), size, 1)
    free(block)
    before = resident()
    settings.trim()
    assert before - resident() > 0.9 * size


def test_realloc_keeps_what_was_written():
    block = written(alloc(1000), 1000, 9)
    for size in (5000, LARGE + 5, 3 * MEGABYTE, 3 * MEGABYTE + 100, 200_000, 500, 10):
        block = realloc(block, size)
        assert block % 64 == 0
        assert ctypes.string_at(block, min(size, 500)) == b"\x09" * min(size, 500)
    assert realloc(block, -1) is None  # and the old one is as it was
    assert ctypes.string_at(block, 10) == b"\x09" * 10
    free(block)
    free(realloc(None, 100))


def test_realloc_stays_in_place_where_it_fits():
    block = alloc(MEGABYTE)
    assert realloc(block, MEGABYTE - 5000) == block
    smaller = realloc(block, 300_000)
    assert smaller != block
    free(smaller)


def test_arrays_own_recycled_memory(arrays):
    before = settings.info()
    x = np.full(1_000_000, 3.0)
    assert x.flags.owndata and x.ctypes.data % 64 == 0
    assert settings.info().used - before.used >= x.nbytes
    where = x.ctypes.data
    view = x[10:]
    del x
    assert settings.info().used > before.used  # the view keeps it
    del view
    assert settings.info().used == before.used
    y = np.empty(1_000_000)
    assert y.ctypes.data == where
    z = np.zeros(1_000_000)
    assert not z.any()
    del y
    assert not np.zeros(1_000_000).any()  # recycled, and zero all the same


def test_arrays_are_resized(arrays):
    x = np.arange(100.0)
    x.resize(200_000, refcheck=False)
    assert np.array_equal(x[:100], np.arange(100.0)) and not x[100:].any()
    x.resize(50, refcheck=False)
    assert np.array_equal(x, np.arange(50.0))
    assert np._core.multiarray.get_handler_name(x) == "wengert"
    assert np._core.multiarray.get_handler_version(x) == 1


def test_an_array_outlives_the_handler_of_its_time(arrays):
    x = np.ones(500_000)
    switch = set_handler()
    mine = switch(arrays)
    used = settings.info().used
    del x
    assert settings.info().used < used
    switch(mine)


def test_empty_arrays(arrays):
    for shape in ((0,), (3, 0), ()):
        x = np.zeros(shape)
        assert x.shape == shape
        x = np.empty(shape, "S0")


def test_threads_without_the_lock_of_the_interpreter():
    """Each thread takes and frees through ctypes, which lets the others run."""
    errors = []

    def work(seed):
        rng = np.random.default_rng(seed)
        live = []
        for _ in range(300):
            size = int(rng.choice([100, LARGE + 1, 200_000, 300_000]))
            block = written(alloc(size), 64, seed)
            live.append((block, seed))
            if len(live) > 5:
                block, mark = live.pop(int(rng.integers(len(live))))
                if ctypes.string_at(block, 64) != bytes([mark]) * 64:
                    errors.append(block)
                free(block)
        for block, _ in live:
            free(block)

    before = settings.info()
    settings.limit(2 * MEGABYTE)
    team = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 7)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    after = settings.info()
    assert errors == []
    assert after.used == before.used and after.kept <= 2 * MEGABYTE
    assert settings.trim() == after.kept


def test_native_threads_at_once():
    """Parts that take two blocks, mark them, look whether the marks are still theirs, and free."""
    module = ModuleBuilder()
    module.declare("wengert_alloc", "ptr", ["i64"])
    module.declare("wengert_free", "void", ["ptr"])
    arguments = [("ptr", "wrong"), ("i64", "lo"), ("i64", "hi"), ("i64", "part")]
    f = Function(module, "hammer", arguments, linkage="")
    with f.body.loop("0", "300000") as (s, turn):
        mark = s.value(f"add i64 {s.value('mul i64 %part, 1000000')}, {turn}")
        taken = [s.value(f"call ptr @wengert_alloc(i64 {size})") for size in (LARGE + 1, 200_000)]
        for block in taken:
            s.write(f"store volatile i64 {mark}, ptr {block}")
        for block in taken:
            seen = s.value(f"load volatile i64, ptr {block}")
            with s.when(s.value(f"icmp ne i64 {seen}, {mark}")) as bad:
                bad.value("atomicrmw add ptr %wrong, i64 1 seq_cst")
            s.write(f"call void @wengert_free(ptr {block})")
    f.body.write("ret void")
    module.add(f)
    code = execution_engine.Code(
        execution_engine.object_of(module.text(execution_engine.heading())),
        runtime_library.symbols(),
    )
    before = settings.info()
    wrong = ctypes.c_int64(0)
    parallel = runtime_library.function("wengert_parallel")
    parallel(code.address("hammer"), ctypes.addressof(wrong), 0, 4, 1, 4)
    after = settings.info()
    assert wrong.value == 0 and after.used == before.used
    assert after.hits + after.misses - before.hits - before.misses == 4 * 2 * 300_000
    assert settings.trim() == after.kept > 0 and settings.info().kept == 0


def test_the_heap_serves_where_there_are_no_maps():
    """As on Windows."""
    module = ModuleBuilder()
    allocator.emit_allocator(module, maps=False)
    code = execution_engine.Code(
        execution_engine.object_of(module.text(execution_engine.heading())), {}
    )
    ctypes.CFUNCTYPE(None)(code.address("wengert_memory_start"))()
    take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(code.address("wengert_alloc"))
    give = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address("wengert_free"))
    trim = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("wengert_memory_trim"))
    sizes = (100, LARGE + 1, 5 * MEGABYTE)
    taken = [written(take(size), size, 1) for size in sizes]
    assert all(block % 64 == 0 for block in taken)
    for block in taken:
        give(block)  # beyond the limit, which is zero at first
    assert trim(0) == 0


def run(program):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.skipif(sys.platform != "linux", reason="page faults are counted as Linux does")
def test_freed_small_blocks_are_kept():
    """Not returned to the system, as glibc does with more than 128 KiB: then each page faults."""
    program = """
import ctypes, resource
from wengert._engine.backends.llvm.runtime import runtime_library
alloc, free = map(runtime_library.function, ("wengert_alloc", "wengert_free"))
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [alloc(100_000) for _ in range(40)]
    for block in blocks:
        ctypes.memset(block, 1, 100_000)
    for block in blocks:
        free(block)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(faults(), faults(), faults())
"""
    first, *later = map(int, run(program))
    assert max(later) < 100 < first


def test_arrays_that_live_until_the_process_ends():
    """They are freed after Python has taken its modules apart."""
    program = """
import ctypes, sys
import numpy as np
from wengert._engine.backends.llvm.runtime import runtime_library as pool
get = ctypes.pythonapi.PyCapsule_GetPointer
get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
table = get(np._core._multiarray_umath._ARRAY_API, None)
table = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))
switch = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[304])
before = switch(pool.handler())
class LazyModule:
    def __init__(self): self.x, self.me = np.ones(10**6), self
    def __del__(self): self.y = np.ones(10**6)
sys.kept = [LazyModule(), np.ones(10**6)]
import builtins
builtins.kept = np.ones(300_000)
print("done")
"""
    assert run(program) == ["done"]


@pytest.mark.sample(1)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("busy", [True, False], ids=["busy", "quiet"])
def test_after_a_fork(busy):
    """Also in the middle of other threads' work, which the child does not have."""
    program = f"""
import os, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from wengert._engine.backends.llvm.runtime import settings as memory
from wengert._engine.backends.llvm.runtime import runtime_library as library
alloc, free = library.function("wengert_alloc"), library.function("wengert_free")
free(alloc(1_000_000))
stop = []
def work():
    while not stop:
        for block in [alloc(200_000) for _ in range(5)]:
            free(block)
team = [threading.Thread(target=work) for _ in range(3 if {busy} else 0)]
for thread in team: thread.start()
for _ in range(25 if {busy} else 1):
    child = os.fork()
    if not child:
        block = alloc(1_000_000)
        blocks = [alloc(200_000) for _ in range(10)]
        for each in blocks + [block]: free(each)
        memory.trim()
        os._exit(len(set(blocks)) != 10)
    assert os.waitpid(child, 0)[1] == 0
stop.append(1)
for thread in team: thread.join()
free(alloc(1_000_000))
print("done")
"""
    assert run(program) == ["done"]


def test_what_is_no_number_of_bytes():
    for wrong in (-1, 1.5, "1", None, True, 1 << 63):
        with pytest.raises(wg.errors.ArgumentError, match="at least 0"):
            wg.memory.limit(wrong)
        with pytest.raises(wg.errors.ArgumentError, match="at least 0"):
            wg.memory.trim(wrong)


def test_asking_starts_no_compiler():
    program = """
import sys, wengert as wg
print(wg.memory.info().used, wg.memory.trim(), wg.get_threads() > 0, wg.cache.enabled())
wg.memory.limit(12345)
assert wg.memory.info().limit == 12345
assert "llvmlite" not in sys.modules
from wengert._engine.backends.llvm.runtime import runtime_library as library
library.symbols()
assert wg.memory.info().limit == 12345
"""
    assert run(program)[:3] == ["0", "0", "True"]


def test_constants_of_the_system():
    assert os_calls.HUGE_PAGE == 2 * MEGABYTE and LARGE < os_calls.HUGE_PAGE
