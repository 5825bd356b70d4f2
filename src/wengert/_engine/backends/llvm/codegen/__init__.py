"""Code generation: scheduled loops to LLVM functions.

function         a graph as one LLVM function: its scheduled stages in order
loop_nests       the rows, reductions and stores of a fused loop
kept_axes        the loops over axes that are not reduced
row_blocks       several rows added at a time; constant offsets of reads as part of the addresses
                 passed to a nest
elements         an expression at an index, as SIMD values
position_checks  checks of the positions at which elements are read
reductions       accumulators of reductions
straightline     small arrays in registers, without loops
element_stores   stores of single numbers in such code
program_context  protocols: the parts of a program that its functions use
parallel_loops   loop nests split among threads
batch_loops      the stages of a batch, called for one item after the other
kernel_dedup     identical loop nests, emitted once
host_callbacks   operations that are called back in Python
python_signals   signals that Python handles while native code runs
pending_messages waiting for messages when a run ends early
"""
