"""Arrays that eager operations treat differently: those of a device, and large ones.

Arrays in the memory of a device, as operands and as values of nodes.

    is_on_device        whether an object is such an array
    is_numeric_array    whether it is one of numbers, on a device or of NumPy
    device_spec         its shape and dtype
    host_values         its values, as a NumPy array
    refuse_on_device    the error where an array of the host is needed
    DeviceValue         the state of such a node
    DeviceValues        that of a node with several values
    device_value        that of a node, or None
    node_on_device      a node like another one, with a value on a device
    with_value          a node with a value that may be on a device
    values_together     the value of a node with several results
    MemoryInfo          the memory of a device in numbers
    megabytes           a number of bytes as text

CuPy's arrays have both, and tensors of PyTorch and arrays of JAX that are on a graphics card. They
are arguments and results of functions compiled with ``backend="cuda"`` (backends/cuda).

https://nvidia.github.io/numba-cuda/user/cuda_array_interface.html
https://dmlc.github.io/dlpack/latest/python_spec.html

The results of a function compiled for a device are tensors without a copy on the host, and so are
the variables that it has updated. `Node.value` is the empty slot of `node.py`, which reads the
state of the node: here a `DeviceValue`.

Large arrays: eager operations on them that run as native code.

NumPy computes an operation of several steps in as many passes over memory, and some functions of
the math library without SIMD instructions.  For large arrays that is most of the time of an eager
derivative, so a higher layer (backends/large_array_kernels.py) compiles such operations, one
kernel for each, at their first use.

NumPy's results are large, too: pages that the system has to map and clear cost several times the
operation that fills them, and the C library returns freed memory to the system when some such
arrays are freed together, as at the end of a derivative.  So they are in recycled memory.

    LEAST_ELEMENTS  NumPy always computes arrays with fewer elements; the tuned thresholds are in
                    backends/llvm/tuning.py, `native_elements` and `native_rule_elements`
    KERNELS         the full name of the module that compiles, set by wengert/__init__.py
    is_large        whether a value is such an array
    run_of          the function that computes the values of an operation
    kept_with_value  its value with the fingerprints of plain arrays, in one pass
    recycling       calls a function whose new arrays are in recycled memory
    load_fingerprints  makes native code take the fingerprints of plain arrays
    kernels         that module
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from wengert.errors import ConversionError, DtypeError, at, user_line

from .node import NO_PARAMS, Fingerprints, Node, reconstruct_values
from .node_properties import NodeInfo
from .spec import Spec, spec_of

if TYPE_CHECKING:
    from .op import Op

_INTERFACE, _DLPACK = "__cuda_array_interface__", "__dlpack_device__"
_CUDA, _MANAGED = 2, 13  # kinds of devices of DLPack


def is_on_device(x: Any) -> bool:
    """Whether an object is an array in the memory of a device."""
    cls = type(x)
    if isinstance(x, np.ndarray | np.generic):
        return False
    if hasattr(cls, _INTERFACE):
        try:
            return getattr(x, _INTERFACE, None) is not None  # PyTorch's tensors on the host: None
        except RuntimeError:  # PyTorch's tensors that require gradients, on the device
            return True
    if not hasattr(cls, _DLPACK) or cls.__module__.startswith("wengert"):
        return False
    return x.__dlpack_device__()[0] in (_CUDA, _MANAGED)


def is_numeric_array(x: Any) -> bool:
    """Whether an object is an array of numbers that a program may take, of NumPy or a device."""
    if type(x) is np.ndarray:
        return x.dtype.kind in "biufc" and x.dtype.isnative
    return is_on_device(x)


def device_spec(x: Any) -> Spec:
    """The shape and dtype of an array on a device.

    Raises
    ------
    ConversionError
        It is a tensor of PyTorch that requires a gradient.
    DtypeError
        Its elements are not numbers of NumPy's dtypes.
    """
    name = f"a {type(x).__name__} of {type(x).__module__.partition('.')[0]}"
    if hasattr(type(x), _INTERFACE):
        try:
            facts = getattr(x, _INTERFACE)
        except RuntimeError as error:
            raise ConversionError(
                f"{name} cannot be passed on: {str(error).rstrip('.')}. Pass x.detach()"
                f"{at(user_line())}."
            ) from error
        shape, text = facts["shape"], facts["typestr"]
    else:
        shape, text = x.shape, str(x.dtype).rpartition(".")[2]
    try:
        dtype = np.dtype(text)
    except TypeError:
        dtype = np.dtype("V")
    if dtype.kind not in "biufc":
        raise DtypeError(
            f"{name} has the dtype {getattr(x, 'dtype', text)}, which NumPy does not have. Convert "
            f"it, for example to float32{at(user_line())}."
        )
    return Spec(tuple(shape), dtype)


def host_values(x: Any) -> Any:
    """The values of an array on a device, copied to the host; anything else unchanged."""
    if type(x) is np.ndarray or not is_on_device(x):
        return x
    for name in ("get", "cpu"):
        copy = getattr(x, name, None)
        if copy is not None:
            return np.asarray(copy())[()]
    return np.asarray(x)[()]


def refuse_on_device(x: Any, what: str) -> None:
    """Raise an error if `x` is an array on a device; `what` names it.

    Raises
    ------
    ConversionError
        It is on a device.
    """
    if is_on_device(x):
        raise ConversionError(
            f"{what} is an array in the memory of a graphics card, where only compiled functions "
            "compute. Compile the outermost function, such as wengert.jit(wengert.grad(f), "
            f"backend='cuda'), or pass a copy on the host, wengert.device_get(x){at(user_line())}."
        )


AnyNode = TypeVar("AnyNode", bound=Node)


class DeviceValue:
    """The value of a node, in the memory of a device.

    Attributes
    ----------
    array : array
        On the device; nothing writes to it.
    device : object
        Its device.
    is_number : bool
        Whether a value without axes is a scalar of NumPy, and not an array.
    spec : Spec
    newer : None
        It is never overwritten; compare `array_states.ArrayState`.
    """

    __slots__ = ("_get", "_host", "array", "device", "is_number", "spec")

    newer = None

    def __init__(
        self,
        array: Any,
        device: Any,
        get: Callable[[Any], np.ndarray[Any, Any]],
        is_number: bool = True,
    ) -> None:
        """`get` copies an array to the host."""
        self.array, self.device, self._get, self.is_number = array, device, get, is_number
        self.spec = Spec(tuple(array.shape), array.dtype)
        self._host: Any = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the array."""
        return self.spec.dtype

    def read(self) -> Any:
        """A copy on the host, made at the first call; it is read-only."""
        if self._host is None:
            host = self._get(self.array)
            host.flags.writeable = False
            self._host = host[()] if self.is_number else host
        return self._host


class DeviceValues:
    """The values of a node with several results, some of them in the memory of a device.

    Attributes
    ----------
    values : tuple
        Of `DeviceValue`, and of values of the host.
    spec : tuple of Spec
    newer : None
    """

    __slots__ = ("spec", "values")

    newer = None

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = tuple(values)
        self.spec = tuple([x.spec if type(x) is DeviceValue else spec_of(x) for x in values])

    def read(self) -> tuple[Any, ...]:
        """Copies on the host."""
        return tuple([x.read() if type(x) is DeviceValue else x for x in self.values])


def device_value(node: Node) -> DeviceValue | None:
    """The state of a node whose value is on a device; None for other nodes."""
    state: Any = node.version
    return state if type(state) is DeviceValue else None


def node_on_device(like: Node, value: DeviceValue, info: NodeInfo | None) -> Node:
    """A leaf of the class and operation of another one, with a value on a device."""
    return with_value(type(like)(like.op, (), NO_PARAMS, None, info), value)


def with_value(node: AnyNode, value: Any) -> AnyNode:
    """A node made without a value, with one of the host or of a device."""
    if type(value) not in (DeviceValue, DeviceValues):
        node.value = value
        return node
    reconstruct_values()
    del node.value
    node.version = value
    return node


def values_together(values: Sequence[Any]) -> Any:
    """The value of a node with several results: `DeviceValues`, or a tuple if all are plain."""
    return DeviceValues(values) if DeviceValue in map(type, values) else tuple(values)


class MemoryInfo(NamedTuple):
    """The memory of a graphics card, in bytes.

    Attributes
    ----------
    used : int
        Of arrays of this process.
    reserved : int
        Of this process, including what is kept for new arrays.
    free : int
        Available to new arrays of any process.
    total : int
        Of the card.
    """

    used: int
    reserved: int
    free: int
    total: int


MemoryInfo.__module__ = "wengert.memory"


def megabytes(count: int) -> str:
    """A number of bytes as text."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


P = ParamSpec("P")
T = TypeVar("T")

LEAST_ELEMENTS = 1 << 14
KERNELS: list[str] = []


def run_of(op: Op) -> Callable[..., Any]:
    """The function to run for an operand of at least `LEAST_ELEMENTS` elements."""
    if not op.native or not KERNELS:
        return op.run
    return functools.partial(kernels().value_of_large, op)


def kept_with_value(op: Op, inputs: tuple[Any, ...], values: tuple[Any, ...]) -> Any:
    """The value of an operation of two large arrays, and its operands as they are kept; or None."""
    if len(values) != 2 or Fingerprints.native is None:
        return None
    return kernels().kept_with_value(op, inputs, values)


def is_large(x: object) -> bool:
    """Whether a value is an array of at least `LEAST_ELEMENTS` elements."""
    return type(x) is np.ndarray and x.size >= LEAST_ELEMENTS


def recycling(
    nodes: Iterable[Node], function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call a function; if a node has a large array, its new arrays are in recycled memory."""
    for node in nodes:
        x = node.value
        if type(x) is np.ndarray and x.size >= LEAST_ELEMENTS and KERNELS:
            called: Callable[..., T] = kernels().in_recycled_memory
            return called(function, *args, **kwargs)
    return function(*args, **kwargs)


def load_fingerprints() -> None:
    """Take fingerprints of plain arrays by native code (`node.Fingerprints`)."""
    if KERNELS:
        kernels().load_fingerprints()


@functools.cache
def kernels() -> Any:
    """The module that compiles kernels."""
    return import_module(KERNELS[0])


Fingerprints.load = load_fingerprints
