"""The log-density of six models with its gradient, at one point of the unconstrained space."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from native import libraries
from native.case import Call, Case, generator

from . import by_jax, database
from .models import MODELS, Model

TITLE = "Log-density and gradient"
TEXT = (
    "Models and data of posteriordb, at one point of the unconstrained space; the numbers compared "
    "are the gradients. *wengert* is the C function of `compat.samplers.Posterior`, of the models "
    "in NumPy of `posterior_cases/models.py`, and *stanli* the Stan program of posteriordb, "
    "compiled by it; both are called by ctypes, with addresses made beforehand, as samplers do. "
    "*wengert, jit* and *JAX* are compiled functions called with arrays; JAX's programs are in "
    "`posterior_cases/by_jax.py`. All have the transformations of constrained parameters with "
    "their log-Jacobians."
)
PEERS = ("stanli", "JAX")
TARGET = "not slower than Stan and JAX"
QUICK = ("eight schools", "arma11")
SPREAD = 0.3  # the standard deviation of the numbers of the point


def cases(quick: bool) -> Iterator[Case]:
    """All models."""
    for name, model in MODELS.items():
        if not quick or name in QUICK:
            yield Case(name, contestants(name, model, database.data(model.posterior)))


def contestants(name: str, model: Model, data: dict[str, Any]) -> dict[str, Callable[[], Call]]:
    """Everyone who computes the gradient of one model."""
    order = model.order(data)
    vector = SPREAD * generator(101).normal(size=order.size)

    def jit() -> Call:
        import wengert as wg
        from wengert.bijectors import Joint

        density = Joint(model.parameters(data)).unconstrained(model.density(data))
        return Call(wg.jit(wg.value_and_grad(density)), (vector,), numbers=lambda r: r[1])

    def jax() -> Call:
        density = by_jax.log_densities(libraries.jax())[name](data)
        call = libraries.jax_gradient(density, vector)
        return Call(call.function, call.arguments, call.ready, lambda r: r[1])

    return {
        "wengert": lambda: pointer(model, data, vector),
        "wengert, jit": jit,
        "stanli": lambda: stanli(model, data, vector, order),
        "JAX": jax,
    }


def address(array: Any) -> Any:
    """The address of an array, as ctypes passes it."""
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def pointer(model: Model, data: dict[str, Any], vector: Any) -> Call:
    """The C function that samplers get."""
    density = model.compiled(data).density
    gradient, value = np.empty(vector.size), np.empty(1)
    arguments = (vector.size, address(vector), address(gradient), address(value), None)
    return Call(density.function, arguments, numbers=lambda status: gradient)


def stanli(model: Model, data: dict[str, Any], vector: Any, order: Any) -> Call:
    """The C function of stanli for the Stan program."""
    import stanli as library

    plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in data.items()}
    compiled = library.Model(stan_file=str(database.program(model.posterior)), data=plain)
    point, gradient = np.ascontiguousarray(vector[order]), np.empty(vector.size)
    value, ours = ctypes.c_double(), np.empty(vector.size)

    def in_our_order(status: Any) -> Any:
        ours[order] = gradient
        return ours

    arguments = (compiled._m, address(point), ctypes.byref(value), address(gradient))
    call = library._lib.stanli_grad
    call.owner = compiled  # freed with it
    return Call(call, arguments, numbers=in_our_order)
