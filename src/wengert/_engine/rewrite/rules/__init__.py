"""Rewrite rules, by subject.

algebra            what is the same number, with less work
constant_folding   lines that depend on constants only are computed once, when the graph is
                   simplified
contractions       sums over an axis that only one factor of a product has
derivative_guards  what a sweep writes to be safe, and is not needed where more is known
exponentials       Exponentials in derivatives: products in which one factor overflows and the
                   other underflows
matrices           what is known of a matrix saves work (value_properties.py says how it is known)
overflowed_values  rules for recorded lists in which a value has overflowed
shapes             elements moved once instead of often, and repeated late or not at all
stabilize          the same function, without overflow and without lost digits
store_forwarding   what has just been written is not read back, and not written over
"""
