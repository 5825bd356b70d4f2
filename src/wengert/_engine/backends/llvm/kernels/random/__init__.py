"""Random numbers: Philox bits, distributions, keys.

philox         random bits as a function of a key and a position; keys derived from keys
distributions  random numbers of distributions
"""
