"""The explorer: an HTML page that shows a graph node by node and pass by pass.

explorer.py         the page of a graph: one file with its data
page_data.py        the contents of the page as JSON; the steps of a simplification; source text of
                    the user's lines
page/               HTML, CSS and JavaScript
"""
