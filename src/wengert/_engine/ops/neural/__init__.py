"""Operations of neural networks: convolution, pooling, softmax.

convolution      convolution of channels, and its adjoints
pooling          sums and maxima of windows
sliding_windows  positions of the windows of convolution and pooling
softmax          softmax and its logarithm
"""

from . import softmax

__all__ = [
    "softmax",
]
