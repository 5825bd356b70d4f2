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

NOISE_STEPS, BATCH, WIDTH = 150, 128, 192
# The share of the image in the noisy image, for each step.
SIGNAL = np.cos((np.arange(NOISE_STEPS + 1) / NOISE_STEPS + 0.008) / 1.008 * np.pi / 2) ** 2
SIGNAL = np.clip(SIGNAL / SIGNAL[0], 1e-4, 1.0).astype(np.float32)


class Denoiser(nn.Module):
    """Predicts the noise in an image, given the step and the digit."""

    def __init__(self, rng):
        self.step = nn.Embedding(NOISE_STEPS + 1, WIDTH, rng=rng)
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
        """The noise of a batch of images."""
        condition = self.step(step) + self.digit(digit)
        y = self.first(noisy)
        for block in self.blocks:
            y = y + block(y + condition)
        return self.last(y)


def train(model, images, digits, steps, rng):
    """Minimize the squared error of the noise with AdamW; return the averages of the weights."""
    adam = optim.AdamW(model.parameters(), lr=schedules.Cosine(2e-3, steps), weight_decay=1e-3)
    average = optim.EMA(model.parameters(), decay=0.995, warmup=True)

    @wg.jit
    def learn(clean, digit, step, noise, signal):
        adam.zero_grad()
        noisy = np.sqrt(signal) * clean + np.sqrt(1.0 - signal) * noise
        loss = nn.functional.mse_loss(model(noisy, step, digit), noise)
        loss.backward()
        adam.step()
        average.update()
        return loss

    for _ in range(steps):
        row = rng.integers(0, len(images), BATCH)
        step = rng.integers(1, NOISE_STEPS + 1, BATCH)
        noise = rng.normal(size=(BATCH, 64)).astype(np.float32)
        learn(images[row], digits[row], step, noise, SIGNAL[step][:, None])
    return average


def sample(model, digits, rng):
    """One generated image for each digit, with values from -1 to 1."""

    @wg.jit
    def back(x, digit, step, noise, signal, before):
        noise_estimate = model(x, np.full(digit.shape, 1) * step, digit)
        image = np.clip((x - np.sqrt(1.0 - signal) * noise_estimate) / np.sqrt(signal), -1.0, 1.0)
        share = signal / before
        mean = np.sqrt(before) * (1.0 - share) * image + np.sqrt(share) * (1.0 - before) * x
        variance = (1.0 - before) / (1.0 - signal) * (1.0 - share)
        return mean / (1.0 - signal) + np.sqrt(variance) * noise

    x = rng.normal(size=(len(digits), 64)).astype(np.float32)
    with wg.no_grad():
        for step in range(NOISE_STEPS, 0, -1):
            noise = rng.normal(size=x.shape).astype(np.float32)
            x = back(x, digits, step, noise, SIGNAL[step], SIGNAL[step - 1]).numpy()
    return np.clip(x, -1.0, 1.0)


def train_classifier(images, digits, rng, epochs):
    """A perceptron trained on real images; the output of its first layers are the features."""
    body = nn.Sequential(
        nn.Linear(64, 128, rng=rng), nn.ReLU(), nn.Linear(128, 64, rng=rng), nn.ReLU()
    )
    model = nn.Sequential(body, nn.Linear(64, 10, rng=rng)).float()
    adam = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
    loss = nn.CrossEntropyLoss()
    nn.fit(model, (images, digits), loss, adam, epochs, batch_size=64, rng=rng, progress=False)
    return model


def evaluate(model, images, digits, real):
    """The share of images classified as requested, and the Frechet distance to images `real`."""
    with wg.no_grad():
        predicted = model(images).numpy().argmax(axis=1)
        features, other = (model[0](x).numpy().astype(float) for x in (images, real))
    a, b = np.cov(features.T), np.cov(other.T)
    root = sqrtm(a @ b + 1e-9 * np.eye(len(a))).real
    distance = np.sum((features.mean(axis=0) - other.mean(axis=0)) ** 2)
    return np.mean(predicted == digits), distance + np.trace(a + b - 2 * root)


def baselines(images, digits, requested, rng):
    """Samples of a normal distribution for each digit, and of independent pixels."""
    normal, independent = np.empty((2, len(requested), 64), np.float32)
    for n in range(10):
        real, mask = images[digits == n], requested == n
        count = mask.sum()
        normal[mask] = rng.multivariate_normal(real.mean(axis=0), np.cov(real.T), count)
        independent[mask] = rng.permuted(real[rng.integers(0, len(real), count)], axis=0)
    return np.clip(normal, -1, 1), independent


def picture(path, samples, digits):
    figure = Figure(figsize=(10, 6.4), layout="constrained")
    for n, row in enumerate(figure.subplots(6, 10).T):
        for axes, image in zip(row, samples[digits == n], strict=False):
            axes.imshow(image.reshape(8, 8), cmap="gray_r", vmin=-1, vmax=1)
            axes.axis("off")
    figure.suptitle("generated digits")
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=6_000)
    parser.add_argument("--samples", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at-least", type=float, default=0.95, help="required accuracy")
    parser.add_argument("--at-most", type=float, default=1.0, help="relative to the baselines")
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    pixels, label = load_digits(return_X_y=True)
    scaled = (pixels / 8 - 1).astype(np.float32)
    images, test, digits, test_digits = train_test_split(
        scaled, label, test_size=0.4, random_state=options.seed, stratify=label
    )
    rng = np.random.default_rng(options.seed)
    model = Denoiser(rng).float()
    begin = time.perf_counter()
    average = train(model, images, digits, options.steps, rng)
    middle = time.perf_counter()
    requested = np.arange(options.samples) % 10
    with average.applied():
        samples = sample(model, requested, rng)
    end = time.perf_counter()

    classifier = train_classifier(images, digits, rng, epochs=40)
    normal, independent = baselines(images, digits, requested, rng)
    rows = {
        "training images": (images, digits),
        "diffusion": (samples, requested),
        "normal distributions": (normal, requested),
        "independent pixels": (independent, requested),
    }
    print(f"{len(images)} training images, {len(test)} held out, {options.samples} samples")
    print(f"  trained in {middle - begin:.0f} s, sampled in {end - middle:.0f} s")
    print(f"  {'':22}{'as requested':>18}{'distance':>11}")
    accuracy, _ = evaluate(classifier, test, test_digits, test)
    print(f"  {'held-out images':22}{100 * accuracy:16.1f} %")
    results = {}
    for name, (x, y) in rows.items():
        results[name] = evaluate(classifier, x, y, test)
        print(f"  {name:22}{100 * results[name][0]:16.1f} %{results[name][1]:11.3f}")
    picture(options.out / "diffusion.png", samples, requested)
    print(f"wrote {options.out / 'diffusion.png'}")
    accuracy, distance = results["diffusion"]
    baseline = min(results["normal distributions"][1], results["independent pixels"][1])
    if accuracy < options.at_least or distance > options.at_most * baseline:
        sys.exit("the accuracy is too low or the distance too large")


if __name__ == "__main__":
    main()
