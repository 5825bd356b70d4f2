"""Readers of file formats: CIFAR, IDX, images, text.

array_sources  NumPy's files, data frames, scikit-learn's datasets
cifar          CIFAR-10 and CIFAR-100, binary and Python versions
compressed     files that may be compressed, truncated or damaged
idx            IDX files (MNIST)
images         folders of images, one per class; the only module that imports Pillow
text           lines of text files, by number
"""
