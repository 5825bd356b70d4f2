"""The programs: one module for each eval, with wengert as a user writes it.

What a module must have is said in the package's map.

    hello      x**2 and its derivative
    llsq       linear least squares: a polynomial fitted to the sign function
    lse        the logarithm of a sum of exponentials
    det        a determinant expanded by minors
    kmeans     the cost of a clustering, gradient over the Hessian's diagonal
    gmm        the log posterior of a mixture of Gaussians
    ode        Runge-Kutta steps of a chain of equations
    ba         bundle adjustment, a sparse Jacobian
    ht         hand tracking, a sparse Jacobian
    lstm       the loss of a character model
    particle   Newton's method through a simulation that differentiates its potential
    saddle     minimum of a maximum, by gradient steps within gradient steps
"""
