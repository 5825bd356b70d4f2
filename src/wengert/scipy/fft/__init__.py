"""scipy.fft, for arrays and tensors.

fft_functions  fft, ifft, rfft ... in one and several dimensions
dct_dst        dct, idct, dst, idst, dctn ...
dct_by_fft     cosine and sine transforms as Fourier transforms, for native code
fast_hankel    fht, ifht

Functions without a differentiable argument (next_fast_len, workers) are SciPy's own.
"""

from scipy.fft import get_workers, next_fast_len, prev_fast_len, set_workers

from wengert._engine.core.lazy_import import public_dir

from .dct_dst import dct, dctn, dst, dstn, idct, idctn, idst, idstn
from .fast_hankel import fht, fhtoffset, ifht
from .fft_functions import (
    fft,
    fft2,
    fftfreq,
    fftn,
    fftshift,
    hfft,
    hfft2,
    hfftn,
    ifft,
    ifft2,
    ifftn,
    ifftshift,
    ihfft,
    ihfft2,
    ihfftn,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftfreq,
    rfftn,
)

__all__ = [
    "dct",
    "dctn",
    "dst",
    "dstn",
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "fht",
    "fhtoffset",
    "get_workers",
    "hfft",
    "hfft2",
    "hfftn",
    "idct",
    "idctn",
    "idst",
    "idstn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ifht",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "next_fast_len",
    "prev_fast_len",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
    "set_workers",
]

__dir__ = public_dir(__name__)
