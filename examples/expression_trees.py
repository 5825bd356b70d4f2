"""A tree-recursive network that evaluates logical expressions.

An expression is a tree: leaves are 0 or 1, inner nodes are `and`, `or`, `xor` of two subtrees.  The
network computes a vector for each node from those of its two children by a cell with parameters of
the operator, up to the root, whose vector gives the probability that the expression is true.  It is
trained on expressions with two to eight leaves, and tested on larger ones.

The network is written twice: as a recursive function of a nested tuple, which runs eagerly, and as
a loop over the nodes of a batch of trees in postorder, with plain assignments to an array, which is
compiled once for trees of all shapes.

    compared with  logistic regression on the numbers of symbols; the recursive function

    python examples/expression_trees.py --out out

Writes expression_trees.png to the folder `out`.  Fails unless more than 97 % of the larger
expressions are evaluated correctly, and both versions have the same gradients.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import wengert as wg
from wengert import nn, optim
from wengert.data import DataLoader

OPERATORS = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
NAMES = list(OPERATORS)
WIDTH, HIDDEN = 8, 16
SMALL, LARGE = range(2, 9), range(9, 17)  # numbers of leaves for training and testing


# ---- expressions -------------------------------------------------------------------------------


def random_tree(rng, leaves):
    """0 or 1, or (operator, left, right)."""
    if leaves == 1:
        return int(rng.integers(2))
    left = int(rng.integers(1, leaves))
    operator = int(rng.integers(len(NAMES)))
    return operator, random_tree(rng, left), random_tree(rng, leaves - left)


def value(tree):
    """Whether an expression is true."""
    if isinstance(tree, int):
        return tree
    operator, left, right = tree
    return int(OPERATORS[NAMES[operator]](value(left), value(right)))


def postorder(tree, nodes):
    """Append (symbol, left, right) of all nodes, children first; the position of the root."""
    if isinstance(tree, int):
        nodes.append((tree, 0, 0))
    else:
        operator, left, right = tree
        below = postorder(left, nodes), postorder(right, nodes)
        nodes.append((2 + operator, *below))
    return len(nodes) - 1


def encoded(trees):
    """Nodes, shape (trees, nodes, 3), the root of each tree, and its value.

    Shorter trees are padded with leaves after their root.
    """
    lists = []
    for tree in trees:
        lists.append([])
        postorder(tree, lists[-1])
    nodes = np.zeros((len(trees), max(map(len, lists)), 3), np.int64)
    for row, one in zip(nodes, lists, strict=True):
        row[: len(one)] = one
    roots = np.array([len(one) - 1 for one in lists])
    return nodes, roots, np.array([value(tree) for tree in trees], float)


# ---- the network -------------------------------------------------------------------------------


class TreeNetwork(nn.Module):
    """A vector for each leaf, a cell for inner nodes, a readout for the root."""

    def __init__(self, rng):
        self.leaves = nn.Parameter(rng.normal(size=(2, WIDTH)))
        spread = 1.0 / np.sqrt(2 * WIDTH)
        self.weight = nn.Parameter(spread * rng.normal(size=(len(NAMES), 2 * WIDTH, HIDDEN)))
        self.bias = nn.Parameter(np.zeros((len(NAMES), HIDDEN)))
        self.out = nn.Linear(HIDDEN, WIDTH, rng=rng)
        self.readout = nn.Linear(WIDTH, 1, rng=rng)

    def cell(self, operator, left, right):
        """The vectors of nodes, from their operators and the vectors of their children."""
        both = np.concatenate([left, right], axis=-1)
        inner = np.matmul(both[..., None, :], self.weight[operator])[..., 0, :]
        return np.tanh(self.out(np.tanh(inner + self.bias[operator])))

    def recursive(self, tree):
        """The vector of the root of a nested tuple."""
        if isinstance(tree, int):
            return self.leaves[tree]
        operator, left, right = tree
        return self.cell(operator, self.recursive(left), self.recursive(right))

    def forward(self, nodes, roots):
        """The logits of a batch of trees in postorder."""
        trees, size, _ = nodes.shape
        rows = np.arange(trees)
        states = np.zeros((trees, size, WIDTH), like=self.leaves)
        for i in range(size):
            symbol, left, right = nodes[:, i, 0], nodes[:, i, 1], nodes[:, i, 2]
            inner = self.cell(np.maximum(symbol - 2, 0), states[rows, left], states[rows, right])
            leaf = self.leaves[np.minimum(symbol, 1)]
            states[:, i] = np.where((symbol < 2)[:, None], leaf, inner)
        return self.readout(states[rows, roots])[:, 0]


def deviation(model, trees):
    """Of the gradients of the loop from those of the recursive function."""
    nodes, roots, _ = encoded(trees)

    def slopes(total):
        model.zero_grad()
        total().backward()
        return [p.grad.numpy().copy() for p in model.parameters()]

    by_loop = slopes(lambda: np.sum(np.sin(model(nodes, roots))))
    by_hand = slopes(
        lambda: sum(np.sum(np.sin(model.readout(model.recursive(tree)))) for tree in trees)
    )
    return max(np.max(np.abs(a - b)) for a, b in zip(by_loop, by_hand, strict=True))


# ---- training ----------------------------------------------------------------------------------


def fitted(model, train, epochs, rng):
    """Train a model; seconds of all steps after the first."""
    total = nn.BCEWithLogitsLoss()
    steps = epochs * -(-len(train[1]) // 64)
    rate = optim.schedules.Warmup(50, then=optim.schedules.Cosine(0.01, steps=steps))
    adam = optim.Adam(model.parameters(), lr=rate)

    @wg.jit
    def step(nodes, roots, truth):
        adam.zero_grad()
        loss = total(model(nodes, roots), truth)
        loss.backward()
        adam.step()
        return loss.detach()

    loader = DataLoader(train, batch_size=64, shuffle=True, rng=rng)
    start = None
    for epoch in range(epochs):
        losses = []
        for batch in loader:
            losses.append(float(step(*batch)))
            start = start or time.perf_counter()
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1:3d}  loss {np.mean(losses):.4f}")
    return time.perf_counter() - start, steps


def counts(nodes, roots):
    """The numbers of symbols of expressions, and ones."""
    used = np.arange(nodes.shape[1]) <= roots[:, None]
    kinds = [np.sum((nodes[:, :, 0] == k) & used, axis=1) for k in range(2 + len(NAMES))]
    return np.stack([*kinds, np.ones(len(roots))], axis=1).astype(float)


def logistic(train):
    """Coefficients of a logistic regression on the numbers of symbols."""
    x, truth = counts(*train[:2]), train[2]
    loss = nn.functional.binary_cross_entropy_with_logits
    return optim.minimize(lambda w: loss(x @ w, truth), np.zeros(x.shape[1])).x


def picture(path, network, baseline):
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    sizes = [*SMALL, *LARGE]
    axes.axvspan(SMALL[0] - 0.5, SMALL[-1] + 0.5, color="0.92", label="sizes of the training set")
    axes.plot(sizes, network, "o-", label="tree-recursive network")
    axes.plot(sizes, baseline, "s--", label="numbers of symbols")
    axes.set(
        xlabel="leaves of the expression", ylabel="share evaluated correctly", ylim=(0.4, 1.02)
    )
    axes.legend(loc="lower left")
    figure.savefig(path, dpi=80)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--trees", type=int, default=4000, help="of the training set")
    parser.add_argument("--at-least", type=float, default=0.97)
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(options.seed)
    train = encoded([random_tree(rng, int(rng.choice(SMALL))) for _ in range(options.trees)])
    tests = {n: encoded([random_tree(rng, n) for _ in range(300)]) for n in (*SMALL, *LARGE)}
    model = TreeNetwork(rng)
    off = deviation(model, [random_tree(rng, n) for n in (1, 2, 5, 12)])
    print(f"gradients of the loop and of the recursive function deviate by {off:.1e}")
    seconds, steps = fitted(model, train, options.epochs, rng)
    print(f"{1e3 * seconds / steps:.2f} ms per step of 64 trees")
    weights = logistic(train)
    logits = wg.jit(model)
    network, baseline = [], []
    for nodes, roots, truth in tests.values():
        network.append(np.mean((logits(nodes, roots) > 0) == truth))
        baseline.append(np.mean((counts(nodes, roots) @ weights > 0) == truth))
    larger = [float(np.mean(a[len(SMALL) :])) for a in (network, baseline)]
    print(f"accuracy for {LARGE[0]} to {LARGE[-1]} leaves: network {100 * larger[0]:.1f} %, "
          f"numbers of symbols {100 * larger[1]:.1f} %")  # fmt: skip
    picture(options.out / "expression_trees.png", network, baseline)
    print(f"wrote {options.out / 'expression_trees.png'}")
    if larger[0] < options.at_least or off > 1e-10:
        sys.exit("the network is worse than expected, or a gradient is wrong")


if __name__ == "__main__":
    main()
