"""Keep: graphs and parameters as files.  Filled by the files beside it."""
