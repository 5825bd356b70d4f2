"""A variational autoencoder of handwritten digits.

Each of the 64 numbers of an image counts black pixels among 16 (E. Alpaydin and C. Kaynak, UCI,
1998; the 1,797 images that scikit-learn ships).  The model has 12 normal latent variables, and
given them each count is beta-binomial with parameters from a network,

    log p(counts) >= E_q[log p(counts | z)] - KL(q(z | counts) || N(0, 1))

(D. P. Kingma and M. Welling, "Auto-encoding variational Bayes", 2014).  The bound on held-out
images, and the tighter one from many samples (Y. Burda, R. Grosse and R. Salakhutdinov, 2016), in
nats, are compared with two models of known likelihood: independent histograms of the pixels, and a
mixture of ten such models, one for each digit.

    python examples/vae.py --epochs 150 --seed 0 --out out

Writes vae.png, with images, reconstructions and samples, to the folder `out`.  Fails unless
the bound is above both baselines.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.special import logsumexp
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import wengert as wg
from wengert import nn, optim
from wengert.optim import schedules

DOTS, HIDDEN, BATCH = 16, 12, 64
gammaln = wg.scipy.special.gammaln


def log_probability(counts, a, b):
    """Beta-binomial, of each number."""
    choose = gammaln(DOTS + 1.0) - gammaln(counts + 1.0) - gammaln(DOTS - counts + 1.0)
    seen = gammaln(counts + a) + gammaln(DOTS - counts + b) - gammaln(DOTS + a + b)
    return choose + seen - gammaln(a) - gammaln(b) + gammaln(a + b)


class AutoEncoder(nn.Module):
    """An encoder to mean and log deviation, a decoder to two positive numbers a dot."""

    def __init__(self, rng, width=256):
        self.encoder = nn.Sequential(
            nn.Linear(64, width, rng=rng), nn.GELU(),
            nn.Linear(width, width, rng=rng), nn.GELU(),
            nn.Linear(width, 2 * HIDDEN, rng=rng),
        )  # fmt: skip
        self.decoder = nn.Sequential(
            nn.Linear(HIDDEN, width, rng=rng), nn.GELU(),
            nn.Linear(width, width, rng=rng), nn.GELU(),
            nn.Linear(width, 128, rng=rng),
        )  # fmt: skip

    def decode(self, z):
        """The parameters of the beta-binomial distributions."""
        share, weight = np.split(self.decoder(z), 2, axis=-1)
        share, weight = nn.functional.sigmoid(share), np.exp(weight + 1.5)
        return share * weight + 1e-3, (1.0 - share) * weight + 1e-3

    def log_weights(self, counts, noise):
        """log p(counts, z) - log q(z | counts) at a z drawn by `noise`, and the bound."""
        mean, log_deviation = np.split(self.encoder(counts / 8.0 - 1.0), 2, axis=-1)
        z = mean + np.exp(log_deviation) * noise
        a, b = self.decode(z)
        likelihood = np.sum(log_probability(counts, a, b), -1)
        prior = np.sum(0.5 * noise**2 - 0.5 * z**2 + log_deviation, -1)
        divergence = 0.5 * np.sum(mean**2 + np.exp(2 * log_deviation) - 1 - 2 * log_deviation, -1)
        return likelihood + prior, likelihood - divergence


def train(model, counts, epochs, rng):
    """Adam on the bound, batch by batch."""
    steps = epochs * (len(counts) // BATCH)
    adam = optim.Adam(model.parameters(), lr=schedules.Cosine(2e-3, steps), weight_decay=1e-4)

    @wg.jit
    def step(batch, noise):
        adam.zero_grad()
        _, bound = model.log_weights(batch, noise)
        loss = -np.mean(bound)
        loss.backward()
        adam.step()
        return loss

    for _ in range(steps):
        batch = counts[rng.integers(0, len(counts), BATCH)]
        step(batch, rng.normal(size=(BATCH, HIDDEN)))


def bounds(model, counts, draws, rng):
    """The bound by one divergence, and the one by many draws, means in nats."""
    evaluate = wg.jit(model.log_weights)
    found = [evaluate(counts, rng.normal(size=(len(counts), HIDDEN))) for _ in range(draws)]
    weights, single = (np.array(x) for x in zip(*found, strict=True))
    return single.mean(), np.mean(logsumexp(weights, axis=0) - np.log(draws))


def histograms(counts, held, smooth=0.5):
    """Log-probabilities of held-out scans if every dot goes by itself."""
    table = np.array([np.sum(counts == n, axis=0) + smooth for n in range(DOTS + 1)])
    table = np.log(table / table.sum(axis=0))
    return table[held.astype(int), np.arange(64)].sum(axis=1)


def picture(model, held, rng, path):
    mean = model.encoder(held[:10] / 8.0 - 1.0).numpy()[:, :HIDDEN]
    rows = [held[:10]]
    for z in (mean, rng.normal(size=(10, HIDDEN)), rng.normal(size=(10, HIDDEN))):
        a, b = (x.numpy() for x in model.decode(wg.tensor(z)))
        rows.append(DOTS * a / (a + b))
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    for axes, scan in zip(figure.subplots(4, 10).ravel(), np.concatenate(rows), strict=True):
        axes.imshow(scan.reshape(8, 8), cmap="gray_r", vmin=0, vmax=DOTS)
        axes.axis("off")
    figure.suptitle("held-out scans; what the model makes of them; drawn at random")
    figure.savefig(path, dpi=120)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--epochs", type=int, default=150)
    options.add_argument("--draws", type=int, default=200)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", type=Path, default=Path("out"))
    given = options.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)

    counts, label = load_digits(return_X_y=True)
    seen, held, seen_label, _ = train_test_split(
        counts, label, test_size=0.25, random_state=given.seed, stratify=label
    )
    rng = np.random.default_rng(given.seed)
    model = AutoEncoder(rng)
    begin = time.perf_counter()
    train(model, seen, given.epochs, rng)
    took = time.perf_counter() - begin

    alone = histograms(seen, held).mean()
    each = [histograms(seen[seen_label == n], held) for n in range(10)]
    mixture = np.mean(logsumexp(each, axis=0) - np.log(10))
    with wg.no_grad():
        bound, closer = bounds(model, held, given.draws, rng)
        picture(model, held, rng, given.out / "vae.png")
    size = sum(p.size for p in model.parameters())
    print(f"{len(seen)} scans to learn from, {len(held)} held out; {size:,} weights, {took:.0f} s")
    print("nats of a held-out scan")
    print(f"  every dot by itself      {alone:9.2f}")
    print(f"  mixture of ten such      {mixture:9.2f}")
    print(f"  auto-encoder, at least   {bound:9.2f}")
    print(f"  by {given.draws} draws, at least  {closer:9.2f}")
    print(f"wrote {given.out / 'vae.png'}")
    if bound < max(alone, mixture):
        sys.exit("the bound of the auto-encoder is below a mixture's likelihood")


if __name__ == "__main__":
    main()
