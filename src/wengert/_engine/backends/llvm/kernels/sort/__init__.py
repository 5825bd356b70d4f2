"""Sorting and searching.

argsort       indices that sort an array
searchsorted  insertion points in sorted arrays
histograms    counts, and sums of weights, in bins
"""
