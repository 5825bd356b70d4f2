"""Profiling of native programs.

instrumented         a program with a timer around each of its stages; LLVM code that reads the
                     clock and adds up times
profile_runner       runs an instrumented program
step_times           times of stages, summed over runs; the nodes and user lines of a stage
program_summary      a program as text: loop nests, kernel calls, host callbacks, buffers
"""
