"""Forward and reverse mode, batching, and the transformations that users call.

tape.py                  which nodes a pass visits
reverse.py               the backward pass; forward.py forward mode
eager_passes.py          the visits of nodes in an eager backward pass; plain arrays that a backward
                         pass compares with their fingerprints; arrays that cotangents are added
                         into; results without other references; cotangents of large arrays by
                         native kernels
infinities.py            strong zeros: zero cotangents of branches that were not taken; cotangents
                         in the space of their primal; derivatives of values that overflowed
grad.py                  grad, value_and_grad, stop_gradient
jvp_vjp.py               jvp, vjp, linearize
jet.py                   jet
series.py                Taylor series along a tape; series_terms.py their values
series_terms.py          the derivative rule of one operation as a graph
jacobians.py             jacobian, jacfwd, jacrev, hessian, hvp
checkpoint.py            checkpoint
vmap.py                  vmap; batch_graph.py a graph evaluated for a batch
vmap_fallback.py         operations without a batching rule, one element of the batch at a time
arguments.py             which arguments are differentiated; the callables that transformations
                         return; plain arrays that a function modifies
pullback.py              the function from cotangents of outputs to those of inputs; all columns or
                         rows of a Jacobian at once
messages.py              functions that exchange messages with other processes
"""
