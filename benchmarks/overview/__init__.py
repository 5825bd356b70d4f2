"""The page of all benchmarks, docs/benchmarks.md: what its tables and plots are made of.

results.py      all saved results, whatever suite wrote them, as sections of cases
files.py      what a target is, and how its figures are read from results
rows.py         the targets of the design: a row is declared here
plots.py        plots of sections: contestants on an axis of ratios
curves.py       plots of what grows with a size
svg.py          the little of SVG that they need
page.py         the text

Only the standard library is needed: pages are rendered where no library is installed.
"""
