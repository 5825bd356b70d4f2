"""What benchmarks/distributed.py measures, and the model that extrapolates it.

workers       measured by two processes that mpirun starts
cost_model    times of messages, reductions, halos and pipelines on many processes
simulation    processes that compute and send messages, event by event: a check of the model
page          the two pages
"""
