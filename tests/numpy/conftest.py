"""agree: compare a program on arrays and on tensors, in both namespaces, with its derivatives.

Every program that is checked in this folder is traced as well (`traced`): its graph has to give the
same values and derivatives, and with names for its lengths it has to serve other sizes too.  The
two lists below say where that cannot be, and why.  Differences are taken along one random direction
for all entries at once (`entries=False`), so that the cost does not grow with their number.
"""

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, value_of
from wengert.errors import CheckError, TraceError, WengertError
from wengert.testing import check_grads
from wengert.testing.op_checks import check_traced

# Programs without a graph: their operations or the shapes of their results depend on values, or on
# memory layout.
NO_GRAPH = {
    "how many elements there are": """test_ranges[arange] test_ranges[arange|step]
        test_agrees_with_numpy[union1d] test_agrees_with_numpy[setdiff1d]
        test_agrees_with_numpy[setxor1d] test_agrees_with_numpy[trim_zeros]""",
    "False as an index": "test_reading[false] test_assignment[false]",
    "the layout": "test_agrees_with_numpy[reshape|order|A] test_agrees_with_numpy[ravel|K]",
    "a branch": "test_vectorize",
    "eigenvalues are complex in a graph": "test_eig_of_real_matrices[a0] test_empty_matrices[eig]",
}

# Tests of several programs, some of which cannot be traced.
NO_GRAPH_OF_SOME = {
    "how many elements there are": """test_histogram_and_bincount test_nonzero test_unique""",
}

# Programs that need some concrete lengths; a name without parameters stands for all its cases.
NEEDS_NUMBERS = {
    "arrays of fixed shape stand beside the operands": """test_reduction test_assignment test_at
        test_at_in_several_dimensions test_where_and_initial test_reduce_with_where_and_initial
        test_nested_lists_of_tensors_are_stacked test_full_of_a_tensor test_out_is_differentiated
        test_reading test_functions_agree_with_numpy test_writing_functions_agree_with_numpy
        test_complex_nanvar_and_masked_var test_prod_with_zeros_to_third_order
        test_cov_and_corrcoef test_histogram_and_bincount test_other_operands
        test_value_and_derivatives[slogdet] test_complex_matrices[slogdet]
        test_agrees_with_numpy[broadcast_to] test_agrees_with_numpy[insert|column]""",
    "one node for each element of an axis": """test_reduce[hypot]
        test_reduce_by_folding test_accumulate test_reduceat test_roots
        test_zero_dimensional_and_zero_size
        test_quantile_by_level_nan_and_weights test_agrees_with_numpy[polyval]
        test_agrees_with_numpy[polyval|number] test_agrees_with_numpy[polyadd]
        test_agrees_with_numpy[polysub] test_agrees_with_numpy[polydiv]
        test_agrees_with_numpy[polydiv|short] test_agrees_with_numpy[poly]
        test_agrees_with_numpy[unstack] test_agrees_with_numpy[concatenate|of|a|tensor]
        test_agrees_with_numpy[pad|function]""",
    "equal pieces, and positions that not every length has": """test_order_two[insert|several]
        test_agrees_with_numpy[split] test_agrees_with_numpy[split|at]
        test_agrees_with_numpy[array_split] test_agrees_with_numpy[array_split|many]
        test_agrees_with_numpy[hsplit] test_agrees_with_numpy[vsplit]
        test_agrees_with_numpy[insert|several] test_agrees_with_numpy[insert|one|of|list]
        test_agrees_with_numpy[insert|slice] test_agrees_with_numpy[insert|mask]
        test_agrees_with_numpy[delete] test_agrees_with_numpy[delete|several]
        test_agrees_with_numpy[delete|slice] test_agrees_with_numpy[delete|mask]
        test_agrees_with_numpy[repeat|counts]""",
    "which of two lengths is larger": """test_matrix_norms test_convolve_and_correlate
        test_value_and_derivatives[pinv|wide] test_value_and_derivatives[lstsq]
        test_value_and_derivatives[lstsq|all] test_value_and_derivatives[lstsq|wide]
        test_value_and_derivatives[qr] test_value_and_derivatives[qr|wide]
        test_value_and_derivatives[qr|complete] test_value_and_derivatives[svd|full]
        test_value_and_derivatives[svd|completion] test_value_and_derivatives[svdvals]
        test_complex_matrices[lstsq] test_complex_matrices[qr] test_complex_matrices[qr|wide]
        test_complex_matrices[qr|complete] test_complex_matrices[svd|completion]
        test_complex_matrices[svdvals] test_agrees_with_numpy[diagonal]
        test_agrees_with_numpy[diag|of|matrix] test_agrees_with_numpy[trace]
        test_agrees_with_numpy[method|diagonal] test_agrees_with_numpy[method|trace]
        test_value_and_derivatives[diagonal] test_agrees_with_numpy[pad|maximum]
        test_agrees_with_numpy[pad|minimum]""",
    "a length that has to be three, or a product": """test_product[cross] test_product[cross|axes]
        test_product[linalg] test_complex_product[cross] test_value_and_derivatives[tensorsolve]
        test_value_and_derivatives[tensorsolve|axes] test_value_and_derivatives[tensorinv]""",
    "the program calls NumPy's own eye and arange": """test_value_and_derivatives[cholesky]
        test_value_and_derivatives[cholesky|upper] test_value_and_derivatives[eigh]
        test_value_and_derivatives[eigvalsh] test_complex_matrices[cholesky]
        test_complex_matrices[cholesky|upper] test_complex_matrices[eigh]
        test_missing_mode_is_derived_for_several_outputs
        test_agrees_with_numpy[pad|reflect|odd] test_agrees_with_numpy[pad|symmetric|odd]""",
}


def _listed(table):
    return {name.replace("|", " ") for names in table.values() for name in names.split()}


NO_GRAPH, NEEDS_NUMBERS = _listed(NO_GRAPH), _listed(NEEDS_NUMBERS)
NO_GRAPH_OF_SOME = _listed(NO_GRAPH_OF_SOME)
if np.linalg.eigvals(np.eye(1)).dtype.kind == "c":  # since NumPy 2.5, as in a graph
    NO_GRAPH.discard("test_eig_of_real_matrices[a0]")
MODULES_WITH_SAME = {"test_reductions", "test_sorting", "test_ufunc_methods"}


@pytest.fixture
def traced(request):
    """`traced(f, *arrays)`: the graph of f agrees with f."""
    names = {request.node.name, request.node.originalname}

    def check(f, *arrays, sizes=True):
        if names & NO_GRAPH:
            with pytest.raises((WengertError, CheckError)):
                check_traced(f, arrays)
            return
        if names & NO_GRAPH_OF_SOME:
            try:
                wg.trace(f)(*arrays)
            except TraceError:
                return
        check_traced(f, arrays, sizes=None if sizes and names & NEEDS_NUMBERS else sizes)

    return check


@pytest.fixture(autouse=True)
def _trace_what_is_checked(request, traced, monkeypatch):
    """Trace the programs that a test module checks with `check_grads` or its own `same`."""
    module = request.module

    def both(f, args, *more, **options):
        check_grads(f, args, *more, **{"entries": False, **options})
        if all(isinstance(a, np.ndarray | np.generic | float | complex) for a in args):
            traced(f, *args)

    if hasattr(module, "check_grads"):
        monkeypatch.setattr(module, "check_grads", both)
    if module.__name__.rpartition(".")[2] in MODULES_WITH_SAME:
        compare = module.same

        def same(f, *arrays, **options):
            compare(f, *arrays, **options)
            traced(f, *arrays, sizes=False)

        monkeypatch.setattr(module, "same", same)


def _plain(x):
    return pytree.flatten(x)[0]


def _same(got, want, what):
    got, want = _plain(got), _plain(want)
    assert len(got) == len(want), what
    for g, w in zip(got, want, strict=True):
        g, w = np.asarray(value_of(g)), np.asarray(value_of(w))
        assert g.shape == w.shape, (what, g.shape, w.shape)
        assert g.dtype == w.dtype, (what, g.dtype, w.dtype)
        np.testing.assert_allclose(g, w, rtol=1e-13, atol=1e-14, err_msg=what)


@pytest.fixture
def agree(traced):
    """`agree(f, *arrays)`: f(xp, *arrays) agrees in all modes, and so do its derivatives."""

    def check(f, *arrays, order=1):
        want = f(np, *[np.array(a) for a in arrays])
        plain = f(wnp, *[np.array(a) for a in arrays])
        assert not any(isinstance(x, Handle) for x in _plain(plain)), "plain in, plain out"
        _same(plain, want, "arrays in wengert.numpy")
        for xp in (np, wnp):
            got = f(xp, *[wg.tensor(a) for a in arrays])
            assert any(isinstance(x, Handle) for x in _plain(got)), "tensor in, tensor out"
            _same(got, want, f"tensors in {xp.__name__}")
        check_grads(lambda *xs: f(np, *xs), arrays, order=order, entries=False)
        traced(lambda *xs: f(np, *xs), *arrays)
        single = [a.astype(np.float32) if a.dtype == float else a for a in map(np.asarray, arrays)]
        if all(a.dtype == np.float32 for a in single):
            out, pull = wg.vjp(lambda *xs: f(np, *xs), *single)
            for bar, a in zip(pull(pytree.tree_map(np.ones_like, out)), single, strict=True):
                assert bar.dtype == np.float32
                assert bar.shape == a.shape

    return check
