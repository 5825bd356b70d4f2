"""Scheduling: which nodes share a loop, in which order, and in which buffers.

buffer_donation  updates that are written where the variables lie
fma_fusion       a product that is scaled and added to something is one step
fusion           passes that share their outer loops, row after row
iteration_space  which loop is inside, and how wide its steps are
loop_fission     what could share a loop and has nothing in common
scheduling       what shares a loop, what is stored, and in which order all of it runs
workspace        where lies what is kept between the stages of a plan
"""
