"""Random numbers: Philox bits, distributions, keys.

philox         random bits as a function of a key and a position
distributions  random numbers of distributions
keys           keys derived from keys
"""
