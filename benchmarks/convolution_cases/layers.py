"""Convolutions by themselves: the value, and the value with the gradients by input and weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from native import libraries
from native.case import Call, Case, generator

from . import channels_last

TITLE = "Convolutions"
TEXT = (
    "float32. *value* is the convolution alone, *gradients* the value and its gradients by input "
    "and weights for a given cotangent. Shapes are samples, channels, lengths; then outputs, "
    "inputs of a group, kernel. *JAX, channels last* has its arrays made so beforehand."
)
PEERS = ("torch",)
TARGET = "at most 1.5 times torch's time, so 0.67 or more"
# Name: input, weights, stride, padding, dilation, groups.
SHAPES: dict[str, Any] = {
    "LeNet's first": ((64, 1, 28, 28), (6, 1, 5, 5), 1, 0, 1, 1),
    "LeNet's second": ((64, 6, 12, 12), (16, 6, 5, 5), 1, 0, 1, 1),
    "3 x 3 of 32 channels": ((64, 32, 28, 28), (64, 32, 3, 3), 1, 1, 1, 1),
    "3 x 3 of 64 channels": ((16, 64, 32, 32), (64, 64, 3, 3), 1, 1, 1, 1),
    "3 x 3 of 256 channels": ((32, 256, 8, 8), (256, 256, 3, 3), 1, 1, 1, 1),
    "1 x 1": ((32, 64, 32, 32), (128, 64, 1, 1), 1, 0, 1, 1),
    "stride 2": ((32, 64, 32, 32), (128, 64, 3, 3), 2, 1, 1, 1),
    "each channel": ((32, 64, 32, 32), (64, 1, 3, 3), 1, 1, 1, 64),
    "each channel, stride 2": ((32, 64, 32, 32), (64, 1, 3, 3), 2, 1, 1, 64),
    "dilated": ((32, 32, 32, 32), (32, 32, 3, 3), 1, 2, 2, 1),
    "sound": ((8, 32, 8000), (32, 32, 9), 1, 4, 1, 1),
    "space": ((4, 16, 16, 16, 16), (32, 16, 3, 3, 3), 1, 1, 1, 1),
}
LETTERS = {1: ("NCH", "OIH", "NCH"), 2: ("NCHW", "OIHW", "NCHW"), 3: ("NCDHW", "OIDHW", "NCDHW")}


def cases(quick: bool) -> Iterator[Case]:
    """Value and gradients of each shape."""
    random = generator(71)
    for name, (x_shape, w_shape, *options) in SHAPES.items():
        samples = 2 if quick else x_shape[0]
        x = random.normal(size=(samples, *x_shape[1:])).astype("float32")
        w = (0.1 * random.normal(size=w_shape)).astype("float32")
        ways = functions(len(x_shape) - 2, options)
        shape = ways["torch"]()(*map(libraries.torch().from_numpy, (x, w))).shape
        t = random.normal(size=tuple(shape)).astype("float32")
        yield Case(f"{name}, value", values(ways, x, w), "float32")
        yield Case(f"{name}, gradients", gradients(ways, x, w, t), "float32", within=5e-3)


def functions(axes: int, options: Any) -> dict[str, Callable[[], Any]]:
    """The convolution of each library, made when its turn comes."""
    stride, padding, dilation, groups = options

    def wengert() -> Any:
        import wengert.nn.functional as F

        conv = getattr(F, f"conv{axes}d")
        return lambda x, w: conv(x, w, None, stride, padding, dilation, groups)

    def torch() -> Any:
        conv = getattr(libraries.torch().nn.functional, f"conv{axes}d")
        return lambda x, w: conv(x, w, None, stride, padding, dilation, groups)

    def jax() -> Any:
        lax = libraries.jax().lax
        return lambda x, w: lax.conv_general_dilated(
            x, w, (stride,) * axes, [(padding, padding)] * axes, rhs_dilation=(dilation,) * axes,
            feature_group_count=groups, dimension_numbers=LETTERS[axes],
        )  # fmt: skip

    def jax_last() -> Any:
        lax = libraries.jax().lax
        return lambda x, w: lax.conv_general_dilated(
            x, w, (stride,) * axes, [(padding, padding)] * axes, rhs_dilation=(dilation,) * axes,
            feature_group_count=groups, dimension_numbers=channels_last.LETTERS[axes],
        )  # fmt: skip

    return {"wengert": wengert, "torch": torch, "JAX": jax, "JAX, channels last": jax_last}


def values(ways: Any, x: Any, w: Any) -> dict[str, Callable[[], Call]]:
    """Contestants for the value."""

    def torch() -> Call:
        t = libraries.torch()
        return Call(ways["torch"](), (t.from_numpy(x), t.from_numpy(w)))

    def last() -> Call:
        conv, own = ways["JAX, channels last"](), channels_last
        call = libraries.jax_call(conv, own.last(x), own.kernel_last(w))
        return replace(call, numbers=own.first)

    return {
        "wengert": lambda: Call(libraries.jit(ways["wengert"]()), (x, w)),
        "torch": torch,
        "JAX": lambda: libraries.jax_call(ways["JAX"](), x, w),
        "JAX, channels last": last,
    }


def gradients(ways: Any, x: Any, w: Any, t: Any) -> dict[str, Callable[[], Call]]:
    """Contestants for the value and both gradients."""

    def pulled(vjp: Any, conv: Any) -> Any:
        def run(x: Any, w: Any, t: Any) -> Any:
            y, pull = vjp(conv, x, w)
            return (y, *pull(t))

        return run

    def wengert() -> Call:
        import wengert as wg

        return Call(libraries.jit(pulled(wg.vjp, ways["wengert"]())), (x, w, t))

    def torch() -> Call:
        lib, conv = libraries.torch(), ways["torch"]()
        leaves = [lib.from_numpy(a.copy()).requires_grad_() for a in (x, w)]

        def run(x: Any, w: Any, t: Any) -> Any:
            y = conv(x, w)
            return (y, *lib.autograd.grad(y, (x, w), t))

        return Call(run, (*leaves, lib.from_numpy(t)))

    def jax() -> Call:
        return libraries.jax_call(pulled(libraries.jax().vjp, ways["JAX"]()), x, w, t)

    def jax_last() -> Call:
        run, own = pulled(libraries.jax().vjp, ways["JAX, channels last"]()), channels_last
        call = libraries.jax_call(run, own.last(x), own.kernel_last(w), own.last(t))

        def numbers(result: Any) -> Any:
            y, x_bar, w_bar = result
            return own.first(y), own.first(x_bar), own.kernel_first(w_bar)

        return replace(call, numbers=numbers)

    return {"wengert": wengert, "torch": torch, "JAX": jax, "JAX, channels last": jax_last}
