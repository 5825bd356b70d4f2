"""Initial values of weights and biases; sizes of layers are checked before allocation.

    new arrays           uniform normal trunc_normal constant zeros ones eye dirac xavier_uniform
                         xavier_normal kaiming_uniform kaiming_normal orthogonal sparse
    in place             uniform_ normal_ ... (PyTorch's): fill an existing parameter or array
    scale                fans, calculate_gain
    check_layer_sizes    raises an error that names the layer and the size

Shapes are PyTorch's, (outputs, inputs, ...) for weights.  `rng` is a seed or a
``numpy.random.Generator``; pass the same generator to all layers of a model to make the model
reproducible from one seed.

NumPy's message about an invalid shape names neither the layer nor its argument.
"""

from __future__ import annotations

from math import ceil, prod, sqrt
from typing import Any

import numpy as np
import scipy  # scipy.special is loaded at first use

from wengert._engine.core.handle import Handle
from wengert._engine.core.lazy_import import public_dir

from ..errors import ArgumentError, ShapeError, at, user_line

__all__ = """
    calculate_gain constant constant_ dirac dirac_ eye eye_ fans kaiming_normal kaiming_normal_
    kaiming_uniform kaiming_uniform_ normal normal_ ones ones_ orthogonal orthogonal_ sparse
    sparse_ trunc_normal trunc_normal_ uniform uniform_ xavier_normal xavier_normal_
    xavier_uniform xavier_uniform_ zeros zeros_
""".split()


__dir__ = public_dir(__name__)

Shape = tuple[int, ...]
Array = np.ndarray[Any, Any]


def fans(shape: Shape) -> tuple[int, int]:
    """The fan-in and the fan-out of a weight.

    Axes after the second are a receptive field, as in a convolution.
    """
    if len(shape) < 2:
        n = shape[0] if shape else 1
        return n, n
    field = prod(shape[2:])
    return shape[1] * field, shape[0] * field


def uniform(shape: Shape, bound: float, rng: Any = None, dtype: Any = float) -> Array:
    """Uniform between -bound and bound."""
    return np.random.default_rng(rng).uniform(-bound, bound, shape).astype(dtype)


def normal(shape: Shape, scale: float, rng: Any = None, dtype: Any = float) -> Array:
    """Gaussian with mean 0 and standard deviation `scale`."""
    return (scale * np.random.default_rng(rng).standard_normal(shape)).astype(dtype)


def trunc_normal(
    shape: Shape,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    rng: Any = None,
    dtype: Any = float,
) -> Array:
    """Gaussian truncated to [a, b]; drawn by inversion of the distribution function."""
    if not a < b or not std > 0:
        raise ArgumentError(
            f"trunc_normal: a must be less than b and std must be positive, got a={a}, b={b}, "
            f"std={std}{at(user_line())}."
        )
    low, high = (a - mean) / std, (b - mean) / std
    flip = low > 0  # far above the mean the distribution function rounds to 1; below it is accurate
    if flip:
        low, high = -high, -low
    first, last = map(float, scipy.special.ndtr((low, high)))
    share = np.random.default_rng(rng).uniform(first, last, shape)
    drawn = scipy.special.ndtri(share)
    return np.clip(mean + std * (-drawn if flip else drawn), a, b).astype(dtype)


def constant(shape: Shape, value: float, dtype: Any = float) -> Array:
    """An array filled with `value`."""
    return np.full(shape, value, dtype)


def zeros(shape: Shape, dtype: Any = float) -> Array:
    """Zeros."""
    return np.zeros(shape, dtype)


def ones(shape: Shape, dtype: Any = float) -> Array:
    """Ones."""
    return np.ones(shape, dtype)


def eye(shape: Shape, dtype: Any = float) -> Array:
    """A matrix with ones on the diagonal: the identity for as many inputs as possible."""
    if len(shape) != 2:
        raise ShapeError(f"eye: expected the shape of a matrix, got {shape}{at(user_line())}.")
    return np.eye(*shape, dtype=dtype)


def dirac(shape: Shape, groups: int = 1, dtype: Any = float) -> Array:
    """Weights of a convolution that is the identity for as many channels as possible.

    Parameters
    ----------
    shape : tuple of int
        (outputs, inputs of a group, one to three spatial axes).
    groups : int, default 1
    dtype : dtype, default float64
    """
    if not 3 <= len(shape) <= 5 or shape[0] % groups:
        raise ShapeError(
            f"dirac of shape {shape} in {groups} groups: weights of a convolution must have shape "
            "(outputs, inputs, ...) with one to three spatial axes, and groups must divide the "
            f"outputs{at(user_line())}."
        )
    weight = np.zeros(shape, dtype)
    middle = tuple(n // 2 for n in shape[2:])
    each = shape[0] // groups
    for group in range(groups):
        for k in range(min(each, shape[1])):
            weight[(group * each + k, k, *middle)] = 1
    return weight


# ---- scale -------------------------------------------------------------------------------------


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The recommended scale of weights before an activation function, relative to none.

    Parameters
    ----------
    nonlinearity : str
        "linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu", or a name that begins with
        "conv".
    param : float, optional
        The slope of "leaky_relu" below 0, by default 0.01.

    Raises
    ------
    ArgumentError
        The nonlinearity is unknown.

    Examples
    --------
    >>> from wengert.nn import init
    >>> round(init.calculate_gain("relu"), 4)
    1.4142
    """
    if nonlinearity in ("linear", "sigmoid") or nonlinearity.startswith("conv"):
        return 1.0
    gains = {"tanh": 5.0 / 3.0, "relu": sqrt(2.0), "selu": 0.75}
    if nonlinearity == "leaky_relu":
        return sqrt(2.0 / (1.0 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in gains:
        raise ArgumentError(
            f"calculate_gain: nonlinearity must be one of linear, sigmoid, {', '.join(gains)} and "
            f"leaky_relu, got {nonlinearity!r}{at(user_line())}."
        )
    return gains[nonlinearity]


def _fan(shape: Shape, mode: str) -> int:
    if mode not in ("fan_in", "fan_out"):
        raise ArgumentError(f"mode must be 'fan_in' or 'fan_out', got {mode!r}{at(user_line())}.")
    return max(1, fans(shape)[mode == "fan_out"])


# ---- scaled by the sizes of layers -------------------------------------------------------------


def kaiming_uniform(
    shape: Shape, rng: Any = None, dtype: Any = float, gain: float = sqrt(2.0)
) -> Array:
    """Uniform with variance gain**2 / inputs, which preserves the scale of values in relu layers.

    Parameters
    ----------
    shape : tuple of int
    rng : int or numpy.random.Generator, optional
    dtype : dtype, default float64
    gain : float, default sqrt(2)
        sqrt(2) for relu, 1 for a linear layer.

    References
    ----------
    .. [1] K. He et al., "Delving deep into rectifiers", ICCV 2015, arXiv:1502.01852.
    """
    return uniform(shape, gain * sqrt(3.0 / max(1, fans(shape)[0])), rng, dtype)


def xavier_uniform(shape: Shape, rng: Any = None, dtype: Any = float, gain: float = 1.0) -> Array:
    """Uniform with variance 2 gain**2 / (inputs + outputs), for tanh and sigmoid layers.

    References
    ----------
    .. [1] X. Glorot and Y. Bengio, "Understanding the difficulty of training deep feedforward
       neural networks", AISTATS 2010.
    """
    return uniform(shape, gain * sqrt(6.0 / max(1, sum(fans(shape)))), rng, dtype)


def xavier_normal(shape: Shape, rng: Any = None, dtype: Any = float, gain: float = 1.0) -> Array:
    """Gaussian with the variance of `xavier_uniform`."""
    return normal(shape, gain * sqrt(2.0 / max(1, sum(fans(shape)))), rng, dtype)


def kaiming_normal(
    shape: Shape, rng: Any = None, dtype: Any = float, gain: float = sqrt(2.0)
) -> Array:
    """Gaussian with the variance of `kaiming_uniform`."""
    return normal(shape, gain / sqrt(max(1, fans(shape)[0])), rng, dtype)


def orthogonal(shape: Shape, rng: Any = None, dtype: Any = float, gain: float = 1.0) -> Array:
    """A random matrix with orthonormal rows or columns, whichever are fewer, times `gain`.

    Axes after the first are flattened.

    References
    ----------
    .. [1] A. M. Saxe, J. L. McClelland and S. Ganguli, "Exact solutions to the nonlinear dynamics
       of learning in deep linear neural networks", arXiv:1312.6120.
    .. [2] F. Mezzadri, "How to generate random matrices from the classical compact groups",
       Notices AMS 54 (2007) 592-604. (The signs.)
    """
    if len(shape) < 2:
        raise ShapeError(f"orthogonal: expected at least 2 axes, got {shape}{at(user_line())}.")
    rows, columns = shape[0], prod(shape[1:])
    drawn = np.random.default_rng(rng).standard_normal((max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(drawn)
    q = q * np.where(np.diag(r) < 0, -1.0, 1.0)
    return (gain * (q if rows >= columns else q.T)).reshape(shape).astype(dtype)


def sparse(
    shape: Shape, sparsity: float, std: float = 0.01, rng: Any = None, dtype: Any = float
) -> Array:
    """Gaussian, with a fraction `sparsity` of each column, rounded up, set to 0.

    References
    ----------
    .. [1] J. Martens, "Deep learning via Hessian-free optimization", ICML 2010.
    """
    if len(shape) != 2 or not 0.0 <= sparsity <= 1.0:
        raise ArgumentError(
            "sparse: expected the shape of a matrix and a sparsity from 0 to 1, got shape "
            f"{shape} and sparsity={sparsity}{at(user_line())}."
        )
    rng = np.random.default_rng(rng)
    weight = std * rng.standard_normal(shape)
    count = ceil(sparsity * shape[0])
    rows = np.argsort(rng.random(shape), axis=0)[:count]
    np.put_along_axis(weight, rows, 0.0, axis=0)
    return weight.astype(dtype)


# ---- in place ----------------------------------------------------------------------------------


def _filled(tensor: Any, values: Array) -> Any:
    """Write the values to a parameter, a tensor or an array; return it."""
    if isinstance(tensor, Handle):
        tensor.data = values  # type: ignore[attr-defined]
    else:
        tensor[...] = values
    return tensor


def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, rng: Any = None) -> Any:
    """Fill a tensor with uniform numbers between a and b; return it."""
    return _filled(tensor, np.random.default_rng(rng).uniform(a, b, tensor.shape))


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, rng: Any = None) -> Any:
    """Fill a tensor with Gaussian numbers; return it."""
    return _filled(tensor, np.random.default_rng(rng).normal(mean, std, tensor.shape))


def trunc_normal_(
    tensor: Any,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    rng: Any = None,
) -> Any:
    """Fill a tensor with `trunc_normal`; return it."""
    return _filled(tensor, trunc_normal(tensor.shape, mean, std, a, b, rng))


def constant_(tensor: Any, val: float) -> Any:
    """Fill a tensor with `val`; return it."""
    return _filled(tensor, constant(tensor.shape, val, tensor.dtype))


def zeros_(tensor: Any) -> Any:
    """Fill a tensor with zeros; return it."""
    return constant_(tensor, 0.0)


def ones_(tensor: Any) -> Any:
    """Fill a tensor with ones; return it."""
    return constant_(tensor, 1.0)


def eye_(tensor: Any) -> Any:
    """Fill a tensor with `eye`; return it."""
    return _filled(tensor, eye(tensor.shape))


def dirac_(tensor: Any, groups: int = 1) -> Any:
    """Fill a tensor with `dirac`; return it."""
    return _filled(tensor, dirac(tensor.shape, groups))


def xavier_uniform_(tensor: Any, gain: float = 1.0, rng: Any = None) -> Any:
    """Fill a tensor with `xavier_uniform`; return it."""
    return _filled(tensor, xavier_uniform(tensor.shape, rng, gain=gain))


def xavier_normal_(tensor: Any, gain: float = 1.0, rng: Any = None) -> Any:
    """Fill a tensor with `xavier_normal`; return it."""
    return _filled(tensor, xavier_normal(tensor.shape, rng, gain=gain))


def kaiming_uniform_(
    tensor: Any,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    rng: Any = None,
) -> Any:
    """Fill a tensor with uniform numbers of variance gain**2 / fan; return it.

    Parameters
    ----------
    tensor : Tensor or array
    a : float, default 0.0
        The slope of leaky_relu below 0.
    mode : {"fan_in", "fan_out"}
        Preserve the scale of values in the forward pass, or of gradients in the backward pass.
    nonlinearity : str
        As for `calculate_gain`.
    rng : int or numpy.random.Generator, optional
    """
    bound = calculate_gain(nonlinearity, a) * sqrt(3.0 / _fan(tensor.shape, mode))
    return uniform_(tensor, -bound, bound, rng)


def kaiming_normal_(
    tensor: Any,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    rng: Any = None,
) -> Any:
    """Fill a tensor with Gaussian numbers of the variance of `kaiming_uniform_`; return it."""
    std = calculate_gain(nonlinearity, a) / sqrt(_fan(tensor.shape, mode))
    return normal_(tensor, 0.0, std, rng)


def orthogonal_(tensor: Any, gain: float = 1.0, rng: Any = None) -> Any:
    """Fill a tensor with `orthogonal`; return it."""
    return _filled(tensor, orthogonal(tensor.shape, rng, gain=gain))


def sparse_(tensor: Any, sparsity: float, std: float = 0.01, rng: Any = None) -> Any:
    """Fill a tensor with `sparse`; return it."""
    return _filled(tensor, sparse(tensor.shape, sparsity, std, rng))


def check_layer_sizes(layer: Any, minimum: int = 0, **sizes: Any) -> None:
    """Check that the sizes of a layer are integers of at least `minimum`.

    Raises
    ------
    ArgumentError
        A size is invalid; the message names the layer and the size.
    """
    for name, size in sizes.items():
        for n in size if isinstance(size, tuple) else (size,):
            if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < minimum:
                kind = "integers" if isinstance(size, tuple) else "an integer"
                raise ArgumentError(
                    f"{type(layer).__name__}: {name} must be {kind} of at least {minimum}, got "
                    f"{size!r}{at(user_line())}."
                )
