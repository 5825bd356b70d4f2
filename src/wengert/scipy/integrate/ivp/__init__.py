"""Initial value problems: methods, the loop of their steps, and events.

initial_value    problems of users: arguments checked, functions traced, buffers large enough
matrix_arguments the mass matrix and the Jacobian, checked; which methods take them
program          a whole solution as a function of arrays, compiled once
called_function  long right-hand sides, which stages call
loop             the loop: steps until the end, an event or a failure
method           the interface of the methods; methods.py their names
explicit_steps   explicit methods; explicit_tables, high_order_tables their coefficients
rosenbrock_steps Rosenbrock methods; rosenbrock_tables their coefficients
esdirk_steps     Kvaerno's methods; esdirk_tables their coefficients
radau_steps      SciPy's Radau; radau_table its coefficients
bdf_steps        SciPy's BDF; bdf_table its coefficients, bdf_iteration the equation of a step
stage_roots      derivatives of stages; dense_refinement their dense linear systems
continuous_adjoint gradients from the adjoint equation
stage_systems    linear systems with one matrix and several right-hand sides
simplified_newton Newton's method with one matrix for several iterations and steps
problem          the right-hand side, its Jacobian and the mass matrix; tolerances
step_control     step size controllers; initial_step the first step
progress         progress bars that the loop advances
saving           states at given times; dense_output all steps, and the solution between them
jump_times       times at which the right-hand side is discontinuous
events           roots of functions along the solution, and changes of the state there

Step sizes, error norms and decisions have no derivatives; everything else is differentiated as
written (docs/design/0025-differential-equations.md).
"""
