"""The backend "cuda": a graph as kernels of a graphics card, and calls of its libraries.

backend          "cuda"
program          the stages of a graph: kernels, calls, loops
kernel_codegen   a loop group as a function that many threads run
block_threads    threads of a block that work together: barriers, shuffles, sums of all lanes
block_codegen    rows of loop groups, computed by such threads; block_kernels launches them
column_sums      sums over these rows
stepped_loops    loops and branches that the host runs step by step
loop_kernels     a loop of a batch as one kernel, and its runs
row_matrices     small matrices of a row, and those that all rows share; row_random random numbers
                 of a row
row_stages       what a thread does for one row of a loop; row_analysis finds whether rows are
                 independent: row_linearity sums over rows, row_conditions where rows end, by
                 row_folding; row_codegen writes the code, with row_loops, row_memory addresses and
                 stores to positions
matrix_kernels   small matrices: a thread computes each
memory           which arrays share memory; results written over others
random_kernels   random bits, integers and keys; normal_kernels normal numbers by ziggurat, with
                 draw_chains
scatter_kernels  writes to computed positions
sparse_kernels   products with sparse matrices
scan_kernels     elements that depend on those before: running maxima, recurrences; products in
                 which zero times infinity is zero
window_kernels   sliding windows: pooling, and the columns of convolutions.py
loaded_kernels   kernels of single operations, loaded once
library_calls    operations as a whole, by the library of the device or on the host
device           what a program needs of a device
current_device   the device in use
cupy_device      a graphics card, by CuPy
host_callbacks   operations that run on the host
device_memory    memory in use, and the error if it does not suffice; stage_memory the error of
                 a stage
run_status       whether a kernel of a run has failed; conditions that are errors if they do not
                 hold; the search for NaN and infinities in an array; checked_values: in kernels,
                 for wengert.debug(nan=True)
device_profile   the time of kernels and calls; stage_timers reads it
ptx              kernels as PTX
packed_factors   LU factors that several steps of a loop use; larger matrices by the library
listing          kernels and calls as text, for inspection
variables        variables and the results of training steps, which stay on the device
transfers        device_put, device_get
device_emulation a device that the processor emulates, for tests; emulated_limits its memory, and
                 what CuPy has, which its arrays have
emulated_blocks  its blocks of threads, which wait for each other
"""

from typing import TYPE_CHECKING

from wengert._engine.core.lazy_import import lazy_names, public_dir

if TYPE_CHECKING:
    from .device_emulation import EmulatedDevice, emulated_device
    from .transfers import device_get, device_put

__all__ = ["EmulatedDevice", "device_get", "device_put", "emulated_device"]

__getattr__ = lazy_names(
    __name__,
    {
        **dict.fromkeys(("EmulatedDevice", "emulated_device"), ".device_emulation"),
        **dict.fromkeys(("device_get", "device_put"), ".transfers"),
    },
)
__dir__ = public_dir(__name__)
