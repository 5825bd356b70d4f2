"""Runtime: threads, memory and addresses of library functions.

allocator         memory that is recycled, as LLVM's text
allocator_stats   what can be asked of that memory; without LLVM
blas_threads      how many threads BLAS uses for one call
library_symbols   addresses of BLAS, LAPACK, special functions, NumPy's sorting
machine           how many processors and how much memory this process may use
numpy_allocator   such memory for NumPy's arrays, as LLVM's text
os_calls          locks and pages, as LLVM's text; words of records
pooled_arrays     the capsule that makes arrays own recycled memory
runtime_library   these texts as one native module: its functions by name
scipy_extensions  SciPy's compiled modules without the packages around them
thread_count      the number of threads; without LLVM
thread_pool       a range shared out to threads, as LLVM's text

backends/llvm/cache/disk_cache.py         object files on disk; without LLVM
backends/llvm/cache/private_directory.py        a folder that nobody else can write to
backends/llvm/cache/object_files.py       text to object file, by way of the cache
"""
