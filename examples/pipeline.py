"""Train a deep perceptron whose layers are on several processes.

The data are two interleaved spirals, made here.  Each process has the parameters of its layers and
their Adam moments only; the microbatches of a batch are in different processes at the same time.

    mpirun -n 2 python examples/pipeline.py
    python examples/pipeline.py --steps 50 --width 16    # one process, small

Fails if the accuracy is below 95 % (with the default number of steps), or if the loss of the first
batch differs from that of the whole model in one process.
"""

import argparse

import numpy as np

import wengert as wg
from wengert import distributed, nn, optim


def spirals(n, rng):
    """Points of two spirals, and which of the two they are on."""
    label = rng.integers(2, size=n)
    angle = 3.0 * np.pi * np.sqrt(rng.random(n))
    radius = angle / (3.0 * np.pi)
    turn = angle + np.pi * label
    points = np.stack([radius * np.cos(turn), radius * np.sin(turn)], axis=1)
    return 4.0 * points + 0.05 * rng.normal(size=(n, 2)), label


def make(width, depth, seed):
    """The whole model; the same in all processes, because the seed is."""
    rng = np.random.default_rng(seed)
    layers = [nn.Linear(2, width, rng=rng), nn.Tanh()]
    for _ in range(depth):
        layers += [nn.Linear(width, width, rng=rng), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(width, 2, rng=rng))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--width", type=int, default=48)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--microbatches", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    comm = distributed.world()
    rng = np.random.default_rng(options.seed)
    points, labels = spirals(512, rng)
    held_out = spirals(512, rng)
    loss = nn.CrossEntropyLoss()
    whole = make(options.width, options.depth, options.seed)
    with wg.no_grad():
        expected = float(loss(whole(points[:128]), labels[:128]))
    pipe = distributed.pipeline(
        whole, loss, microbatches=options.microbatches, example=wg.spec((128, 2))
    )
    del whole  # each process keeps the layers of its stage
    if comm.rank == 0:
        print(pipe)

    own = list(pipe.parameters())
    optimizer = optim.Adam(own, lr=0.005) if own else None  # a process may have no layers
    for step in range(options.steps):
        batch = rng.integers(len(points), size=128) if step else np.arange(128)
        if optimizer is not None:
            optimizer.zero_grad()
        value = pipe.backward(points[batch], labels[batch])
        if optimizer is not None:
            optimizer.step()
        if step == 0:
            assert abs(value - expected) < 1e-10, (value, expected)
        if comm.rank == 0 and (step + 1) % 100 == 0:
            print(f"step {step + 1:4d}  loss {value:.4f}")

    accuracy = np.mean(np.argmax(pipe(held_out[0]), axis=1) == held_out[1])
    count = sum(p.numpy().size for p in own)
    counts = comm.mpi.gather(count)
    if comm.rank == 0:
        print(f"parameters by process: {', '.join(f'{n:,}' for n in counts)}")
        print(f"accuracy on held-out points: {accuracy:.3f}")
    assert options.steps < 400 or accuracy > 0.95


if __name__ == "__main__":
    main()
