"""Kernels: steps of a graph that are no loops of the plan, as native code.

    call.py            what a kernel is given, the functions of a program's steps, the registry

A kernel is entered under the name of its operation, and writes the inside of one function of the
module; steps that are alike share that function.
"""

from .call import KERNELS, Array, Call, Steps, contiguous, is_served, kernel

__all__ = ["KERNELS", "Array", "Call", "Steps", "contiguous", "is_served", "kernel"]
