"""Rewrite rules, by subject.

algebra            algebraic identities that save work
constant_folding   nodes that depend on constants only
stabilize          expressions that overflow or cancel
exponentials       products of exponentials in derivatives, where one overflows, one underflows
overflowed_values  recorded graphs in which a value has overflowed
shapes             broadcasts, transposes, reshapes and casts
store_forwarding   reads of stored elements, and dead stores
contractions       sums of products along axes of one factor only; triangular, diagonal and
                   symmetric matrices
derivative_guards  strong zeros that are not needed
"""
