"""Nodes, graphs, operations, dispatch, tracing and recording state.

Read node.py, op.py, dispatch.py and graph.py first.

node.py                        Node: one operation applied to operands, with its value or its spec
node_properties.py             static parameters beside operands; NodeInfo: optional properties of a
                               node; the user's file and line that a node was recorded at
op.py                          Op: the base class of operations, and their registry
op_facts.py                    facts of an operation: cost, ONNX name, remedy, range of values;
                               traits of an operation: effects, aliasing, differentiation
spec.py                        Spec: shape and dtype; shapes inferred by running on small arrays
dispatch.py                    apply: the single entry point, for concrete values
device_arrays.py               arrays in the memory of a device, and values of nodes there;
                               operations on large arrays that run as native code
tracing.py                     record: the same for traced values
trace_notes.py                 decisions of the front end, for explain; named_call: a function whose
                               nodes have its name
recording.py                   whether operations are recorded
uniform_arrays.py              arrays filled with one number, for rules
types.py                       types for annotations
implicit_conversions.py        policy: which implicit conversions are allowed; when a value may
                               become a Python number; functions traced again with the values of
                               their integers
conversion_hook.py             conversion of user functions; which code is not searched
user_functions.py              functions of users: names that they read and assign; parameters,
                               annotations not evaluated; functions that are passed to be called
                               when a program runs
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
display.py                     objects as tables, in notebooks; bytes, seconds and counts as text
                               with units; a graph as text
graph_fingerprint.py           whether two graphs are equal; graphs that differ only in the names of
                               lengths
graph_classes.py               Body: a graph that is a parameter of an operation; a graph whose
                               nodes are made when they are needed
graph_copies.py                a graph copied with changes, or recorded again on other operands
traced_inputs.py               traced values used after their trace has ended; inputs without axes:
                               numbers, or arrays that are modified in place; bounds of integers
                               that are computed from loop counters
symbolic/                      symbolic sizes
runtime_checks.py              conditions that raise when the graph runs; exceptions that a try
                               statement may catch; errors of lookups by integers; NaN checks of
                               values, and the errors found
pytree.py                      nested containers
thread_state.py                locks that are free in a forked child; values of `with` blocks;
                               functions that run without NumPy's floating-point errors
validation.py                  checks of arguments; ranges of Python integers
other_libraries.py             objects of pandas, xarray and pint, in messages; names of PyTorch and
                               JAX
message_order.py               the order of messages to other processes
lazy_import.py                 modules imported at first use; public names of modules
extra_packages.py              packages of the distribution wengert-extras
"""
