"""Derivatives: sweeps over a Wengert list, and the transformations users call.

the list        tape.py which lines a sweep visits
the sweeps      reverse.py, forward.py; project.py cotangents in the space of their primal;
                buffers.py large arrays they write into; owned.py
                results that nobody else holds; watched.py the same, seen step by step;
                unfit.py which step gave the first NaN; guards.py which zeros are strong;
                overflows.py the list again where a value left its range
what users call transforms.py grad, value_and_grad, stop_gradient; directional.py vjp, jvp;
                matrices.py jacobian, hessian, hvp (unit_rows.py all rows at once);
                checkpoint.py; batch.py vmap (batch_lines.py the list evaluated for all rows)
                row_by_row.py an operation without a batching rule, for many rows
                linearity.py whether a rule has a transpose
around them     arguments.py what becomes a variable; result.py what a call left; derived.py the
                callables that come back
"""
