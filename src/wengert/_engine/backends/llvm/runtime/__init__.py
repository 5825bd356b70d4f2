"""Runtime: threads, memory and addresses of library functions.

runtime_library   the native module of the runtime, compiled once per process; arrays that own
                  recycled memory
allocator         recycling allocator, also as NumPy's memory handler (NEP 49), as LLVM IR
os_calls          locks, pages and other calls of the operating system, as LLVM IR
thread_pool       a range split among threads, as LLVM IR
settings          the number of threads, statistics and limits of the allocator; does not import
                  LLVM
library_symbols   addresses of BLAS, LAPACK, special functions and NumPy's sorting; SciPy's
                  extension modules, loaded without their packages; threads of a BLAS call
"""
