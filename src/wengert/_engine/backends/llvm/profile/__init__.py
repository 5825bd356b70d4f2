"""Profiling of native programs.

instrumented         a program with a clock around each of its steps, to be profiled; clock its
                     cells, shares whose lines a step is, measuring runs it, tally counts up what
                     it says
profile_aggregate    what clocks in a program have said (profile/profile_runner.py), counted up as
                     its steps
profile_attribution  what a step of a program is made of, and whose lines that is
profile_runner       a graph run with clocks inside (profile/instrumented.py), and what they said
                     told as a `Timing`
program_summary      what a program does, to be read
timers               text that reads a clock, and cells in which a program adds up what it took
"""
