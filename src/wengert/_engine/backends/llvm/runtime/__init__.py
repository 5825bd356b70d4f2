"""Runtime: threads, memory and addresses of library functions.

runtime_library   the native module of the runtime, compiled once per process
allocator         recycling allocator, as LLVM IR
allocator_stats   statistics and limits of the allocator; does not import LLVM
numpy_allocator   the allocator as NumPy's memory handler (NEP 49)
pooled_arrays     arrays that own recycled memory
os_calls          locks, pages and other calls of the operating system, as LLVM IR
thread_pool       a range split among threads, as LLVM IR
thread_count      the number of threads; does not import LLVM; processors and memory that this
                  process may use
blas_threads      the number of threads of a BLAS call
library_symbols   addresses of BLAS, LAPACK, special functions and NumPy's sorting; SciPy's
                  extension modules, loaded without their packages
"""
