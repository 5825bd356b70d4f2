"""Tasks of other libraries, on one thread and in float64, made when asked for.

Each takes ``make``, which is given the library and returns the function that is timed (a
derivative has been taken there already), and NumPy's arrays or numbers.  JAX compiles the
function; its results are waited for.  Libraries are imported here, when a task is made, because
one that is missing is left out by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from native import libraries

from .task import Task, listed

Make = Callable[[Any], Callable[..., Any]]
Answer = Callable[[Any], Any]


def jax(make: Make, *arguments: Any, answer: Answer = listed) -> Callable[[], Task]:
    """``jax.jit(make(jax))`` of arrays on the device."""

    def task() -> Task:
        call = libraries.jax_call(make(libraries.jax()), *arguments)
        return Task(call.function, call.arguments, answer, call.ready)

    return task


def torch(make: Make, *arguments: Any, answer: Answer = listed) -> Callable[[], Task]:
    """``make(torch)`` of tensors that require no gradient."""

    def task() -> Task:
        t = libraries.torch()
        placed = tuple(t.from_numpy(np.array(a, copy=True)) for a in arguments)
        return Task(make(t), placed, answer)

    return task


def gradient(t: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """PyTorch's gradient of a function by its first argument: forward, then backward."""

    def run(x: Any, *others: Any) -> Any:
        x = x.detach().requires_grad_()
        return t.autograd.grad(function(x, *others), x)[0]

    return run


def autograd(make: Make, *arguments: Any, answer: Answer = listed) -> Callable[[], Task]:
    """``make(autograd)`` of NumPy's arrays."""

    def task() -> Task:
        import autograd

        return Task(make(autograd), arguments, answer)

    return task
