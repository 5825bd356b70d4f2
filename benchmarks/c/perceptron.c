// One step of gradient descent of a perceptron with two hidden layers, in place.
//
// Matrix products are calls of BLAS, whose sgemm is handed over; it stores by columns, so a product of
// row-major matrices is asked for with its factors exchanged.  The update of a matrix is folded into
// the product that makes its gradient: W <- W - rate A^T D.
#include <math.h>
#include <stddef.h>

typedef void gemm(char *, char *, int *, int *, int *, float *, float *, int *, float *, int *,
                  float *, float *, int *);

static void product(gemm *sgemm, char ta, char tb, int m, int n, int k, float alpha, float *a,
                    float *b, float beta, float *c) {
    int lda = ta == 'N' ? k : m, ldb = tb == 'N' ? n : k;
    sgemm(&tb, &ta, &n, &m, &k, &alpha, b, &ldb, a, &lda, &beta, c, &n);
}

static void biased_relu(size_t rows, size_t n, const float *restrict bias, float *restrict h) {
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < n; i++) {
            float v = h[r * n + i] + bias[i];
            h[r * n + i] = v > 0 ? v : 0;
        }
}

static void masked(size_t n, const float *restrict h, float *restrict bar) {
    for (size_t i = 0; i < n; i++)
        bar[i] = h[i] > 0 ? bar[i] : 0;
}

static void descend(size_t rows, size_t n, float rate, const float *restrict bar,
                    float *restrict bias) {
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < n; i++)
            bias[i] -= rate * bar[r * n + i];
}

// Parameters are updated in place; h1, h2, z, d1, d2 are workspace.
float step(gemm *sgemm, int batch, int n0, int n1, int n2, int n3, float rate, float *x,
           const ptrdiff_t *label, float *w1, float *b1, float *w2, float *b2, float *w3, float *b3,
           float *h1, float *h2, float *z, float *d1, float *d2) {
    float loss = 0;
    product(sgemm, 'N', 'N', batch, n1, n0, 1, x, w1, 0, h1);
    biased_relu(batch, n1, b1, h1);
    product(sgemm, 'N', 'N', batch, n2, n1, 1, h1, w2, 0, h2);
    biased_relu(batch, n2, b2, h2);
    product(sgemm, 'N', 'N', batch, n3, n2, 1, h2, w3, 0, z);
    for (int r = 0; r < batch; r++) {
        float *row = z + r * n3, largest = row[0] + b3[0], sum = 0;
        for (int i = 0; i < n3; i++) {
            row[i] += b3[i];
            largest = row[i] > largest ? row[i] : largest;
        }
        loss += largest - row[label[r]];
        for (int i = 0; i < n3; i++)
            sum += row[i] = expf(row[i] - largest);
        loss += logf(sum);
        for (int i = 0; i < n3; i++)
            row[i] *= 1 / (sum * batch);
        row[label[r]] -= 1.0f / batch;
    }
    product(sgemm, 'N', 'T', batch, n2, n3, 1, z, w3, 0, d2);
    masked((size_t)batch * n2, h2, d2);
    product(sgemm, 'N', 'T', batch, n1, n2, 1, d2, w2, 0, d1);
    masked((size_t)batch * n1, h1, d1);
    product(sgemm, 'T', 'N', n2, n3, batch, -rate, h2, z, 1, w3);
    product(sgemm, 'T', 'N', n1, n2, batch, -rate, h1, d2, 1, w2);
    product(sgemm, 'T', 'N', n0, n1, batch, -rate, x, d1, 1, w1);
    descend(batch, n3, rate, z, b3);
    descend(batch, n2, rate, d2, b2);
    descend(batch, n1, rate, d1, b1);
    return loss / batch;
}
