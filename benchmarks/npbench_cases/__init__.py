"""NPBench's programs, source unchanged: values, gradients and first calls, beside other compilers.

    program.py      a program of a checkout of NPBench: its function, arguments and results
    check.py        whether values and gradients are right, and how long first calls take
    interleaved.py  calls of several contestants in turn, each with new arguments
    one_program.py  one program in a process of its own
    values.py       values beside NumPy, numba and JAX
    gradients.py    gradients beside JAX
    dace.py         gradients beside those of DaCe, by the tests of a checkout of it
    page.py         docs/benchmarks-npbench.md

No file of NPBench or DaCe is in this repository: the variables NPBENCH and DACE name checkouts of
github.com/spcl/npbench and github.com/spcl/dace.
"""
