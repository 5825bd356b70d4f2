"""why, asked about random programs into which one fault has been planted at a random line.

The program without the fault has no findings; with it the first finding names its kind and line.
"""

import linecache

import numpy as np
import pytest

import wengert as wg

HARMLESS = [
    "h = np.sin(h) + 0.2 * h",
    "h = np.tanh(h + shift)",
    "h = weight @ h",
    "h = 0.7 * h + 0.3",
    "h = np.exp(-h * h + h)",
    "h = h / (1.0 + h * h)",
    "h = h[::-1]",
    "h = np.concatenate([h[2:], h[:2]])",
    "h = np.where(h > 0.1, 0.9 * h, 1.1 * h)",
    "h = np.sqrt(1.0 + np.exp(h))",
    "h = np.log1p(np.exp(h))",
    "h = (h - np.mean(h)) + 0.5 * h",
    "h = h.copy(); h[1] = h[0] + h[1]",
]
FAULTS = {
    "h = np.floor(3.0 * h)": ("disconnected", "discrete"),
    "h = np.round(h)": ("disconnected", "discrete"),
    "h = (h > 0.0) * 0.7": ("disconnected", "discrete"),
    "h = h.astype(np.int64) + 0.3": ("disconnected", "discrete"),
    "h = wg.stop_gradient(h)": ("disconnected", "detached"),
    "h = h.detach()": ("disconnected", "detached"),
    "h = h.numpy()": ("disconnected", "converted"),
    "h = np.where(h > 1e6, h, 0.4)": ("zero", "masked"),
    "h = np.minimum(h, -1e6) + 1e6 + 0.2": ("zero", "unchosen"),
    "h = np.clip(h, 50.0, 60.0) - 50.2": ("zero", "saturated"),
    "h = wg.nn.functional.relu(h - 1e6) + 0.3": ("zero", "saturated"),
    "h = h * np.zeros(4)": ("zero", "multiplied"),
    "h = h.copy(); h[:] = 0.3": ("zero", "overwritten"),
    "h = np.exp(-1e6 * (h * h + 0.1))": ("zero", "underflow"),
    "h = h - h": ("zero", "cancelled"),
    "h = np.sqrt(h - h)": ("nan", "singular"),
    "h = np.log(-1.0 - h * h)": ("nan", "operation"),
    "h = np.exp(1e6 * (h * h + 0.1))": (None, "overflow"),
    "h = h * np.array([1.0, np.nan, 1.0, 1.0])": ("nan", "constant"),
}


def program(seed, fault=None):
    """A random program as a function of an array, and the line of the fault."""
    rng = np.random.default_rng(seed)
    lines = list(rng.choice(HARMLESS, size=6))
    place = int(rng.integers(0, len(lines) + 1))
    if fault is not None:
        lines.insert(place, fault)
    source = ["def f(x):", "    h = 1.0 * x", *[f"    {s}" for s in lines], "    return np.sum(h)"]
    name = f"<planted {seed} {fault}>"
    text = "\n".join(source) + "\n"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names = {"np": np, "wg": wg, "shift": rng.normal(size=4)}
    names["weight"] = rng.normal(size=(4, 4)) * 0.6
    exec(compile(text, name, "exec"), names)
    return names["f"], place + 3, rng.normal(size=4)


@pytest.mark.sample(20)
@pytest.mark.parametrize("seed", range(50))
def test_without_a_fault_nothing_is_found(seed):
    f, _, x = program(seed)
    found = wg.why(f, x)
    assert not found, str(found)
    np.testing.assert_array_equal(found.gradient, wg.grad(f)(x))


@pytest.mark.sample(76)
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("fault", FAULTS)
def test_the_planted_fault_is_found(fault, seed):
    f, line, x = program(seed, fault)
    found = wg.why(f, x)
    symptom, kind = FAULTS[fault]
    assert found and found[0].kind == kind, str(found)
    assert symptom in (None, found[0].symptom)
    assert found[0].line == line and found[0].text == fault, str(found)
