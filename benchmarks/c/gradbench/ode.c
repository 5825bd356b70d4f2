// Steps of the classical Runge-Kutta method for y_0' = x_0, y_i' = x_i y_(i-1) until 2, and the
// gradient of the last element by x.
//
// The gradient keeps y before each step and computes the stages again on the way back.
// `closed_gradient` differentiates the true solution instead, the product of all 2 x_i / (i + 1),
// and has no loop over steps: another program, whose numbers are the same where both are zero.
// Sizes: n, steps.  Inputs: x (n).  Outputs: y (n), or the gradient (n).
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// z = x * (1, y_0, y_1, ...), with y + h k in the place of y where there is a k.
static void rate(int64_t n, const double *restrict x, const double *restrict y, double h,
                 const double *restrict k, double *restrict z) {
    z[0] = x[0];
    for (int64_t i = 1; i < n; i++)
        z[i] = x[i] * (y[i - 1] + h * k[i - 1]);
}

static void stages(int64_t n, double h, const double *x, const double *y, double *k) {
    double *a = k, *b = k + n, *c = k + 2 * n, *d = k + 3 * n;
    rate(n, x, y, 0, y, a);
    rate(n, x, y, h / 2, a, b);
    rate(n, x, y, h / 2, b, c);
    rate(n, x, y, h, c, d);
}

static void step(int64_t n, double h, const double *x, const double *y, double *k,
                 double *restrict next) {
    stages(n, h, x, y, k);
    const double *restrict a = k, *restrict b = k + n, *restrict c = k + 2 * n,
                          *restrict d = k + 3 * n;
    for (int64_t i = 0; i < n; i++)
        next[i] = y[i] + h / 6 * (a[i] + 2 * b[i] + 2 * c[i] + d[i]);
}

void primal(void **a) {
    const int64_t n = ((int64_t *)a[0])[0], steps = ((int64_t *)a[0])[1];
    double *y = a[2], *k = malloc(sizeof(double) * 5 * n), *next = k + 4 * n;
    memset(y, 0, sizeof(double) * n);
    for (int64_t s = 0; s < steps; s++) {
        step(n, 2.0 / steps, a[1], y, k, next);
        memcpy(y, next, sizeof(double) * n);
    }
    free(k);
}

// The adjoint of z = x * (1, (y + h k)_0, ...): adds to bars of x and y, and h times that to k's.
static void rate_back(int64_t n, const double *restrict x, const double *restrict y, double h,
                      const double *restrict k, const double *restrict z_bar,
                      double *restrict x_bar, double *restrict y_bar, double *restrict k_bar) {
    x_bar[0] += z_bar[0];
    for (int64_t i = 1; i < n; i++) {
        const double v = x[i] * z_bar[i];
        x_bar[i] += z_bar[i] * (y[i - 1] + h * k[i - 1]);
        y_bar[i - 1] += v;
        k_bar[i - 1] += h * v;
    }
}

void gradient(void **a) {
    const int64_t n = ((int64_t *)a[0])[0], steps = ((int64_t *)a[0])[1];
    const double *x = a[1], h = 2.0 / steps;
    double *x_bar = a[2], *work = malloc(sizeof(double) * n * (steps + 10));
    double *k = work, *bars = k + 4 * n, *y_bar = bars + 4 * n, *ys = y_bar + n;
    memset(ys, 0, sizeof(double) * n);
    memset(x_bar, 0, sizeof(double) * n);
    memset(y_bar, 0, sizeof(double) * n);
    for (int64_t s = 0; s + 1 < steps; s++)
        step(n, h, x, ys + s * n, k, ys + (s + 1) * n);
    y_bar[n - 1] = 1;
    for (int64_t s = steps - 1; s >= 0; s--) {
        const double *y = ys + s * n;
        double *restrict b = bars;
        stages(n, h, x, y, k);
        for (int64_t i = 0; i < n; i++) {
            b[i] = b[3 * n + i] = h / 6 * y_bar[i];
            b[n + i] = b[2 * n + i] = h / 3 * y_bar[i];
        }
        rate_back(n, x, y, h, k + 2 * n, bars + 3 * n, x_bar, y_bar, bars + 2 * n);
        rate_back(n, x, y, h / 2, k + n, bars + 2 * n, x_bar, y_bar, bars + n);
        rate_back(n, x, y, h / 2, k, bars + n, x_bar, y_bar, bars);
        x_bar[0] += bars[0];
        for (int64_t i = 1; i < n; i++) {
            x_bar[i] += bars[i] * y[i - 1];
            y_bar[i - 1] += x[i] * bars[i];
        }
    }
    free(work);
}

void closed_gradient(void **a) {
    const int64_t n = ((int64_t *)a[0])[0];
    const double *restrict x = a[1];
    double *restrict bar = a[2], y = 1;
    for (int64_t i = 0; i < n; i++)
        y *= x[i] * 2 / (double)(i + 1);
    for (int64_t i = 0; i < n; i++)
        bar[i] = y / x[i];
}
