"""Passes over loops and branches.

driver                    the order of the passes
loop_view                 a loop or branch as its parts, for the passes below
nested_graphs             subgraphs simplified by all passes
loop_fusion               loops with the same trip count and equal work, merged
loop_dce                  unused carries, inputs and stacked outputs, removed
unroll                    loops of at most one iteration, and branches with known conditions,
                          inlined
hoist_transposes          loop-invariant transposes for products in the loop, hoisted
hoist_factorizations      factorizations of loop-invariant matrices, hoisted
sink_accumulations        accumulated products as one product after the loop
merge_checkpointed_loops  a loop and the loop that stores its checkpoints, merged
"""
