"""Convolution and pooling.

direct_convolution    convolution of two sequences, along any number of axes, and of each channel
                      separately
im2col                windows of images as columns of a matrix, and the adjoint
conv_im2col           convolution of channels by matrix products
pooling               sums and maxima of windows
"""
