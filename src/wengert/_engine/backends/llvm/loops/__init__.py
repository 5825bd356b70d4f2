"""Native loops, conditionals and integrals: scan, while, cond, quadrature.

control_flow            loops
branches_and_integrals  branches, and bodies with computed lengths; integrals, whose integrand is
                        called by address
loop_body               the body of a loop as a function; polling for interrupts in long loops
carried_elements        elements that the step before has stored
in_place                which results of a body may be written over its inputs
checkpointed_reverse    the backward pass of a checkpointed loop
checkpoint_storage      storage of the states of a checkpointed loop
"""
