"""What native code needs around it.

computer.py      how many processors and how much memory this process may use
system.py        locks and pages, as LLVM's text; words of records
blocks.py        memory that is recycled, as LLVM's text
handler.py       such memory for NumPy's arrays, as LLVM's text
team.py          a range shared out to threads, as LLVM's text
library.py       these texts as one native module: its functions by name
blas_threads.py  how many threads BLAS uses for one call
extensions.py    SciPy's compiled modules without the packages around them
pool.py          the capsule that makes arrays own recycled memory
memory.py        what can be asked of that memory; without LLVM
threads.py       the number of threads; without LLVM
cache.py         object files on disk; without LLVM
folder.py        a folder that nobody else can write to
objects.py       text to object file, by way of the cache
"""
