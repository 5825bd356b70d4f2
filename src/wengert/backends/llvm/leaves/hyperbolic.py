"""Leaves: to be written.

One file for each family.
See __init__.
"""
