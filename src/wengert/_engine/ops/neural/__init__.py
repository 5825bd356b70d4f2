"""Operations of neural networks: convolution, pooling, softmax.

convolution      sums of products of channels with kernels that are moved over them
pooling          the sum or the largest element of windows that are moved over an array
sliding_windows  the places that a kernel of a convolution, or a window of a pooling, stands on
softmax          Softmax and its logarithm: each one operation, for the sake of digits and of speed
"""

from . import softmax

__all__ = [
    "softmax",
]
