"""Native loops and branches: scan, while and cond.

checkpoint_storage    states of a loop, kept in rows of bytes for the way back
checkpointed_reverse  a loop backwards with room for a few states, in native code
control_flow          loops and choices; snapshots what loops leave of their states, replay the way
                      back from there, with little memory
interrupts            a long loop asks Python now and then whether somebody wants to interrupt it
loop_body             the functions of their bodies; straight those that need no loop or memory,
                      listening how loops can be interrupted
"""
