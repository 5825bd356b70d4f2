"""Native code by LLVM: a graph becomes one function of the machine (docs/how-it-compiles.md).

Read from the top, each with what it stands on:

    backend        the backend "llvm": graphs in, functions out
    program        one graph as one module of LLVM's text, with one function
    routine        a list as a function: the stages of its plan, one after the other
    control        loops and choices; snapshots what loops leave of their states, replay the way
                   back from there, with little memory
    nested         the functions of their bodies; straight those that need no loop or memory,
                   listening how loops can be interrupted
    summary        what a program does, to be read
    kept           what a second process finds of a program on disk; content what a graph says,
                   which is its key
    clocked        a program with a clock around each of its steps, to be profiled; clock its cells,
                   shares whose lines a step is, measuring runs it, tally counts up what it says
    plan           what shares a loop, what is stored, and in which order all of it runs
    folding        a product that is scaled and added to something is one step
    overwriting    updates that are written where the variables lie
    apart          what could share a loop and has nothing in common
    walks          passes that share their outer loops, row after row
    workspace      where lies what is kept between the stages of a plan

    items          what a graph computes, taken apart into what loops can do
    lowering/      lines of the graph as items
    kernels/       steps that are no loops of ours: BLAS, LAPACK, sorting, random numbers
    islands        operations that are called back in Python

    nests          the loops of a walk, as text
    alike          walks whose nests would be the same text
    parallel       a nest at once, or in parts on several threads
    spaces         which loop is inside, and how wide its steps are
    elements       an item's element at an index
    accumulators   what a reduction keeps while its loop runs
    access         elements from memory and into it; masked where only some lanes take part
    forms          where something is read, as sums over the counters of loops
    indices        what an index says of each axis
    gathers        elements whose place is told by other arrays
    strided        an item as a part of one that lies in memory

    language       the scalar language read as instructions; lane is one value of it, or several
    integers       whole numbers and truth values in it; complexes/ complex ones
    leaves/        exp, sin, ... of our own; specials calls SciPy's; families/ their derivatives by
                   orders and parameters
    dtypes         how LLVM names NumPy's dtypes
    assembly       LLVM's text: modules, functions, sections that nest as loops do
    engine         text made into machine code in memory; nothing else imports llvmlite
    objectfile     what an object file calls outside; halves the conversions that LLVM calls

    entry/         a function of CPython's interface in front of a program; port one of its values,
                   layouts the arrays that it takes where they lie, returned how results come back
    runtime/       memory, threads, and the cache on disk

Nothing is imported here, so that LLVM starts at the first use.
"""
