"""lstm: the loss of a character model by its parameters; weight matrices are diagonal (ADBench).

A step reads a character as bits, and predicts the next one; a scan goes through the text.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import wengert as wg
from gradbench.task import Task, number


def sigmoid(x: Any) -> Any:
    """The logistic function."""
    return 1.0 / (1.0 + np.exp(-x))


def layer(parameters: Any, state: Any, x: Any) -> Any:
    """Hidden state and cell after one character."""
    (keep, add, show, change), (keep0, add0, show0, change0) = parameters
    hidden, cell = state
    cell = cell * sigmoid(x * keep + keep0) + sigmoid(hidden * add + add0) * np.tanh(
        hidden * change + change0
    )
    return sigmoid(x * show + show0) * np.tanh(cell), cell


def objective(main: Any, extra: Any, state: Any, text: Any) -> Any:
    """The mean over characters and bits of bit * (log(2 + sum exp y) - y), y the prediction.

    ``main`` (2 layers, 4 bits): weights and biases of each layer, ``state`` (2 layers, bits):
    hidden state and cell, ``extra`` (3, bits): weights in, weights out, biases out.
    """
    layers, bits = len(main) // 2, text.shape[1]
    main = main.reshape(layers, 2, 4, bits)

    def step(states: Any, pair: Any) -> Any:
        now, after = pair
        x, new = now * extra[0], []
        for k in range(layers):
            new.append(layer(main[k], states[k], x))
            x = new[-1][0]
        y = x * extra[1] + extra[2]
        return tuple(new), np.sum(after * (np.log(np.sum(np.exp(y)) + 2.0) - y))

    first = tuple((state[2 * k], state[2 * k + 1]) for k in range(layers))
    _, losses = wg.scan(step, first, (text[:-1], text[1:]))
    return np.mean(losses) / bits


def arrays(given: dict[str, Any]) -> tuple[Any, ...]:
    """Parameters, state and text of a message."""
    return tuple(np.array(given[k], float)
                 for k in ("main_params", "extra_params", "state", "sequence"))  # fmt: skip


def answer_jacobian(result: Any) -> list[float]:
    """The gradient with respect to both arrays of parameters, in one list."""
    return [*result[0].ravel().tolist(), *result[1].ravel().tolist()]


def task(function: Any, answer: Any) -> Any:
    """Make a task of an input."""
    compiled = wg.jit(function)
    return lambda given: Task(compiled, arrays(given), answer)


FUNCTIONS = {
    "objective": task(objective, number),
    "jacobian": task(wg.grad(objective, argnums=(0, 1)), answer_jacobian),
}
