"""A program that trains, and resumes where it was stopped.

    training_program.py FOLDER

It prints "begun" after the first step, and a digest of all results at the end.
"""

import hashlib
import sys

import numpy as np

import wengert as wg
from wengert import nn, optim
from wengert.data import DataLoader, TensorDataset
from wengert.data.transforms import GaussianNoise
from wengert.nn.training import Callback, Checkpoint


class Begun(Callback):
    def on_step_end(self, run):
        print("begun", run.step, flush=True)


def main(folder):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 6))
    data = TensorDataset(x, (x.sum(axis=1) > 0).astype(int)).map(GaussianNoise(0.1), field=0)
    model = nn.Sequential(
        nn.Linear(6, 8, rng=rng),
        nn.BatchNorm1d(8),
        nn.Dropout(0.2, wg.random.Stream(0)),
        nn.Linear(8, 2, rng=rng),
    )
    history = nn.fit(
        model,
        DataLoader(data, 4, shuffle=True, rng=1),
        nn.CrossEntropyLoss(),
        optim.Adam(model.parameters(), lr=0.01),
        epochs=12,
        callbacks=[Begun()],
        checkpoint=Checkpoint(folder, every_steps=5),
        resume=True,
        ema=0.9,
        progress=False,
        compile=False,
    )
    state = b"".join(v.tobytes() for v in model.state_dict().values())
    digest = hashlib.sha256(state + repr(history.steps).encode()).hexdigest()
    print("stopped", history.stopped, len(history), flush=True)
    print("digest", digest, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
