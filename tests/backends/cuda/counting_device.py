"""Emulated devices that count launches of kernels and copies, or keep the kernels themselves.

Counting    the device that counts
counts      the counts of one call of a compiled function
Recording   the device that keeps the kernels that it has loaded
"""

from typing import NamedTuple

import wengert as wg
from wengert._engine.backends.cuda import EmulatedDevice
from wengert._engine.backends.cuda.current_device import using


class Counts(NamedTuple):
    """How often kernels are launched, the host waits for a value, and arrays are uploaded."""

    launches: int
    waits: int
    uploads: int


class Counting(EmulatedDevice):
    """A device that counts."""

    def __init__(self, threads=7, seed=0):
        super().__init__(threads, seed)
        self.reset()

    def reset(self):
        self.launches = self.waits = self.uploads = 0

    @property
    def counts(self):
        return Counts(self.launches, self.waits, self.uploads)

    def load(self, kernels):
        return [self._counted(launch) for launch in super().load(kernels)]

    def _counted(self, launch):
        def counted(*args, **options):
            self.launches += 1
            return launch(*args, **options)

        return counted

    def get(self, x):
        self.waits += 1
        return super().get(x)

    def put(self, x):
        self.uploads += not self.owns(x)
        return super().put(x)


def counts(function, *args, warm=True):
    """The counts of one call; after a first one if `warm`."""
    run = wg.jit(function, backend="cuda")
    with using(Counting()) as device:
        if warm:
            run(*args)
        device.reset()
        run(*args)
        return device.counts


class Recording(EmulatedDevice):
    """A device that keeps the kernels that it has loaded, those of single operations included."""

    def __init__(self):
        super().__init__()
        self.kernels = []

    def load(self, kernels):
        self.kernels += kernels
        return super().load(kernels)
