"""Small models and data for the tests of training, with all kinds of state."""

import numpy as np

import wengert as wg
from wengert import nn, optim
from wengert.data import DataLoader, TensorDataset
from wengert.data.transforms import GaussianNoise


def points(count=50, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 4))
    return x, (x.sum(axis=1) > 0).astype(np.int64)


class Net(nn.Module):
    """Layers with parameters, and a stream of random numbers."""

    def __init__(self, seed=0, dtype="float64"):
        rng = np.random.default_rng(seed)
        self.first = nn.Linear(4, 8, rng=rng, dtype=dtype)
        self.last = nn.Linear(8, 2, rng=rng, dtype=dtype)
        self.drop = nn.Dropout(0.25, wg.random.Stream(seed))
        self.unused = nn.Linear(2, 2, rng=rng, dtype=dtype)  # never gets a gradient

    def forward(self, x):
        return self.last(self.drop(np.tanh(self.first(x))))


def loader(seed=0, **options):
    """Shuffled batches of points, with noise from the seed."""
    data = TensorDataset(*points()).map(GaussianNoise(0.1), field=0)
    return DataLoader(data, 8, shuffle=True, rng=seed, **options)


def training(model, epochs, **options):
    """A training run with everything that could differ between runs."""
    given = {"loss": nn.CrossEntropyLoss(), "progress": False, "compile": False}
    given |= {"data": loader(), "validation": points(20, 1), "metrics": "accuracy"}
    given["optimizer"] = optim.Adam(model.parameters(), lr=0.02)
    return nn.fit(model, epochs=epochs, **{**given, **options})


def values(model):
    return {name: np.array(p.numpy()) for name, p in model.named_parameters()}


def same(a, b):
    """Whether two states are bitwise equal."""
    return a.keys() == b.keys() and all(a[n].tobytes() == b[n].tobytes() for n in a)


def course(history):
    """A history without the figures that differ between runs."""
    told = history.to_dict()
    return told["steps"], [{k: v for k, v in e.items() if k != "seconds"} for e in told["epochs"]]
