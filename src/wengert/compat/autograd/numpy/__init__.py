"""NumPy's names for ``import wengert.compat.autograd.numpy as np``.

numpy_wrapper.py  functions that autograd changes or adds
linalg.py         linalg, with autograd's derivative of eigenvalues
fft               that of wengert.numpy
random            NumPy's own
numpy_boxes.py    ArrayBox
numpy_vjps.py     helpers for rules: unbroadcast, unbroadcast_f

All other names are those of `wengert.numpy`.  ``import numpy as np`` works too: NumPy's functions
dispatch to wengert.
"""

import sys
from typing import Any

from .... import numpy as _ours
from . import linalg as linalg
from . import numpy_boxes as numpy_boxes
from . import numpy_vjps as numpy_vjps
from . import numpy_wrapper
from .numpy_wrapper import *  # noqa: F403

# For `from wengert.compat.autograd.numpy import *`.
globals()["__all__"] = sorted({*_ours.__all__, *numpy_wrapper.__all__, "linalg"})

# For `import wengert.compat.autograd.numpy.random as npr`.
for _name in ("fft", "random"):
    sys.modules[f"{__name__}.{_name}"] = getattr(_ours, _name)


def __getattr__(name: str) -> Any:
    return getattr(_ours, name)


def __dir__() -> list[str]:
    return sorted({*dir(_ours), *globals()["__all__"]})
