"""Sorting and searching.

argsort       positions that sort
searchsorted  places among sorted numbers, counts
"""
