"""The workloads of benchmarks/learning.py; what they are made of is in benchmarks/native.

perceptron, network, recurrent, gpt    four models, each for wengert, PyTorch and JAX
training                               one step of any of them: loss, gradient, AdamW
steps                                  how long a step takes
memory                                 the peak of a process that takes some steps
start                                  from the first import to the end of the first step

Nothing here imports a library before it is measured.
"""
