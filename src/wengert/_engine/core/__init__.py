"""The ground floor: specs, nodes and graphs, operations and the one door, recording state.

Begin with node.py, op.py, apply.py, graph.py.

a line         node.py what it is; op.py what made it; params.py, spec.py what it says of itself;
               places.py where it stands in the user's program
the one door   apply.py where values are known, tracing.py where they are not; recording.py whether
               and policy.py what may happen implicitly there; scalar.py the language of bodies;
               leaving.py when a value may become a plain number; hidden.py errors of others that
               stand for ours
what is held   handle.py the mutable reference; versions.py large arrays written to in place
the list       graph.py in order; printed.py as text; equality.py whether two say the same;
               rebuild.py copied, changed; again.py written down again; body.py closed, as a
               parameter of an operation; kept.py tensors that outlive their trace;
               numbered.py what is looked up by number, and is not there
sizes          dims.py lengths with names (polynomials.py their algebra, size_text.py their text);
               sizes.py what holds of many; probing.py shapes found by trying; open_names.py
               lengths that are known when a loop has ended
first NaN      checking.py what looks for it; inside.py which line of a list or loop made it
beside them    tree.py containers; blocks.py what holds in a block; locks.py across a fork;
               given.py what users give, checked; foreign_names.py what others call it;
               integers.py Python integers beside arrays of integers;
               late.py what is imported when it is used; units.py numbers as people read them
"""
