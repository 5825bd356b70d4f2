// The log-likelihood of a Gaussian mixture with a Wishart prior (ADBench), and its gradient by hand.
//
// Points go through in blocks of B, transposed so that a loop over a block is a vector operation.  For
// a block, y = Q (x - mu) of all components is kept; when the weights of the components are known,
// it is turned into gradients.  Layouts: means (k, d); icf (k, d (d + 1) / 2), first the logarithms of
// the diagonal of Q, then its columns below the diagonal; points (n, d).
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define B 64

static void forward(size_t d, const double *restrict x, const double *restrict mean,
                    const double *restrict diagonal, const double *restrict lower,
                    double *restrict centred, double *restrict y) {
    for (size_t i = 0; i < d; i++)
        for (size_t p = 0; p < B; p++) {
            centred[i * B + p] = x[i * B + p] - mean[i];
            y[i * B + p] = diagonal[i] * centred[i * B + p];
        }
    for (size_t i = 0; i < d; i++)
        for (size_t j = i + 1; j < d; j++) {
            double l = *lower++;
            for (size_t p = 0; p < B; p++)
                y[j * B + p] += l * centred[i * B + p];
        }
}

// Gradients from y, which is overwritten by weight * y: by the mean -Q^T y, by Q the products.
static void backward(size_t d, const double *restrict weight, const double *restrict diagonal,
                     const double *restrict lower, const double *restrict centred,
                     double *restrict y, double *restrict mean_bar, double *restrict icf_bar) {
    double *restrict lower_bar = icf_bar + d;
    for (size_t i = 0; i < d; i++)
        for (size_t p = 0; p < B; p++)
            y[i * B + p] *= weight[p];
    for (size_t i = 0; i < d; i++) {
        double mean = 0, product = 0;
        double back[B];
        for (size_t p = 0; p < B; p++) {
            back[p] = diagonal[i] * y[i * B + p];
            product += y[i * B + p] * centred[i * B + p];
        }
        icf_bar[i] -= diagonal[i] * product;
        for (size_t j = i + 1; j < d; j++) {
            double l = *lower++, sum = 0;
            for (size_t p = 0; p < B; p++) {
                sum += y[j * B + p] * centred[i * B + p];
                back[p] += l * y[j * B + p];
            }
            *lower_bar++ -= sum;
        }
        for (size_t p = 0; p < B; p++)
            mean += back[p];
        mean_bar[i] += mean;
    }
}

static double block(size_t count, size_t d, size_t k, const double *points, const double *alphas,
                    const double *means, const double *icf, const double *diagonals,
                    const double *logdets, double *work, double *alphas_bar, double *means_bar,
                    double *icf_bar) {
    size_t packed = d * (d + 1) / 2;
    double *x = work, *centred = x + d * B, *y = centred + k * d * B, *terms = y + k * d * B;
    double largest[B], sum[B] = {0}, value = 0;
    for (size_t p = 0; p < B; p++)
        for (size_t i = 0; i < d; i++)
            x[i * B + p] = p < count ? points[p * d + i] : 0;
    for (size_t c = 0; c < k; c++) {
        double *yc = y + c * d * B, *term = terms + c * B, square[B] = {0};
        forward(d, x, means + c * d, diagonals + c * d, icf + c * packed + d, centred + c * d * B, yc);
        for (size_t i = 0; i < d; i++)
            for (size_t p = 0; p < B; p++)
                square[p] += yc[i * B + p] * yc[i * B + p];
        for (size_t p = 0; p < B; p++) {
            term[p] = alphas[c] + logdets[c] - 0.5 * square[p];
            largest[p] = c == 0 || term[p] > largest[p] ? term[p] : largest[p];
        }
    }
    for (size_t c = 0; c < k; c++)
        for (size_t p = 0; p < B; p++)
            sum[p] += terms[c * B + p] = exp(terms[c * B + p] - largest[p]);
    for (size_t p = 0; p < count; p++)
        value += largest[p] + log(sum[p]);
    for (size_t p = 0; p < B; p++)
        sum[p] = p < count ? 1 / sum[p] : 0;
    for (size_t c = 0; c < k; c++) {
        double *term = terms + c * B, weights = 0;
        for (size_t p = 0; p < B; p++)
            weights += term[p] *= sum[p];
        alphas_bar[c] += weights;
        for (size_t i = 0; i < d; i++)
            icf_bar[c * packed + i] += weights;
        backward(d, term, diagonals + c * d, icf + c * packed + d, centred + c * d * B,
                 y + c * d * B, means_bar + c * d, icf_bar + c * packed);
    }
    return value;
}

double mixture(size_t n, size_t d, size_t k, const double *alphas, const double *means,
               const double *icf, const double *points, double gamma, double m, double constant,
               double *alphas_bar, double *means_bar, double *icf_bar) {
    size_t packed = d * (d + 1) / 2;
    double *work = malloc(sizeof(double) * (d * B + 2 * k * d * B + k * B + k * d + k));
    double *diagonals = work + d * B + 2 * k * d * B + k * B, *logdets = diagonals + k * d;
    double value = constant, largest = alphas[0], sum = 0;
    memset(alphas_bar, 0, sizeof(double) * k);
    memset(means_bar, 0, sizeof(double) * k * d);
    memset(icf_bar, 0, sizeof(double) * k * packed);
    for (size_t c = 0; c < k; c++) {
        logdets[c] = 0;
        for (size_t i = 0; i < d; i++) {
            logdets[c] += icf[c * packed + i];
            diagonals[c * d + i] = exp(icf[c * packed + i]);
        }
        largest = alphas[c] > largest ? alphas[c] : largest;
    }
    for (size_t start = 0; start < n; start += B)
        value += block(n - start < B ? n - start : B, d, k, points + start * d, alphas, means, icf,
                       diagonals, logdets, work, alphas_bar, means_bar, icf_bar);
    for (size_t c = 0; c < k; c++)
        sum += exp(alphas[c] - largest);
    value -= n * (largest + log(sum));
    for (size_t c = 0; c < k; c++) {
        alphas_bar[c] -= n * exp(alphas[c] - largest) / sum;
        for (size_t i = 0; i < packed; i++) {
            double entry = i < d ? diagonals[c * d + i] : icf[c * packed + i];
            value += 0.5 * gamma * gamma * entry * entry - (i < d ? m * icf[c * packed + i] : 0);
            icf_bar[c * packed + i] += gamma * gamma * entry * (i < d ? entry : 1) - (i < d ? m : 0);
        }
    }
    free(work);
    return value;
}
