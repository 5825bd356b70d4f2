"""The workloads of benchmarks/convolution.py; what they are made of is in benchmarks/native.

layers     convolutions of twelve shapes: the value, and the value with its two gradients
pooling    largest elements and means of windows, and their gradients
network    a training step of a network of two convolutions on 64 pictures of 28 x 28
"""
