"""Placement of nodes on processes, without MPI: rules, messages, schedules, and bad input."""

import logging
import queue
import threading

import numpy as np
import pytest
from tests.distributed.placed_programs import arguments_of, random_program

import wengert as wg
from wengert import distributed
from wengert._engine.core.handle import wrap
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import open_length
from wengert._engine.core.tracing import placeholder
from wengert.distributed.message_simulator import Receive, Send, steps_of, unfinished
from wengert.distributed.placed import part
from wengert.errors import ArgumentError, DtypeError, ShapeError, TraceError


def model(v, w, x):
    with wg.scope("body", device=0):
        h = np.tanh(x @ v)
    with wg.scope("head", device=1):
        return np.sum(h @ w)


SPECS = wg.spec((2, 3)), wg.spec(3), wg.spec((10, 2))


def places_of(placement):
    return {
        n.op.name: set(p) for n, p in zip(placement.graph, placement.processes, strict=True) if p
    }


def test_nodes_are_computed_by_the_processes_of_their_scopes():
    placement = distributed.placement(model, 2)(*SPECS)
    assert [n.op.name for n in placement.nodes_of(0)] == ["matmul", "tanh"]
    assert [n.op.name for n in placement.nodes_of(1)] == ["matmul", "sum"]
    ((index, source, dest),) = placement.messages
    assert (placement.graph[index].op.name, source, dest) == ("tanh", 0, 1)
    assert placement.outputs == (1,)
    assert (placement.bytes_sent(0), placement.bytes_sent(1)) == (240, 0)


def test_nodes_without_a_device_follow_the_operand_that_was_placed_last():
    def f(x):
        y = np.exp(x)  # of inputs only: computed by each process that uses it
        with wg.scope(device=0):
            a = np.sin(y)
        with wg.scope(device=2):
            b = np.cos(y)
        return np.sum(a * b), np.sqrt(x)

    placement = distributed.placement(f, 3)(np.ones(4))
    assert places_of(placement) == {
        "exp": {0, 2}, "sin": {0}, "cos": {2}, "multiply": {2}, "sum": {2}, "sqrt": {0},
    }  # fmt: skip
    assert placement.outputs == (2, 0)


def test_a_value_is_sent_once_to_each_process_that_uses_it():
    def f(x):
        with wg.scope(device=0):
            y = np.sin(x)
        total = 0.0
        for k in (1, 2, 1):
            with wg.scope(device=k):
                total = total + np.sum(y * k)
        return total

    placement = distributed.placement(f, 3)(np.ones(4))
    sent = [(placement.graph[m.node].op.name, m.source, m.dest) for m in placement.messages]
    assert sent == [("sin", 0, 1), ("sin", 0, 2), ("add", 1, 2), ("add", 2, 1)]
    assert "sends 2 messages" not in str(placement)
    assert "sends 1 message (32 bytes) to process 2" in str(placement)


def test_a_picture_has_the_processes_as_scopes():
    placement = distributed.placement(model, 2)(*SPECS)
    graph = placement.by_process()
    assert [n.scope for n in graph if n.op.name == "matmul"] == ["process 0/body", "process 1/head"]
    assert 'label="process 1"' in wg.show.to_dot(graph)
    args = np.ones((2, 3)), np.ones(3), np.ones((10, 2))
    np.testing.assert_allclose(graph(*args), model(*args))


def test_results_at_one_process():
    placement = distributed.placement(model, 4, outputs=3)(*SPECS)
    assert placement.outputs == (3,)
    assert [(m.source, m.dest) for m in placement.messages] == [(0, 1), (1, 3)]


def test_a_loop_is_placed_as_a_whole():
    def inside(x):
        def step(c, _):
            with wg.scope(device=1):
                return np.sin(c) * x, None

        return wg.scan(step, x, None, length=40)[0]

    assert places_of(distributed.placement(inside, 2)(np.ones(3)))["scan"] == {1}

    def around(x):
        with wg.scope(device=1):
            for k in range(500):
                x = np.sin(x) * (1.0 + k)
        return x

    placement = distributed.placement(around, 2)(np.ones(3))
    assert all(p <= {1} for p in placement.processes)

    def both(x):
        def step(c, _):
            with wg.scope(device=0):
                c = np.sin(c)
            with wg.scope(device=1):
                return np.cos(c), None

        return wg.scan(step, x, None, length=40)[0]

    with pytest.raises(TraceError, match=r"scopes of processes 0 and 1.*unroll"):
        distributed.placement(both, 2)(np.ones(3))


def test_a_loop_whose_counter_decides_about_the_process_is_not_compiled():
    def f(x):
        for k in range(300):
            with wg.scope(device=k % 2):
                x = np.sin(x) * 1.1
        return x

    assert len(distributed.placement(f, 2)(np.ones(3)).messages) == 299

    def step(k, x):
        with wg.scope(device=k % 2):
            return np.sin(x)

    with pytest.raises(TraceError, match=r"scope\(device=\.\.\.\).*traced.*unroll"):
        distributed.placement(lambda x: wg.fori_loop(0, 30, step, x), 2)(np.ones(3))


def test_independent_steps_of_a_loop_keep_their_process():
    def f(x):
        total = 0.0
        for k in range(500):
            with wg.scope(device=1):
                total = total + np.sum(np.sin(x) * k)
        with wg.scope(device=0):
            return total * 2.0

    placement = distributed.placement(f, 2)(np.ones(3))
    assert places_of(placement)["sin"] == {1}


@pytest.mark.parametrize("device", [2, -1, "gpu", ("gpu", 0), 1.0, True])
def test_a_device_that_is_not_a_rank_is_refused(device):
    def f(x):
        with wg.scope("block", device=device):
            return np.sin(x)

    with pytest.raises(ArgumentError, match=r"scope 'block' is not a process.*ranks 0 to 1"):
        distributed.placement(f, 2)(np.ones(3))


def test_values_that_cannot_be_sent_are_refused():
    x = wrap(placeholder(Spec((open_length(),), np.dtype(np.float64))))  # as after a while loop
    with wg.scope(device=0):
        y = np.sin(x)
    with wg.scope(device=1):
        z = np.cos(y)
    with pytest.raises(ShapeError, match="its length depends on values"):
        distributed.Placement(wg.Graph(z), 2)

    def halves(x):
        with wg.scope(device=0):
            y = x.astype(np.float16)
        with wg.scope(device=1):
            return np.sum(y)

    with pytest.raises(DtypeError, match="cannot be sent by MPI"):
        distributed.placement(halves, 2)(np.ones(3))


def test_a_python_number_is_computed_where_it_is_used():
    """An array of its value would have another dtype in promotions."""

    def f(x, c):
        with wg.scope(device=0):
            y, c = x * 2, c * 2
            s = float(np.sum(y))
        with wg.scope(device=1):
            return y * s * c

    placement = distributed.placement(f, 2)(np.ones(3, np.float32), 2.0)
    assert placement.graph.outputs[0].spec.dtype == np.float32
    sent = [placement.graph[m.node] for m in placement.messages]
    assert not any(n.spec.weak for n in sent)


def test_functions_with_effects_are_refused():
    stream = wg.random.Stream(0)

    def draws(x):
        with wg.scope(device=1):
            return x * stream.normal(3)

    def prints(x):
        wg.debug.log(x, logging.getLogger("x"))
        return x

    for f in (draws, prints):
        with pytest.raises(TraceError, match=f"placed: {f.__name__}: .*only one of the processes"):
            distributed.placement(f, 2)(np.ones(3))


def test_options_of_placed_are_checked():
    with pytest.raises(ArgumentError, match="gradients='some' is not 'all' or 'owner'"):
        distributed.placed(model, gradients="some")
    with pytest.raises(ArgumentError, match="outputs='last' is not 'all'"):
        distributed.placed(model, outputs="last")


def test_scopes_without_a_name_have_metadata_only():
    with wg.scope("outer"):
        graph = wg.trace(lambda x: named(x))(np.ones(3))
    (node,) = graph.select(op="sin")
    assert (node.scope, node.metadata) == ("outer", {"device": 1})
    with pytest.raises(ArgumentError, match="non-empty string"), wg.scope():
        pass


def named(x):
    with wg.scope(device=1):
        return np.sin(x)


def test_the_simulator_finds_programs_that_wait_forever():
    assert unfinished([[Send(1)], [Receive(0)]]) == {}
    assert unfinished([[Send(1), Receive(1)], [Send(0), Receive(0)]]) == {0: Send(1), 1: Send(0)}
    begun = [[Send(1, begun=True), Receive(1)], [Send(0, begun=True), Receive(0)]]
    assert unfinished(begun) == {}
    assert unfinished([[Receive(1)], []]) == {0: Receive(1)}
    assert unfinished([[Send(1, begun=True)], []]) == {0: Send(1, begun=True)}
    with pytest.raises(ValueError, match="expects the message 'b'"):
        unfinished([[Send(1, "a"), Send(1, "b")], [Receive(0, "b"), Receive(0, "a")]])


@pytest.mark.parametrize("size", range(1, 9))
def test_random_graphs_do_not_wait_forever(size):
    for seed in range(12):
        program = random_program((size, seed), size)
        placement = distributed.placement(program, size)(*arguments_of(seed))
        for backward in (False, True):
            programs = [steps_of(placement, rank, backward) for rank in range(size)]
            assert unfinished(programs) == {}, (size, seed, backward)
        pairs = [(m.node, m.dest) for m in placement.messages]
        assert len(set(pairs)) == len(pairs)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_parts_give_the_values_of_the_whole_function(size):
    """The parts run in threads, with queues in place of MPI."""
    for seed in range(3):
        program, args = random_program((size, seed), size), arguments_of(seed)
        placement = distributed.placement(program, size)(*args)
        pipes = {(i, j): queue.Queue() for i in range(size) for j in range(size)}
        results = [None] * size

        def run(rank, placement=placement, pipes=pipes, results=results, args=args):
            results[rank] = part(
                placement,
                rank,
                args,
                lambda x, dest: pipes[rank, dest].put(x),
                lambda spec, source: pipes[source, rank].get(timeout=20),
            )

        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        expected = program(*args)
        for k, rank in enumerate(placement.outputs):
            np.testing.assert_allclose(results[rank][k], expected[k], rtol=1e-13)
