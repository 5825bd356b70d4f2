"""The guard: the cost of thirty hot paths, compared with stored figures.

paths.py        the paths: each makes a function to be called many times
instructions.py machine instructions of a path, counted by valgrind
bytecodes.py    instructions of Python's own machine, counted by a trace function
ratios.py       processor time of a path over that of plain Python or NumPy in the same process
stored.py       the file of stored figures, and what deviates from it

The command is benchmarks/guard.py; the figures are in tests/guard/stored.json.
"""
