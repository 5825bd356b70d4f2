"""Deterministic and random transforms of arrays and images.

    Compose, AsFloat, Normalize, Flatten, CenterCrop            deterministic
    RandomCrop, RandomHorizontalFlip, RandomVerticalFlip,
    RandomErasing, GaussianNoise, RandomApply                    random

    dataset.map(Compose([AsFloat(), RandomCrop(28, padding=2)]), field=0)

Images have the axes (channels, height, width), as for the convolutions of `wengert.nn`, unless
``axes=`` is given.  A random transform has ``random = True`` and is called ``t(x, rng)``, with a
generator, a seed or a key of `wengert.random`.  A loader derives the generator from its seed, the
epoch and the position, so that equal seeds give equal images, with or without prefetching.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError, at, user_line
from .samplers import as_generator

__all__ = [
    "AsFloat",
    "CenterCrop",
    "Compose",
    "Flatten",
    "GaussianNoise",
    "Normalize",
    "RandomApply",
    "RandomCrop",
    "RandomErasing",
    "RandomHorizontalFlip",
    "RandomVerticalFlip",
    "Transform",
]


class Transform:
    """Base class: define ``__call__(x)``, or ``__call__(x, rng)`` with ``random = True``."""

    random: bool = False

    def __repr__(self) -> str:
        options = ", ".join(f"{k}={v!r}" for k, v in vars(self).items())
        return f"{type(self).__name__}({options})"


class Compose(Transform):
    """Transforms in sequence.

    Parameters
    ----------
    transforms : sequence of callable
        Random ones draw from one generator, in this order.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.data.transforms import AsFloat, Compose, Normalize
    >>> Compose([AsFloat(), Normalize(0.5, 0.25)])(np.array([[0, 255]], np.uint8))
    array([[-2.,  2.]], dtype=float32)
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        self.transforms = list(transforms)
        self.random = any(getattr(t, "random", False) for t in self.transforms)

    def __call__(self, x: Any, rng: Any = None) -> Any:
        """Apply all transforms."""
        generator = as_generator(rng) if self.random else None
        for t in self.transforms:
            x = t(x, generator) if getattr(t, "random", False) else t(x)
        return x

    def __repr__(self) -> str:
        return f"Compose({self.transforms!r})"


class AsFloat(Transform):
    """Integers scaled by the maximum of their dtype to floats from 0 to 1; floats are unchanged.

    Parameters
    ----------
    dtype : dtype, default float32
    """

    def __init__(self, dtype: Any = np.float32) -> None:
        self.dtype = np.dtype(dtype)

    def __call__(self, x: Any) -> Any:
        """The array as floats."""
        x = np.asarray(x)
        if x.dtype.kind not in "iu":
            return x.astype(self.dtype)
        return x.astype(self.dtype) / self.dtype.type(np.iinfo(x.dtype).max)


class Normalize(Transform):
    """Subtract a mean and divide by a standard deviation, per channel if they are sequences.

    Parameters
    ----------
    mean, std : float or sequence of float
        Numbers for all channels, or one for each.
    axis : int, default -3
        The channel axis, for sequences.

    Raises
    ------
    ArgumentError
        A standard deviation that is not positive.
    """

    def __init__(self, mean: Any, std: Any, axis: int = -3) -> None:
        self.mean, self.std, self.axis = np.asarray(mean, float), np.asarray(std, float), axis
        if not (self.std > 0).all():
            raise ArgumentError(
                f"Normalize(std={std}): standard deviations must be above 0. For data with "
                f"constant columns use wengert.data.encoders.Standard{at(user_line())}."
            )

    def __call__(self, x: Any) -> Any:
        """The normalized array; floats keep their dtype, integers become float32."""
        x = np.asarray(x)
        dtype = x.dtype if x.dtype.kind == "f" else np.dtype(np.float32)
        shift, scale = (self._broadcast(v, x).astype(dtype) for v in (self.mean, self.std))
        return (x.astype(dtype, copy=False) - shift) / scale

    def inverse(self, x: Any) -> Any:
        """Undo the normalization."""
        x = np.asarray(x)
        shift, scale = (self._broadcast(v, x).astype(x.dtype) for v in (self.mean, self.std))
        return x * scale + shift

    def _broadcast(self, values: Any, x: Any) -> Any:
        if values.ndim == 0:
            return values
        if values.ndim != 1 or not -x.ndim <= self.axis < x.ndim:
            raise ShapeError(
                f"Normalize: an array of shape {x.shape} has no axis {self.axis}, on which it "
                f"should have {values.size} channels. Set axis to the channel axis"
                f"{at(user_line())}."
            )
        if x.shape[self.axis] != len(values):
            raise ShapeError(
                f"Normalize: axis {self.axis} of an array of shape {x.shape} has length "
                f"{x.shape[self.axis]}, but mean and std have {len(values)} channels. They must "
                f"be equal{at(user_line())}."
            )
        shape = [1] * x.ndim
        shape[self.axis] = -1
        return values.reshape(shape)


class Flatten(Transform):
    """Reshape to one axis."""

    def __call__(self, x: Any) -> Any:
        """The array as a vector."""
        return np.asarray(x).reshape(-1)


class _Crop(Transform):
    """Base of crops: pads and cuts."""

    def __init__(
        self, size: int | tuple[int, int], axes: tuple[int, int], padding: int, fill: float
    ) -> None:
        self.size = (size, size) if isinstance(size, int) else tuple(size)
        self.axes, self.padding, self.fill = tuple(axes), padding, fill
        if len(self.size) != 2 or min(self.size) < 1 or padding < 0:
            raise ArgumentError(
                f"{type(self).__name__}(size={size}, padding={padding}): height and width must be "
                f"at least 1, and padding at least 0{at(user_line())}."
            )

    def _cut(self, x: Any, choose_start: Callable[[int], int]) -> Any:
        x = np.asarray(x)
        _check_axes(x, self.axes, type(self).__name__)
        if self.padding:
            widths = [(0, 0)] * x.ndim
            for axis in self.axes:
                widths[axis] = (self.padding, self.padding)
            x = np.pad(x, widths, constant_values=self.fill)
        index: list[Any] = [slice(None)] * x.ndim
        for axis, size in zip(self.axes, self.size, strict=True):
            excess = x.shape[axis] - size
            if excess < 0:
                raise ShapeError(
                    f"{type(self).__name__}({self.size}) was given a smaller image, of shape "
                    f"{x.shape} with height and width on axes {self.axes}. Pad it, or set axes"
                    f"{at(user_line())}."
                )
            start = choose_start(excess)
            index[axis] = slice(start, start + size)
        return x[tuple(index)]


class CenterCrop(_Crop):
    """Crop the center of an image.

    Parameters
    ----------
    size : int or (int, int)
        Height and width.
    axes : (int, int), default (-2, -1)
        Axes of height and width.
    """

    def __init__(self, size: int | tuple[int, int], axes: tuple[int, int] = (-2, -1)) -> None:
        super().__init__(size, axes, 0, 0.0)

    def __call__(self, x: Any) -> Any:
        """The center of the image."""
        return self._cut(x, lambda excess: excess // 2)


class RandomCrop(_Crop):
    """Crop an image at a random position.

    Parameters
    ----------
    size : int or (int, int)
        Height and width.
    padding : int, default 0
        The number of rows and columns of padding on every side.
    fill : float, default 0
        Value of the padding.
    axes : (int, int), default (-2, -1)
        Axes of height and width.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.data.transforms import RandomCrop
    >>> RandomCrop(2)(np.arange(16).reshape(4, 4), rng=0).shape
    (2, 2)
    """

    random = True

    def __init__(
        self,
        size: int | tuple[int, int],
        padding: int = 0,
        fill: float = 0.0,
        axes: tuple[int, int] = (-2, -1),
    ) -> None:
        super().__init__(size, axes, padding, fill)

    def __call__(self, x: Any, rng: Any = None) -> Any:
        """A random part of the image."""
        generator = as_generator(rng)
        return self._cut(x, lambda excess: int(generator.integers(excess + 1)))


class _Flip(Transform):
    """Flip an image along an axis with probability `p`."""

    random = True

    def __init__(self, p: float = 0.5, axis: int = -1) -> None:
        _check_probability(p, type(self).__name__)
        self.p, self.axis = p, axis

    def __call__(self, x: Any, rng: Any = None) -> Any:
        """The image or its mirror image."""
        x = np.asarray(x)
        _check_axes(x, (self.axis,), type(self).__name__)
        return np.flip(x, self.axis) if as_generator(rng).random() < self.p else x


class RandomHorizontalFlip(_Flip):
    """Swap left and right with probability `p`.

    Parameters
    ----------
    p : float, default 0.5
        Probability.
    axis : int, default -1
        Axis of the width.
    """


class RandomVerticalFlip(_Flip):
    """Swap top and bottom with probability `p`.

    Parameters
    ----------
    p : float, default 0.5
        Probability.
    axis : int, default -2
        Axis of the height.
    """

    def __init__(self, p: float = 0.5, axis: int = -2) -> None:
        super().__init__(p, axis)


class RandomErasing(Transform):
    """Overwrite a square at a random position, which may extend beyond the edge (cutout).

    Parameters
    ----------
    size : int
        Side of the square.
    p : float, default 0.5
        Probability.
    fill : float, default 0
        Value of the square.
    axes : (int, int), default (-2, -1)
        Axes of height and width.

    References
    ----------
    .. [1] T. DeVries and G. W. Taylor, "Improved regularization of convolutional neural networks
       with cutout", arXiv:1708.04552.
    """

    random = True

    def __init__(
        self, size: int, p: float = 0.5, fill: float = 0.0, axes: tuple[int, int] = (-2, -1)
    ) -> None:
        _check_probability(p, "RandomErasing")
        if size < 1:
            raise ArgumentError(
                f"RandomErasing(size={size}): size must be at least 1{at(user_line())}."
            )
        self.size, self.p, self.fill, self.axes = size, p, fill, tuple(axes)

    def __call__(self, x: Any, rng: Any = None) -> Any:
        """The image, with a square overwritten with probability `p`."""
        x, generator = np.asarray(x), as_generator(rng)
        _check_axes(x, self.axes, "RandomErasing")
        if generator.random() >= self.p:
            return x
        index: list[Any] = [slice(None)] * x.ndim
        for axis in self.axes:
            center = int(generator.integers(x.shape[axis]))
            start = center - self.size // 2
            index[axis] = slice(max(0, start), max(0, start + self.size))
        out = x.copy()
        out[tuple(index)] = self.fill
        return out


class GaussianNoise(Transform):
    """Add normally distributed noise.

    Parameters
    ----------
    std : float
        Standard deviation.
    """

    random = True

    def __init__(self, std: float) -> None:
        if not std >= 0:
            raise ArgumentError(
                f"GaussianNoise(std={std}): std must be at least 0{at(user_line())}."
            )
        self.std = std

    def __call__(self, x: Any, rng: Any = None) -> Any:
        """The array with noise; floats keep their dtype, integers become float32."""
        x = np.asarray(x)
        dtype = x.dtype if x.dtype.kind == "f" else np.dtype(np.float32)
        noise = as_generator(rng).normal(scale=self.std, size=x.shape)
        return x.astype(dtype, copy=False) + noise.astype(dtype)


class RandomApply(Transform):
    """Apply a transform with probability `p`.

    Parameters
    ----------
    transform : callable
    p : float, default 0.5
        Probability.
    """

    random = True

    def __init__(self, transform: Callable[..., Any], p: float = 0.5) -> None:
        _check_probability(p, "RandomApply")
        self.transform, self.p = transform, p

    def __call__(self, x: Any, rng: Any = None) -> Any:
        """The array, transformed with probability `p`."""
        generator = as_generator(rng)
        if generator.random() >= self.p:
            return x
        takes_rng = getattr(self.transform, "random", False)
        return self.transform(x, generator) if takes_rng else self.transform(x)


def _check_probability(p: float, what: str) -> None:
    if not 0 <= p <= 1:
        raise ArgumentError(f"{what}(p={p}): p must be from 0 to 1{at(user_line())}.")


def _check_axes(x: Any, axes: tuple[int, ...], what: str) -> None:
    if any(not -x.ndim <= axis < x.ndim for axis in axes):
        raise ShapeError(
            f"{what}: an array of shape {x.shape} has no axes {axes}. Set axes to those of height "
            f"and width{at(user_line())}."
        )
