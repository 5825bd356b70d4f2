"""NumPy's names for ``import wengert.compat.autograd.numpy as np``.

wengert.numpy   all functions, for arrays and tensors
linalg, fft     those of wengert.numpy
random          NumPy's own
numpy_boxes.py  ArrayBox

``import numpy as np`` works too: NumPy's functions dispatch to wengert.
"""

import sys
from typing import Any

from .... import numpy as _ours

# For `import wengert.compat.autograd.numpy.random as npr`.
for _name in ("linalg", "fft", "random"):
    sys.modules[f"{__name__}.{_name}"] = getattr(_ours, _name)


def __getattr__(name: str) -> Any:
    return getattr(_ours, name)


def __dir__() -> list[str]:
    return dir(_ours)
