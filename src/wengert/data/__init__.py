"""Datasets, transforms, and the loader that makes batches.

dataset        Dataset, Subset, MapDataset, filtered
array_dataset  ArrayDataset, TensorDataset
concat_split   ConcatDataset, random_split
loader         DataLoader; make batches in a background thread
samplers       order of the items in an epoch
collate        combine a list of items into a batch
rng_state      random generators and their states
transforms     transforms of images and arrays, also random ones
encoders       OneHot, MinMax, Standard: fitted to data, invertible
synthetic/     synthetic data sets: moons, blobs, regression ...
readers/       readers of file formats: CIFAR, IDX
"""

from typing import TYPE_CHECKING

from wengert._engine.core.lazy_import import lazy_names, public_dir

from . import encoders as encoders
from . import synthetic as synthetic
from . import transforms as transforms
from .array_dataset import ArrayDataset, TensorDataset
from .collate import pad_items, stack_items
from .concat_split import ConcatDataset, random_split
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
    from .readers.cifar import CIFAR10, CIFAR100, read_cifar
    from .readers.idx import MNIST, read_idx

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

__getattr__ = lazy_names(
    __name__,
    {
        **dict.fromkeys(("CIFAR10", "CIFAR100", "read_cifar"), ".readers.cifar"),
        **dict.fromkeys(("MNIST", "read_idx"), ".readers.idx"),
    },
)

__dir__ = public_dir(__name__)
