"""GradBench: its twelve evals answered with wengert, and our own driver beside hand-written C.

GradBench (gradbench/gradbench on GitHub) separates benchmarks from tools: an *eval* sends one JSON
message a line (start, define, evaluate, analysis), a *tool* answers.  Nothing here is of theirs;
the functions are written from the definitions in its documentation.

    task       what is run and timed: a function, its arguments, how its result is answered
    tool       the adapter: answers the messages of any eval over standard input and output
    evals      for each eval a module with the program that a user of wengert writes
    cases      for each eval a module with the published inputs, C by hand, and peer libraries
    in_jax     JAX's programs for ba and ht
    byhand     functions of benchmarks/c/gradbench as tasks, which C itself times
    measure    agreement first, then time by the published rules (min_runs, min_seconds)
    page       results as docs/benchmarks-gradbench.md
    descent    least points by gradient descent, by forward or reverse mode (particle, saddle)
    checkout   GradBench's own evals, from a checkout of it, run against the tool
    cpp_harness  exported functions in the C++ harness of a checkout, beside derivatives by hand

The contract of a module evals/NAME.py:

    FUNCTIONS : dict[str, Callable[[dict], Task]]
        By the eval's names of functions ("objective", "jacobian"): makes of the ``input`` of a
        message (as JSON has it: lists and numbers) a `Task`.  What makes arrays of lists and
        chooses what is compiled is here and is not timed; ``task.function(*task.arguments)`` is
        timed; ``task.answer(result)`` makes JSON of its result.  The tool and the driver run a
        task once before they time it (that compiles it); this time is answered as "prepare".

The contract of a module cases/NAME.py:

    TITLE, TEXT : str
        Heading and text for the page.
    DERIVATIVES : tuple[str, ...]
        Those of the eval's functions that are derivatives: their times make the ratios.
    inputs(quick) : Iterator[tuple[str, dict]]
        Description and ``input`` of every message that the eval sends by default, smallest first,
        without min_runs and min_seconds; with ``quick`` one or two tiny ones.
    contestants(function, input) : dict[str, Callable[[], Task]]
        For a function and an input, by name how tasks of the others are made: "C" (required: the
        golden values, `byhand.task`), "C -ffast-math", "JAX", "torch", "autograd"; libraries are
        imported inside, and one that is not installed is skipped by name.
    WITHIN : float, optional
        Relative deviation from C beyond which an answer is wrong, by default 1e-8.
"""
