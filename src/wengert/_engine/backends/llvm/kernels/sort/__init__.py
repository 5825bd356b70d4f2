"""Sorting and searching.

argsort       indices that sort an array
histograms    counts, and sums of weights, in bins; insertion points in sorted arrays
"""
