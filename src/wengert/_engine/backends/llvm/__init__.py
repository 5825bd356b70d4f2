"""Native code by LLVM: a graph becomes one machine-code function (docs/how-it-compiles.md).

Read from the top; each folder imports only those below it:

backend.py              the backend "llvm": graphs in, compiled functions out
profile/                timings of compiled programs, attributed to nodes and user lines
compiled_programs.py    machine code in memory, and its entry for Python; compiled programs on disk,
                        for other processes
program.py              one graph as one LLVM module with one entry function
loops/                  scan, while and cond, with their checkpointed backward passes
codegen/                scheduled loops to LLVM functions
schedule/               which nodes share a loop, in which order, and in which buffers
lowering/               graph nodes to the loop IR
kernels/                BLAS, LAPACK, sorting, random numbers and other operations compiled whole
special_functions/      special functions: SciPy's compiled ones, and others traced from NumPy code
abi/                    how Python and C call compiled programs
runtime/                threads, memory, addresses of library functions
vector_math/            exp, log, sin ... on SIMD values
cache.py                object files and tuned thresholds on disk
ir/                     LLVM IR: builder, types, SIMD values, the scalar language, execution engine
program_fingerprint.py  the key of a graph in the cache
tuning.py               the tuned thresholds of compiler, kernels and runtime

Nothing is imported here, so that LLVM starts at the first use.
"""
