"""The workloads of benchmarks/native.py, and what they share.

case           what a workload is: cases, and in each one callable for each library
libraries      the same function handed to every library, compiled as its users would
compiled       C sources of benchmarks/c, compiled with gcc when first asked for
measure        agreement of the numbers first, then time, in turn
fresh          the first call in a process of its own
environment    the variables that make every library use one thread
page           saved results as Markdown

calls          a gradient of a few numbers: what a call costs
elementwise    sum(tanh(x w + b) exp(-x^2)) and its gradient
black_scholes  prices and their sensitivities
reductions     logsumexp, and softmax with cross-entropy
bandwidth      kernels that wait for memory, and fresh pages
mixture        the Gaussian mixture of ADBench
perceptron     one training step
higher         Hessian, product with a Hessian, fifth derivative
cold           the first call in a fresh process, and in a second one
"""
