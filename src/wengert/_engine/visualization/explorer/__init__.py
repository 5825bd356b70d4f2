"""The explorer: an HTML page that shows a graph node by node and pass by pass.

explorer.py         the page of a graph: one file with its data
page_data.py        the contents of the page as JSON
grouping.py         nodes grouped into boxes; line_blocks.py: splitting long sequences
rewrite_history.py  the steps of a simplification
page/               HTML, CSS and JavaScript
"""
