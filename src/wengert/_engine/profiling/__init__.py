"""Profiling: the record of a timed run, and its presentation.

record.py      the time and memory of a run by step, as plain data that every backend fills
profile.py     Profile: what `wengert.profile` returns; profile_data.py its figures
render.py      a profile as text and as an HTML page
flamegraph.py  a profile as an SVG picture
"""
