"""Series and tables of pandas, arrays of xarray and quantities of pint as arguments.

calls.py              derivatives: a call with values, whose results get labels and units; the same
                      for compiled functions; the labels and the values of objects
labels.py             Labels: the labels and the unit of an array; those of a derivative; units of
                      pint
xarray_labels.py      dims and coordinates of xarray
pandas_labels.py      indices of pandas; operands of the operators: equal labels, or an error
pandas_tensors.py     SeriesTensor, TableTensor: what a function gets in place of pandas' objects
pandas_functions.py   NumPy's functions of them; sums and moments, which skip NaN, cumulative sums;
                      rolling windows, relative changes, elements that are not NaN

The package is imported at the first call with such an argument (core/other_libraries.py), and
imports a library only if an argument is one of its objects.  Within a function, a `DataArray` or a
`Quantity` holds a tensor, and is an object of its library.  pandas stores no tensors, so its
objects are replaced by `SeriesTensor` and `TableTensor`, which have the meaning of pandas for what
they support, and raise an error for everything else.
"""
