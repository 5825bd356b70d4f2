"""The cost model of docs/distributed-cost.md against simulated processes."""

import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def network():
    from distributed_cases.simulation import Network

    return Network(2e-6, 1e10)


@pytest.mark.parametrize("count", [2, 3, 8, 17, 64])
@pytest.mark.parametrize("size", [8.0, 1e5, 1e8])
def test_a_ring_takes_as_long_as_the_formula_says(count, size):
    from distributed_cases import cost_model, simulation

    took = simulation.simulated(simulation.ring_allreduce(count, size), network())
    assert took == pytest.approx(cost_model.ring_allreduce(network(), count, size))


@pytest.mark.parametrize("count", [2, 4, 32, 256])
@pytest.mark.parametrize("size", [8.0, 1e5])
def test_a_tree_takes_as_long_as_the_formula_says(count, size):
    from distributed_cases import cost_model, simulation

    took = simulation.simulated(simulation.tree_allreduce(count, size), network())
    assert took == pytest.approx(cost_model.tree_allreduce(network(), count, size))


@pytest.mark.parametrize("inside", [1e-6, 1e-3])
@pytest.mark.parametrize("overlap", [False, True])
def test_steps_with_borders(inside, overlap):
    from distributed_cases import simulation

    net, size, edges, steps = network(), 1e6, 1e-5, 5
    took = simulation.simulated(simulation.halo_steps(6, steps, size, inside, edges, overlap), net)
    messages = net.latency + 2 * size / net.bandwidth
    one = (max(inside, messages) if overlap else inside + messages) + edges
    assert took == pytest.approx(steps * one)


@pytest.mark.parametrize("work", [1e-4, 1e-1])
def test_buckets(work):
    """Without overlap the sum; with overlap all but the last bucket behind the computation."""
    from distributed_cases import cost_model, simulation

    net, size, buckets, count = network(), 1e8, 8, 4
    one = cost_model.ring_allreduce(net, count, size / buckets)
    took = simulation.simulated(
        simulation.backward_with_buckets(count, buckets, work, size, False), net
    )
    assert took == pytest.approx(work + buckets * one, rel=1e-3)
    took = simulation.simulated(
        simulation.backward_with_buckets(count, buckets, work, size, True), net
    )
    share = work / buckets
    expected = share + (buckets - 1) * max(share, one) + one
    assert took == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("stages", [1, 2, 4, 16])
@pytest.mark.parametrize("microbatches", [1, 4, 32])
def test_a_pipeline_takes_as_long_as_the_formula_says(stages, microbatches):
    from distributed_cases import cost_model, simulation

    net, size, forward = network(), 1e3, 1e-3
    took = simulation.simulated(simulation.pipeline(stages, microbatches, forward, size), net)
    compute = 3 * forward * stages * microbatches
    expected = cost_model.pipeline_step(net, stages, microbatches, compute, size)
    assert took == pytest.approx(expected, rel=1e-2)
    idle = 1 - compute / stages / took
    assert idle == pytest.approx(cost_model.bubble(stages, microbatches), abs=1e-2)


def test_schedules_that_wait_forever_are_found():
    from distributed_cases.simulation import Deadlock, simulated

    with pytest.raises(Deadlock, match=r"\[0, 1\]"):
        simulated(
            [[("receive", 1), ("send", 1, 8.0)], [("receive", 0), ("send", 0, 8.0)]], network()
        )


def test_times_grow_with_the_number_of_processes_as_they_should():
    from distributed_cases import cost_model

    net = network()
    small = [cost_model.allreduce(net, p, 8.0) for p in (10, 100, 1000, 10_000)]
    assert small == sorted(small) and small[-1] < 20 * net.message(8.0)
    large = [cost_model.allreduce(net, p, 1e9) for p in (10, 10_000)]
    assert large[1] < 1.2 * large[0]
    assert cost_model.halo_step(net, 10_000, 1e8, 1e-9) < cost_model.halo_step(
        net, 10_000, 1e8, 1e-9, overlap=False
    )
    assert "distributed_cases" in sys.modules


def test_the_page_of_the_model_is_rendered():
    from distributed_cases import page

    path = BENCHMARKS / "results" / "distributed.json"
    text = (BENCHMARKS.parent / "docs" / "distributed-cost.md").read_text(encoding="utf-8")
    assert text == page.costs(json.loads(path.read_text())), "run `make docs`"
