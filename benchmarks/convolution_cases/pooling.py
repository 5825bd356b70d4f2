"""Pooling by itself: largest elements and means of windows, and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from native import libraries
from native.case import Call, Case, generator

TITLE = "Pooling"
TEXT = (
    "float32. 64 samples of 32 channels of 28 x 28. *gradients*: the value and the gradient for a "
    "given cotangent."
)
PEERS = ("torch",)
TARGET = "at most 1.5 times torch's time, so 0.67 or more"
WINDOWS: dict[str, Any] = {
    "largest of 2 x 2": ("max_pool2d", (2,)),
    "largest of 3 x 3, stride 2": ("max_pool2d", (3, 2, 1)),
    "mean of 2 x 2": ("avg_pool2d", (2,)),
    "mean of 3 x 3, stride 1": ("avg_pool2d", (3, 1, 1)),
    "mean of all": ("adaptive_avg_pool2d", (1,)),
}


def cases(quick: bool) -> Iterator[Case]:
    """Value and gradient of each."""
    random = generator(72)
    x = random.normal(size=(2 if quick else 64, 32, 28, 28)).astype("float32")
    for name, (function, options) in WINDOWS.items():
        lib = libraries.torch()
        shape = getattr(lib.nn.functional, function)(lib.from_numpy(x), *options).shape
        t = random.normal(size=tuple(shape)).astype("float32")
        yield Case(f"{name}, value", values(function, options, x), "float32")
        yield Case(f"{name}, gradients", gradients(function, options, x, t), "float32")


def of_wengert(function: str, options: Any) -> Any:
    """Wengert's function of x."""
    import wengert.nn.functional as F

    return lambda x: getattr(F, function)(x, *options)


def values(function: str, options: Any, x: Any) -> dict[str, Callable[[], Call]]:
    """Contestants for the value."""

    def torch() -> Call:
        lib = libraries.torch()
        pool = getattr(lib.nn.functional, function)
        return Call(lambda x: pool(x, *options), (lib.from_numpy(x),))

    return {
        "wengert": lambda: Call(libraries.jit(of_wengert(function, options)), (x,)),
        "torch": torch,
    }


def gradients(function: str, options: Any, x: Any, t: Any) -> dict[str, Callable[[], Call]]:
    """Contestants for the value and the gradient."""

    def wengert() -> Call:
        import wengert as wg

        def run(x: Any, t: Any) -> Any:
            y, pull = wg.vjp(of_wengert(function, options), x)
            return y, pull(t)[0]

        return Call(libraries.jit(run), (x, t))

    def torch() -> Call:
        lib = libraries.torch()
        pool = getattr(lib.nn.functional, function)

        def run(x: Any, t: Any) -> Any:
            y = pool(x, *options)
            return y, lib.autograd.grad(y, x, t)[0]

        return Call(run, (lib.from_numpy(x.copy()).requires_grad_(), lib.from_numpy(t)))

    return {"wengert": wengert, "torch": torch}
