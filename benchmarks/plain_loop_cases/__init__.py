"""Programs with Python's loops beside the same programs with `scan`, `while_loop` and `map`.

evals.py    evals of GradBench
"""
