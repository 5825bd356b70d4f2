"""Rewrite: graph to graph.  Filled by the files beside it."""
