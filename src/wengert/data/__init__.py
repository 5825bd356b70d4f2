"""Datasets, transforms, and the loader that makes batches.

dataset        Dataset, Subset, MapDataset, filtered
array_concat_split  ArrayDataset, TensorDataset; ConcatDataset, random_split
loader         DataLoader; make batches in a background thread
samplers       order of the items in an epoch; random generators and their states
collate        combine a list of items into a batch
transforms     transforms of images and arrays, also random ones
encoders       OneHot, MinMax, Standard: fitted to data, invertible
synthetic/     synthetic data sets: moons, blobs, regression ...
readers        readers of file formats: CIFAR, IDX; imported at first use
"""

from typing import TYPE_CHECKING

from wengert._engine.core.lazy_import import lazy_names, public_dir

from . import encoders as encoders
from . import synthetic as synthetic
from . import transforms as transforms
from .array_concat_split import ArrayDataset, ConcatDataset, TensorDataset, random_split
from .collate import pad_items, stack_items
from .dataset import Dataset, MapDataset, Subset, filtered
from .loader import DataLoader
from .samplers import (
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

if TYPE_CHECKING:
    from .readers import CIFAR10, CIFAR100, MNIST, read_cifar, read_idx

__all__ = [
    "ArrayDataset",
    "CIFAR10",
    "CIFAR100",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "MNIST",
    "MapDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "encoders",
    "filtered",
    "pad_items",
    "random_split",
    "read_cifar",
    "read_idx",
    "stack_items",
    "synthetic",
    "transforms",
]

_LATE = ("CIFAR10", "CIFAR100", "MNIST", "read_cifar", "read_idx")
__getattr__ = lazy_names(__name__, dict.fromkeys(_LATE, ".readers"))

__dir__ = public_dir(__name__)
