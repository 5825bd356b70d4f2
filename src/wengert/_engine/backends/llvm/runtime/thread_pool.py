"""The thread pool, as LLVM IR: it runs a function over a range, in parts on several threads.

    wengert_parallel(ptr function, ptr frame, i64 start, i64 stop, i64 grain, i64 threads)
        calls `void function(ptr frame, i64 lo, i64 hi, i64 part)` once for each part
    wengert_parts(i64 start, i64 stop, i64 grain, i64 threads) -> i64    the number of parts
    wengert_get_threads() -> i64, wengert_set_threads(i64)               the global setting
    wengert_team_start()                          initializes, also in the child of a fork
    wengert_team_size() -> i64                    how many workers have been started

The parts depend on (start, stop, grain, threads) only, and so do results that are summed part by
part.  The assignment to threads is dynamic: the caller computes part 0, each other part is taken by
the first free thread, which may be the caller.  So on a busy machine, where the workers are not
scheduled, the caller computes all parts and never waits for a part that has not been started.

Workers are reused: starting and joining a thread took 19 us; a part starts on a worker within 1 us
while it spins, 3 to 4 us if it sleeps, 20 us if it has slept for 2 ms and the core sleeps too.  A
worker spins for some 20 us after its last part, then sleeps.  Spinning threads yield now and then:
on a busy machine a worker may be on the caller's core, and spinning without yielding made each call
take 28 us.

There is one pool.  If it is busy (a call from a second Python thread, or from within a part), the
caller computes all its parts itself, in order.

An offer of parts is one word, the ticket: the number of the offer, the number of its parts, and the
next part.  Parts are taken by compare-and-swap of that word, so a late worker cannot take a part of
another offer.  Workers never run Python, and block all signals: Python's own threads handle them.
"""

from __future__ import annotations

import signal

from ..ir import llvm_types
from ..ir.ir_builder import Function, ModuleBuilder, Name, Section
from ..tuning import thresholds
from .os_calls import emit_locks

MAX_THREADS = 256

# Indices of the words of the state; frequently written ones are in cache lines of their own.
_BUSY, _MADE, _ASLEEP, _TICKET, _PENDING, _WAITING = 0, 1, 2, 8, 16, 17
_FUNCTION, _FRAME, _START, _STOP, _GRAIN, _THREADS = 24, 25, 26, 27, 28, 32
_MUTEX, _WAKE, _DONE = 40, 56, 72  # of pthread types, at most 128 bytes on every system
_WORDS = 88
_NEXT, _PARTS = 0xFFFF, 16  # in a ticket: mask of the next part, shift of the number of parts


def emit_thread_pool(module: ModuleBuilder, threaded: bool) -> None:
    """Emit the functions of this file; if not `threaded`, all parts run on the caller."""
    emit_locks(module)
    module.parts["team"] = f"@team = internal global [{_WORDS} x i64] zeroinitializer, align 128"
    _parts(module)
    _bounds(module)
    _run_all(module)
    _setting(module)
    if threaded:
        _take(module)
        _finish(module)
        _worker(module)
        _grow(module)
        _wait(module)
        _offer(module)
    _parallel(module, threaded)
    _start(module, threaded)


def _word(index: int) -> str:
    return f"getelementptr (i64, ptr @team, i64 {index})"


def _get(s: Section, index: int, kind: str = "i64") -> Name:
    return s.value(f"load atomic {kind}, ptr {_word(index)} seq_cst, align 8")


def _set(s: Section, index: int, value: Name, kind: str = "i64") -> None:
    s.write(f"store atomic {kind} {value}, ptr {_word(index)} seq_cst, align 8")


def _add(s: Section, index: int, by: Name) -> Name:
    """Add to a word of the state atomically; returns the old value."""
    return s.value(f"atomicrmw add ptr {_word(index)}, i64 {by} seq_cst, align 8")


def _pthread(s: Section, name: str, *arguments: str) -> Name:
    kinds = [argument.split(" ", 1)[0] for argument in arguments]
    called = s.function.module.declare(name, "i32", kinds)
    return s.value(f"call i32 {called}({', '.join(arguments)})")


def _locked(s: Section, lock: bool) -> None:
    _pthread(s, f"pthread_mutex_{'lock' if lock else 'unlock'}", f"ptr {_word(_MUTEX)}")


def _units(s: Section) -> tuple[Name, Name]:
    """The length of a grain, at least 1, and the number of grains from start to stop."""
    grain = s.larger("%grain", "1")
    length = s.value("sub i64 %stop, %start")
    remainder = s.value(f"srem i64 {length}, {grain}")
    rest = s.value(f"zext i1 {s.value(f'icmp ne i64 {remainder}, 0')} to i64")
    return grain, s.value(f"add i64 {s.value(f'sdiv i64 {length}, {grain}')}, {rest}")


def _parts(module: ModuleBuilder) -> None:
    arguments = [("i64", n) for n in ("start", "stop", "grain", "threads")]
    f = Function(module, "wengert_parts", arguments, "i64", linkage="")
    s = f.body
    _, units = _units(s)
    parts = s.larger(s.smaller(units, s.smaller("%threads", str(MAX_THREADS))), "1")
    empty = s.value("icmp sge i64 %start, %stop")
    s.write(f"ret i64 {s.value(f'select i1 {empty}, i64 0, i64 {parts}')}")
    module.add(f)


def _bounds(module: ModuleBuilder) -> None:
    """The start of a part: whole grains, divided evenly; the start of part `parts` is the end."""
    names = ("start", "stop", "grain", "parts", "part")
    f = Function(module, "begin", [("i64", n) for n in names], "i64")
    s = f.body
    grain, units = _units(s)
    each = s.value(f"sdiv i64 {units}, %parts")
    more = s.value(f"srem i64 {units}, %parts")  # the number of parts with one more grain
    before = s.value(f"add i64 {s.value(f'mul i64 {each}, %part')}, {s.smaller(more, '%part')}")
    last = s.value("icmp eq i64 %part, %parts")
    begin = s.value(f"add i64 %start, {s.value(f'mul i64 {before}, {grain}')}")
    s.write(f"ret i64 {s.value(f'select i1 {last}, i64 %stop, i64 {begin}')}")
    module.add(f)


_RANGE = [("ptr", "function"), ("ptr", "frame"), *(("i64", n) for n in ("start", "stop", "grain"))]


def _call(s: Section, parts: Name, part: Name, values: dict[str, Name] | None = None) -> None:
    """Compute one part."""
    of = values or {name: f"%{name}" for _, name in _RANGE}
    span = f"i64 {of['start']}, i64 {of['stop']}, i64 {of['grain']}, i64 {parts}"
    following = s.value(f"add i64 {part}, 1")
    low = s.value(f"call i64 @begin({span}, i64 {part})")
    high = s.value(f"call i64 @begin({span}, i64 {following})")
    arguments = f"ptr {of['frame']}, i64 {low}, i64 {high}, i64 {part}"
    s.write(f"call void {of['function']}({arguments})")


def _run_all(module: ModuleBuilder) -> None:
    f = Function(module, "run_all", [*_RANGE, ("i64", "parts")])
    with f.body.loop("0", "%parts") as (s, part):
        _call(s, "%parts", part)
    f.body.write("ret void")
    module.add(f)


def _take(module: ModuleBuilder) -> None:
    """Take the next part of the offer: its number and the number of parts; -1 if all are taken."""
    values = {"ticket": _word(_TICKET), "next": _NEXT, "parts": _PARTS}
    module.include(llvm_types.functions(__file__, **values))


def _finish(module: ModuleBuilder) -> None:
    """Take parts and compute them until none is left."""
    f = Function(module, "finish", [])
    s = f.body
    s.block("again")
    pair = s.value("call {i64, i64} @take()")
    part = s.value(f"extractvalue {{i64, i64}} {pair}, 0")
    parts = s.value(f"extractvalue {{i64, i64}} {pair}, 1")
    s.write(f"br i1 {s.value(f'icmp eq i64 {part}, -1')}, label %none, label %one")
    s.label("one")
    indices = {"start": _START, "stop": _STOP, "grain": _GRAIN}
    values = {name: _get(s, index) for name, index in indices.items()}
    values["function"] = _get(s, _FUNCTION, "ptr")
    values["frame"] = _get(s, _FRAME, "ptr")
    _call(s, parts, part, values)
    left = _add(s, _PENDING, "-1")
    waited = s.value(f"icmp ne i64 {_get(s, _WAITING)}, 0")
    last = s.value(f"icmp eq i64 {left}, 1")
    with s.when(s.value(f"and i1 {waited}, {last}")) as call:
        _locked(call, True)
        _pthread(call, "pthread_cond_signal", f"ptr {_word(_DONE)}")
        _locked(call, False)
    s.write("br label %again")
    s.label("none")
    s.write("ret void")
    module.add(f)


def _open(s: Section) -> Name:
    """Whether the offer has parts left."""
    ticket = _get(s, _TICKET)
    following = s.value(f"and i64 {ticket}, {_NEXT}")
    parts = s.value(f"and i64 {s.value(f'lshr i64 {ticket}, {_PARTS}')}, {_NEXT}")
    return s.value(f"icmp ult i64 {following}, {parts}")


def _spin(s: Section, ready: str, done: str) -> None:
    """Call the function `ready` for some microseconds until it returns true; then go to `done`.

    It yields now and then: on a busy machine, the thread it waits for may need this processor.
    """
    count = s.function.slot("i64")
    s.write(f"store i64 0, ptr {count}")
    s.block("look")
    is_ready = s.value(f"call i1 @{ready}()")
    s.write(f"br i1 {is_ready}, label %{done}, label %idle")
    s.label("idle")
    s.write("call void @pause()")
    n = s.value(f"add i64 {s.value(f'load i64, ptr {count}')}, 1")
    s.write(f"store i64 {n}, ptr {count}")
    turn = s.value(f"urem i64 {n}, {thresholds.thread_yield_spins}")
    with s.when(s.value(f"icmp eq i64 {turn}, 0")) as yielding:
        yielding.write("call void @give_way()")
    again = s.value(f"icmp ult i64 {n}, {thresholds.thread_spins}")
    s.write(f"br i1 {again}, label %look, label %timeout")
    s.label("timeout")


def _sleep(s: Section, ready: str, condition: int, awake: str) -> None:
    """Wait for a condition variable until `ready` returns true; the mutex is held throughout."""
    s.block("check")
    is_ready = s.value(f"call i1 @{ready}()")
    s.write(f"br i1 {is_ready}, label %{awake}, label %sleep")
    s.label("sleep")
    _pthread(s, "pthread_cond_wait", f"ptr {_word(condition)}", f"ptr {_word(_MUTEX)}")
    s.write("br label %check")
    s.label(awake)


def _worker(module: ModuleBuilder) -> None:
    f = Function(module, "is_open", [], "i1")
    f.body.write(f"ret i1 {_open(f.body)}")
    module.add(f)
    f = Function(module, "worker", [("ptr", "nothing")], "ptr")
    s = f.body
    s.block("begin")
    _spin(s, "is_open", "work")
    # An offer made after this line counts this worker; `_sleep` sees one made before it.
    _locked(s, True)
    _add(s, _ASLEEP, "1")
    _sleep(s, "is_open", _WAKE, "awake")
    _add(s, _ASLEEP, "-1")
    _locked(s, False)
    s.block("work")
    s.write("call void @finish()")
    s.write("br label %begin")
    module.add(f)


def _grow(module: ModuleBuilder) -> None:
    """Start workers, with all signals blocked, up to a number or until the system refuses."""
    f = Function(module, "grow", [("i64", "wanted")])
    s = f.body
    all_signals, before, thread = f.slot("[16 x i64]"), f.slot("[16 x i64]"), f.slot("i64")
    made = _get(s, _MADE)
    with s.when(s.value(f"icmp slt i64 {made}, %wanted")) as some:
        _pthread(some, "sigfillset", f"ptr {all_signals}")
        mask = int(signal.SIG_SETMASK)
        _pthread(some, "pthread_sigmask", f"i32 {mask}", f"ptr {all_signals}", f"ptr {before}")
        with some.loop(made, "%wanted") as (one, _):
            worker = (f"ptr {thread}", "ptr null", "ptr @worker", "ptr null")
            failed = _pthread(one, "pthread_create", *worker)
            with one.when(one.value(f"icmp eq i32 {failed}, 0")) as got:
                handle = got.value(f"load i64, ptr {thread}")
                _pthread(got, "pthread_detach", f"i64 {handle}")
                _add(got, _MADE, "1")
        _pthread(some, "pthread_sigmask", f"i32 {mask}", f"ptr {before}", "ptr null")
    s.write("ret void")
    module.add(f)


def _wait(module: ModuleBuilder) -> None:
    """Wait until all parts that were taken are computed."""
    f = Function(module, "is_done", [], "i1")
    f.body.write(f"ret i1 {f.body.value(f'icmp eq i64 {_get(f.body, _PENDING)}, 0')}")
    module.add(f)
    f = Function(module, "wait", [])
    s = f.body
    _spin(s, "is_done", "done")
    _locked(s, True)
    _set(s, _WAITING, "1")
    _sleep(s, "is_done", _DONE, "finished")
    _set(s, _WAITING, "0")
    _locked(s, False)
    s.block("done")
    s.write("ret void")
    module.add(f)


def _offer(module: ModuleBuilder) -> None:
    """Offer parts 1, 2, ... to the workers, compute part 0, help with the others, and wait."""
    f = Function(module, "offer", [*_RANGE, ("i64", "parts")])
    s = f.body
    workers = s.value("sub i64 %parts, 1")
    s.write(f"call void @grow(i64 {workers})")
    indices = (_FUNCTION, _FRAME, _START, _STOP, _GRAIN)
    for index, (kind, name) in zip(indices, _RANGE, strict=True):
        _set(s, index, f"%{name}", kind)
    _set(s, _PENDING, workers)
    number = s.value(f"add i64 {s.value(f'lshr i64 {_get(s, _TICKET)}, 32')}, 1")
    parts = s.value(f"shl i64 %parts, {_PARTS}")
    ticket = s.value(f"or i64 {s.value(f'shl i64 {number}, 32')}, {parts}")
    _set(s, _TICKET, s.value(f"or i64 {ticket}, 1"))
    asleep = _get(s, _ASLEEP)
    with s.when(s.value(f"icmp sgt i64 {asleep}, 0")) as some:
        _locked(some, True)
        with some.loop("0", some.smaller(asleep, workers)) as (one, _):
            _pthread(one, "pthread_cond_signal", f"ptr {_word(_WAKE)}")
        _locked(some, False)
    _call(s, "%parts", "0")
    s.write("call void @finish()")
    s.write("call void @wait()")
    s.write("ret void")
    module.add(f)


def _parallel(module: ModuleBuilder, threaded: bool) -> None:
    arguments = [*_RANGE, ("i64", "threads")]
    f = Function(module, "wengert_parallel", arguments, linkage="")
    s = f.body
    span = "i64 %start, i64 %stop, i64 %grain, i64 %threads"
    parts = s.value(f"call i64 @wengert_parts({span})")
    arguments_of_parts = ", ".join(f"{kind} %{name}" for kind, name in _RANGE) + f", i64 {parts}"
    is_serial = f.slot("i1")
    s.write(f"store i1 true, ptr {is_serial}")
    if threaded:
        with s.when(s.value(f"icmp sgt i64 {parts}, 1")) as several:
            pair = several.value(
                f"cmpxchg ptr {_word(_BUSY)}, i64 0, i64 1 seq_cst seq_cst, align 8"
            )
            with several.when(several.value(f"extractvalue {{i64, i1}} {pair}, 1")) as mine:
                mine.write(f"call void @offer({arguments_of_parts})")
                _set(mine, _BUSY, "0")
                mine.write(f"store i1 false, ptr {is_serial}")
    with s.when(s.value(f"load i1, ptr {is_serial}")) as serial:
        serial.write(f"call void @run_all({arguments_of_parts})")
    s.write("ret void")
    module.add(f)


def _setting(module: ModuleBuilder) -> None:
    f = Function(module, "wengert_get_threads", [], "i64", linkage="")
    f.body.write(f"ret i64 {_get(f.body, _THREADS)}")
    module.add(f)
    f = Function(module, "wengert_set_threads", [("i64", "threads")], linkage="")
    _set(f.body, _THREADS, "%threads")
    f.body.write("ret void")
    module.add(f)
    f = Function(module, "wengert_team_size", [], "i64", linkage="")
    f.body.write(f"ret i64 {_get(f.body, _MADE)}")
    module.add(f)


def _start(module: ModuleBuilder, threaded: bool) -> None:
    """Reset to no workers and no offer, initially and in the child of a fork."""
    f = Function(module, "wengert_team_start", [], linkage="")
    s = f.body
    for index in (_BUSY, _MADE, _ASLEEP, _TICKET, _PENDING, _WAITING):
        _set(s, index, "0")
    if threaded:
        fill = module.declare("llvm.memset.p0.i64", "void", ["ptr", "i8", "i64", "i1"])
        length = 8 * (_WORDS - _MUTEX)
        s.write(f"call void {fill}(ptr {_word(_MUTEX)}, i8 0, i64 {length}, i1 false)")
        _pthread(s, "pthread_mutex_init", f"ptr {_word(_MUTEX)}", "ptr null")
        for condition in (_WAKE, _DONE):
            _pthread(s, "pthread_cond_init", f"ptr {_word(condition)}", "ptr null")
    s.write("ret void")
    module.add(f)
