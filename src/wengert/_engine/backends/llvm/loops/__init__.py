"""Native loops and conditionals: scan, while and cond.

control_flow          loops and conditionals
loop_body             the body of a loop as a function
checkpointed_reverse  the backward pass of a checkpointed loop
checkpoint_storage    storage of the states of a checkpointed loop
interrupts            polling for interrupts in long loops
"""
