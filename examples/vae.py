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

LEVELS, LATENT, BATCH = 16, 12, 64
gammaln = wg.scipy.special.gammaln


def log_probability(counts, a, b):
    """The beta-binomial log-probability of each count."""
    choose = gammaln(LEVELS + 1.0) - gammaln(counts + 1.0) - gammaln(LEVELS - counts + 1.0)
    beta = gammaln(counts + a) + gammaln(LEVELS - counts + b) - gammaln(LEVELS + a + b)
    return choose + beta - gammaln(a) - gammaln(b) + gammaln(a + b)


class AutoEncoder(nn.Module):
    """An encoder to mean and log deviation, a decoder to two positive numbers per pixel."""

    def __init__(self, rng, width=256):
        self.encoder = nn.Sequential(
            nn.Linear(64, width, rng=rng), nn.GELU(),
            nn.Linear(width, width, rng=rng), nn.GELU(),
            nn.Linear(width, 2 * LATENT, rng=rng),
        )  # fmt: skip
        self.decoder = nn.Sequential(
            nn.Linear(LATENT, width, rng=rng), nn.GELU(),
            nn.Linear(width, width, rng=rng), nn.GELU(),
            nn.Linear(width, 128, rng=rng),
        )  # fmt: skip

    def decode(self, z):
        """The parameters of the beta-binomial distributions."""
        share, weight = np.split(self.decoder(z), 2, axis=-1)
        share, weight = nn.functional.sigmoid(share), np.exp(weight + 1.5)
        return share * weight + 1e-3, (1.0 - share) * weight + 1e-3

    def log_weights(self, counts, noise):
        """log p(counts, z) - log q(z | counts) at the z drawn with `noise`, and the bound."""
        mean, log_deviation = np.split(self.encoder(counts / 8.0 - 1.0), 2, axis=-1)
        z = mean + np.exp(log_deviation) * noise
        a, b = self.decode(z)
        likelihood = np.sum(log_probability(counts, a, b), -1)
        prior = np.sum(0.5 * noise**2 - 0.5 * z**2 + log_deviation, -1)
        divergence = 0.5 * np.sum(mean**2 + np.exp(2 * log_deviation) - 1 - 2 * log_deviation, -1)
        return likelihood + prior, likelihood - divergence


def train(model, counts, epochs, rng):
    """Maximize the bound with Adam."""
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
        step(batch, rng.normal(size=(BATCH, LATENT)))


def bounds(model, counts, draws, rng):
    """The mean bound with the exact divergence, and the one from many samples, in nats."""
    evaluate = wg.jit(model.log_weights)
    results = [evaluate(counts, rng.normal(size=(len(counts), LATENT))) for _ in range(draws)]
    weights, single = (np.array(x) for x in zip(*results, strict=True))
    return single.mean(), np.mean(logsumexp(weights, axis=0) - np.log(draws))


def histograms(counts, test, smooth=0.5):
    """Log-probabilities of held-out images with independent pixels."""
    table = np.array([np.sum(counts == n, axis=0) + smooth for n in range(LEVELS + 1)])
    table = np.log(table / table.sum(axis=0))
    return table[test.astype(int), np.arange(64)].sum(axis=1)


def picture(model, test, rng, path):
    mean = model.encoder(test[:10] / 8.0 - 1.0).numpy()[:, :LATENT]
    rows = [test[:10]]
    for z in (mean, rng.normal(size=(10, LATENT)), rng.normal(size=(10, LATENT))):
        a, b = (x.numpy() for x in model.decode(wg.tensor(z)))
        rows.append(LEVELS * a / (a + b))
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    for axes, image in zip(figure.subplots(4, 10).ravel(), np.concatenate(rows), strict=True):
        axes.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=LEVELS)
        axes.axis("off")
    figure.suptitle("held-out images; reconstructions; samples")
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=150)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    counts, label = load_digits(return_X_y=True)
    train_counts, test, train_label, _ = train_test_split(
        counts, label, test_size=0.25, random_state=options.seed, stratify=label
    )
    rng = np.random.default_rng(options.seed)
    model = AutoEncoder(rng)
    begin = time.perf_counter()
    train(model, train_counts, options.epochs, rng)
    seconds = time.perf_counter() - begin

    independent = histograms(train_counts, test).mean()
    components = [histograms(train_counts[train_label == n], test) for n in range(10)]
    mixture = np.mean(logsumexp(components, axis=0) - np.log(10))
    with wg.no_grad():
        bound, tighter = bounds(model, test, options.draws, rng)
        picture(model, test, rng, options.out / "vae.png")
    size = sum(p.size for p in model.parameters())
    print(f"{len(train_counts)} training images, {len(test)} held out; {size:,} weights")
    print(f"trained in {seconds:.0f} s; nats per held-out image:")
    print(f"  independent pixels       {independent:9.2f}")
    print(f"  mixture of ten           {mixture:9.2f}")
    print(f"  autoencoder, at least    {bound:9.2f}")
    print(f"  {options.draws} samples, at least   {tighter:9.2f}")
    print(f"wrote {options.out / 'vae.png'}")
    if bound < max(independent, mixture):
        sys.exit("the bound of the autoencoder is below a baseline")


if __name__ == "__main__":
    main()
