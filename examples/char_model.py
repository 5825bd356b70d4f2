"""Character models: an LSTM and a small GPT on Shakespeare's sonnets, compared with n-grams.

The text is examples/data/sonnets.txt (W. Shakespeare, "Sonnets", 1609, in modern spelling; public
domain).  The last tenth is held out.  The measure is the number of bits per character, given all
characters before.  The n-grams are interpolated with shorter ones by the rule of Witten and Bell
(IEEE Transactions on Information Theory 37, 1991); the best length is chosen on the held-out text,
in their favor.

    python examples/char_model.py --steps 1250 --seed 0 --out out

A training step is one compiled call.  The LSTM is evaluated on the held-out text from beginning to
end, the GPT in windows of which the second half counts, and so is the average of both models'
probabilities.  Writes char_model.png, the bits during training, to the folder `out`, and prints a
sample of the GPT.  Fails unless both models need fewer bits than n-grams.
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
STEPS, BATCH = 64, 16  # letters in a window, windows in a batch
F = nn.functional


def ngrams(seen, held, letters, longest=7):
    """Bits of a held-out letter by n-grams of each length."""
    probability = np.full(len(held), 1.0 / letters)
    seen, held = bytes(seen.tolist()), bytes(held.tolist())
    bits = []
    for length in range(longest):
        counts = Counter(seen[i : i + length + 1] for i in range(len(seen) - length))
        before, kinds = Counter(), Counter()
        for gram, count in counts.items():
            before[gram[:-1]] += count
            kinds[gram[:-1]] += 1
        for i in range(length, len(held)):
            gram = held[i - length : i + 1]
            n, t = before[gram[:-1]], kinds[gram[:-1]]
            if n:
                probability[i] = (counts[gram] + t * probability[i]) / (n + t)
        bits.append(-np.mean(np.log2(probability)))
    return bits


class LSTM(nn.Module):
    """One layer that remembers."""

    rate, rounds = 4e-3, 2  # its steps cost half as much

    def __init__(self, letters, rng, stream, width=192):
        self.embedding = nn.Embedding(letters, 48, rng=rng)
        self.memory = nn.LSTM(48, width, batch_first=True, rng=rng)
        self.dropout = nn.Dropout(0.4, stream)
        self.head = nn.Linear(width, letters, rng=rng)

    def forward(self, x):
        """Logits of the next letter at each place."""
        return self.head(self.dropout(self.memory(self.dropout(self.embedding(x)))[0]))

    def log_probabilities(self, logits_of, text):
        """Of every letter but the first, given all before."""
        return chosen(logits_of(text[None, :-1]), text[None, 1:])[0]


class GPT(nn.Module):
    """Four letters joined at each place, then two blocks of attention that look back."""

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
        """Logits of the next letter at each place."""
        letters = self.embedding(x)
        before = [np.pad(letters, ((0, 0), (n, 0), (0, 0)))[:, : x.shape[1]] for n in range(4)]
        x = self.dropout(self.positions(self.near(np.concatenate(before, axis=-1))))
        return self.head(self.body(x, is_causal=True))

    def log_probabilities(self, logits_of, text):
        """Of every letter but the first, given at least half a window before."""
        half = STEPS // 2
        starts = np.minimum(np.arange(0, len(text) - half, half), len(text) - STEPS - 1)
        rows = text[starts[:, None] + np.arange(STEPS + 1)]
        values = chosen(logits_of(rows[:, :-1]), rows[:, 1:])
        found = np.empty(len(text) - 1)
        for start, row in zip(starts, values, strict=True):
            late = half if start else 0
            found[start + late : start + STEPS] = row[late:]
        return found


def chosen(logits, letters):
    """Log-probabilities of the letters that came."""
    logs = F.log_softmax(logits, -1).numpy().astype(float)
    return np.take_along_axis(logs, letters[..., None], -1)[..., 0]


def train(model, seen, held, steps, rng):
    """AdamW, warmed up and cooled down; the bits of held-out text now and then."""
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

    course, begin = [], time.perf_counter()
    logits_of = wg.jit(model)
    for n in range(1, steps + 1):
        starts = rng.integers(0, len(seen) - STEPS, BATCH)
        rows = seen[starts[:, None] + np.arange(STEPS + 1)]
        step(rows[:, :-1], rows[:, 1:])
        if n % max(1, steps // 10) == 0 or n == steps:
            logs = log_probabilities(model, logits_of, held)
            course.append((n, bits_of(logs)))
    return course, logs, time.perf_counter() - begin


def log_probabilities(model, logits_of, text):
    """As the model judges when nothing is dropped."""
    model.eval()
    with wg.no_grad():
        found = model.log_probabilities(logits_of, text)
    model.train()
    return found


def bits_of(logs):
    return -np.mean(logs) / np.log(2)


def sample(model, start, count, rng, heat=0.8):
    """Letters drawn one after the other."""
    model.eval()
    logits_of = wg.jit(model)
    text = list(start)
    with wg.no_grad():
        for _ in range(count):
            logits = logits_of(np.array(text[-STEPS:])[None]).numpy()[0, -1].astype(float) / heat
            share = np.exp(logits - logits.max())
            text.append(rng.choice(len(share), p=share / share.sum()))
    return text


def picture(path, courses, best):
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name, course in courses.items():
        axes.plot(*zip(*course, strict=True), marker="o", markersize=3, label=name)
    axes.axhline(best, color="black", linestyle="--", label="n-grams")
    axes.set(xlabel="step", ylabel="bits of a held-out letter")
    axes.legend()
    figure.savefig(path, dpi=120)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--steps", type=int, default=1250, help="the LSTM takes twice as many")
    options.add_argument("--letters", type=int, default=None, help="of the text; all by default")
    options.add_argument("--margin", type=float, default=0.0, help="bits below the n-grams")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", type=Path, default=Path("out"))
    given = options.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)

    text = TEXT.read_text(encoding="ascii")[: given.letters]
    alphabet = sorted(set(text))
    codes = np.array([alphabet.index(c) for c in text])
    seen, held = np.split(codes, [int(0.9 * len(codes))])
    counted = ngrams(seen, held, len(alphabet))
    best = min(counted)
    print(f"{len(seen):,} letters to learn from, {len(held):,} held out, {len(alphabet)} kinds")
    print(f"bits of a held-out letter\n  {np.argmin(counted) + 1}-grams  {best:.3f}")

    courses, logs = {}, []
    for kind in (LSTM, GPT):
        rng = np.random.default_rng(given.seed)
        model = kind(len(alphabet), rng, wg.random.Stream(given.seed)).float()
        courses[kind.__name__], last, took = train(
            model, seen, held, kind.rounds * given.steps, rng
        )
        logs.append(last)
        size = sum(p.size for p in model.parameters())
        print(f"  {kind.__name__:8} {bits_of(logs[-1]):.3f}  {size:,} weights, {took:.0f} s")
    print(f"  together {bits_of(np.logaddexp(*logs) - np.log(2)):.3f}")
    made = sample(model, held[:STEPS], 300, rng)[STEPS:]
    print("".join(alphabet[c] for c in made))
    picture(given.out / "char_model.png", courses, best)
    print(f"wrote {given.out / 'char_model.png'}")
    if max(bits_of(x) for x in logs) > best - given.margin:
        sys.exit("n-grams are as good")


if __name__ == "__main__":
    main()
