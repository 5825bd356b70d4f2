"""Train a small network that classifies points on two spirals.

Writes the weights, the graph and pictures of the graph; takes a few seconds and needs no other
packages.  Fails if the accuracy is too low after the default number of epochs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import wengert as wg
from wengert import nn, optim
from wengert._engine import visualization as show
from wengert._engine.core.recording import no_grad

from ..errors import ArgumentError

POINTS = 400


def run(options: Any) -> bool:
    """Train and write files; return False if the accuracy is too low."""
    if options.epochs < 1:
        raise ArgumentError(f"--epochs must be at least 1, got {options.epochs}.")
    rng = np.random.default_rng(options.seed)
    points, label = spirals(rng)
    model = nn.Sequential(
        nn.Linear(2, 32, rng=rng), nn.Tanh(), nn.Linear(32, 32, rng=rng), nn.Tanh(),
        nn.Linear(32, 2, rng=rng),
    )  # fmt: skip
    history = nn.fit(
        model, (points, label), nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=0.01),
        epochs=options.epochs, metrics="accuracy", batch_size=50, rng=rng,
    )  # fmt: skip
    with no_grad():
        accuracy = float(np.mean(model(points).numpy().argmax(axis=1) == label))
    options.out.mkdir(parents=True, exist_ok=True)
    loss: Any = nn.CrossEntropyLoss()(model(points[:4]), label[:4])
    names: Any = model
    nn.save_safetensors(model, options.out / "weights.safetensors")
    show.to_svg(loss, options.out / "graph.svg", names=names)
    show.explore(loss, options.out / "graph.html", names=names)
    wg.save(wg.trace(model)(points[:1]), options.out / "model.wengert")
    print(show.table(loss, names=names, values=False))
    print(f"loss of the last epoch  {history['loss'][-1]:.4f}")
    print(f"classified correctly    {100 * accuracy:.1f} % of {len(label)} points")
    for name in ("weights.safetensors", "model.wengert", "graph.svg", "graph.html"):
        print(f"wrote                   {options.out / name}")
    return accuracy > 0.9 or options.epochs < 60


def spirals(rng: np.random.Generator) -> tuple[Any, Any]:
    """Points on two spirals, and the index of the spiral of each."""
    label = np.arange(POINTS) % 2
    turn = rng.uniform(0.25, 1.0, POINTS)
    angle = 2 * np.pi * turn + np.pi * label
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return turn[:, None] * circle + 0.01 * rng.normal(size=(POINTS, 2)), label
