"""NumPy's names for ``import wengert.compat.autograd.numpy as np``.

numpy_wrapper.py  functions that autograd changes or adds
linalg.py         linalg, with autograd's derivative of eigenvalues
fft.py            those of wengert.numpy; autograd's refusals in strict mode
random            NumPy's own
numpy_boxes.py    ArrayBox
numpy_vjps.py     helpers for rules: unbroadcast, unbroadcast_f

All other names are those of `wengert.numpy`.  ``import numpy as np`` works too: NumPy's functions
dispatch to wengert.
"""

import sys
from typing import Any

from .... import numpy as _ours
from . import fft as fft
from . import linalg as linalg
from . import numpy_boxes as numpy_boxes
from . import numpy_vjps as numpy_vjps
from . import numpy_wrapper
from .numpy_wrapper import *  # noqa: F403

# For `from wengert.compat.autograd.numpy import *`.
globals()["__all__"] = sorted({*_ours.__all__, *numpy_wrapper.__all__, "fft", "linalg"})

# For `import wengert.compat.autograd.numpy.random as npr`.
sys.modules[f"{__name__}.random"] = _ours.random


def __getattr__(name: str) -> Any:
    return getattr(_ours, name)


def __dir__() -> list[str]:
    return sorted({*dir(_ours), *globals()["__all__"]})
