"""Train a small network on handwritten digits.

The data are the 1,797 images of 8 x 8 pixels that scikit-learn ships (E. Alpaydin and C. Kaynak,
"Optical Recognition of Handwritten Digits", UCI Machine Learning Repository, 1998).  A quarter is
held out.  All random numbers are determined by one seed.

    make demo
    python examples/digits.py --epochs 60 --seed 0 --out out
    python examples/digits.py --eager

The training step is compiled with the decorator `wg.jit`; with `--eager` the same code runs
uncompiled.

Files written to the folder `out`:

    digits.png   loss and accuracy during training, and all misclassified digits
    graph.svg    the computation graph of the loss
    graph.dot    the same for graphviz
    graph.txt    the same as text, with values
    graph.html   the loss and its gradient for batches of any size, and each step of their
                 simplification: an interactive page
    classifier.safetensors   the trained classifier as a graph with its parameters

Fails if the held-out accuracy is below 96 %, or if the saved classifier gives different
predictions after loading.
"""

import argparse
import copy
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from wengert.show.training import training_picture

import wengert as wg
from wengert import nn, optim, show
from wengert.data import DataLoader
from wengert.nn.progress import Progress


class Classifier(nn.Module):
    """A perceptron from 64 pixels to ten logits."""

    def __init__(self, rng, stream):
        self.body = nn.Sequential(
            nn.Linear(64, 128, rng=rng),
            nn.ReLU(),
            nn.Dropout(0.2, stream),
            nn.Linear(128, 64, rng=rng),
            nn.ReLU(),
            nn.Dropout(0.2, stream),
            nn.Linear(64, 10, rng=rng),
        )

    def forward(self, pixels):
        """Logits of a batch of pixels."""
        return self.body(pixels)


def load(seed):
    """Pixels from 0 to 1 and labels, stratified: 1,347 for training, 450 held out."""
    pixels, labels = load_digits(return_X_y=True)
    return train_test_split(
        pixels / 16.0, labels, test_size=450, random_state=seed, stratify=labels
    )


def check_gradient(model, loss_fn, pixels, labels, rng, entries=4, step=1e-6):
    """Compare `backward` with central differences of the loss; return the largest deviation."""
    model.eval()  # without dropout, so that the function is deterministic
    model.zero_grad()
    loss_fn(model(pixels), labels).backward()
    print("gradient of the loss, by backward and by central differences")
    print(f"  {'parameter':16} {'index':>10} {'backward':>15} {'differences':>15}")
    scale = max(np.abs(p.grad.numpy()).max() for p in model.parameters())
    worst = 0.0
    for name, p in model.named_parameters():
        for n in range(entries):
            index = tuple(int(rng.integers(length)) for length in p.shape)
            start, losses = p.numpy(), []
            for sign in (1.0, -1.0):
                moved = start.copy()
                moved[index] += sign * step
                p.data = moved
                losses.append(loss_fn(model(pixels), labels).item())
            p.data = start
            numeric = (losses[0] - losses[1]) / (2 * step)
            exact = p.grad[index].item()
            worst = max(worst, abs(exact - numeric) / scale)
            if n == 0:
                position = ",".join(map(str, index))
                print(f"  {name:16} {position:>10} {exact:15.9f} {numeric:15.9f}")
    count = entries * len(list(model.parameters()))
    print(f"  largest deviation of {count} entries: {worst:.1e} of the largest gradient\n")
    return worst


def predictions(model, pixels):
    """The predicted digits, in evaluation mode."""
    model.eval()
    with wg.no_grad():
        return model(pixels).numpy().argmax(axis=1)


def accuracy(model, pixels, labels):
    """The share of digits classified correctly, from 0 to 1."""
    return float(np.mean(predictions(model, pixels) == labels))


def training_step(model, loss_fn, optimizer, decorator=wg.jit):
    """A function that makes one step on one batch; `decorator` compiles it by default."""

    @decorator
    def step(pixels, labels):
        optimizer.zero_grad()
        loss = loss_fn(model(pixels), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


def uncompiled(function):
    """A decorator that replaces `wg.jit` in eager runs."""
    return function


def train(model, loss_fn, loader, held_out, epochs, decorator):
    """Train with Adam and a cosine schedule; return losses and held-out accuracies."""
    optimizer = optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-5)
    step = training_step(model, loss_fn, optimizer, decorator)
    total = epochs * len(loader)
    losses, accuracies = [], []
    with Progress(total, "training") as progress:
        for _ in range(epochs):
            model.train()
            for pixels, labels in loader:
                optimizer.lr = 1.5e-3 * (1.0 + np.cos(np.pi * len(losses) / total))
                losses.append(step(pixels, labels).item())
                progress.update(loss=float(np.mean(losses[-len(loader) :])))
            accuracies.append(accuracy(model, *held_out))
    return losses, accuracies


def times_of_a_step(model, loss_fn, loader):
    """Microseconds per step, eager and compiled, measured alternately after compilation."""
    steps, times = [], ([], [])
    for decorator in (uncompiled, wg.jit):
        own = copy.deepcopy(model).train()
        optimizer = optim.Adam(own.parameters(), lr=1e-3)
        steps.append(training_step(own, loss_fn, optimizer, decorator))
    pixels, labels = next(iter(loader))
    for _ in range(15):
        for step, found in zip(steps, times, strict=True):
            begin = time.perf_counter()
            for _ in range(20):
                step(pixels, labels)
            found.append((time.perf_counter() - begin) / 20 * 1e6)
    return [float(np.median(found)) for found in times]


def save_and_load(model, loss_fn, out, test_x):
    """Draw the graph of the loss and gradient; save, load and run the classifier."""
    model.eval()
    pixels = wg.input("pixels", ("batch", 64))
    labels = wg.input("labels", "batch", "int64")
    loss = loss_fn(model(pixels), labels)
    graph = wg.Graph(loss, wg.gradients(loss, list(model.parameters())))
    small = graph.simplify(history=True)
    show.explore(small, out / "graph.html", history=small.history, title="digit classifier")
    print(f"\nthe loss and its gradient are {len(graph)} nodes, simplified {len(small)}")

    wg.save(wg.trace(model)(wg.spec(("batch", 64))), out / "classifier.safetensors")
    classifier = wg.load(out / "classifier.safetensors")
    return classifier(test_x).argmax(axis=1)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Classify handwritten digits.")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--at-least", type=float, default=0.96, help="required held-out accuracy")
    parser.add_argument("--eager", action="store_true", help="do not compile the training step")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()

    rng = np.random.default_rng(options.seed)
    train_x, test_x, train_y, test_y = load(options.seed)
    model, loss_fn = Classifier(rng, wg.random.Stream(options.seed)), nn.CrossEntropyLoss()
    loader = DataLoader((train_x, train_y), batch_size=32, shuffle=True, rng=rng)
    count = sum(p.size for p in model.parameters())
    print(f"{len(train_x)} training digits, {len(test_x)} held out, seed {options.seed}")
    print(f"{model}\n{count} parameters\n")

    worst = check_gradient(model, loss_fn, train_x[:64], train_y[:64], rng)
    held_out = test_x, test_y
    decorator = uncompiled if options.eager else wg.jit
    losses, accuracies = train(model, loss_fn, loader, held_out, options.epochs, decorator)

    predicted = predictions(model, test_x)
    wrong = np.flatnonzero(predicted != test_y)
    share = 1.0 - len(wrong) / len(test_y)
    training_picture(
        losses,
        accuracies,
        test_x[wrong].reshape(-1, 8, 8),
        predicted[wrong],
        test_y[wrong],
        path=options.out / "digits.png",
        title=f"Handwritten digits: {100 * share:.1f} % of {len(test_y)} held-out images correct",
    )
    pixels = wg.tensor(train_x[:32])
    loss = loss_fn(model(pixels), train_y[:32])
    names = {"pixels": pixels, **dict(model.named_parameters())}
    title = "The graph of the loss of one batch"
    show.to_svg(loss, options.out / "graph.svg", names=names, title=title)
    (options.out / "graph.dot").write_text(show.to_dot(loss, names), encoding="utf-8")
    (options.out / "graph.txt").write_text(show.table(loss, names) + "\n", encoding="utf-8")

    again = save_and_load(model, loss_fn, options.out, test_x)
    eager, compiled = times_of_a_step(model, loss_fn, loader)

    print(f"\nloss of the last epoch     {np.mean(losses[-len(loader) :]):.5f}")
    print(f"training accuracy          {100 * accuracy(model, train_x, train_y):.2f} %")
    print(f"accuracy held out          {100 * share:.2f} %  ({len(wrong)} of {len(test_y)} wrong)")
    print(f"microseconds per step      {eager:.0f} eager, {compiled:.0f} compiled")
    print(f"seconds                    {time.perf_counter() - begin:.1f}")
    files = "digits.png graph.svg graph.dot graph.txt graph.html classifier.safetensors"
    for name in files.split():
        print(f"wrote {options.out / name}")
    if np.any(again != predicted):
        print("the loaded classifier gives different predictions", file=sys.stderr)
        return 1
    if worst > 1e-6:
        print("the gradient does not agree with central differences", file=sys.stderr)
        return 1
    if share < options.at_least:
        print(f"held-out accuracy is below {100 * options.at_least:.0f} %", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
