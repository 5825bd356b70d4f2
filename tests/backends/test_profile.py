"""Profiles: lines, the user's lines, timelines."""

import itertools
import json
import time

import numpy as np
import pytest

import wengert as wg
from wengert.errors import ArgumentError, ShapeError


def _graph():
    def f(x):
        y = np.exp(x)
        return np.sum(y @ y.T)

    return wg.trace(f)(wg.spec(("n", "n")))


def test_every_line_that_runs_is_timed():
    graph = _graph().grad()
    seen = graph.profile(np.ones((40, 40)), repeat=3)
    ran = [i for i, n in enumerate(graph) if n.inputs]
    assert set(ran) <= {line.index for line in seen.nodes}
    assert all(line.seconds >= 0.0 for line in seen.nodes) and seen.seconds > 0.0
    assert seen.runs == 3
    assert seen.slowest[0].seconds == max(line.seconds for line in seen.nodes)


def test_a_slow_operation_is_seen_at_the_users_line():
    @wg.primitive(callback=True)
    def slow(x):
        time.sleep(0.02)
        return x * 1.0

    def f(x):
        y = np.exp(x)
        return np.sum(slow(y))

    graph = wg.trace(f)(wg.spec(3))
    seen = graph.profile(np.ones(3), repeat=2)
    assert seen.slowest[0].name.endswith("slow") and seen.slowest[0].seconds >= 0.02
    assert next(iter(seen.sources)) == graph.select(op="*slow")[0].where
    assert "test_profile.py" in str(seen) and "slow" in str(seen)
    assert repr(seen).startswith("<NodeTimes of f: ")


def test_a_timeline_is_written_in_the_order_of_the_run(tmp_path):
    seen = _graph().profile(np.ones((4, 4)), repeat=1)
    events = json.loads(seen.save(tmp_path / "run.json").read_text())["traceEvents"]
    assert events[0]["name"].split()[1] == "exp"
    assert events[0]["ts"] == 0.0
    starts = [e["ts"] for e in events]
    assert starts == sorted(starts)
    assert all(a["ts"] + a["dur"] <= b["ts"] + 1e-3 for a, b in itertools.pairwise(events))


def test_a_profile_runs_the_graph_as_a_call_does():
    count = wg.variable(0, "count")

    def counted(x):
        count[...] = count + 1
        return np.exp(x)

    graph = wg.trace(counted)(wg.spec("n"))
    graph.profile(np.ones(3), repeat=4)
    assert int(count) == 4
    with pytest.raises(ShapeError, match="x has shape"):
        graph.profile(np.ones((3, 3)))
    with pytest.raises(ArgumentError, match="repeat=0"):
        graph.profile(np.ones(3), repeat=0)
