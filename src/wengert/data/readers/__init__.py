"""Readers of file formats: CIFAR and IDX.

cifar       CIFAR-10 and CIFAR-100, binary and Python versions
compressed  files that may be compressed, truncated or damaged
idx         IDX files (MNIST)
"""
