"""Passes over loops and branches.

loop_passes               imports the passes when a graph has loops; simplifies subgraphs by all
                          passes
driver                    runs the passes in order; inlines loops of at most one iteration, and
                          branches with known conditions; merges a loop with the loop that stores
                          its checkpoints
loop_view                 the parts of a loop or branch, for the passes below
loop_fusion               merges loops with the same trip count that compute the same values
loop_dce                  removes unused carries, inputs and stacked outputs
code_motion               hoists transposes and factorizations of loop-invariant matrices; replaces
                          accumulated products by one product after the loop
start_sums                starts sums of loops at what is added to them
"""
