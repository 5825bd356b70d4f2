"""The engine: differentiation, graphs, compilation, diagnostics and serialization.  Private.

Public names are those of `wengert` and of the modules listed in wengert/__init__.py.  Each folder
imports only those below it (docs/architecture.md):

diagnostics, jit   why and explain; compiled functions
graphs             graphs as users hold them
backends, rewrite  interpreter and LLVM; passes that simplify graphs
serialization      graphs and arrays in files
named_arrays       arrays with named axes
labelled_arrays    objects of pandas, xarray and pint as arguments
profiling          records and reports of timed runs
visualization      text, DOT, SVG, HTML
frontend           user functions converted: buffers, loops and branches of plain Python
tensor             Tensor: operators, methods, NumPy's protocols
control_flow       loops and branches
autodiff           forward and reverse mode, batching
ops                the operations, by family
kinds              what operations of a kind share
cache              files on disk, for other processes
core               nodes, graphs, operations, dispatch, tracing, specs
"""
