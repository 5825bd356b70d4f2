"""Streams that draw alternately in eager mode and in graphs: no number is repeated or skipped."""

import pickle

import numpy as np

import wengert as wg
from wengert.random import Stream


def test_alternating_draws_of_graphs_and_eager_code_are_distinct():
    stream, plain = Stream(0), Stream(0)
    compiled = wg.jit(lambda x: x + stream.normal(x.shape))
    graph = wg.trace(lambda x: x + stream.normal(x.shape) + 0 * stream.uniform(x.shape))(wg.spec(2))
    zeros = np.zeros(2)
    for run in (compiled, stream_of(stream), compiled, graph, stream_of(stream), graph, compiled):
        np.testing.assert_array_equal(run(zeros), plain.normal(2))
        if run is graph:
            plain.uniform(2)


def stream_of(stream):
    return lambda zeros: stream.normal(2).numpy()


def test_state_includes_eager_draws_and_those_of_graphs():
    stream, twin = Stream(0), Stream(5)
    compiled = wg.jit(lambda x: x + stream.normal(x.shape))
    stream.normal(), compiled(np.zeros(2)), stream.normal()
    twin.load_state_dict(stream.state_dict())
    copied = pickle.loads(pickle.dumps(stream))
    want = compiled(np.zeros(2))
    for other in (twin, copied):
        np.testing.assert_array_equal(other.normal(2), want)
