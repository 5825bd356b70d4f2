"""Objects and names of other libraries: pandas, xarray and pint; PyTorch and JAX.

Arrays with labels or units: objects of pandas, xarray and pint.

Derivatives and compiled functions take plain arrays and tensors.  An argument or a result with
labels or units raises `Labelled`, which the transformation catches: it calls `labelled_arrays` (a
higher layer), which calls it again with values, and gives the results labels and units.

is_labelled         whether an object is of a class that is handled so
LabelledTensor      the base of the classes that stand for objects of pandas while values are traced
Labelled            raised for an argument or a result with labels or units
may_be_labelled     whether a function may return such objects, and take them
ForeignOperand      raised for an operand with units in a function of arrays and tensors
calls               the module that handles such calls, imported at first use
values_of           what to write instead of passing an object of another class, for messages
base_of             the class that the class of an object is derived from
is_of_pandas        whether it is a Series or a DataFrame
beside_tensors      one as an operand of a tensor: the result has its labels
has_other_methods   whether it is of a library whose `std`, for example, is not that of arrays
has_units           whether an object has units, which its values alone do not have
is_refused          raise ForeignOperand for an operand that would lose its unit or labels
has_own_functions   whether NumPy's functions of an object are those of its class
LABELLED            the name of the module, set by wengert/__init__.py

Names of PyTorch and JAX that differ from those of wengert.

Looking up such a name is an error whose message gives the name in wengert; there are no aliases.

    TENSOR     methods and attributes of torch.Tensor, and `at` of JAX arrays
    PACKAGE    names of torch, jax, jax.lax and autograd, looked up in `wengert`
    NUMPY      names of jax.numpy, jax.nn and torch, looked up in `wengert.numpy`
    KEYWORDS   arguments of methods
    missing    the AttributeError
    Foreign    a class attribute that raises it when it is read
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from wengert.errors import NotDifferentiableError, OperandError, at, user_line

if TYPE_CHECKING:
    from .types import Array, Operand

LABELLED: list[str] = []
_CLASSES = {
    "pandas": ("Series", "DataFrame"),
    "xarray": ("DataArray",),
    "pint": ("Quantity",),
}
_PASS = {
    "pandas": "Pass its values, x.to_numpy(), and give the result labels, "
    "pandas.Series(result, x.index)",
    "xarray": "Pass its values, x.to_numpy(), and give the result names, x.copy(data=result)",
    "pint": "Pass a number of chosen units, x.to(unit).magnitude; a derivative has the units of "
    "the result divided by those of x",
    "polars": "Pass its values, x.to_numpy()",
    "torch": "Pass its values, x.numpy()",
}
_RETURN = {
    "pandas": "Return its values, x.to_numpy()",
    "xarray": "Return its values, x.data",
    "pint": "Return a number of chosen units, x.to(unit).magnitude",
}
_PASS_SEVERAL = "Pass its variables as a dict of DataArrays, dict(x.data_vars)"
_RETURN_SEVERAL = "Return a dict of its variables, dict(x.data_vars)"


class LabelledTensor:
    """Values with the labels of an object of pandas; see `labelled_arrays`."""

    __slots__ = ("labels", "values")

    labels: Any
    values: Array


class Labelled(NotDifferentiableError):
    """An argument or a result with labels or units, where values are needed."""

    def __init__(self, x: object, is_result: bool = False) -> None:
        self.is_result = is_result
        name = x.__class__.__name__
        if is_result:
            text = f"a {name} was returned. {values_of(x, True) or _RETURN['pandas']}"
        else:
            text = f"a {name} is not accepted here. {values_of(x) or _PASS['pandas']}"
        super().__init__(f"{text}{at(user_line())}.")


def may_be_labelled(fun: object) -> bool:
    """Whether a function may return objects with labels: not one of values (`PlainCall`)."""
    return not getattr(fun, "is_of_values", False)


class ForeignOperand(OperandError):
    """An operand with units, in a function that would compute with its values alone."""


def _package(x: object) -> str:
    return type(x).__module__.partition(".")[0]


def is_labelled(x: object) -> bool:
    """Whether it is a Series, a DataFrame, a DataArray or a Quantity, not of a subclass."""
    return isinstance(x, LabelledTensor) or type(x).__name__ in _CLASSES.get(_package(x), ())


def base_of(x: object) -> str | None:
    """The class of pandas, xarray or pint that the class of `x` is derived from, if any."""
    for cls in type(x).__mro__[1:]:
        if cls.__name__ in _CLASSES.get(cls.__module__.partition(".")[0], ()):
            return cls.__name__
    return None


def is_of_pandas(x: object) -> bool:
    """Whether it is a Series or a DataFrame of pandas itself."""
    return type(x).__name__ in _CLASSES["pandas"] and _package(x) == "pandas"


def beside_tensors(x: object) -> LabelledTensor:
    """A Series or a DataFrame as an operand of a tensor: the result has its labels."""
    found: LabelledTensor = calls().constant(x)
    return found


@functools.cache
def calls() -> Any:
    """The module that handles calls with labelled arguments."""
    return import_module(LABELLED[0])


def is_refused(x: Operand) -> bool:
    """False for an operand of a function of tensors, which may be of another class.

    Raises
    ------
    ForeignOperand
        Its unit or its labels would be lost.
    """
    if isinstance(x, LabelledTensor) or (
        _package(x) in ("pint", "xarray") and is_labelled(x) and not _is_plain(x)
    ):
        raise ForeignOperand(
            f"a {x.__class__.__name__} as operand of a function of tensors, which would lose its "
            f"labels or its unit. Pass its values: x.to_numpy() of pandas, x.data of xarray, "
            f"x.to(unit).magnitude of pint{at(user_line())}."
        )
    return False


def _is_plain(x: object) -> bool:
    """Whether it is an array of xarray with plain values, which functions of arrays convert."""
    return _package(x) == "xarray" and type(getattr(x, "data", None)).__module__ == "numpy"


def has_own_functions(x: object) -> bool:
    """Whether NumPy's functions of it are those of its class: a quantity, or labelled tensors."""
    return isinstance(x, LabelledTensor) or (_package(x) == "pint" and is_labelled(x))


def values_of(x: object, is_result: bool = False) -> str | None:
    """What to write instead of `x`, an argument or a result; None for other objects."""
    if _package(x) == "xarray" and hasattr(x, "data_vars"):  # a Dataset
        return _RETURN_SEVERAL if is_result else _PASS_SEVERAL
    return (_RETURN if is_result else _PASS).get(_package(x))


def has_other_methods(x: object) -> bool:
    """Whether methods of it have another meaning than those of an array of its values."""
    return _package(x) in ("polars", "torch")


def has_units(x: object) -> bool:
    """Whether it is a quantity of pint with units."""
    return _package(x) == "pint" and not getattr(x, "dimensionless", True)


_IN_PLACE = "x[...] = y, or x += y: tensors are assigned to as arrays are"
_DEVICE = "nothing: tensors are in the memory of the CPU; see wengert.device_put"
_FUNCTIONAL = "wengert.nn.functional.{}"

TENSOR: dict[str, str] = {
    "unsqueeze": "np.expand_dims(x, axis), or x[:, None]",
    "clone": "x.copy()",
    "to": "x.astype(dtype)",
    "type": "x.astype(dtype)",
    "type_as": "x.astype(y.dtype)",
    "float": "x.astype(np.float32)",
    "double": "x.astype(np.float64)",
    "half": "x.astype(np.float16)",
    "int": "x.astype(np.int32)",
    "long": "x.astype(np.int64)",
    "short": "x.astype(np.int16)",
    "bool": "x.astype(bool)",
    "cfloat": "x.astype(np.complex64)",
    "cdouble": "x.astype(np.complex128)",
    "clamp": "x.clip(low, high)",
    "clamp_min": "np.maximum(x, low)",
    "clamp_max": "np.minimum(x, high)",
    "permute": "x.transpose(axes)",
    "t": "x.T",
    "H": "np.conj(x).mT",
    "mH": "np.conj(x).mT",
    "adjoint": "np.conj(x).mT",
    "movedim": "np.moveaxis(x, source, destination)",
    "moveaxis": "np.moveaxis(x, source, destination)",
    "swapdims": "x.swapaxes(a, b)",
    "expand": "np.broadcast_to(x, shape)",
    "expand_as": "np.broadcast_to(x, y.shape)",
    "broadcast_to": "np.broadcast_to(x, shape)",
    "view_as": "x.reshape(y.shape)",
    "reshape_as": "x.reshape(y.shape)",
    "unflatten": "x.reshape(shape)",
    "tile": "np.tile(x, counts)",
    "repeat_interleave": "np.repeat(x, counts, axis)",
    "dim": "x.ndim",
    "numel": "x.size",
    "nelement": "x.size",
    "element_size": "x.itemsize",
    "stride": "x.strides",
    "contiguous": "nothing: leave it out",
    "is_contiguous": "nothing: leave it out",
    "cpu": _DEVICE,
    "cuda": _DEVICE,
    "is_cuda": _DEVICE,
    "get_device": _DEVICE,
    "pin_memory": _DEVICE,
    "block_until_ready": "nothing: values are computed when a call returns",
    "addressable_data": _DEVICE,
    "sharding": _DEVICE,
    "at": "y = x.copy(); y[i] = v (or += v, *= v): tensors are assigned to as arrays are",
    "weak_type": "x.dtype",
    "abs": "np.abs(x)",
    "absolute": "np.abs(x)",
    "neg": "-x",
    "add": "x + y",
    "sub": "x - y",
    "mul": "x * y",
    "div": "x / y",
    "pow": "x ** y",
    "matmul": "x @ y",
    "mm": "x @ y",
    "bmm": "x @ y",
    "mv": "x @ y",
    "outer": "np.outer(x, y)",
    "eq": "x == y",
    "ne": "x != y",
    "lt": "x < y",
    "le": "x <= y",
    "gt": "x > y",
    "ge": "x >= y",
    "exp": "np.exp(x)",
    "expm1": "np.expm1(x)",
    "log": "np.log(x)",
    "log1p": "np.log1p(x)",
    "log2": "np.log2(x)",
    "log10": "np.log10(x)",
    "sqrt": "np.sqrt(x)",
    "rsqrt": "1 / np.sqrt(x)",
    "square": "np.square(x)",
    "reciprocal": "1 / x",
    "sin": "np.sin(x)",
    "cos": "np.cos(x)",
    "tan": "np.tan(x)",
    "asin": "np.arcsin(x)",
    "acos": "np.arccos(x)",
    "atan": "np.arctan(x)",
    "atan2": "np.arctan2(x, y)",
    "sinh": "np.sinh(x)",
    "cosh": "np.cosh(x)",
    "tanh": "np.tanh(x)",
    "erf": "wengert.scipy.special.erf(x)",
    "lgamma": "wengert.scipy.special.gammaln(x)",
    "digamma": "wengert.scipy.special.digamma(x)",
    "sign": "np.sign(x)",
    "floor": "np.floor(x)",
    "ceil": "np.ceil(x)",
    "frac": "x - np.trunc(x)",
    "trunc": "np.trunc(x)",
    "isnan": "np.isnan(x)",
    "isinf": "np.isinf(x)",
    "isfinite": "np.isfinite(x)",
    "norm": "np.linalg.norm(x)",
    "logsumexp": "wengert.scipy.special.logsumexp(x, axis)",
    "softmax": "wengert.nn.functional.softmax(x, axis)",
    "log_softmax": "wengert.nn.functional.log_softmax(x, axis)",
    "sigmoid": "wengert.nn.functional.sigmoid(x)",
    "relu": "wengert.nn.functional.relu(x)",
    "median": "np.median(x)",
    "quantile": "np.quantile(x, q)",
    "nansum": "np.nansum(x)",
    "nanmean": "np.nanmean(x)",
    "amax": "x.max(axis)",
    "amin": "x.min(axis)",
    "topk": "np.sort(x)[..., ::-1][..., :k], or np.partition",
    "unique": "np.unique(x)",
    "flip": "np.flip(x, axis)",
    "roll": "np.roll(x, shift, axis)",
    "tril": "np.tril(x)",
    "triu": "np.triu(x)",
    "diag": "np.diag(x)",
    "inverse": "np.linalg.inv(x)",
    "det": "np.linalg.det(x)",
    "cholesky": "np.linalg.cholesky(x)",
    "svd": "np.linalg.svd(x)",
    "gather": "np.take_along_axis(x, indices, axis)",
    "scatter": "np.put_along_axis(x, indices, values, axis)",
    "index_select": "np.take(x, indices, axis)",
    "masked_fill": "np.where(mask, value, x)",
    "masked_select": "x[mask]",
    "where": "np.where(condition, x, y)",
    "split": "np.split(x, indices, axis)",
    "chunk": "np.array_split(x, n, axis)",
    "unbind": "list(x)",
    "narrow": "x[start : start + length]",
    "select": "x[i]",
    "logical_not": "np.logical_not(x)",
    "logical_and": "np.logical_and(x, y)",
    "logical_or": "np.logical_or(x, y)",
    "allclose": "np.allclose(x, y)",
    "dist": "np.linalg.norm(x - y)",
    "new_zeros": "np.zeros(shape, like=x)",
    "new_ones": "np.ones(shape, like=x)",
    "new_tensor": "wengert.tensor(data)",
    "detach_": "x = x.detach()",
    "retains_grad": "x.retain_grad()",
    **dict.fromkeys(
        "add_ sub_ mul_ div_ copy_ zero_ fill_ clamp_ normal_ uniform_".split(), _IN_PLACE
    ),
}

_LOOPS = "wengert.scan, wengert.fori_loop, wengert.while_loop, wengert.cond"
PACKAGE: dict[str, str] = {
    "array": "wengert.numpy.array, or wengert.tensor(data)",
    "as_tensor": "wengert.tensor(data)",
    "from_numpy": "wengert.tensor(array)",
    "Parameter": "wengert.nn.Parameter",
    "Module": "wengert.nn.Module",
    "manual_seed": "wengert.random.key(seed), passed to the functions that draw, or rng= of layers",
    "functional": "wengert.nn.functional",
    "func": "wengert itself: wengert.grad, wengert.vmap, wengert.jacrev",
    "autograd": "wengert.grad(f)(x), or y.backward(); for programs of HIPS autograd "
    "wengert.compat.autograd",
    "elementwise_grad": "wengert.grad(lambda x: f(x).sum()), or "
    "wengert.compat.autograd.elementwise_grad",
    "compile": "wengert.jit",
    "script": "wengert.jit",
    "inference_mode": "wengert.no_grad",
    "set_grad_enabled": "wengert.no_grad and wengert.enable_grad",
    "is_grad_enabled": "wengert.is_recording",
    "lax": _LOOPS,
    "remat": "wengert.checkpoint",
    "pmap": "wengert.vmap",
    "make_jaxpr": "wengert.trace",
    "eval_shape": "wengert.trace(f)(...).outputs[0].spec",
    "ShapeDtypeStruct": "wengert.spec",
    "block_until_ready": "nothing: values are computed when a call returns",
    "tree_map": "wengert.tree.map",
    "tree_util": "wengert.tree",
    "pure_callback": "wengert.primitive",
    "io_callback": "wengert.debug.callback",
    "debug_nans": "wengert.debug(nan=True)",
    "config": "float64 is the default; wengert.policy",
    "float0": "float64 zeros",
    "relu": "wengert.nn.functional.relu",
    "softmax": "wengert.nn.functional.softmax",
    "sigmoid": "wengert.nn.functional.sigmoid",
    "functional_call": "wengert.grad of a function that takes the module",
    "make_vjp": "wengert.vjp",
    "make_jvp": "wengert.jvp",
    "forward": "wengert.jvp",
    "minimize": "wengert.optim.minimize",
    "Function": "wengert.primitive",
    "detach": "x.detach(), or wengert.stop_gradient(x)",
}

NUMPY: dict[str, str] = {
    **{
        name: _FUNCTIONAL.format(name)
        for name in (
            "relu relu6 sigmoid silu swish elu selu celu gelu glu leaky_relu log_sigmoid softplus "
            "softsign hardtanh one_hot normalize"
        ).split()
    },
    "erf": "wengert.scipy.special.erf",
    "expit": "wengert.scipy.special.expit",
    "logit": "wengert.scipy.special.logit",
    "lgamma": "wengert.scipy.special.gammaln",
    "gammaln": "wengert.scipy.special.gammaln",
    "digamma": "wengert.scipy.special.digamma",
    "rsqrt": "1 / np.sqrt(x)",
    "unsqueeze": "wengert.numpy.expand_dims",
    "cat": "wengert.numpy.concatenate",
    "clamp": "wengert.numpy.clip",
    "mm": "wengert.numpy.matmul",
    "bmm": "wengert.numpy.matmul",
    "tensor": "wengert.numpy.array, or wengert.tensor",
    "gather": "wengert.numpy.take_along_axis",
    "index_select": "wengert.numpy.take",
    "topk": "wengert.numpy.sort, or wengert.numpy.partition",
    "chunk": "wengert.numpy.array_split",
    "norm": "wengert.numpy.linalg.norm",
    "inv": "wengert.numpy.linalg.inv",
    "det": "wengert.numpy.linalg.det",
    "solve": "wengert.numpy.linalg.solve",
    "svd": "wengert.numpy.linalg.svd",
    "cholesky": "wengert.numpy.linalg.cholesky",
    "cdist": "np.linalg.norm(x[:, None] - y, axis=-1)",
    "vmap": "wengert.vmap",
    "grad": "wengert.grad",
    "lax": _LOOPS,
}
KEYWORDS = {"dim": "axis", "keepdim": "keepdims", "dims": "axis", "unbiased": "ddof"}


def missing(what: str, name: str, table: Mapping[str, str]) -> AttributeError:
    """The error for a missing name, with the name in wengert if it is known."""
    ours = table.get(name)
    if ours is None:
        return AttributeError(f"{what} has no attribute {name!r}")
    return AttributeError(
        f"{what} has no attribute {name!r}. The equivalent in wengert is {ours}{at(user_line())}."
    )


class Foreign:
    """A class attribute that raises an error with the name in wengert.

    Parameters
    ----------
    name : str
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Array, owner: type) -> NoReturn:
        raise missing(f"a {owner.__name__}", self._name, TENSOR)
