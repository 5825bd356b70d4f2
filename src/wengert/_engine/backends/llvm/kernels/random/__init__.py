"""Random numbers: Philox bits, distributions, keys.

distributions  random numbers of them
keys           keys of other keys
philox         random bits as a function of key and position
"""
