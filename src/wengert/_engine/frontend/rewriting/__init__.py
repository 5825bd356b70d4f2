"""Transformations of the syntax tree of a function, in the order in which they are applied.

buffers.py          new arrays, elements of which are assigned later, become tensors
simplified.py       match statements, and ``:=`` in conditions, become branches
exits.py            break, continue and early return become flags
list_appends.py     finds lists that loops fill; ``out += [v]`` becomes ``out.append(v)``;
                    ``out[-1]`` in a loop that fills `out` becomes a variable
global_stores.py    assignments of global variables become stores to the globals of the module
statements.py       loops, branches and assertions become calls, with functions for their blocks
exception_handlers.py   handlers of exceptions catch no refusals
expressions.py      conditions, calls and stores inside of statements become calls; only calls, for
                    functions whose loops and branches are not rewritten
comprehensions.py   comprehensions become functions with loops

callback_arguments.py   a function without the functions that it passes to be called later
functions.py        rewrites and compiles a function
syntax.py           constructors of syntax tree nodes

The functions that are called are in the package `running`; their names begin with ``__wg_``.
"""
