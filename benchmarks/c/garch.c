// The log-likelihood of GARCH(1,1), h' = omega + alpha e^2 + beta h, e = y - mu, by
// (mu, omega, alpha, beta): value, gradient and Hessian by hand.
//
// A term is l = -(log h + e^2 / h) / 2 without its constant.  The gradient has forward
// sensitivities of h, one recurrence for each parameter, in one pass without memory; the Hessian
// has those of second order beside them.  h starts as the mean of the squares of y.
#include <math.h>
#include <stddef.h>

#define P 4

double garch(size_t n, const double *y, double start, const double *p) {
    double h = start, value = 0;
    for (size_t t = 0; t < n; t++) {
        double e = y[t] - p[0], e2 = e * e;
        value -= 0.5 * (log(h) + e2 / h);
        h = p[1] + p[2] * e2 + p[3] * h;
    }
    return value;
}

double garch_gradient(size_t n, const double *y, double start, const double *p, double *bar) {
    double h = start, value = 0, d[P] = {0}, sum[P] = {0};
    for (size_t t = 0; t < n; t++) {
        double e = y[t] - p[0], e2 = e * e, i = 1 / h, z = e2 * i, slope = 0.5 * i * (z - 1);
        value -= 0.5 * (log(h) + z);
        for (int a = 0; a < P; a++)
            sum[a] += slope * d[a];
        sum[0] += e * i;
        for (int a = 0; a < P; a++)
            d[a] *= p[3];
        d[0] -= 2 * p[2] * e;
        d[1] += 1;
        d[2] += e2;
        d[3] += h;
        h = p[1] + p[2] * e2 + p[3] * h;
    }
    for (int a = 0; a < P; a++)
        bar[a] = sum[a];
    return value;
}

double garch_hessian(size_t n, const double *y, double start, const double *p, double *bar,
                     double *hessian) {
    double h = start, value = 0, d[P] = {0}, sum[P] = {0};
    double dd[P][P] = {{0}}, sums[P][P] = {{0}};
    for (size_t t = 0; t < n; t++) {
        double e = y[t] - p[0], e2 = e * e, i = 1 / h, z = e2 * i, slope = 0.5 * i * (z - 1);
        double bend = i * i * (0.5 - z), mixed = -e * i * i;
        value -= 0.5 * (log(h) + z);
        for (int a = 0; a < P; a++) {
            sum[a] += slope * d[a];
            for (int b = 0; b < P; b++)
                sums[a][b] += slope * dd[a][b] + bend * d[a] * d[b];
            sums[0][a] += mixed * d[a];
            sums[a][0] += mixed * d[a];
        }
        sum[0] += e * i;
        sums[0][0] -= i;
        for (int a = 0; a < P; a++)
            for (int b = 0; b < P; b++)
                dd[a][b] *= p[3];
        for (int a = 0; a < P; a++) {
            dd[3][a] += d[a];
            dd[a][3] += d[a];
        }
        dd[0][0] += 2 * p[2];
        dd[0][2] -= 2 * e;
        dd[2][0] -= 2 * e;
        for (int a = 0; a < P; a++)
            d[a] *= p[3];
        d[0] -= 2 * p[2] * e;
        d[1] += 1;
        d[2] += e2;
        d[3] += h;
        h = p[1] + p[2] * e2 + p[3] * h;
    }
    for (int a = 0; a < P; a++) {
        bar[a] = sum[a];
        for (int b = 0; b < P; b++)
            hessian[a * P + b] = sums[a][b];
    }
    return value;
}
