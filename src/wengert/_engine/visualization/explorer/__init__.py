"""The explorer: an HTML page on which a graph is looked at, line by line and pass by pass.

explorer.py         the page of a graph: one file, with its data in it
page_data.py        what the page shows, as JSON
grouping.py         lines that belong together; line_blocks.py how a group is described
rewrite_history.py  the steps of a simplification
page/                HTML, CSS and JavaScript
"""
