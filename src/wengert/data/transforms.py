"""Transforms of arrays and images, some of them random.

    Compose, AsFloat, Normalize, Flatten, CenterCrop            the same every time
    RandomCrop, RandomHorizontalFlip, RandomVerticalFlip,
    RandomErasing, GaussianNoise, RandomApply                    by a generator

    dataset.map(Compose([AsFloat(), RandomCrop(28, padding=2)]), field=0)

Pictures have their height and width on the last two axes, (channels, height, width), as the
convolutions of `wengert.nn` have them; ``axes=`` says otherwise.  One that is random has ``random =
True`` and is called ``t(x, rng)``, with a generator, a seed or a key of `wengert.random`.  In a
loader the generator follows from its seed, the pass and the place, so the same seed gives the same
pictures whoever makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError, at, user_line
from .rng_state import as_generator

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
    """Base: define ``__call__(x)``, or ``__call__(x, rng)`` with ``random = True``."""

    random: bool = False

    def __repr__(self) -> str:
        options = ", ".join(f"{k}={v!r}" for k, v in vars(self).items())
        return f"{type(self).__name__}({options})"


class Compose(Transform):
    """One transform after the other.

    Parameters
    ----------
    transforms : sequence of callable
        Those that are random draw from one generator, in this order.

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
        """The array, through all of them."""
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
    """Less a mean, over a deviation: numbers, or one for each channel.

    Parameters
    ----------
    mean, std : float or sequence of float
        Of as many as there are channels.
    axis : int, default -3
        The axis of the channels, if there is more than one number.

    Raises
    ------
    ArgumentError
        A deviation that is not above 0.
    """

    def __init__(self, mean: Any, std: Any, axis: int = -3) -> None:
        self.mean, self.std, self.axis = np.asarray(mean, float), np.asarray(std, float), axis
        if not (self.std > 0).all():
            raise ArgumentError(
                f"Normalize(std={std}): deviations are above 0. For data with constant columns "
                f"there is wengert.data.encoders.Standard{at(user_line())}."
            )

    def __call__(self, x: Any) -> Any:
        """The array, shifted and scaled, in its own floating dtype."""
        x = np.asarray(x)
        dtype = x.dtype if x.dtype.kind == "f" else np.dtype(np.float32)
        shift, scale = (self._along(v, x).astype(dtype) for v in (self.mean, self.std))
        return (x.astype(dtype, copy=False) - shift) / scale

    def inverse(self, x: Any) -> Any:
        """What an array was before."""
        x = np.asarray(x)
        return x * self._along(self.std, x).astype(x.dtype) + self._along(self.mean, x).astype(
            x.dtype
        )

    def _along(self, values: Any, x: Any) -> Any:
        if values.ndim == 0:
            return values
        if values.ndim != 1 or not -x.ndim <= self.axis < x.ndim:
            raise ShapeError(
                f"Normalize: an array of shape {x.shape} has no axis {self.axis} for "
                f"{values.size} channels. Say where they are, axis={at(user_line())}."
            )
        if x.shape[self.axis] != len(values):
            raise ShapeError(
                f"Normalize: axis {self.axis} of an array of shape {x.shape} is of length "
                f"{x.shape[self.axis]}, but there are numbers for {len(values)} channels. Give as "
                f"many{at(user_line())}."
            )
        shape = [1] * x.ndim
        shape[self.axis] = -1
        return values.reshape(shape)


class Flatten(Transform):
    """All elements on one axis."""

    def __call__(self, x: Any) -> Any:
        """The array with one axis."""
        return np.asarray(x).reshape(-1)


class _Crop(Transform):
    """What both ways to crop share: sizes, and the padding before."""

    def __init__(
        self, size: int | tuple[int, int], axes: tuple[int, int], padding: int, fill: float
    ) -> None:
        self.size = (size, size) if isinstance(size, int) else tuple(size)
        self.axes, self.padding, self.fill = tuple(axes), padding, fill
        if len(self.size) != 2 or min(self.size) < 1 or padding < 0:
            raise ArgumentError(
                f"{type(self).__name__}(size={size}, padding={padding}): a height and a width of "
                f"at least 1, and no negative padding{at(user_line())}."
            )

    def _cut(self, x: Any, choose: Callable[[int], int]) -> Any:
        x = np.asarray(x)
        _check_axes(x, self.axes, type(self).__name__)
        if self.padding:
            widths = [(0, 0)] * x.ndim
            for axis in self.axes:
                widths[axis] = (self.padding, self.padding)
            x = np.pad(x, widths, constant_values=self.fill)
        place: list[Any] = [slice(None)] * x.ndim
        for axis, size in zip(self.axes, self.size, strict=True):
            room = x.shape[axis] - size
            if room < 0:
                raise ShapeError(
                    f"{type(self).__name__}({self.size}) of a picture of shape {x.shape} with "
                    f"height and width on axes {self.axes}: it is smaller. Pad it, or say which "
                    f"axes{at(user_line())}."
                )
            start = choose(room)
            place[axis] = slice(start, start + size)
        return x[tuple(place)]


class CenterCrop(_Crop):
    """The middle of a picture.

    Parameters
    ----------
    size : int or (int, int)
        Height and width.
    axes : (int, int), default (-2, -1)
        Where height and width are.
    """

    def __init__(self, size: int | tuple[int, int], axes: tuple[int, int] = (-2, -1)) -> None:
        super().__init__(size, axes, 0, 0.0)

    def __call__(self, x: Any) -> Any:
        """The middle of the picture."""
        return self._cut(x, lambda room: room // 2)


class RandomCrop(_Crop):
    """A part of a picture, from anywhere in it.

    Parameters
    ----------
    size : int or (int, int)
        Height and width.
    padding : int, default 0
        The number of rows and columns of padding on every side.
    fill : float, default 0
        What they hold.
    axes : (int, int), default (-2, -1)
        Where height and width are.

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
        """A part of the picture."""
        generator = as_generator(rng)
        return self._cut(x, lambda room: int(generator.integers(room + 1)))


class _Flip(Transform):
    """A picture, mirrored with some probability."""

    random = True

    def __init__(self, p: float = 0.5, axis: int = -1) -> None:
        _check_share(p, type(self).__name__)
        self.p, self.axis = p, axis

    def __call__(self, x: Any, rng: Any = None) -> Any:
        """The picture, or its mirror image."""
        x = np.asarray(x)
        _check_axes(x, (self.axis,), type(self).__name__)
        return np.flip(x, self.axis) if as_generator(rng).random() < self.p else x


class RandomHorizontalFlip(_Flip):
    """Left and right exchanged, with probability `p`.

    Parameters
    ----------
    p : float, default 0.5
    axis : int, default -1
        That of the width.
    """


class RandomVerticalFlip(_Flip):
    """Top and bottom exchanged, with probability `p`.

    Parameters
    ----------
    p : float, default 0.5
    axis : int, default -2
        That of the height.
    """

    def __init__(self, p: float = 0.5, axis: int = -2) -> None:
        super().__init__(p, axis)


class RandomErasing(Transform):
    """A square somewhere in a picture, overwritten (it may reach over the edge).

    Parameters
    ----------
    size : int
        Its side.
    p : float, default 0.5
        How likely.
    fill : float, default 0
    axes : (int, int), default (-2, -1)

    References
    ----------
    .. [1] T. DeVries and G. W. Taylor, "Improved regularization of convolutional neural networks
       with cutout", arXiv:1708.04552.
    """

    random = True

    def __init__(
        self, size: int, p: float = 0.5, fill: float = 0.0, axes: tuple[int, int] = (-2, -1)
    ) -> None:
        _check_share(p, "RandomErasing")
        if size < 1:
            raise ArgumentError(f"RandomErasing(size={size}): at least 1{at(user_line())}.")
        self.size, self.p, self.fill, self.axes = size, p, fill, tuple(axes)

    def __call__(self, x: Any, rng: Any = None) -> Any:
        """The picture with a square overwritten, or as it is."""
        x, generator = np.asarray(x), as_generator(rng)
        _check_axes(x, self.axes, "RandomErasing")
        if generator.random() >= self.p:
            return x
        place: list[Any] = [slice(None)] * x.ndim
        for axis in self.axes:
            middle = int(generator.integers(x.shape[axis]))
            start = middle - self.size // 2
            place[axis] = slice(max(0, start), max(0, start + self.size))
        out = x.copy()
        out[tuple(place)] = self.fill
        return out


class GaussianNoise(Transform):
    """Normal numbers added.

    Parameters
    ----------
    std : float
        Their deviation.
    """

    random = True

    def __init__(self, std: float) -> None:
        if not std >= 0:
            raise ArgumentError(f"GaussianNoise(std={std}): at least 0{at(user_line())}.")
        self.std = std

    def __call__(self, x: Any, rng: Any = None) -> Any:
        """The array with noise, in its own floating dtype."""
        x = np.asarray(x)
        dtype = x.dtype if x.dtype.kind == "f" else np.dtype(np.float32)
        noise = as_generator(rng).normal(scale=self.std, size=x.shape)
        return x.astype(dtype, copy=False) + noise.astype(dtype)


class RandomApply(Transform):
    """A transform, with probability `p`; else the array as it is.

    Parameters
    ----------
    transform : callable
    p : float, default 0.5
    """

    random = True

    def __init__(self, transform: Callable[..., Any], p: float = 0.5) -> None:
        _check_share(p, "RandomApply")
        self.transform, self.p = transform, p

    def __call__(self, x: Any, rng: Any = None) -> Any:
        """The array, changed or not."""
        generator = as_generator(rng)
        if generator.random() >= self.p:
            return x
        drawn = getattr(self.transform, "random", False)
        return self.transform(x, generator) if drawn else self.transform(x)


def _check_share(p: float, what: str) -> None:
    if not 0 <= p <= 1:
        raise ArgumentError(f"{what}(p={p}): a probability must be from 0 to 1{at(user_line())}.")


def _check_axes(x: Any, axes: tuple[int, ...], what: str) -> None:
    if any(not -x.ndim <= axis < x.ndim for axis in axes):
        raise ShapeError(
            f"{what}: an array of shape {x.shape} has no axes {axes}. Say where height and width "
            f"are{at(user_line())}."
        )
