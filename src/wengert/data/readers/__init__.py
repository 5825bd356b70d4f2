"""Readers of file formats: CIFAR and IDX.

cifar       CIFAR-10 and CIFAR-100, binary and Python versions
compressed  reading of possibly compressed files, and errors for damaged ones
idx         IDX files (MNIST)
"""
