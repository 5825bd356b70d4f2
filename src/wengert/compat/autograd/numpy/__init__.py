"""``import wengert.compat.autograd.numpy as np``: NumPy's names, for arrays and tensors.

    wengert.numpy     everything of it; plain arrays give plain arrays
    linalg, fft       those of wengert.numpy
    random            NumPy's own
    numpy_boxes.py    ArrayBox

``import numpy as np`` does as well: NumPy's own functions dispatch.
"""

import sys
from typing import Any

from .... import numpy as _ours

# So that `import wengert.compat.autograd.numpy.random as npr` finds them.
for _name in ("linalg", "fft", "random"):
    sys.modules[f"{__name__}.{_name}"] = getattr(_ours, _name)


def __getattr__(name: str) -> Any:
    return getattr(_ours, name)


def __dir__() -> list[str]:
    return dir(_ours)
