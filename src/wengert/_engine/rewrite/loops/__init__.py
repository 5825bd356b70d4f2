"""Passes over loops and branches.

driver                    simplifies loops and branches as a whole, with the passes below
hoist_factorizations      a matrix that is the same in each step of a loop is factorized once
hoist_transposes          what is the same in each step of a loop is transposed before it, where
                          products ask it
loop_dce                  what a loop carries, stacks and takes along without anybody needing it
loop_fusion               loops that do the same work become one
loop_view                 a line with bodies taken apart, and put together again with other bodies
                          or operands
merge_checkpointed_loops  a loop that leaves snapshots for the way back does what the loop itself
                          does
nested_graphs             their bodies, simplified by the same passes
sink_accumulations        products that a loop only adds up are one product behind the loop
unroll                    loops of at most one step, and choices of which it is known which way
                          they go
"""
