"""Rewrite rules, by subject.

algebra            cheaper equal expressions
constant_folding   nodes that depend on constants only, computed once
stabilize          expressions that overflow or cancel, replaced
exponentials       products of exponentials in derivatives that overflow and underflow
overflowed_values  graphs in which a value has overflowed
shapes             broadcasts, transposes, reshapes and casts, merged and moved
store_forwarding   reads of stored elements, and stores that are overwritten
contractions       sums of products along axes of one factor only
matrices           triangular, diagonal and symmetric matrices
derivative_guards  strong zeros of derivatives that are not needed
"""
