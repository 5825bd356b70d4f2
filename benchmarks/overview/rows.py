"""The targets of the design, section 9: every line of it as one row or several.

A row that is added here appears on the page; its figures are read from results when it is made.
"""

from __future__ import annotations

from native.page import duration

from .targets import (
    Target,
    ahead,
    bandwidth,
    both,
    completed,
    costs,
    mean_over,
    mean_over_c,
    over,
    over_c,
    published,
    ratios,
    times,
)  # fmt: skip

EAGER, NATIVE, LOOPS = "0003-eager-speed.md", "0009-native.md", "0010-loops.md"
MEASURED, SOURCE = "0013-benchmarks.md", "0019-source-front-end.md"
MESSAGES, ODES = "0021-messages.md", "0025-differential-equations.md"
BEST = "best peer over wengert"
C = "C over wengert"


CALLS = "compiled gradient call, n = 1 to 10"
LOOP = "value and gradient of loops: Lorenz, Kalman"
STEPS = ("torch", "torch.compile", "JAX")
CVODES = ("diffrax", "CasADi")

ROWS = (
    Target(CALLS, "at most 0.5 us", times("native", "calls"), 0.5e-6,
           "benchmarks-native.md", NATIVE, most=True, shown=duration),
    Target(CALLS, f"{BEST}: 4", ratios("native", "calls"), 4.0, "benchmarks-native.md", NATIVE),
    Target(CALLS, "JAX over wengert: 10", ratios("native", "calls", peers=("JAX",)), 10.0,
           "benchmarks-native.md", NATIVE),
    Target("fused elementwise, value and gradient, 1e3 to 1e7", f"{C}: 0.77 (1.3 times)",
           ratios("native", "elementwise", of="C"), 1 / 1.3, "benchmarks-native.md", NATIVE),
    Target("fused elementwise, value and gradient, 1e3 to 1e7", f"{BEST}: 2",
           ratios("native", "elementwise"), 2.0, "benchmarks-native.md", NATIVE),
    Target("Black-Scholes, price and greeks", f"{C}: 0.67 (1.5 times)",
           ratios("native", "black_scholes", of="C"), 1 / 1.5, "benchmarks-native.md", NATIVE),
    Target("Black-Scholes, price and greeks", f"{BEST}: 2",
           ratios("native", "black_scholes"), 2.0, "benchmarks-native.md", NATIVE),
    Target("memory-bound kernel", "85 % of the bandwidth of a copy", bandwidth, 0.85,
           "benchmarks-native.md", NATIVE, shown=lambda x: f"{100 * x:.0f} %"),
    Target("import", "at most 2.5 times NumPy's", over("eager", "import", "wengert", "NumPy"), 2.5,
           "benchmarks-eager.md", EAGER, most=True),
    Target("first compiled gradient, a fresh process", "JAX over wengert: 2",
           ratios("native", "cold", pattern=": cold$", peers=("JAX",)), 2.0,
           "benchmarks-native.md", NATIVE),
    Target("second process (programs of up to 1,000 lines)", "at most 50 ms",
           times("native", "cold", r"^(?!.*0,000).*: second$"), 50e-3,
           "benchmarks-native.md", NATIVE, most=True, shown=duration),
    Target(LOOP, f"{C}: 0.5 (2 times)", ratios("loops", "lorenz", "kalman", of="C"), 0.5,
           "benchmarks-loops.md", LOOPS),
    Target(LOOP, f"{BEST}: 5", ratios("loops", "lorenz", "kalman"), 5.0,
           "benchmarks-loops.md", LOOPS),
    Target("LSTM", f"{C}: 0.5 (2 times)", ratios("loops", "lstm", of="C"), 0.5,
           "benchmarks-loops.md", LOOPS),
    Target("LSTM of small states (GradBench)", f"{BEST}: 5",
           ratios("loops", "lstm", pattern="GradBench gradient"), 5.0,
           "benchmarks-loops.md", LOOPS),
    Target("sparse Jacobian, Brusselator, n = 1000", f"{C}: 0.2 (5 times)",
           ratios("sparse", "brusselator", of="C", pattern="^n = 1000$"), 0.2,
           "benchmarks-sparse.md", MEASURED),
    Target("GradBench", "all 12 evals, every answer right", completed, 12.0,
           "benchmarks-gradbench.md", MEASURED, shown=lambda x: f"{x:.0f}"),
    Target("GradBench", "geometric mean of derivatives over C: at most 3", mean_over_c, 3.0,
           "benchmarks-gradbench.md", MEASURED, most=True),
    Target("GradBench", "no eval above 10 times C", over_c, 10.0,
           "benchmarks-gradbench.md", MEASURED, most=True),
    Target("GradBench", "ahead of JAX and PyTorch at every size: 1", ahead, 1.0,
           "benchmarks-gradbench.md", MEASURED),
    Target("eager tape, a small operation forward and backward", "at most half of PyTorch's time",
           over("eager", "chain", "wengert, J.backward()", "torch, eager"), 0.5,
           "benchmarks-eager.md", EAGER, most=True),
    Target("training step of a perceptron", "best of JAX and PyTorch over wengert: 1",
           both(ratios("learning", "steps", pattern="perceptron", peers=STEPS, every_thread=True),
                ratios("native", "perceptron", peers=STEPS, every_thread=True)), 1.0,
           "benchmarks-learning.md", MEASURED),
    Target("training step of a convolutional network", "best of JAX and PyTorch over wengert: 1",
           both(ratios("learning", "steps", pattern="convolution", peers=STEPS, every_thread=True),
                ratios("convolution", "network", peers=STEPS, every_thread=True)), 1.0,
           "benchmarks-learning.md", MEASURED),
    Target("derivative over value: GMM, LSTM, BA (each of its two colors)", "at most 4",
           costs(gmm=1, lstm=1, ba=2), 4.0, "benchmarks-gradbench.md", MEASURED, most=True),
    Target("NPBench, values", "at most 1.5 times numba's time, geometric mean",
           mean_over("npbench", "values", "wengert", "numba"), 1.5,
           "benchmarks-npbench.md", SOURCE, most=True),
    Target("NPBench, values", "at most NumPy's time",
           over("npbench", "values", "wengert", "NumPy"), 1.0,
           "benchmarks-npbench.md", SOURCE, most=True),
    Target("NPBench, gradients", "at most 4 values",
           over("npbench", "gradients", "wengert", "value"), 4.0,
           "benchmarks-npbench.md", SOURCE, most=True),
    Target("NPBench, gradients", "JAX over wengert: 1",
           over("npbench", "gradients", "JAX", "wengert"), 1.0,
           "benchmarks-npbench.md", SOURCE),
    Target("NPBench, gradients", "DaCe over wengert: 1",
           over("npbench", "dace", "DaCe", "wengert"), 1.0, "benchmarks-npbench.md", SOURCE),
    Target("GradBench's evals with Python's loops", "at most 1.2 times the functional program",
           over("plain_loops", "evals", "wengert", "functional"), 1.2,
           "benchmarks-plain-loops.md", SOURCE, most=True),
    Target("stiff equations: Robertson to 1e5", "at most 25 us (numbalsoda, published)",
           times("odes", "values", "^Robertson$"), 25e-6,
           "benchmarks-odes.md", ODES, most=True, shown=duration),
    Target("adjoints of differential equations", "published times of Julia over wengert: 1",
           published("odes", "gradients"), 1.0, "benchmarks-odes.md", ODES),
    Target("adjoints of differential equations", "best of diffrax and CVODES over wengert: 1",
           ratios("odes", "gradients", peers=CVODES), 1.0, "benchmarks-odes.md", ODES),
    Target("forward sensitivities", "published times of Julia over wengert: 1",
           published("odes", "sensitivities"), 1.0, "benchmarks-odes.md", ODES),
    Target("forward sensitivities", "best of diffrax and CVODES over wengert: 1",
           ratios("odes", "sensitivities", peers=CVODES), 1.0, "benchmarks-odes.md", ODES),
    Target("1,000 trajectories", "numbalsoda over wengert: 1",
           ratios("odes", "trajectories", peers=("numbalsoda",)), 1.0,
           "benchmarks-odes.md", ODES),
    Target("first solution or gradient of a differential equation", "at most 0.5 s",
           times("odes", "first_calls"), 0.5, "benchmarks-odes.md", ODES,
           most=True, shown=duration),
    Target("a sum over data on two processes (MPI)", "one process over two: 1.8",
           over("distributed", "sum", "one process", "wengert"), 1.8,
           "benchmarks-distributed.md", MESSAGES),
)  # fmt: skip
