// The logarithm of a sum of exponentials, and its gradient.
//
// Sizes: n.  Inputs: x (n).  Outputs: the value, or the gradient (n).
#include <math.h>
#include <stdint.h>

static double largest(int64_t n, const double *x) {
    double found = x[0];
    for (int64_t i = 1; i < n; i++)
        found = x[i] > found ? x[i] : found;
    return found;
}

void primal(void **a) {
    const int64_t n = *(int64_t *)a[0];
    const double *x = a[1], top = largest(n, x);
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] - top);
    *(double *)a[2] = top + log(sum);
}

void gradient(void **a) {
    const int64_t n = *(int64_t *)a[0];
    const double *x = a[1], top = largest(n, x);
    double *restrict bar = a[2], sum = 0;
    for (int64_t i = 0; i < n; i++) {
        bar[i] = exp(x[i] - top);
        sum += bar[i];
    }
    for (int64_t i = 0; i < n; i++)
        bar[i] /= sum;
}
