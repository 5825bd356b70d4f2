"""Datasets for the tests of the loader."""

import numpy as np

from wengert.data import Dataset


class Squares(Dataset):
    """Items (i, i * i); one of them may raise an error."""

    def __init__(self, count=20, fails=None):
        self.count, self.fails = count, fails

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if i == self.fails:
            raise KeyError(f"item {i} is not there")
        return np.array([i]), i * i


class Noise(Dataset):
    """Random items that depend on their seed."""

    random = True

    def __len__(self):
        return 11

    def __getitem__(self, i):
        return self.item(i, (0,))

    def item(self, i, seed):
        return i, np.random.default_rng(seed).normal()
