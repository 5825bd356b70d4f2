// The entries of two sparse derivatives, row by row, columns in order, by hand.
//
// brusselator    u' = a + u^2 v - (b + 1) u + k u_xx,  v' = b u - u^2 v + k v_xx  on n inner points
//                of a line, u before v: rows of 4 entries, 3 at the ends of the line
// rosenbrock     the Hessian of sum 100 (x[i+1] - x[i]^2)^2 + (1 - x[i])^2: tridiagonal
#include <stddef.h>

double brusselator(size_t n, double b, double k, const double *x, double *out) {
    const double *u = x, *v = x + n;
    *out++ = 2 * u[0] * v[0] - (b + 1) - 2 * k;
    *out++ = k;
    *out++ = u[0] * u[0];
    for (size_t i = 1; i < n - 1; i++, out += 4) {
        out[0] = k;
        out[1] = 2 * u[i] * v[i] - (b + 1) - 2 * k;
        out[2] = k;
        out[3] = u[i] * u[i];
    }
    *out++ = k;
    *out++ = 2 * u[n - 1] * v[n - 1] - (b + 1) - 2 * k;
    *out++ = u[n - 1] * u[n - 1];
    *out++ = b - 2 * u[0] * v[0];
    *out++ = -u[0] * u[0] - 2 * k;
    *out++ = k;
    for (size_t i = 1; i < n - 1; i++, out += 4) {
        out[0] = b - 2 * u[i] * v[i];
        out[1] = k;
        out[2] = -u[i] * u[i] - 2 * k;
        out[3] = k;
    }
    *out++ = b - 2 * u[n - 1] * v[n - 1];
    *out++ = k;
    *out++ = -u[n - 1] * u[n - 1] - 2 * k;
    return 0;
}

double rosenbrock(size_t n, const double *x, double *out) {
    *out++ = 1200 * x[0] * x[0] - 400 * x[1] + 2;
    *out++ = -400 * x[0];
    for (size_t i = 1; i < n - 1; i++, out += 3) {
        out[0] = -400 * x[i - 1];
        out[1] = 200 + 1200 * x[i] * x[i] - 400 * x[i + 1] + 2;
        out[2] = -400 * x[i];
    }
    *out++ = -400 * x[n - 2];
    *out++ = 200;
    return 0;
}
