"""Code generation: scheduled loops to LLVM functions.

elements        an item's element at an index
function        a list as a function: the stages of its plan, one after the other
host_callbacks  operations that are called back in Python
kernel_dedup    walks whose nests would be the same text
loop_nests      the loops of a walk, as text
parallel_loops  a nest at once, or in parts on several threads
reductions      what a reduction keeps while its loop runs
straightline    small arrays in registers: walks one after the other, without loops
"""
