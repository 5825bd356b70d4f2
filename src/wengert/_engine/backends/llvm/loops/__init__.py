"""Native loops and conditionals: scan, while and cond.

control_flow          loops
branches              branches, and bodies with computed lengths
loop_body             the body of a loop as a function
carried_elements      elements that the step before has stored
in_place              which results of a body may be written over its inputs
checkpointed_reverse  the backward pass of a checkpointed loop
checkpoint_storage    storage of the states of a checkpointed loop
interrupts            polling for interrupts in long loops
"""
