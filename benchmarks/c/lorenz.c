// Lorenz's equations by the classical Runge-Kutta method, and the gradient of x + y + z at the end
// by (sigma, rho, beta): the adjoint of every step by hand.
//
// Forward, the states are kept (24 bytes a step); backward, a step computes its stages again.  With
// f(s) the right-hand side and J its Jacobian, the adjoint of s' = s + h/6 (k1 + 2 k2 + 2 k3 + k4),
// k2 = f(s + h/2 k1), ..., is J^T applied in the opposite order.
#include <stddef.h>

typedef struct { double x, y, z; } state;

static inline state slope(const double p[3], state s) {
    return (state){p[0] * (s.y - s.x), s.x * (p[1] - s.z) - s.y, s.x * s.y - p[2] * s.z};
}

static inline state moved(state s, double h, state k) {
    return (state){s.x + h * k.x, s.y + h * k.y, s.z + h * k.z};
}

static inline state step(const double p[3], double h, state s) {
    state a = slope(p, s), b = slope(p, moved(s, 0.5 * h, a));
    state c = slope(p, moved(s, 0.5 * h, b)), d = slope(p, moved(s, h, c));
    double w = h / 6;
    return (state){s.x + w * (a.x + 2 * b.x + 2 * c.x + d.x),
                   s.y + w * (a.y + 2 * b.y + 2 * c.y + d.y),
                   s.z + w * (a.z + 2 * b.z + 2 * c.z + d.z)};
}

// J^T k of the right-hand side at s; adds to the gradient.
static inline state pulled(const double p[3], state s, state k, double bar[3]) {
    bar[0] += k.x * (s.y - s.x);
    bar[1] += k.y * s.x;
    bar[2] -= k.z * s.z;
    return (state){-p[0] * k.x + (p[1] - s.z) * k.y + s.y * k.z, p[0] * k.x - k.y + s.x * k.z,
                   -s.x * k.y - p[2] * k.z};
}

static inline state step_back(const double p[3], double h, state s, state t, double bar[3]) {
    state a = slope(p, s), sb = moved(s, 0.5 * h, a);
    state b = slope(p, sb), sc = moved(s, 0.5 * h, b);
    state c = slope(p, sc), sd = moved(s, h, c);
    double w = h / 6;
    state zero = {0, 0, 0}, weighed = moved(zero, w, t), twice = moved(zero, 2 * w, t);
    state td = pulled(p, sd, weighed, bar);
    state tc = pulled(p, sc, moved(twice, h, td), bar);
    state tb = pulled(p, sb, moved(twice, 0.5 * h, tc), bar);
    state ta = pulled(p, s, moved(weighed, 0.5 * h, tb), bar);
    return (state){t.x + ta.x + tb.x + tc.x + td.x, t.y + ta.y + tb.y + tc.y + td.y,
                   t.z + ta.z + tb.z + tc.z + td.z};
}

double lorenz(size_t n, double h, const double *p) {
    state s = {1, 1, 1};
    for (size_t i = 0; i < n; i++)
        s = step(p, h, s);
    return s.x + s.y + s.z;
}

double lorenz_gradient(size_t n, double h, const double *p, double *kept, double *bar) {
    state s = {1, 1, 1}, *states = (state *)kept, t = {1, 1, 1};
    double sum[3] = {0, 0, 0};
    for (size_t i = 0; i < n; i++) {
        states[i] = s;
        s = step(p, h, s);
    }
    for (size_t i = n; i-- > 0;)
        t = step_back(p, h, states[i], t, sum);
    for (int i = 0; i < 3; i++)
        bar[i] = sum[i];
    return s.x + s.y + s.z;
}
