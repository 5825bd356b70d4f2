"""Character models: an LSTM and a small GPT on Shakespeare's sonnets, compared with n-grams.

The text is examples/data/sonnets.txt (W. Shakespeare, "Sonnets", 1609, in modern spelling; public
domain).  The last tenth is held out.  The measure is the number of bits per character, given the
preceding characters.  The n-grams are interpolated with shorter ones by the rule of Witten and Bell
(IEEE Transactions on Information Theory 37, 1991); the best length is chosen on the held-out text,
in their favor.

    python examples/char_model.py --steps 1250 --seed 0 --out out

A training step is one compiled call.  The LSTM is evaluated on the held-out text from beginning to
end, the GPT in windows of which the second half counts; the ensemble averages the probabilities of
both.  Writes char_model.png, the bits during training, to the folder `out`, and prints a sample of
the GPT.  Fails unless both models need fewer bits than the n-grams.
"""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import wengert as wg
from wengert import nn, optim
from wengert.optim import schedules

TEXT = Path(__file__).parent / "data" / "sonnets.txt"
STEPS, BATCH = 64, 16  # characters in a window, windows in a batch
F = nn.functional


def ngrams(training, held_out, letters, longest=7):
    """Bits per held-out character of n-grams of each length."""
    probability = np.full(len(held_out), 1.0 / letters)
    training, held_out = bytes(training.tolist()), bytes(held_out.tolist())
    bits = []
    for length in range(longest):
        counts = Counter(training[i : i + length + 1] for i in range(len(training) - length))
        before, distinct = Counter(), Counter()
        for gram, count in counts.items():
            before[gram[:-1]] += count
            distinct[gram[:-1]] += 1
        for i in range(length, len(held_out)):
            gram = held_out[i - length : i + 1]
            n, t = before[gram[:-1]], distinct[gram[:-1]]
            if n:
                probability[i] = (counts[gram] + t * probability[i]) / (n + t)
        bits.append(-np.mean(np.log2(probability)))
    return bits


class LSTM(nn.Module):
    """An LSTM with one layer."""

    rate, rounds = 4e-3, 2  # a step costs half as much as one of the GPT

    def __init__(self, letters, rng, stream, width=192):
        self.embedding = nn.Embedding(letters, 48, rng=rng)
        self.memory = nn.LSTM(48, width, batch_first=True, rng=rng)
        self.dropout = nn.Dropout(0.4, stream)
        self.head = nn.Linear(width, letters, rng=rng)

    def forward(self, x):
        """Logits of the next character at each position."""
        return self.head(self.dropout(self.memory(self.dropout(self.embedding(x)))[0]))

    def log_probabilities(self, logits_of, text):
        """Log-probabilities of all characters but the first, given the preceding ones."""
        return log_probabilities_of(logits_of(text[None, :-1]), text[None, 1:])[0]


class GPT(nn.Module):
    """Embeddings of four characters at each position, then two blocks of causal attention."""

    rate, rounds = 3e-3, 1

    def __init__(self, letters, rng, stream, width=96, blocks=2):
        self.embedding = nn.Embedding(letters, width, rng=rng)
        self.positions = nn.LearnedPositions(STEPS, width, batch_first=True, rng=rng)
        self.near = nn.Linear(4 * width, width, rng=rng)
        self.dropout = nn.Dropout(0.1, stream)
        layers = [
            nn.TransformerEncoderLayer(
                width, 4, 4 * width, 0.1, "gelu", batch_first=True, norm_first=True, rng=rng
            )
            for _ in range(blocks)
        ]
        self.body = nn.TransformerEncoder(layers, norm=nn.LayerNorm(width))
        self.head = nn.Linear(width, letters, rng=rng)

    def forward(self, x):
        """Logits of the next character at each position."""
        letters = self.embedding(x)
        before = [np.pad(letters, ((0, 0), (n, 0), (0, 0)))[:, : x.shape[1]] for n in range(4)]
        x = self.dropout(self.positions(self.near(np.concatenate(before, axis=-1))))
        return self.head(self.body(x, is_causal=True))

    def log_probabilities(self, logits_of, text):
        """The same, given at least half a window of preceding characters."""
        half = STEPS // 2
        starts = np.minimum(np.arange(0, len(text) - half, half), len(text) - STEPS - 1)
        rows = text[starts[:, None] + np.arange(STEPS + 1)]
        values = log_probabilities_of(logits_of(rows[:, :-1]), rows[:, 1:])
        result = np.empty(len(text) - 1)
        for start, row in zip(starts, values, strict=True):
            late = half if start else 0
            result[start + late : start + STEPS] = row[late:]
        return result


def log_probabilities_of(logits, letters):
    """Log-probabilities of the given characters."""
    logs = F.log_softmax(logits, -1).numpy().astype(float)
    return np.take_along_axis(logs, letters[..., None], -1)[..., 0]


def train(model, training, held_out, steps, rng):
    """Train with AdamW and a warmup-cosine schedule.

    Returns the bits of held-out text during training, its final log-probabilities, and seconds.
    """
    rate = schedules.Warmup(steps // 20 + 1, then=schedules.Cosine(model.rate, steps))
    adam = optim.AdamW(model.parameters(), lr=rate, weight_decay=0.05)

    @wg.jit
    def step(x, y):
        adam.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optim.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        return loss

    curve, begin = [], time.perf_counter()
    logits_of = wg.jit(model)
    for n in range(1, steps + 1):
        starts = rng.integers(0, len(training) - STEPS, BATCH)
        rows = training[starts[:, None] + np.arange(STEPS + 1)]
        step(rows[:, :-1], rows[:, 1:])
        if n % max(1, steps // 10) == 0 or n == steps:
            logs = log_probabilities(model, logits_of, held_out)
            curve.append((n, bits_of(logs)))
    return curve, logs, time.perf_counter() - begin


def log_probabilities(model, logits_of, text):
    """Log-probabilities in evaluation mode."""
    model.eval()
    with wg.no_grad():
        result = model.log_probabilities(logits_of, text)
    model.train()
    return result


def bits_of(logs):
    return -np.mean(logs) / np.log(2)


def sample(model, start, count, rng, temperature=0.8):
    """The start, continued by `count` characters drawn one by one."""
    model.eval()
    logits_of = wg.jit(model)
    text = list(start)
    with wg.no_grad():
        for _ in range(count):
            logits = (
                logits_of(np.array(text[-STEPS:])[None]).numpy()[0, -1].astype(float) / temperature
            )
            share = np.exp(logits - logits.max())
            text.append(rng.choice(len(share), p=share / share.sum()))
    return text


def picture(path, curves, best):
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name, curve in curves.items():
        axes.plot(*zip(*curve, strict=True), marker="o", markersize=3, label=name)
    axes.axhline(best, color="black", linestyle="--", label="n-grams")
    axes.set(xlabel="step", ylabel="bits per held-out character")
    axes.legend()
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1250, help="the LSTM takes twice as many")
    parser.add_argument("--letters", type=int, default=None, help="length of the text used")
    parser.add_argument("--margin", type=float, default=0.0, help="bits below the n-grams")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    text = TEXT.read_text(encoding="ascii")[: options.letters]
    alphabet = sorted(set(text))
    codes = np.array([alphabet.index(c) for c in text])
    training, held_out = np.split(codes, [int(0.9 * len(codes))])
    ngram_bits = ngrams(training, held_out, len(alphabet))
    best = min(ngram_bits)
    sizes = f"{len(training):,} characters for training, {len(held_out):,} held out"
    print(f"{sizes}, {len(alphabet)} different")
    print(f"bits per held-out character\n  {np.argmin(ngram_bits) + 1}-grams  {best:.3f}")

    curves, logs = {}, []
    for kind in (LSTM, GPT):
        rng = np.random.default_rng(options.seed)
        model = kind(len(alphabet), rng, wg.random.Stream(options.seed)).float()
        curves[kind.__name__], last, seconds = train(
            model, training, held_out, kind.rounds * options.steps, rng
        )
        logs.append(last)
        size = sum(p.size for p in model.parameters())
        print(f"  {kind.__name__:8} {bits_of(logs[-1]):.3f}  {size:,} weights, {seconds:.0f} s")
    print(f"  ensemble {bits_of(np.logaddexp(*logs) - np.log(2)):.3f}")
    generated = sample(model, held_out[:STEPS], 300, rng)[STEPS:]
    print("".join(alphabet[c] for c in generated))
    picture(options.out / "char_model.png", curves, best)
    print(f"wrote {options.out / 'char_model.png'}")
    if max(bits_of(x) for x in logs) > best - options.margin:
        sys.exit("a model needs more bits than the n-grams")


if __name__ == "__main__":
    main()
