"""Sorting and searching.

argsort       indices that sort an array
searchsorted  insertion points in sorted arrays, histogram counts
"""
