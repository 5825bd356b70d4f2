"""Datasets that the tests of the loader send to other processes."""

import os
import time

import numpy as np

from wengert.data import Dataset


class Squares(Dataset):
    """Items (i, i * i), some of which may fail, kill or take long."""

    def __init__(self, count=20, fails=None, dies=None, slow=0.0):
        self.count, self.fails, self.dies, self.slow = count, fails, dies, slow

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if i == self.fails:
            raise KeyError(f"item {i} is not there")
        if i == self.dies:
            os._exit(7)
        if self.slow:
            time.sleep(self.slow)
        return np.array([i]), i * i


class Where(Dataset):
    """The process that each item was made in."""

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return os.getpid()


class Odd(Exception):
    """An exception that does not pickle."""

    def __init__(self, first, second):
        super().__init__(first + second)


class Unpicklable(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, i):
        raise Odd("no", " way")


class Large(Dataset):
    """Items much larger than a pipe holds."""

    def __len__(self):
        return 12

    def __getitem__(self, i):
        return np.full(300_000, i, np.float64)


class Noise(Dataset):
    """Items that are random by their seed."""

    random = True

    def __len__(self):
        return 11

    def __getitem__(self, i):
        return self.item(i, (0,))

    def item(self, i, seed):
        return i, np.random.default_rng(seed).normal()
