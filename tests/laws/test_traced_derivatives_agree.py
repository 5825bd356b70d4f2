"""Graphs of both modes, to second order, give what eager execution gives."""

from wengert.testing.laws.tracing import traced_derivatives_agree


def test_traced_derivatives_agree(op, rng):
    traced_derivatives_agree(op, rng)
