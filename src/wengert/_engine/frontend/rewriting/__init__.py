"""Transformations of the syntax tree of a function, in the order in which they are applied.

stores.py           new arrays, elements of which are assigned later, become tensors; assignments of
                    global variables become stores to the globals of the module
simplified.py       match statements, and ``:=`` in conditions, become branches; comprehensions
                    become functions with loops
exits.py            break, continue and early return become flags
list_appends.py     finds lists that loops fill; ``out += [v]`` becomes ``out.append(v)``;
                    ``out[-1]`` in a loop that fills `out` becomes a variable
statements.py       loops, branches and assertions become calls, with functions for their blocks
expressions.py      conditions, calls and stores inside of statements become calls; only calls, for
                    functions whose loops and branches are not rewritten; handlers of exceptions
                    catch no refusals

functions.py        rewrites and compiles a function; a function without the functions that it
                    passes to be called later

The functions that are called are in the package `running`; their names begin with ``__wg_``.
"""
