"""The engine: everything that differentiates, compiles, runs, explains and saves.  Private.

Its public names are those of `wengert` and of the modules listed there (wengert/__init__.py).  Each
folder imports only those further down:

diagnostics, jit     why a derivative is so, what runs where; compiled functions
graphs               graphs as users hold them
backends, rewrite    what runs a graph (interpreter, LLVM); what simplifies it
serialization        safe files
named_arrays         arrays whose axes have names
visualization        text, DOT, SVG, pages
tensor               Tensor: operators, methods, NumPy's protocols
control_flow         loops and branches
autodiff             forward and reverse mode, batching
ops                  the operations, by family
kinds                what operations of a kind share
core                 nodes, graphs, operations, dispatch, tracing, specs
"""
