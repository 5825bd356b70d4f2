"""Initial value problems: methods, the loop of their steps, and events.

initial_value      problems of users: arguments checked, functions traced, buffers large enough
program            a whole solution as a function of arrays, compiled once; long right-hand sides,
                   which stages call
loop               the loop: steps until the end, an event or a failure
method             the problem of vectors, tolerances, and the interface of the methods
methods            the methods by name; arguments that only some take
explicit_methods, rosenbrock_methods, esdirk_methods, radau_method, bdf_method
                   methods: coefficients and steps of BDF
stage_equations    the equations of stages: Newton's method with one matrix for several iterations
                   and steps; derivatives
stage_systems      linear systems of stages: several right-hand sides, or iterative refinement
continuous_adjoint gradients from the adjoint equation
step_control       step size controllers, and the first step; times at which the right-hand side is
                   discontinuous
observers          progress bars that the loop advances; states at given times, after all steps, and
                   between them
events             roots of functions along the solution, and changes of the state there

Step sizes, error norms and decisions have no derivatives; everything else is differentiated as
written (docs/design/0025-differential-equations.md).
"""
