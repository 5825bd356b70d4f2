// Squares of the distance of a polynomial to the sign function at n points, and the gradient.
//
// Points go through in blocks of B, so that a loop over a block is a vector operation.  The
// polynomial is evaluated by Horner's rule; the gradient adds weights times growing powers.
// Sizes: n, m.  Inputs: x (m).  Outputs: the value, or the gradient (m).
#include <stdint.h>
#include <stdlib.h>

#define B 16

static void residuals(int64_t start, int64_t n, int64_t m, const double *x, double *restrict t,
                      double *restrict r) {
    double p[B] = {0};
    for (int i = 0; i < B; i++)
        t[i] = -1 + (double)(start + i) * 2 / (double)(n - 1);
    for (int64_t j = m - 1; j >= 0; j--)
        for (int i = 0; i < B; i++)
            p[i] = p[i] * t[i] + x[j];
    for (int i = 0; i < B; i++)
        r[i] = start + i < n ? (double)((t[i] > 0) - (t[i] < 0)) - p[i] : 0;
}

void primal(void **a) {
    const int64_t n = ((int64_t *)a[0])[0], m = ((int64_t *)a[0])[1];
    double t[B], r[B], sum = 0;
    for (int64_t start = 0; start < n; start += B) {
        residuals(start, n, m, a[1], t, r);
        for (int i = 0; i < B; i++)
            sum += r[i] * r[i];
    }
    *(double *)a[2] = sum / 2;
}

void gradient(void **a) {
    const int64_t n = ((int64_t *)a[0])[0], m = ((int64_t *)a[0])[1];
    double t[B], r[B], *bar = a[2], *sums = calloc(m * B, sizeof(double));
    for (int64_t start = 0; start < n; start += B) {
        residuals(start, n, m, a[1], t, r);
        for (int64_t j = 0; j < m; j++)
            for (int i = 0; i < B; i++) {
                sums[j * B + i] -= r[i];
                r[i] *= t[i];
            }
    }
    for (int64_t j = 0; j < m; j++) {
        bar[j] = 0;
        for (int i = 0; i < B; i++)
            bar[j] += sums[j * B + i];
    }
    free(sums);
}
