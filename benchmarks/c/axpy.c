// The gradient of sum((a x + y)^2) / 2 by x: two arrays read, one written.
#include <stddef.h>

void axpy_gradient(size_t n, REAL a, const REAL *restrict x, const REAL *restrict y,
                   REAL *restrict out) {
#pragma omp parallel for simd
    for (size_t i = 0; i < n; i++)
        out[i] = a * (a * x[i] + y[i]);
}
