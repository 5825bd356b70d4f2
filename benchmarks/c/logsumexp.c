// log(sum(exp(x))) of each row, its gradient, and the mean cross-entropy of rows of logits.
#include <stddef.h>
#include <tgmath.h>

static REAL largest(size_t n, const REAL *restrict x) {
    REAL m = x[0];
#pragma omp simd reduction(max : m)
    for (size_t i = 0; i < n; i++)
        m = x[i] > m ? x[i] : m;
    return m;
}

void logsumexp(size_t rows, size_t n, const REAL *restrict x, REAL *restrict out) {
#pragma omp parallel for if (rows > 1)
    for (size_t r = 0; r < rows; r++) {
        const REAL *row = x + r * n;
        REAL m = largest(n, row), sum = 0;
#pragma omp simd reduction(+ : sum)
        for (size_t i = 0; i < n; i++)
            sum += exp(row[i] - m);
        out[r] = m + log(sum);
    }
}

// Value and gradient of the sum over rows: exponentials are kept in the gradient, then scaled.
void logsumexp_gradient(size_t rows, size_t n, const REAL *restrict x, REAL *restrict out,
                        REAL *restrict gradient) {
#pragma omp parallel for if (rows > 1)
    for (size_t r = 0; r < rows; r++) {
        const REAL *row = x + r * n;
        REAL *kept = gradient + r * n;
        REAL m = largest(n, row), sum = 0;
#pragma omp simd reduction(+ : sum)
        for (size_t i = 0; i < n; i++) {
            REAL e = exp(row[i] - m);
            kept[i] = e;
            sum += e;
        }
        REAL scale = 1 / sum;
#pragma omp simd
        for (size_t i = 0; i < n; i++)
            kept[i] *= scale;
        out[r] = m + log(sum);
    }
}

REAL cross_entropy(size_t rows, size_t n, const REAL *restrict x, const ptrdiff_t *restrict label,
                   REAL *restrict gradient) {
    double total = 0;
#pragma omp parallel for reduction(+ : total)
    for (size_t r = 0; r < rows; r++) {
        const REAL *row = x + r * n;
        REAL *kept = gradient + r * n;
        REAL m = largest(n, row), sum = 0;
#pragma omp simd reduction(+ : sum)
        for (size_t i = 0; i < n; i++) {
            REAL e = exp(row[i] - m);
            kept[i] = e;
            sum += e;
        }
        REAL scale = 1 / (sum * rows);
#pragma omp simd
        for (size_t i = 0; i < n; i++)
            kept[i] *= scale;
        kept[label[r]] -= (REAL)1 / rows;
        total += m + log(sum) - row[label[r]];
    }
    return (REAL)(total / rows);
}
