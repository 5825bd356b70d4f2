"""A class-conditional diffusion model of handwritten digits.

Noise is added to images of 8 x 8 pixels (E. Alpaydin and C. Kaynak, UCI, 1998; shipped with
scikit-learn) in 150 steps, and a network learns to predict the noise from the noisy image, the step
and the digit.  Run in reverse, it generates images of any digit (J. Ho, A. Jain and P. Abbeel,
"Denoising diffusion probabilistic models", 2020; the schedule is that of A. Nichol and P. Dhariwal,
2021).  Training and sampling are compiled; averaged weights are used (`optim.EMA`).

A classifier trained on the same images evaluates 2,000 samples: how many are classified as
requested, and the distance of its 64 features from those of held-out images (Frechet distance of
normal distributions; M. Heusel and others, 2017).  For comparison: the training images, a
normal distribution fitted to each digit, and independent pixels.

    python examples/diffusion.py --steps 6000 --seed 0 --out out

Writes diffusion.png to the folder `out`.  Fails unless the distance is less than those of both
baselines and at least 95 % of the samples are classified as requested.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.linalg import sqrtm
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import wengert as wg
from wengert import nn, optim
from wengert.optim import schedules

NOISING, BATCH, WIDTH = 150, 128, 192
KEPT = np.cos((np.arange(NOISING + 1) / NOISING + 0.008) / 1.008 * np.pi / 2) ** 2
KEPT = np.clip(KEPT / KEPT[0], 1e-4, 1.0).astype(np.float32)  # the share of the scan at each step


class Denoiser(nn.Module):
    """The noise in a scan, given the step and the digit."""

    def __init__(self, rng):
        self.step = nn.Embedding(NOISING + 1, WIDTH, rng=rng)
        self.digit = nn.Embedding(10, WIDTH, rng=rng)
        self.first = nn.Linear(64, WIDTH, rng=rng)
        self.blocks = [
            nn.Sequential(
                nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH, rng=rng), nn.SiLU(),
                nn.Linear(2 * WIDTH, WIDTH, rng=rng),
            )
            for _ in range(3)
        ]  # fmt: skip
        self.last = nn.Linear(WIDTH, 64, rng=rng)

    def forward(self, noisy, step, digit):
        """One row for each scan."""
        known = self.step(step) + self.digit(digit)
        y = self.first(noisy)
        for block in self.blocks:
            y = y + block(y + known)
        return self.last(y)


def train(model, scans, digits, steps, rng):
    """AdamW on the square error of the noise; the averages of the weights are put in at the end."""
    adam = optim.AdamW(model.parameters(), lr=schedules.Cosine(2e-3, steps), weight_decay=1e-3)
    average = optim.EMA(model.parameters(), decay=0.995, warmup=True)

    @wg.jit
    def learn(clean, digit, step, noise, kept):
        adam.zero_grad()
        noisy = np.sqrt(kept) * clean + np.sqrt(1.0 - kept) * noise
        loss = nn.functional.mse_loss(model(noisy, step, digit), noise)
        loss.backward()
        adam.step()
        average.update()
        return loss

    for _ in range(steps):
        row = rng.integers(0, len(scans), BATCH)
        step = rng.integers(1, NOISING + 1, BATCH)
        noise = rng.normal(size=(BATCH, 64)).astype(np.float32)
        learn(scans[row], digits[row], step, noise, KEPT[step][:, None])
    return average


def sample(model, digits, rng):
    """One scan for each digit, from noise, from -1 to 1."""

    @wg.jit
    def back(x, digit, step, noise, kept, before):
        told = model(x, np.full(digit.shape, 1) * step, digit)
        scan = np.clip((x - np.sqrt(1.0 - kept) * told) / np.sqrt(kept), -1.0, 1.0)
        share = kept / before
        mean = np.sqrt(before) * (1.0 - share) * scan + np.sqrt(share) * (1.0 - before) * x
        variance = (1.0 - before) / (1.0 - kept) * (1.0 - share)
        return mean / (1.0 - kept) + np.sqrt(variance) * noise

    x = rng.normal(size=(len(digits), 64)).astype(np.float32)
    with wg.no_grad():
        for step in range(NOISING, 0, -1):
            noise = rng.normal(size=x.shape).astype(np.float32)
            x = back(x, digits, step, noise, KEPT[step], KEPT[step - 1]).numpy()
    return np.clip(x, -1.0, 1.0)


def reader(scans, digits, rng, epochs):
    """A perceptron that reads, trained on real scans; its first layers are what is compared."""
    body = nn.Sequential(
        nn.Linear(64, 128, rng=rng), nn.ReLU(), nn.Linear(128, 64, rng=rng), nn.ReLU()
    )
    model = nn.Sequential(body, nn.Linear(64, 10, rng=rng)).float()
    adam = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
    loss = nn.CrossEntropyLoss()
    nn.fit(model, (scans, digits), loss, adam, epochs, batch_size=64, rng=rng, progress=False)
    return model


def judge(model, scans, digits, real):
    """The share read as it should be, and Frechet's distance to the inner numbers of `real`."""
    with wg.no_grad():
        read = model(scans).numpy().argmax(axis=1)
        inner, other = (model[0](x).numpy().astype(float) for x in (scans, real))
    a, b = np.cov(inner.T), np.cov(other.T)
    root = sqrtm(a @ b + 1e-9 * np.eye(len(a))).real
    apart = np.sum((inner.mean(axis=0) - other.mean(axis=0)) ** 2)
    return np.mean(read == digits), apart + np.trace(a + b - 2 * root)


def simpler(scans, digits, wanted, rng):
    """Samples of a normal distribution for each digit, and of dots by themselves."""
    normal, alone = np.empty((2, len(wanted), 64), np.float32)
    for n in range(10):
        mine, where = scans[digits == n], wanted == n
        count = where.sum()
        normal[where] = rng.multivariate_normal(mine.mean(axis=0), np.cov(mine.T), count)
        alone[where] = rng.permuted(mine[rng.integers(0, len(mine), count)], axis=0)
    return np.clip(normal, -1, 1), alone


def picture(path, samples, digits):
    figure = Figure(figsize=(10, 6.4), layout="constrained")
    for n, row in enumerate(figure.subplots(6, 10).T):
        for axes, scan in zip(row, samples[digits == n], strict=False):
            axes.imshow(scan.reshape(8, 8), cmap="gray_r", vmin=-1, vmax=1)
            axes.axis("off")
    figure.suptitle("digits made of noise")
    figure.savefig(path, dpi=120)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--steps", type=int, default=6_000)
    options.add_argument("--samples", type=int, default=2_000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--at-least", type=float, default=0.95, help="share read as asked for")
    options.add_argument("--at-most", type=float, default=1.0, help="share of chance's distance")
    options.add_argument("--out", type=Path, default=Path("out"))
    given = options.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)

    pixels, label = load_digits(return_X_y=True)
    scaled = (pixels / 8 - 1).astype(np.float32)
    scans, held, digits, held_digits = train_test_split(
        scaled, label, test_size=0.4, random_state=given.seed, stratify=label
    )
    rng = np.random.default_rng(given.seed)
    model = Denoiser(rng).float()
    begin = time.perf_counter()
    average = train(model, scans, digits, given.steps, rng)
    middle = time.perf_counter()
    wanted = np.arange(given.samples) % 10
    with average.applied():
        samples = sample(model, wanted, rng)
    end = time.perf_counter()

    judging = reader(scans, digits, rng, epochs=40)
    normal, alone = simpler(scans, digits, wanted, rng)
    rows = {
        "scans learnt from": (scans, digits),
        "diffusion": (samples, wanted),
        "normal distributions": (normal, wanted),
        "dots one by one": (alone, wanted),
    }
    print(f"{len(scans)} scans to learn from, {len(held)} held out, {given.samples} samples")
    print(f"  trained in {middle - begin:.0f} s, sampled in {end - middle:.0f} s")
    print(f"  {'':22}{'read as asked for':>18}{'distance':>11}")
    right, _ = judge(judging, held, held_digits, held)
    print(f"  {'held-out scans':22}{100 * right:16.1f} %")
    found = {}
    for name, (x, y) in rows.items():
        found[name] = judge(judging, x, y, held)
        print(f"  {name:22}{100 * found[name][0]:16.1f} %{found[name][1]:11.3f}")
    picture(given.out / "diffusion.png", samples, wanted)
    print(f"wrote {given.out / 'diffusion.png'}")
    right, distance = found["diffusion"]
    simplest = min(found["normal distributions"][1], found["dots one by one"][1])
    if right < given.at_least or distance > given.at_most * simplest:
        sys.exit("the samples are not what they should be")


if __name__ == "__main__":
    main()
