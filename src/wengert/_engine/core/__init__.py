"""Nodes, graphs, operations, dispatch, tracing and recording state.

Read node.py, op.py, dispatch.py and graph.py first.

node.py                        Node: one operation applied to operands, with its value or its spec
node_info.py                   NodeInfo: optional properties of a node; the user's file and line
                               that a node was recorded at
op.py                          Op: the base class of operations, and their registry
op_facts.py                    facts of an operation: cost, ONNX name, remedy, range of values;
                               traits of an operation: effects, aliasing, differentiation
spec.py                        Spec: shape and dtype; static_params.py parameters beside operands
dispatch.py                    apply: the single entry point, for concrete values
large_arrays.py                operations on large arrays that run as native code
tracing.py                     record: the same for traced values
named_call.py                  named_call: a function whose nodes have its name
device_arrays.py               arrays in the memory of a device; values of nodes in the memory of a
                               device
uniform_arrays.py              arrays filled with one number, for rules
recording.py                   whether operations are recorded; policy.py implicit conversions
types.py                       types for annotations
scalar_language.py             the language in which bodies of elementwise operations are written
concretization.py              when a value may become a Python number; functions traced again with
                               the values of their integers
conversion_hook.py             conversion of user functions; which code is not searched
callback_arguments.py          functions that are passed to be called when a program runs
bytecode_names.py              the names that a function reads and assigns
signatures.py                  parameters of user functions, annotations not evaluated
replaced_errors.py             errors of other libraries that replace those of wengert; exceptions
                               of user functions, which are not replaced
handle.py                      Handle: the mutable reference to a node; views
assigned_parts.py              parts of objects that a compiled function assigns after each run
branch_aliases.py              arrays that share the memory of others on traced conditions
array_states.py                states of an array that is written to in place; stores to large
                               arrays whose old value may still be needed
loop_rows.py                   elements of a list that a traced loop has filled, as rows
loop_variants.py               loops and the same loops with further results, which derivatives
                               need; derivatives that higher layers add to those that are exported;
                               patterns of linear functions, found by a higher layer
graph.py                       Graph: nodes in evaluation order, their names and dependences
graph_nodes.py                 the order of nodes, their names, and patterns that select nodes
pretty_print.py                a graph as text; display.py objects as tables, in notebooks, and
                               bytes, seconds and counts as text with units
graph_fingerprint.py           whether two graphs are equal; graphs that differ only in the names of
                               lengths
deferred_graph.py              a graph whose nodes are made when they are needed
copy_graph.py                  a graph copied with changes; replay.py evaluated on other operands
subgraph.py                    Body: a graph that is a parameter of an operation
leaked_tracers.py              traced values used after their trace has ended
symbolic/                      symbolic sizes
shape_inference_by_example.py  shapes inferred by running on small arrays
nonfinite_checks.py            NaN checks of values, and the errors found
pytree.py                      nested containers
dynamic_scope.py               values of `with` blocks
errors_ignored.py              functions that run without NumPy's floating-point errors
fork_safe_locks.py             locks that are free in a forked child
validation.py                  checks of arguments; ranges of Python integers
intervals.py                   bounds of integers that are computed from loop counters
scalar_inputs.py               inputs without axes: numbers, or arrays that are modified in place
trace_notes.py                 decisions of the front end, for explain
runtime_checks.py              conditions that raise when the graph runs; exceptions that a try
                               statement may catch; errors of lookups by integers
labelled_arrays.py             objects of pandas, xarray and pint, in messages
other_libraries.py             names of PyTorch and JAX
message_order.py               the order of messages to other processes
lazy_import.py                 modules imported at first use; public names of modules
extra_packages.py              packages of the distribution wengert-extras
"""
