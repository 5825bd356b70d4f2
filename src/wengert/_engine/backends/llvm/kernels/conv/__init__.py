"""Convolution, pooling and recursive filters.

conv1d_full       full convolution of two sequences
conv_nd           convolution in any number of axes
im2col            windows of images as columns of a matrix, and the adjoint
conv_im2col       convolution of channels by matrix products
depthwise_conv    convolution of each channel separately
pooling           sums and maxima of windows
recursive_filter  recursive (IIR) filters
"""
