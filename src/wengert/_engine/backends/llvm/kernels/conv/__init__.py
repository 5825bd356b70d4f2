"""Convolution, pooling and recursive filters.

conv1d_full       products of sequences
conv_im2col       convolutions of channels, by products of matrices
conv_nd           the same of arrays of several axes
depthwise_conv    those of each channel by itself
im2col            windows of images as columns of matrices, and added up again
pooling           sums and largest elements of windows
recursive_filter  recursive filters
"""
