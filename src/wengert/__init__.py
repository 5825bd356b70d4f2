"""wengert differentiates NumPy programs exactly and shows the graph that it differentiates."""

from . import ops as _ops  # registers the operations  # noqa: F401
from . import numpy
from .autodiff.transforms import grad, jvp, linearize, stop_gradient, value_and_grad, vjp
from .core.recording import enable_grad, is_recording, no_grad
from .tensor import Tensor, tensor

__version__ = "0.1.0.dev0"
