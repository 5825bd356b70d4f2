"""Initial value problems, of benchmarks and of tests.

detest    the problems of DETEST
"""
