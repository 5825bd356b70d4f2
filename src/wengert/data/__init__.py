"""Data: datasets and the loader that hands them out in batches.

dataset.py   Dataset, TensorDataset
loader.py    DataLoader
"""

from .dataset import Dataset, TensorDataset
from .loader import DataLoader

__all__ = ["DataLoader", "Dataset", "TensorDataset"]
