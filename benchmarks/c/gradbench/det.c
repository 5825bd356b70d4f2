// A determinant by expansion of minors, and its gradient.
//
// `primal` and `gradient` compute each minor once: a set of columns is a mask, its minor is of as
// many of the last rows, and expands along the first of them.  The gradient goes back from the
// whole matrix.  `recursive` and `recursive_gradient` expand minors anew wherever they occur, the
// gradient as the signed minor of every entry, as GradBench's definition is read word for word.
// Sizes: n.  Inputs: the matrix.  Outputs: the value, or the gradient (n, n).
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void minors(int n, const double *m, double *values) {
    values[0] = 1;
    for (unsigned set = 1; set < 1u << n; set++) {
        const double *row = m + n * (n - __builtin_popcount(set));
        double sum = 0, sign = 1;
        for (unsigned rest = set; rest; rest &= rest - 1, sign = -sign)
            sum += sign * row[__builtin_ctz(rest)] * values[set & ~(rest & -rest)];
        values[set] = sum;
    }
}

void primal(void **a) {
    const int n = *(int64_t *)a[0];
    double *values = malloc(sizeof(double) << n);
    minors(n, a[1], values);
    *(double *)a[2] = values[(1u << n) - 1];
    free(values);
}

void gradient(void **a) {
    const int n = *(int64_t *)a[0];
    const double *m = a[1];
    double *bar = a[2], *values = malloc(sizeof(double) << (n + 1)), *bars = values + (1 << n);
    minors(n, m, values);
    memset(bar, 0, sizeof(double) * n * n);
    memset(bars, 0, sizeof(double) << n);
    bars[(1u << n) - 1] = 1;
    for (unsigned set = (1u << n) - 1; set; set--) {
        const int first = n * (n - __builtin_popcount(set));
        double signed_bar = bars[set];
        for (unsigned rest = set; rest; rest &= rest - 1, signed_bar = -signed_bar) {
            const int at = first + __builtin_ctz(rest);
            const unsigned below = set & ~(rest & -rest);
            bar[at] += signed_bar * values[below];
            bars[below] += signed_bar * m[at];
        }
    }
    free(values);
}

// The minor of the rows and columns of two masks.
static double minor(int n, const double *m, unsigned rows, unsigned columns) {
    if (!rows)
        return 1;
    const double *row = m + n * __builtin_ctz(rows);
    double sum = 0, sign = 1;
    for (unsigned rest = columns; rest; rest &= rest - 1, sign = -sign)
        sum += sign * row[__builtin_ctz(rest)] *
               minor(n, m, rows & (rows - 1), columns & ~(rest & -rest));
    return sum;
}

void recursive(void **a) {
    const int n = *(int64_t *)a[0];
    *(double *)a[2] = minor(n, a[1], (1u << n) - 1, (1u << n) - 1);
}

void recursive_gradient(void **a) {
    const int n = *(int64_t *)a[0];
    const unsigned all = (1u << n) - 1;
    double *bar = a[2];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            bar[i * n + j] =
                ((i + j) % 2 ? -1 : 1) * minor(n, a[1], all & ~(1u << i), all & ~(1u << j));
}
