// The objective of GradBench's lstm (ADBench's, whose weight matrices are diagonal), and its
// gradient by the main and the extra parameters: the adjoint by hand.
//
// With b numbers in each state, a layer has weights and biases (forget, in, out, change), 8 b
// numbers; a step takes x = in_weight * character through the layers:
//     f = sigma(x wf + bf), i = sigma(h wi + bi), o = sigma(x wo + bo), g = tanh(h wg + bg),
//     c <- c f + i g, h <- o tanh c, x = h
// and predicts y = x out_weight + out_bias; the loss of a step is the sum over b of
// next * (log(2 + sum exp y) - y), divided by (n - 1) b.  Forward, the gates and states are kept.
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { F, I, O, G, T, C, H, KEPT }; // kept of each layer and step: gates, tanh c, c and h before

static double forward(size_t layers, size_t b, const double *main_, const double *extra,
                      double *state, const double *x0, double *kept, double *out) {
    double sum = 2;
    for (size_t k = 0; k < b; k++)
        out[k] = x0[k] * extra[k];
    for (size_t l = 0; l < layers; l++) {
        const double *w = main_ + 8 * b * l, *bias = w + 4 * b;
        double *h = state + 2 * b * l, *c = h + b, *o = kept + KEPT * b * l;
        for (size_t k = 0; k < b; k++) {
            o[C * b + k] = c[k];
            o[H * b + k] = h[k];
            o[F * b + k] = 1 / (1 + exp(-(out[k] * w[k] + bias[k])));
            o[I * b + k] = 1 / (1 + exp(-(h[k] * w[b + k] + bias[b + k])));
            o[O * b + k] = 1 / (1 + exp(-(out[k] * w[2 * b + k] + bias[2 * b + k])));
            o[G * b + k] = tanh(h[k] * w[3 * b + k] + bias[3 * b + k]);
            c[k] = c[k] * o[F * b + k] + o[I * b + k] * o[G * b + k];
            o[T * b + k] = tanh(c[k]);
            out[k] = h[k] = o[O * b + k] * o[T * b + k];
        }
    }
    for (size_t k = 0; k < b; k++)
        sum += out[k] = exp(out[k] * extra[b + k] + extra[2 * b + k]);
    return sum;
}

double character(size_t layers, size_t n, size_t b, const double *main_, const double *extra,
                 const double *state0, const double *sequence) {
    double state[2 * layers * b], kept[KEPT * layers * b], out[b], total = 0;
    memcpy(state, state0, sizeof state);
    for (size_t t = 0; t + 1 < n; t++) {
        const double *next = sequence + (t + 1) * b;
        double lse = log(forward(layers, b, main_, extra, state, sequence + t * b, kept, out));
        const double *h = state + 2 * b * (layers - 1);
        for (size_t k = 0; k < b; k++)
            total += next[k] * (lse - (h[k] * extra[b + k] + extra[2 * b + k]));
    }
    return total / (b * (n - 1));
}

double character_gradient(size_t layers, size_t n, size_t b, const double *main_,
                          const double *extra, const double *state0, const double *sequence,
                          double *work, double *main_bar, double *extra_bar) {
    double state[2 * layers * b], bar[2 * layers * b], x_bar[b], total = 0, scale = 1.0 / (b * (n - 1));
    double *sums = work + (n - 1) * KEPT * layers * b, *outs = sums + n;
    memcpy(state, state0, sizeof state);
    memset(bar, 0, sizeof bar);
    memset(main_bar, 0, 8 * b * layers * sizeof(double));
    memset(extra_bar, 0, 3 * b * sizeof(double));
    for (size_t t = 0; t + 1 < n; t++) {
        const double *next = sequence + (t + 1) * b, *h = state + 2 * b * (layers - 1);
        sums[t] = forward(layers, b, main_, extra, state, sequence + t * b,
                          work + t * KEPT * layers * b, outs + t * b);
        double lse = log(sums[t]);
        for (size_t k = 0; k < b; k++)
            total += next[k] * (lse - (h[k] * extra[b + k] + extra[2 * b + k]));
    }
    for (size_t t = n - 1; t-- > 0;) {
        const double *x0 = sequence + t * b, *next = x0 + b, *out = outs + t * b;
        double weight = 0;
        for (size_t k = 0; k < b; k++)
            weight += next[k];
        weight *= scale / sums[t];
        const double *last = work + (t * layers + layers - 1) * KEPT * b;
        for (size_t k = 0; k < b; k++) {
            double y_bar = weight * out[k] - scale * next[k];
            extra_bar[b + k] += y_bar * last[O * b + k] * last[T * b + k];
            extra_bar[2 * b + k] += y_bar;
            x_bar[k] = y_bar * extra[b + k];
        }
        for (size_t l = layers; l-- > 0;) {
            const double *w = main_ + 8 * b * l, *o = work + (t * layers + l) * KEPT * b;
            const double *below = o - KEPT * b;
            double *w_bar = main_bar + 8 * b * l, *b_bar = w_bar + 4 * b;
            double *h_bar = bar + 2 * b * l, *c_bar = h_bar + b;
            for (size_t k = 0; k < b; k++) {
                double f = o[F * b + k], i = o[I * b + k], g = o[G * b + k], q = o[O * b + k];
                double tanh_c = o[T * b + k], h = o[H * b + k];
                double x = l ? below[O * b + k] * below[T * b + k] : x0[k] * extra[k];
                double hb = h_bar[k] + x_bar[k], cb = c_bar[k] + hb * q * (1 - tanh_c * tanh_c);
                double zf = cb * o[C * b + k] * f * (1 - f), zi = cb * g * i * (1 - i);
                double zo = hb * tanh_c * q * (1 - q), zg = cb * i * (1 - g * g);
                c_bar[k] = cb * f;
                w_bar[k] += zf * x;
                w_bar[b + k] += zi * h;
                w_bar[2 * b + k] += zo * x;
                w_bar[3 * b + k] += zg * h;
                b_bar[k] += zf;
                b_bar[b + k] += zi;
                b_bar[2 * b + k] += zo;
                b_bar[3 * b + k] += zg;
                h_bar[k] = zi * w[b + k] + zg * w[3 * b + k];
                x_bar[k] = zf * w[k] + zo * w[2 * b + k];
            }
        }
        for (size_t k = 0; k < b; k++)
            extra_bar[k] += x_bar[k] * x0[k];
    }
    return total * scale;
}
