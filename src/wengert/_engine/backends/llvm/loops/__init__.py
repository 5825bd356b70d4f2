"""Native loops and branches: scan, while and cond.

control_flow          loops and branches
loop_body             the body of a loop as a function
checkpointed_reverse  the backward pass of a checkpointed loop
checkpoint_storage    storage of the states of a checkpointed loop
interrupts            polling for interrupts in long loops
"""
