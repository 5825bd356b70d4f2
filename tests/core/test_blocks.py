"""Blocks that end late, in another order, in another context, or by an interrupt."""

import contextlib
import contextvars
import gc
import os
import random
import signal
import threading
import warnings

import numpy as np
import pytest
from tests.interrupts import moments_in

import wengert as wg
from wengert._engine.core import implicit_conversions, recording, tracing


def state():
    """All that a block of the library changes."""
    return (
        wg.is_recording(),
        recording._enabled.get(),
        recording.recording_session(),
        tracing._scope.get(),
        tracing._metadata.get(),
        tracing.is_deriving(),
        implicit_conversions.chosen(),
        np.geterr(),
    )


def counted():
    """How many blocks are counted as open, of each sort."""
    for openings in (recording.switches, implicit_conversions.gate):
        openings.recount()
    return recording.switches.count, int(implicit_conversions.gate.cell[0])


CLEAN = state()
BLOCKS = {
    "no_grad": wg.no_grad,
    "enable_grad": wg.enable_grad,
    "scope": lambda: wg.scope("a", author="ada"),
    "policy": lambda: wg.policy(cast="raise"),
    "note_lines": wg.note_lines,
}


def suspended(block):
    with block():
        yield 1
        yield 2


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_a_generator_closed_in_another_context(block):
    items = suspended(block)
    contextvars.copy_context().run(next, items)
    items.close()  # Token.reset raised ValueError
    assert state() == CLEAN
    items = suspended(block)
    next(items)
    contextvars.copy_context().run(items.close)
    assert state() == CLEAN
    items = suspended(block)
    next(items)
    thread = threading.Thread(target=items.close)
    thread.start()
    thread.join()
    assert state() == CLEAN


@pytest.mark.parametrize("first", BLOCKS.values(), ids=BLOCKS)
@pytest.mark.parametrize("second", BLOCKS.values(), ids=BLOCKS)
def test_blocks_that_end_in_the_order_they_began(first, second):
    a, b = suspended(first), suspended(second)
    next(a)
    next(b)
    a.close()
    b.close()  # the state before it was that inside of a, which was left behind for good
    assert state() == CLEAN


def test_the_inner_block_holds_when_the_outer_ends_first():
    a, b = suspended(wg.no_grad), suspended(wg.enable_grad)
    next(a)
    next(b)
    a.close()
    assert wg.is_recording()
    b.close()
    c, d = suspended(wg.enable_grad), suspended(wg.no_grad)
    next(c)
    next(d)
    c.close()
    assert not wg.is_recording()
    d.close()
    assert state() == CLEAN


def test_one_switch_in_several_threads():
    off, inside, leave = wg.no_grad(), threading.Event(), threading.Event()

    def other():
        with off:
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with off:
        thread.start()
        inside.wait(10)
    assert wg.is_recording()  # the other thread's block was the last to begin
    leave.set()
    thread.join()
    assert state() == CLEAN


# One that is raised where a generator is freed is reported, and not raised.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupts_at_any_moment():
    w = wg.variable([1.0, 2.0, 3.0], "w")
    view = w[:2]
    step = wg.computation(np.sum(w), updates={w: w + 0.0})

    def f(x):
        for i in range(3):
            with wg.scope("s", number=i), wg.policy(broadcast="quiet"):
                with wg.no_grad():
                    y = np.sum(x)
                x = np.sin(x) * x + w
                w[...] = w + 0.0 * y + 1.0
        return np.sum(x)

    def transform():
        wg.trace(wg.grad(f))(wg.spec(3)).simplify()
        wg.vmap(wg.grad(lambda x: np.sum(x**2)))(np.ones((2, 3)))

    gc.collect()
    before_all = counted()
    choose = random.Random(0)
    for act, all_moments in ((transform, False), (step, True)):
        act()  # imports
        number = moments_in(act, also=__file__)
        moments = range(1, number + 1) if all_moments else choose.sample(range(1, number + 1), 50)
        for moment in moments:
            moments_in(act, moment, also=__file__)
            for generation in (1, 2):  # frames that an exception holds in a ring
                if counted() != before_all:
                    gc.collect(generation)
            assert state() == CLEAN and counted() == before_all, moment
            assert w.tolist() == [1.0, 2.0, 3.0] and view.tolist() == [1.0, 2.0]
    thread = threading.Thread(target=step)  # waited for ever, if a lock had stayed taken
    thread.start()
    thread.join(20)
    assert not thread.is_alive()


def test_a_block_that_nobody_ended_is_counted_no_longer_than_until_a_call():
    double = wg.jit(lambda x: x * 2)
    double(1.0)
    opening = implicit_conversions.gate.begin()
    assert implicit_conversions.gate.cell[0] > 0 and double(2.0) == 4.0
    before = int(implicit_conversions.gate.cell[0])
    del opening  # as the frame of a block does that Ctrl-C has ended too early
    assert implicit_conversions.gate.cell[0] == before and double(3.0) == 6.0
    assert implicit_conversions.gate.cell[0] == before - 1


GRAPH = wg.trace(lambda x: np.sum(np.sin(x)))(wg.spec(3))
INTERRUPTED = {
    "a block": lambda: opened(wg.policy(cast="raise")),
    "several": lambda: opened(wg.policy(), wg.no_grad(), wg.scope("a", author="ada")),
    "checks": lambda: opened(wg.debug(nan=True), wg.no_grad()),
    "a trace": lambda: wg.trace(np.sin)(wg.spec(3)),
    "a gradient": lambda: wg.grad(lambda x: np.sum(x * x))(np.ones(2)),
    "a tangent": lambda: wg.jvp(np.sin, (1.0,), (1.0,)),
    "a run": lambda: GRAPH(np.ones(3)),
    "a batch": lambda: wg.vmap(wg.grad(np.sin))(np.ones(2)),
    "a gradient in a graph": lambda: wg.trace(wg.grad(lambda x: np.sum(x * x)))(wg.spec(2)),
    "rewriting": lambda: wg.trace(lambda: np.sin(wg.numpy.ones(2)) + 0.0)().simplify(),
}
SAMPLED = "a batch", "a gradient in a graph"  # test_interrupts_at_any_moment has some moments


def opened(*blocks):
    with contextlib.ExitStack() as stack:
        for block in blocks:
            stack.enter_context(block)


# One that is raised where a generator is freed is reported, and not raised.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "act",
    [
        pytest.param(act, id=name, marks=pytest.mark.slow if name in SAMPLED else ())
        for name, act in INTERRUPTED.items()
    ],
)
def test_an_interrupt_wherever_one_can_be(act):
    """Each moment in turn, anywhere in the library."""
    gc.collect()
    before_all, moments, interrupted = counted(), 0, True
    while interrupted:
        moments += 1
        interrupted = moments_in(act, moments) == moments
        wg.debug(nan=False)  # what no block had begun with stays until then
        for generation in (1, 2):  # frames of contextlib, which an exception holds in a ring
            if state() != CLEAN or counted() != before_all:
                gc.collect(generation)
        assert state() == CLEAN and counted() == before_all
    assert moments > 40


@pytest.mark.parametrize("fails", [False, True])
def test_views_of_a_variable_written_to_while_tracing_are_put_back(fails):
    w = wg.variable([1.0, 2.0, 3.0], "w")
    view = w[:2]
    inner = view[:1]

    def f(x):
        w[...] = w * x
        if fails:
            raise ValueError
        return np.sum(view)

    try:
        graph = wg.trace(f)(2.0)
    except ValueError:
        assert fails
    assert view.tolist() == [1.0, 2.0] and inner.tolist() == [1.0]
    if not fails:
        assert graph(3.0) == 9.0
        assert view.tolist() == [3.0, 6.0] and inner.tolist() == [3.0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_forked_while_another_thread_holds_locks():
    w = wg.variable(0.0, "w")
    step = wg.computation(w * 1.0, updates={w: w + 1.0})
    stop = threading.Event()

    def spin():
        while not stop.is_set():
            step()

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        for _ in range(8):  # each copies the tables of all pages of this process
            with warnings.catch_warnings():  # that forking with threads is delicate is known
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if child == 0:
                signal.alarm(10)
                step()
                with wg.no_grad():
                    wg.debug.retrieve(1.0, "in a child")
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join()
