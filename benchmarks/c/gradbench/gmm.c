// The log posterior of a mixture of Gaussians with a Wishart prior, and its gradient by hand.
//
// Points go through in blocks of B, transposed so that a loop over a block is a vector operation.
// For a block, y = Q (x - mu) of all components is kept; when the weights of the components are
// known, it is turned into gradients.  Q is lower triangular: exp(q) on the diagonal, its columns
// below it are l.
// Sizes: d, k, n, m.  Inputs: alpha (k), mu (k, d), q (k, d), l (k, d (d - 1) / 2), x (n, d), gamma,
// the constant.  Outputs: the value, or the gradients by alpha, mu, q, l.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define B 64
#define TINY 1e-200 // weights below are zero: products of subnormal numbers are slow

typedef struct {
    int64_t d, k, n, m, packed;
    const double *alpha, *mu, *q, *l, *x;
    double gamma, constant;
    double *diagonals, *sums, *block, *centred, *y, *terms; // in one allocation
} Problem;

static Problem opened(void **a) {
    const int64_t *s = a[0], d = s[0], k = s[1];
    Problem p = {d, k, s[2], s[3], d * (d - 1) / 2, a[1], a[2], a[3], a[4], a[5]};
    p.gamma = *(double *)a[6];
    p.constant = *(double *)a[7];
    p.diagonals = malloc(sizeof(double) * (k * d + k + d * B + 2 * k * d * B + k * B));
    p.sums = p.diagonals + k * d;
    p.block = p.sums + k;
    p.centred = p.block + d * B;
    p.y = p.centred + k * d * B;
    p.terms = p.y + k * d * B;
    for (int64_t c = 0; c < k; c++) {
        p.sums[c] = 0;
        for (int64_t i = 0; i < d; i++) {
            p.sums[c] += p.q[c * d + i];
            p.diagonals[c * d + i] = exp(p.q[c * d + i]);
        }
    }
    return p;
}

static void whiten(const Problem *p, int64_t c, double *restrict centred, double *restrict y) {
    const int64_t d = p->d;
    const double *restrict x = p->block, *lower = p->l + c * p->packed;
    for (int64_t i = 0; i < d; i++)
        for (int64_t b = 0; b < B; b++) {
            centred[i * B + b] = x[i * B + b] - p->mu[c * d + i];
            y[i * B + b] = p->diagonals[c * d + i] * centred[i * B + b];
        }
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = i + 1; j < d; j++) {
            const double l = *lower++;
            for (int64_t b = 0; b < B; b++)
                y[j * B + b] += l * centred[i * B + b];
        }
}

// The value of a block of points; terms become exp(term - largest), sums their sums.
static double forward(const Problem *p, int64_t start, int64_t count, double *restrict sum) {
    const int64_t d = p->d;
    double largest[B], value = 0;
    for (int64_t b = 0; b < B; b++)
        for (int64_t i = 0; i < d; i++)
            p->block[i * B + b] = b < count ? p->x[(start + b) * d + i] : 0;
    for (int64_t c = 0; c < p->k; c++) {
        double *restrict y = p->y + c * d * B, *restrict term = p->terms + c * B, square[B] = {0};
        whiten(p, c, p->centred + c * d * B, y);
        for (int64_t i = 0; i < d; i++)
            for (int64_t b = 0; b < B; b++)
                square[b] += y[i * B + b] * y[i * B + b];
        for (int64_t b = 0; b < B; b++) {
            term[b] = p->alpha[c] + p->sums[c] - 0.5 * square[b];
            largest[b] = c == 0 || term[b] > largest[b] ? term[b] : largest[b];
        }
    }
    memset(sum, 0, sizeof(double) * B);
    for (int64_t c = 0; c < p->k; c++)
        for (int64_t b = 0; b < B; b++)
            sum[b] += p->terms[c * B + b] = exp(p->terms[c * B + b] - largest[b]);
    for (int64_t b = 0; b < count; b++)
        value += largest[b] + log(sum[b]);
    return value;
}

// The value of what does not depend on points; shares are those of the components before them.
static double prior(const Problem *p, double *shares) {
    double largest = p->alpha[0], total = 0, squares = 0, sums = 0;
    for (int64_t c = 1; c < p->k; c++)
        largest = p->alpha[c] > largest ? p->alpha[c] : largest;
    for (int64_t c = 0; c < p->k; c++) {
        total += shares[c] = exp(p->alpha[c] - largest);
        sums += p->sums[c];
    }
    for (int64_t c = 0; c < p->k; c++)
        shares[c] /= total;
    for (int64_t i = 0; i < p->k * p->d; i++)
        squares += p->diagonals[i] * p->diagonals[i];
    for (int64_t i = 0; i < p->k * p->packed; i++)
        squares += p->l[i] * p->l[i];
    return p->constant - p->n * (largest + log(total)) - 0.5 * p->gamma * p->gamma * squares +
           p->m * sums;
}

void objective(void **a) {
    Problem p = opened(a);
    double sum[B], value = prior(&p, p.terms);
    for (int64_t start = 0; start < p.n; start += B)
        value += forward(&p, start, p.n - start < B ? p.n - start : B, sum);
    *(double *)a[8] = value;
    free(p.diagonals);
}

// A sum in lanes: the order in which a strict compiler may use vectors.
static double dot(const double *restrict a, const double *restrict b) {
    double lanes[8] = {0};
    for (int64_t i = 0; i < B; i += 8)
        for (int64_t lane = 0; lane < 8; lane++)
            lanes[lane] += a[i + lane] * b[i + lane];
    return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
           ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

// Gradients of one component from y, which becomes weight * y: by mu Q^T y, by Q -y (x - mu)^T.
static void backward(const Problem *p, int64_t c, const double *restrict weight,
                     const double *restrict centred, double *restrict y, double *restrict mu_bar,
                     double *restrict q_bar, double *restrict l_bar) {
    const int64_t d = p->d;
    const double *lower = p->l + c * p->packed;
    for (int64_t i = 0; i < d; i++)
        for (int64_t b = 0; b < B; b++)
            y[i * B + b] *= weight[b];
    for (int64_t i = 0; i < d; i++) {
        const double diagonal = p->diagonals[c * d + i];
        double product = 0, mean = 0, back[B];
        for (int64_t b = 0; b < B; b++) {
            back[b] = diagonal * y[i * B + b];
            product += y[i * B + b] * centred[i * B + b];
        }
        q_bar[i] -= diagonal * product;
        for (int64_t j = i + 1; j < d; j++) {
            const double l = *lower++;
            for (int64_t b = 0; b < B; b++)
                back[b] += l * y[j * B + b];
            *l_bar++ -= dot(y + j * B, centred + i * B);
        }
        for (int64_t b = 0; b < B; b++)
            mean += back[b];
        mu_bar[i] += mean;
    }
}

void jacobian(void **a) {
    Problem p = opened(a);
    const int64_t d = p.d, k = p.k;
    double *alpha_bar = a[8], *mu_bar = a[9], *q_bar = a[10], *l_bar = a[11], sum[B];
    const double square = p.gamma * p.gamma;
    prior(&p, alpha_bar);
    memset(mu_bar, 0, sizeof(double) * k * d);
    for (int64_t c = 0; c < k; c++)
        alpha_bar[c] *= -p.n;
    for (int64_t i = 0; i < k * d; i++)
        q_bar[i] = p.m - square * p.diagonals[i] * p.diagonals[i];
    for (int64_t i = 0; i < k * p.packed; i++)
        l_bar[i] = -square * p.l[i];
    for (int64_t start = 0; start < p.n; start += B) {
        const int64_t count = p.n - start < B ? p.n - start : B;
        forward(&p, start, count, sum);
        for (int64_t b = 0; b < B; b++)
            sum[b] = b < count ? 1 / sum[b] : 0;
        for (int64_t c = 0; c < k; c++) {
            double *restrict term = p.terms + c * B, weights = 0;
            for (int64_t b = 0; b < B; b++)
                weights += term[b] = term[b] * sum[b] < TINY ? 0 : term[b] * sum[b];
            alpha_bar[c] += weights;
            for (int64_t i = 0; i < d; i++)
                q_bar[c * d + i] += weights;
            backward(&p, c, term, p.centred + c * d * B, p.y + c * d * B, mu_bar + c * d,
                     q_bar + c * d, l_bar + c * p.packed);
        }
    }
    free(p.diagonals);
}
