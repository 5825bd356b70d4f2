// The sum of the squared distances of points to the nearest centroid, and the gradient over the
// diagonal of the Hessian.
//
// Centroids are transposed first, so that the loop over centroids is a vector operation.  Of a
// centroid with s points the gradient is 2 (s c - sum of its points), the Hessian's diagonal 2 s.
// Sizes: n, k, d.  Inputs: points (n, d), centroids (k, d).  Outputs: the cost, or the step (k, d).
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t n, k, d;
    const double *points, *centroids;
    double *transposed, *distances;
} Problem;

static Problem opened(void **a) {
    const int64_t *sizes = a[0];
    Problem p = {sizes[0], sizes[1], sizes[2], a[1], a[2], 0, 0};
    p.transposed = malloc(sizeof(double) * p.k * (p.d + 1));
    p.distances = p.transposed + p.k * p.d;
    for (int64_t j = 0; j < p.k; j++)
        for (int64_t l = 0; l < p.d; l++)
            p.transposed[l * p.k + j] = p.centroids[j * p.d + l];
    return p;
}

static int64_t nearest(const Problem *p, int64_t i) {
    double *restrict distances = p->distances;
    memset(distances, 0, sizeof(double) * p->k);
    for (int64_t l = 0; l < p->d; l++) {
        const double x = p->points[i * p->d + l], *restrict c = p->transposed + l * p->k;
        for (int64_t j = 0; j < p->k; j++)
            distances[j] += (x - c[j]) * (x - c[j]);
    }
    int64_t found = 0;
    for (int64_t j = 1; j < p->k; j++)
        if (distances[j] < distances[found])
            found = j;
    return found;
}

void cost(void **a) {
    Problem p = opened(a);
    double sum = 0;
    for (int64_t i = 0; i < p.n; i++)
        sum += p.distances[nearest(&p, i)];
    *(double *)a[3] = sum;
    free(p.transposed);
}

void dir(void **a) {
    Problem p = opened(a);
    double *sums = a[3], *counts = calloc(p.k, sizeof(double));
    memset(sums, 0, sizeof(double) * p.k * p.d);
    for (int64_t i = 0; i < p.n; i++) {
        const int64_t j = nearest(&p, i);
        counts[j] += 1;
        for (int64_t l = 0; l < p.d; l++)
            sums[j * p.d + l] += p.points[i * p.d + l];
    }
    for (int64_t j = 0; j < p.k; j++)
        for (int64_t l = 0; l < p.d; l++)
            sums[j * p.d + l] = p.centroids[j * p.d + l] - sums[j * p.d + l] / counts[j];
    free(counts);
    free(p.transposed);
}
