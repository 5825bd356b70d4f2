"""Data: datasets, how they are read and changed, and the loader that hands them out in batches.

dataset.py      Dataset, ArrayDataset, TensorDataset
views.py        Subset, ConcatDataset, MapDataset, filtered, random_split
loader.py       DataLoader; samplers.py in which order, collating.py what a batch is
prefetching.py  batches ahead of time, by a thread; workers.py by other processes
seeds.py        generators and their states
transforms.py   pictures and arrays, changed, also at random
encoders.py     OneHot, MinMax, Standard: learnt from data, and back
sources.py      from files of NumPy, data frames, scikit-learn's sets
reading.py      bytes of files that may be damaged
images.py       folders of pictures
idx.py          IDX files (MNIST); cifar.py CIFAR-10 and -100; text.py lines of text
"""

from typing import TYPE_CHECKING

from wengert._engine.core.lazy_import import late_names, public_dir

from . import encoders as encoders
from . import transforms as transforms
from .collating import pad_items, stack_items
from .dataset import ArrayDataset, Dataset, TensorDataset
from .loader import DataLoader
from .samplers import (
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from .views import ConcatDataset, MapDataset, Subset, filtered, random_split

if TYPE_CHECKING:
    from .cifar import CIFAR10, CIFAR100, read_cifar
    from .idx import MNIST, read_idx
    from .images import ImageFolder, read_image
    from .sources import from_bunch, from_frame, from_npz
    from .text import TextLines

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
        **dict.fromkeys(("CIFAR10", "CIFAR100", "read_cifar"), ".cifar"),
        **dict.fromkeys(("MNIST", "read_idx"), ".idx"),
        **dict.fromkeys(("ImageFolder", "read_image"), ".images"),
        **dict.fromkeys(("from_bunch", "from_frame", "from_npz"), ".sources"),
        "TextLines": ".text",
    },
)

__dir__ = public_dir(__name__)
