"""Readers of file formats: CIFAR, IDX, images, text.

array_sources  from files of NumPy, data frames, scikit-learn's sets
cifar          the files of CIFAR-10 and CIFAR-100, in the binary and the Python version
compressed     bytes of files that may be damaged
idx            IDX files (MNIST); cifar.py CIFAR-10 and -100; text.py lines of text
images         folders of pictures
text           the lines of files, by number
"""
