"""Transformations of the syntax tree of a function, in this order.

exits.py         break, continue and early return, as flags
list_appends.py  lists that loops fill
last_elements.py reads of their last elements, as variables
comprehensions.py    comprehensions, as functions with loops
expressions.py   conditions, calls and stores, as calls
statements.py    loops, branches and assertions, as calls with functions for their blocks
functions.py     a definition, rewritten and compiled
syntax.py        constructors of tree nodes
"""
