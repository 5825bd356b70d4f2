"""Diagnosis: why a derivative is None, zero, not a number, huge, tiny or slow; what a graph does.

findings.py             Finding and Findings: what was found, as text and for programs
dependency_trace.py     the nodes that a value depends on, derivatives or not
backward_trace.py       the sweep from y to x, kept line by line
disconnected.py         no way from y back to x: where it was lost
zero_gradients.py       a gradient of exact zeros: where the cotangent died, and of what
zero_elements.py        one element of zero: where it stopped to count
nonfinite_values.py     where a NaN or an infinity appeared first, forward
nonfinite_gradients.py  the same backward: the slope that was singular or too large
gradient_scale.py       a gradient that is very large or very small: where it grew or shrank
slow_gradients.py       loops of small operations, repetitions, copies
unrolled_loops.py       the loops of a graph, step by step
run_checks.py           all of these questions, asked of one y and some x
graph_notes.py          what is worth knowing about the nodes of a graph
explanation_report.py   Explanation: a function, line by line of its program
describe.py             how nodes are called in a sentence
why.py                  why: all of these questions
explain.py              explain: what a function does, line by line of its program
recorded_pass.py         forward and backward passes that keep every step
nan_locator.py          which node gave the first NaN; nan_switch.py turns the checks on
debug.py                wengert.debug: print, keep, log and check values on their way
"""
