"""Messages start early, and what does not need them is computed before they are waited for."""

import numpy as np
import pytest

import wengert as wg
from wengert import distributed
from wengert import numpy as wnp
from wengert._engine.backends.llvm.lowering.registry import is_start, is_wait
from wengert._engine.backends.llvm.program import Program
from wengert._engine.backends.llvm.schedule.fusion import FusedLoops
from wengert._engine.backends.llvm.schedule.workspace import last_uses
from wengert._engine.core.graph_classes import bodies_of
from wengert._engine.core.message_order import start_using

pytest.importorskip("mpi4py", reason="needs the extra `mpi`")


@pytest.fixture(autouse=True)
def messages_are_used():
    """Other tests end with the opposite (tests/conftest.py)."""
    start_using()


def plan_of(f, *args):
    return Program(wg.trace(f)(*args)).plan


def order(plan):
    """Starts, waits and fused loops in the order of the stages."""
    names = [
        "start" if is_start(s) else "wait" if is_wait(s) else "loop"
        for s in plan.stages
        if is_start(s) or is_wait(s) or isinstance(s, FusedLoops)
    ]
    return " ".join(names)


def sent(x, tag=0):
    """A message of this process to itself."""
    return distributed.sendrecv(x, 0, 0, tag=tag)


X = np.linspace(0.0, 1.0, 50_000)


def test_independent_work_comes_before_the_wait():
    def f(x):
        y = sent(x)
        return y * 2.0, wnp.sin(x)

    assert order(plan_of(f, X)) == "start loop wait loop"


def test_a_message_starts_before_work_that_is_written_first():
    def f(x):
        inside = wnp.cos(x)
        y = sent(wnp.sin(x[:100]))
        return y * inside[:100], inside

    assert order(plan_of(f, X)) == "loop start loop wait loop"


def test_pieces_of_an_array_are_computed_before_the_wait():
    def f(x):
        y = sent(x[:100])
        inside = 0.5 * (x[2:] + x[:-2])
        return wnp.concatenate([y * 2.0, inside])

    assert order(plan_of(f, X)) == "loop start loop wait loop"
    inside = 0.5 * (X[2:] + X[:-2])
    np.testing.assert_array_equal(wg.jit(f)(X), np.concatenate([2.0 * X[:100], inside]))


def test_several_messages_travel_at_the_same_time():
    def f(x):
        a, b = sent(x), sent(2.0 * x, 1)
        return a + b, wnp.sin(x)

    assert order(plan_of(f, X)).replace("loop ", "") == "start start wait wait loop"


def test_a_backward_pass_overlaps_too():
    weights = np.linspace(1.0, 2.0, 100)

    def loss(x):
        return wnp.sum(weights * sent(x[:100])) + wnp.sum(wnp.sin(x))

    assert order(plan_of(wg.grad(loss), X)).split("start ")[-1].startswith("loop wait")
    expected = np.cos(X)
    expected[:100] += weights
    np.testing.assert_allclose(wg.jit(wg.grad(loss))(X), expected)


def test_a_loop_overlaps_in_each_step():
    def f(x):
        return wg.fori_loop(0, 3, lambda i, y: 0.5 * sent(y) + wnp.cumsum(wnp.sin(y)), x)

    graph = wg.trace(f)(X)
    program = Program(graph)
    (body,) = [b for n in graph.nodes for b in bodies_of(n)]
    (plan,) = [made.plan for (of, *_), made in program._bodies.items() if of is body]
    kinds = ["start" if is_start(s) else "wait" if is_wait(s) else "other" for s in plan.stages]
    assert "other" in kinds[kinds.index("start") : kinds.index("wait")]
    expected = X
    for _ in range(3):
        expected = 0.5 * expected + np.cumsum(np.sin(expected))
    np.testing.assert_allclose(wg.jit(f)(X), expected)


def test_a_result_that_is_not_used_is_waited_for():
    def f(x):
        sent(x)
        return x + 1.0

    assert "wait" in order(plan_of(f, X))
    np.testing.assert_array_equal(wg.jit(f)(X), X + 1.0)


def test_memory_is_kept_until_the_wait():
    """What is sent, what arrives and the requests share memory with nothing before the wait."""

    def f(x):
        y = sent(wnp.sin(x))
        total = x
        for k in range(6):
            total = wnp.cumsum(wnp.cos(total) + k)
        return y + total

    plan = plan_of(f, X)
    last = last_uses(plan)
    start = next(k for k, s in enumerate(plan.stages) if is_start(s))
    wait = next(k for k, s in enumerate(plan.stages) if is_wait(s))
    assert start < wait
    for x in plan.stages[wait].operands:
        assert last[x] == wait
    total = X
    for k in range(6):
        total = np.cumsum(np.cos(total) + k)
    np.testing.assert_allclose(wg.jit(f)(X), np.sin(X) + total)


def test_a_run_that_fails_has_waited():
    def f(x, k):
        return sent(x) + x[k]

    g = wg.jit(f)
    for shift in range(3):
        with pytest.raises(wg.errors.CommunicationError):
            g(X, 10**6)
        np.testing.assert_array_equal(g(X + shift, 1), X + shift + (X + shift)[1])


def test_programs_without_messages_are_not_reordered():
    def f(x):
        return wnp.cumsum(wnp.sin(x)) * 2.0, wnp.cos(x)

    assert "start" not in order(plan_of(f, X))
