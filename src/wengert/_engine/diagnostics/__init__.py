"""Diagnostics: why a derivative is None, zero, NaN, huge, tiny or slow; what a graph does.

findings.py             Finding and Findings: the results, as text and for programs; names of nodes
                        in messages; Explanation: the result of explain
recorded_pass.py         forward and backward passes that keep every step; the backward pass from y
                         to x, recorded node by node; the nodes that a value depends on, derivatives
                         or not; the loops of a graph, step by step
disconnected.py         y does not depend on x: where the connection is lost
zero_gradients.py       a gradient of exact zeros: where the cotangent became zero, and why; one
                        element that is zero: where its influence ends
extreme_values.py       where a NaN or an infinity appeared first, forward; the same backward: the
                        slope that was singular or too large; a gradient that is very large or very
                        small: where it grew or shrank
slow_gradients.py       loops of small operations, repetitions, copies
run_checks.py           all of these checks for one y and some x
graph_notes.py          notes on the nodes of a graph; bytes that loops store; seconds that they
                        take without compilation
why.py                  why: all of these checks
explain.py              explain: what a function does, line by line
nan_locator.py          the node that produced the first NaN
debug.py                wengert.debug: print, keep, log and check intermediate values; turns the NaN
                        checks on
runtime_calls.py        its print, callback and breakpoint, which act in loops too
"""
