"""Code generation: scheduled loops to LLVM functions.

function         a graph as one LLVM function: its scheduled stages in order
loop_nests       the rows, reductions and stores of a fused loop
kept_axes        the loops over axes that are not reduced
row_blocks       several rows added at a time; constant offsets of reads as part of the addresses
                 passed to a nest
elements         an expression at an index, as SIMD values; constants that LLVM takes for
                 variables, where it miscompiles masks
element_access   checks of the positions at which elements are read; stores of single numbers in
                 straight-line code
reductions       accumulators of reductions
straightline     small arrays in registers, without loops
program_context  protocols: the parts of a program that its functions use
nest_calls       identical loop nests, emitted once; loop nests split among threads
batch_loops      the stages of a batch, called for one item after the other
host_callbacks   operations that are called back in Python; signals that Python handles while native
                 code runs
pending_messages waiting for messages when a run ends early
"""
