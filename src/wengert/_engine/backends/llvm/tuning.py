"""The tuned thresholds of the compiler, its kernels and the runtime, in one table.

    thresholds    the values in use, as attributes: ``thresholds.parallel_loop_work``
    Thresholds    the table: default, unit, decision, origin, range
    describe      the entry of one threshold, a `Description`
    TUNE, ...     the commands that measure the effect of thresholds
    using         other values within a ``with`` block (tests, measurements)
    key           the values that differ from the defaults, for keys of cached programs

Values are read when code is generated, never when it runs.  Defaults are from a two-core cloud
machine; ``wengert tune`` measures some of them again and writes a file for this machine
(cache.py).  "work" is counted in additions of one element.  Register shapes (rows of a tile, lanes
of an unrolled loop) are not here: they are part of their kernels.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

TUNE = "wengert tune"
NATIVE = "python benchmarks/suites.py --only native"
LOOPS = "python benchmarks/suites.py --only loops"
CONVOLUTION = "python benchmarks/suites.py --only convolution"
LINALG = "python benchmarks/suites.py --only linalg"
LEARNING = "python benchmarks/suites.py --only learning"
EAGER = "python benchmarks/suites.py --only eager"
NPBENCH = "python benchmarks/suites.py --only npbench"
GROWTH = "python benchmarks/suites.py --only growth"
_BY_SUITE = "chosen with the benchmark suite; the values tried are not recorded"


class Description(NamedTuple):
    """The entry of a threshold.

    default : the value without a file for this machine.
    unit : of the value.
    decides : the decision that depends on it.
    found : how the default was found.
    command : measures its effect on this machine.
    least, most : the range of accepted values.
    """

    default: int
    unit: str
    decides: str
    found: str
    command: str
    least: int
    most: int


def _of(
    default: int, unit: str, decides: str, command: str, found: str = _BY_SUITE, least: int = 1
) -> Any:
    """An entry of the table; values of more than a thousand times the default are rejected."""
    most = max(default * 1000, 1000)
    return Description(default, unit, decides, found, command, least, most)


class Thresholds:
    """The thresholds; `describe` returns the entry of each.

    The class has the entries, its instance the values.  A dataclass would take 6 ms of the first
    call of a compiled function.
    """

    # fmt: off
    # ---- scheduling (schedule/) and lowering (lowering/) ----------------------------------------
    inline_work: int = _of(
        6, "work", "an expression used twice is recomputed up to it, stored beyond", NATIVE)
    selected_work: int = _of(
        12, "work", "an operand of a selection is stored beyond it, not computed in place", NATIVE)
    expression_work: int = _of(
        120, "work", "an expression is stored beyond it, so that loop bodies stay short", GROWTH)
    fusion_candidates: int = _of(
        64, "loop groups", "how many of a space are tried for an expression", GROWTH)
    loop_group_code: int = _of(
        4000, "instructions, estimated", "a loop group is split beyond it", GROWTH)
    library_call_work: int = _of(
        20, "work", "an operation counts as a call of a vector function from it on", GROWTH)
    library_call_code: int = _of(
        100, "instructions, estimated", "the code of a call of a vector function", GROWTH)
    array_access_code: int = _of(
        30, "instructions, estimated", "the code of one more array in a loop group", GROWTH)
    fusion_lookahead: int = _of(
        24, "stages", "how far ahead loop groups over the same rows are looked for", GROWTH)
    fused_row_elements: int = _of(
        8, "elements", "rows from this length on are fused along the rows", NATIVE)
    vector_lanes: int = _of(64, "lanes", "the most elements of one SIMD value", NATIVE)
    inner_loop_elements: int = _of(
        64, "elements", "rows from this length on are an inner loop of their own", NATIVE)
    fission_loops: int = _of(
        4, "loops", "identical loops from which on a loop group is split", LEARNING)
    fission_elements: int = _of(
        64, "elements", "a loop group is split if its space has that many", LEARNING)
    donated_bytes: int = _of(
        16384, "bytes", "updates from this size on are written in place", LEARNING,
        "smaller arrays stay in the nearest cache")
    separate_copy_bytes: int = _of(
        1 << 20, "bytes", "rows copied to so many are a loop without sums", NPBENCH, "gesummv")
    examined_index_elements: int = _of(
        1 << 16, "elements", "a constant index array up to it is searched for a pattern", NATIVE)
    folded_reduction_work: int = _of(
        3, "work", "the operand of a reduction is recomputed up to it", NATIVE)
    scatter_selections: int = _of(
        6, "writes", "writes into one array up to it are selections, more are one kernel", GROWTH)
    small_write_part: int = _of(
        8, "parts", "a kernel too are later writes of at most one such part of an array", GROWTH)
    selection_operands: int = _of(
        8, "operands", "concatenations of up to it are selections, more are copies", NATIVE)
    inlined_product_multiplications: int = _of(
        512, "multiplications", "products up to it are loops, fused with others", NATIVE)
    strong_zero_depth: int = _of(
        6, "operations", "how far a strong zero is searched for a common factor", GROWTH)

    batch_loop_bytes: int = _of(
        2 << 20, "bytes", "that stages of a batch pass on, from which on they run item by item",
        LINALG, "twice a second-level cache")
    batch_loop_items: int = _of(
        8, "items", "of a batch, at least: threads take whole items", LINALG, "chosen", least=2)
    batch_item_bytes: int = _of(
        2 << 20, "bytes", "of one item that these stages read and write, at most", LINALG)
    batch_item_flops: int = _of(
        100_000, "flops", "of the product of one item, at least", LINALG,
        "a few microseconds: the calls of an item take a tenth of one")

    # ---- code generation (codegen/, loops/, ir/, program.py) ------------------------------------
    parallel_loop_work: int = _of(
        500_000, "work", "what a fused loop gives each thread at least", TUNE,
        "three values compared in docs/design/0013: some tens of microseconds of one thread",
        1000)
    element_overhead_work: int = _of(
        4, "work", "reading and writing an element, beside its computation", NATIVE, least=0)
    row_block: int = _of(
        8, "rows", "that are added at a time where a sum goes over rows", NATIVE,
        "vector @ matrix of 1000 x 1000 and 4000 x 5000, by 4, 8, 16 and 32 rows")
    jammed_rows: int = _of(
        4, "rows", "that are summed along together", NATIVE,
        "matrix @ vector of 300 x 200, 1000 x 1000 and 4000 x 5000, by 2 and 4 rows")
    jammed_elements: int = _of(
        16384, "elements", "of a matrix, from which on rows are summed along together", NATIVE,
        "matrix @ vector: smaller ones are in the nearest caches, and compile in a third")
    jammed_work: int = _of(
        12, "work", "of an element, up to which rows are summed along at once", NATIVE)
    row_block_bytes: int = _of(
        1 << 18, "bytes", "of these rows where several loops read them", NATIVE,
        "half of a second-level cache")
    row_stack_bytes: int = _of(
        16384, "bytes", "buffers of one row up to it are on the stack", NATIVE, least=0)
    workspace_stack_bytes: int = _of(
        32768, "bytes", "the workspace of a function up to it is on the stack", NATIVE, least=0)
    compared_constant_bytes: int = _of(
        512, "bytes", "constants up to it are compared by value when nests are", GROWTH)
    remainder_loop_weight: int = _of(
        60, "work", "loops up to it have a second copy for the last, partial vector", GROWTH)
    interior_elements: int = _of(
        1024, "elements", "loops from this size on, in which selections choose one operand in the "
        "interior, have a second copy for it", LOOPS)
    interior_work: int = _of(
        400, "work", "loops up to it have a second copy for their interior", LOOPS)
    strip_elements: int = _of(
        32, "elements", "strips in which a loop reads an operand across its rows", NATIVE)
    unrolled_elements: int = _of(
        64, "elements", "fused loops over up to it are unrolled into registers", LOOPS)
    unrolled_terms: int = _of(512, "terms", "so are reductions of up to it", LOOPS)
    unrolled_work: int = _of(3000, "work", "so is no fused loop of more", LOOPS)
    unrolled_body_work: int = _of(
        3000,
        "work",
        "in a longer loop body, fused loops of some elements are not unrolled",
        NPBENCH)
    unrolled_body_elements: int = _of(
        8, "elements", "of a fused loop that is unrolled in any loop body", NPBENCH)
    expensive_element_work: int = _of(
        30, "work", "elements of more are vectorized rather than unrolled", LOOPS)
    expensive_elements: int = _of(8, "elements", "where there are that many of them", LOOPS)
    inlined_function_calls: int = _of(
        48, "calls", "calls of vector functions in a module that are inlined", GROWTH)
    inlined_body_lines: int = _of(
        600, "lines of LLVM", "loop bodies shorter than it are inlined into their loop", LOOPS)
    carried_columns_bytes: int = _of(
        1 << 15, "bytes", "of an array from which columns are carried from step to step", NPBENCH,
        "a first-level cache keeps smaller arrays; deriche of 400 x 200 and 1500 x 1000")
    loop_register_bytes: int = _of(
        1024, "bytes", "the state of a loop up to it is carried in registers", LOOPS)
    growing_stack_bytes: int = _of(
        16384, "bytes", "the first allocation for rows of a loop of unknown length", LOOPS)
    quick_kernel_lines: int = _of(
        400, "lines of LLVM", "longer kernels without loops are compiled with fewer passes", GROWTH)
    quick_nest_lines: int = _of(
        400, "lines of LLVM", "so is code without loops, if there is more of it", GROWTH)
    once_steps: int = _of(8, "steps", "loops of up to it count as code without loops", GROWTH)
    quick_entry_lines: int = _of(1000, "lines of LLVM", "so are longer entry points", GROWTH)
    cached_constant_bytes: int = _of(
        1 << 20, "bytes", "programs with more constants are not kept on disk", GROWTH)

    native_elements: int = _of(
        1 << 14, "elements", "eager functions and their rules are native code from it on", EAGER)
    native_rule_elements: int = _of(
        1 << 18, "elements", "so are eager rules of arithmetic alone", EAGER,
        "arrays that leave the second-level cache")

    # ---- entry points (abi/) and runtime (runtime/) ---------------------------------------------
    layout_calls: int = _of(
        3, "calls", "with a layout before a program for it is compiled", NATIVE, "chosen")
    layout_programs: int = _of(
        8, "programs", "of one graph for layouts other than C order", NATIVE, "chosen")
    gil_release_bytes: int = _of(
        64 << 10, "bytes", "moved by a run, from which on it releases the GIL", NATIVE)
    frame_stack_slots: int = _of(
        512, "slots of 8 bytes", "longer frames are allocated", NATIVE, "chosen")
    pooled_result_bytes: int = _of(
        256 << 10, "bytes", "results from it on are allocated by the pool", NATIVE)
    pooled_block_bytes: int = _of(
        128 << 10, "bytes", "blocks above it are mapped and recycled, not the C library's", NATIVE)
    spin_count: int = _of(64, "attempts", "at a lock before a thread yields", NATIVE)
    interrupt_poll_nanoseconds: int = _of(
        100_000_000, "nanoseconds", "between checks for Ctrl-C in a loop", LOOPS, "chosen")
    interrupt_light_steps: int = _of(
        65536, "steps", "of a few instructions between reads of the clock", LOOPS, "chosen")
    interrupt_heavy_steps: int = _of(
        16, "steps", "of other bodies between reads of the clock", LOOPS, "chosen")
    thread_spins: int = _of(
        1000, "attempts", "to get a part of a loop before a thread sleeps", NATIVE)
    thread_yield_spins: int = _of(20, "attempts", "of these before a thread yields once", NATIVE)
    blas_parallel_flops: int = _of(
        200_000_000, "flops", "a product from it on is BLAS's, on several threads", LINALG,
        "some 4 ms of one thread: threads of BLAS are slow to start")
    blas_single_thread_flops: int = _of(
        20_000, "flops", "below it BLAS uses one thread by itself", LINALG)

    # ---- kernels (kernels/) ---------------------------------------------------------------------
    kernel_stack_bytes: int = _of(8192, "bytes", "of scratch memory on the stack", LINALG, least=0)
    parallel_matmul_flops: int = _of(
        16_000_000, "flops", "a product from it on is divided among threads", TUNE,
        "some 0.2 ms of one thread", 1000)
    matmul_block_rows: int = _of(48, "rows", "of a block of such a product, at least", TUNE)
    matmul_blocks: int = _of(4, "blocks", "of such a product, at most", LINALG)
    small_matrix_side: int = _of(
        4, "elements", "the longest axis of a matrix that is one of a batch in lanes", LINALG)
    small_matrix_multiplications: int = _of(
        64, "multiplications", "of a product of such matrices, at most", LINALG)
    lu_in_cache_rows: int = _of(64, "rows", "whose LU factors stay in a near cache", LINALG)
    separate_parts_rows: int = _of(
        512, "rows", "of a complex system that is solved with separate parts, at most", LINALG,
        "complex systems of 50, 200, 400 and 800 rows with twice as many right-hand sides")
    small_matrix_batch: int = _of(8, "matrices", "in such a batch, at least", LINALG)
    guessed_search_elements: int = _of(
        16, "elements", "of a sorted array from which on a search begins at a guess", NATIVE,
        "histograms of 4e5 numbers with 8, 16, 32 and 1000 bins")
    symmetric_product_rows: int = _of(
        96, "rows and columns", "of a matrix whose product with its transpose is syrk of BLAS",
        LINALG, "a @ a.T of 64, 96, 128, 256 and 500 rows and as many columns")
    gemm_cached_bytes: int = _of(
        1 << 20, "bytes", "of a factor up to it are kept in a near cache; more are BLAS's", TUNE,
        "about a second-level cache")
    gemm_block_bytes: int = _of(
        1 << 19, "bytes", "of the second factor that are summed over before the next", TUNE,
        "half of gemm_cached_bytes")
    gemm_packed_rows: int = _of(96, "rows", "from which on the second factor is packed", TUNE)
    gemm_packed_bytes: int = _of(
        1 << 15, "bytes", "of the second factor, above which it is packed", LINALG,
        "a first-level cache")
    gemm_prefetch_steps: int = _of(8, "steps of a sum", "prefetched ahead", LINALG)
    gemm_sum_steps: int = _of(
        512, "steps", "of a sum of large matrices, added in registers", LINALG, "192 to 768 steps")
    gemm_block_rows: int = _of(
        96, "rows", "of a large first factor that are kept in a near cache", LINALG,
        "96, 240, 480 and all rows, multiples of the rows of a tile")
    gemm_panels_bytes: int = _of(
        2 << 20, "bytes", "of a large second factor that are copied to panels at a time", LINALG,
        "1, 2, 4 and 8 MB: on a busy machine 117, 116, 115 and 104e9 operations a second")
    streamed_bytes: int = _of(
        8 << 20, "bytes", "of a matrix that is read along its rows for a few rows", LINALG,
        "8 rows times matrices of 4, 20 and 240 MB: 1.2, 0.6 and 0.5 times the time of tiles")
    streamed_rows: int = _of(
        16, "rows", "of the other factor, at most", LINALG,
        "8, 12, 16, 24 and 32 rows: 0.5, 0.5, 0.6, 1.0 and 1.0 times the time of tiles")
    streamed_result_bytes: int = _of(1 << 18, "bytes", "of its result in a near cache", LINALG)
    streamed_columns: int = _of(1024, "columns", "of its result for each thread", LINALG)
    prefetched_row_bytes: int = _of(
        1024, "bytes", "of such rows that are prefetched", LINALG, "0, 512, 1024 and 4096 bytes")
    gemm_constant_stride_steps: int = _of(
        32, "steps of a sum", "up to which strides are constants of the code", GROWTH)
    unrolled_gemv_elements: int = _of(
        64, "elements", "of a matrix whose product with a vector is unrolled", LINALG)
    parallel_contraction_flops: int = _of(
        2_000_000, "flops", "what a contraction gives each thread at least", LINALG,
        "some 30 us of one thread", 1000)
    parallel_batch_elements: int = _of(
        60_000, "elements", "what a batch of matrices gives each thread at least", LINALG,
        least=100)
    parallel_convolution_flops: int = _of(
        4_000_000, "flops", "what a convolution gives each thread at least", TUNE, least=1000)
    parallel_depthwise_flops: int = _of(
        1_000_000, "flops", "what a depthwise convolution gives each thread at least", CONVOLUTION,
        least=1000)
    parallel_pooling_elements: int = _of(
        1_000_000, "elements", "what pooling gives each thread at least", CONVOLUTION, least=1000)
    depthwise_filters: int = _of(
        4, "filters", "of a channel that are unrolled in a depthwise convolution", CONVOLUTION)
    depthwise_taps: int = _of(64, "elements", "of all these filters, at most", CONVOLUTION)
    unrolled_row_vectors: int = _of(8, "vectors", "of a row that are unrolled", CONVOLUTION)
    unrolled_row_code: int = _of(40, "instructions", "for such a row, at most", CONVOLUTION)
    im2col_bytes: int = _of(
        1 << 18, "bytes", "of columns that are written before they are multiplied", CONVOLUTION)
    im2col_row_elements: int = _of(512, "elements", "longer rows are taken in pieces", CONVOLUTION)
    unrolled_window_elements: int = _of(
        32, "elements", "of a pooling window that is unrolled", CONVOLUTION)
    cholesky_vjp_columns: int = _of(
        48, "columns", "of a block of the derivative of a Cholesky factor", LINALG)
    # fmt: on


thresholds = Thresholds()
_DESCRIBED = {n: x for n, x in vars(Thresholds).items() if isinstance(x, Description)}
vars(thresholds).update({n: x.default for n, x in _DESCRIBED.items()})


def names() -> tuple[str, ...]:
    """The names of all thresholds, in the order of the table."""
    return tuple(_DESCRIBED)


def describe(name: str) -> Description:
    """What the table says of a threshold."""
    return _DESCRIBED[name]


def problem_of(name: str, value: object) -> str | None:
    """Why a value cannot be that of a threshold; None if it can."""
    described = _DESCRIBED.get(name)
    if described is None:
        return f"{name!r} is not a threshold"
    if type(value) is not int:
        return f"{name} is {value!r}: an integer is needed"
    if not described.least <= value <= described.most:
        return f"{name} is {value}: it must be from {described.least} to {described.most}"
    return None


def install(values: Mapping[str, int]) -> None:
    """Use these values from now on, and the defaults of the others; after blocks of `using`."""
    for name, described in _DESCRIBED.items():
        value = values.get(name, described.default)
        block = next((b for b in _blocks if name in b), None)
        if block is None:
            setattr(thresholds, name, value)
        else:
            block[name] = value


_blocks: list[dict[str, int]] = []  # of `using`, the outermost first: the values to restore


@contextlib.contextmanager
def using(**values: int) -> Iterator[Thresholds]:
    """Use other values in a ``with`` block; for what is compiled in it, in this process.

    Examples
    --------
    >>> from wengert._engine.backends.llvm import tuning
    >>> with tuning.using(parallel_loop_work=1000):
    ...     tuning.key()
    "[('parallel_loop_work', 1000)]"
    """
    for name in values:
        describe(name)  # raises KeyError for others
    before: dict[str, int] = {name: getattr(thresholds, name) for name in values}
    _blocks.append(before)
    try:
        for name, value in values.items():
            setattr(thresholds, name, value)
        yield thresholds
    finally:
        _blocks[:] = [b for b in _blocks if b is not before]
        for name, value in before.items():
            setattr(thresholds, name, value)


def key() -> str:
    """The values that are not the defaults; empty if there are none."""
    changed = [(n, getattr(thresholds, n)) for n, d in _DESCRIBED.items()
               if getattr(thresholds, n) != d.default]  # fmt: skip
    return repr(changed) if changed else ""
