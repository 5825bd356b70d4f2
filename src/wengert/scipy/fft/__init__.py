"""The functions of scipy.fft, for arrays and tensors.

fourier_and_hankel  fft, ifft, rfft ... in one and several dimensions; fht, ifht
dct_dst        dct, idct, dst, idst, dctn ...; cosine and sine transforms as Fourier transforms, for
               native code

Functions without differentiable arguments (next_fast_len, workers) are those of SciPy.
"""

# ruff: noqa: F403  (the `__all__` of each module says what is exported)

from scipy.fft import get_workers as get_workers
from scipy.fft import next_fast_len as next_fast_len
from scipy.fft import prev_fast_len as prev_fast_len
from scipy.fft import set_workers as set_workers

from wengert._engine.core.lazy_import import exported, public_dir

from .dct_dst import *
from .fourier_and_hankel import *

_MODULES = "dct_dst fourier_and_hankel"
globals()["__all__"] = sorted(
    [
        *exported(__name__, _MODULES),
        *["get_workers", "next_fast_len", "prev_fast_len", "set_workers"],
    ]
)

__dir__ = public_dir(__name__)
