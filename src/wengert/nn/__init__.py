"""Neural networks: modules, parameters, layers and losses, with PyTorch's names on NumPy arrays.

module          Module; functions called before and after `forward`
parameter       Parameter, Buffer; parameters, buffers and submodules of a module, found from its
                attributes
containers      Sequential, Parallel, Residual, lists and dicts
init            initial values of parameters; validation of sizes before parameters are allocated
state_dict      functional_call and stateful_call: a model as a function of its parameters; how
                modules are traced
model_summary   table of layers with shapes, parameters and operations
progress        a progress bar (import it from wengert.nn.progress)
safetensors_io  weights in safetensors files
functional/     the functions behind the layers
layers/         layers
training/       fit, evaluate, checkpoints, logs; imported at first use
"""

# ruff: noqa: F401, F403  (each module's `__all__` lists its exports)

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wengert._engine.core.lazy_import import exported, public_dir

from . import functional, init
from .containers import *
from .layers import *
from .module import *
from .parameter import *
from .state_dict import *

if TYPE_CHECKING:
    from .model_summary import summary as summary
    from .safetensors_io import load_safetensors as load_safetensors
    from .safetensors_io import save_safetensors as save_safetensors
    from .training.evaluation import evaluate as evaluate
    from .training.fit import fit as fit

_LATE = {
    "save_safetensors": ".safetensors_io",
    "load_safetensors": ".safetensors_io",
    "summary": ".model_summary",
}
_TRAINING = ("evaluate", "fit")

_MODULES = "containers layers module parameter state_dict"
globals()["__all__"] = [
    *("functional", "init", *_TRAINING, *_LATE),
    *exported(__name__, _MODULES),
]


def __getattr__(name: str) -> Any:
    if name in (*_TRAINING, "training"):
        training = import_module(".training", __name__)
        return training if name == "training" else getattr(training, name)
    if name in _LATE:
        return getattr(import_module(_LATE[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = public_dir(__name__, "training")
