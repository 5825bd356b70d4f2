"""The documentation site: pages of docs/, examples, and a reference of all public names.

    build           the command: `make docs-site`
    public_names    the public modules, and the names of each
    reference       a page of reference for each module
    docstrings      numpydoc docstrings as reStructuredText
    pages           Markdown pages, with links that work on the site
    gallery         a page for each example
    example_pictures    pictures of the examples that draw none themselves
    notebooks       the tutorials as notebooks
    tutorial_pictures   the figures of the tutorials
    inventories     addresses of NumPy's, SciPy's and Python's documentation, without a network
    conf            the configuration of Sphinx

Everything is written to out/site; nothing there is edited by hand.
"""
