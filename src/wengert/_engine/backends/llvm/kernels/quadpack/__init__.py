"""QUADPACK's routines for integrals as one native routine, which calls the integrand by address.

routine        the routine that programs call
bisection      adaptive bisection with extrapolation: qags, qagi and qagp
subintervals   the Kronrod rules, the epsilon algorithm, and the order of subintervals
scalar_code    a builder of functions with many variables and branches

R. Piessens, E. de Doncker-Kapenga, C. W. Ueberhuber, D. K. Kahaner: "QUADPACK. A subroutine package
for automatic integration", 1983.  The results, counts and statuses are those of `scipy.integrate`.
"""
