"""Data: datasets, how they are read and changed, and the loader that hands them out in batches.

collate           a batch of a list of items
dataset           Dataset, ArrayDataset, TensorDataset
encoders          OneHot, MinMax, Standard: learnt from data, and back
loader            DataLoader; samplers.py in which order, collating.py what a batch is
prefetch          batches ahead of time, by a thread; workers.py by other processes
rng_state         generators and their states
samplers          in which order, and how often, the items of a pass come
subsets           Subset, ConcatDataset, MapDataset, filtered, random_split
transforms        pictures and arrays, changed, also at random
worker_processes  batches made by other processes
readers/          Readers of file formats: CIFAR, IDX, images, text
"""

from typing import TYPE_CHECKING

from wengert._engine.core.lazy_import import late_names, public_dir

from . import encoders as encoders
from . import transforms as transforms
from .collate import pad_items, stack_items
from .dataset import ArrayDataset, Dataset, TensorDataset
from .loader import DataLoader
from .samplers import (
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from .subsets import ConcatDataset, MapDataset, Subset, filtered, random_split

if TYPE_CHECKING:
    from .readers.array_sources import from_bunch, from_frame, from_npz
    from .readers.cifar import CIFAR10, CIFAR100, read_cifar
    from .readers.idx import MNIST, read_idx
    from .readers.images import ImageFolder, read_image
    from .readers.text import TextLines

__all__ = [
    "ArrayDataset",
    "CIFAR10",
    "CIFAR100",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "ImageFolder",
    "MNIST",
    "MapDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "TextLines",
    "WeightedRandomSampler",
    "encoders",
    "filtered",
    "from_bunch",
    "from_frame",
    "from_npz",
    "pad_items",
    "random_split",
    "read_cifar",
    "read_idx",
    "read_image",
    "stack_items",
    "transforms",
]

__getattr__ = late_names(
    __name__,
    {
        **dict.fromkeys(("CIFAR10", "CIFAR100", "read_cifar"), ".readers.cifar"),
        **dict.fromkeys(("MNIST", "read_idx"), ".readers.idx"),
        **dict.fromkeys(("ImageFolder", "read_image"), ".readers.images"),
        **dict.fromkeys(("from_bunch", "from_frame", "from_npz"), ".readers.array_sources"),
        "TextLines": ".readers.text",
    },
)

__dir__ = public_dir(__name__)
