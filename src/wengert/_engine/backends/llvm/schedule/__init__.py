"""Scheduling: which nodes share a loop, in which order, and in which buffers.

scheduling       which expressions share a loop, which are stored, and the order of the stages
fusion           loop groups over the same rows, fused along the outer loop; loop groups split into
                 independent parts
unstored_results results of stencils that are computed where they are used; scaled products and sums
                 as one kernel call; the expressions that results are computed from
batch_loops      stages that share a batch axis, run for one item after the other
iteration_space  order of loops, collapsed axes and vector width; ranges of axes in which
                 selections choose one operand
slices           slices that a step of a loop writes into the arrays that it carries; upper bounds
                 of lengths that differ between the steps of a loop; blocks of rows that loop groups
                 take in turn
stage_order      order in which a step may write over the arrays that it updates; messages that
                 start early and are waited for late
integer_ranges   ranges of the integers in loops: indices that need no check
workspace        memory of intermediate arrays, by lifetime; updates written into the memory of
                 variables
"""
