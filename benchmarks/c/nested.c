// Loops that end when they say so, inside minimisations, inside derivatives: by hand.
//
// particle, saddle: the problems of Siskind and Pearlmutter, with their minimiser (gradient descent
// whose step doubles after ten successes and halves at a failure).  Derivatives through loops are
// by forward mode: every number has its derivative by the unknowns beside it; the innermost
// gradients are formulas.  kepler: Newton's iteration, with its derivative beside it.
#include <math.h>
#include <stddef.h>

// ---- particle: one unknown w ---------------------------------------------------------------------

// The square of where the particle crosses the axis, and its derivative by w.
static double flight(double w, double *bar) {
    double x = 0, y = 8, vx = 0.75, vy = 0, dx = 0, dy = 0, dvx = 0, dvy = 0;
    const double h = 0.1, c1 = 10 - w;
    for (;;) {
        double nx = x + h * vx, ny = y + h * vy;
        if (!(ny > 0))
            break;
        double ax = x - 10, ay = y - c1, by = y, day = dy + 1;
        double ra = ax * ax + ay * ay, rb = ax * ax + by * by;
        double ia = 1 / sqrt(ra), ib = 1 / sqrt(rb), ka = ia / ra, kb = ib / rb;
        double fx = (ka + kb) * ax, fy = ka * ay + kb * by; // minus the gradient of the potential
        double dka = -3 * ka / ra * (ax * dx + ay * day);
        double dkb = -3 * kb / rb * (ax * dx + by * dy);
        double dfx = (dka + dkb) * ax + (ka + kb) * dx;
        double dfy = dka * ay + ka * day + dkb * by + kb * dy;
        dx += h * dvx;
        dy += h * dvy;
        dvx += h * dfx;
        dvy += h * dfy;
        x = nx;
        y = ny;
        vx += h * fx;
        vy += h * fy;
    }
    double t = -y / vy, end = x + t * vx;
    double dt = (-dy - t * dvy) / vy;
    *bar = 2 * end * (dx + dt * vx + t * dvx);
    return end * end;
}

double particle(double w) {
    double bar, value = flight(w, &bar), eta = 1e-5;
    int successes = 0;
    for (;;) {
        if (fabs(bar) <= 1e-5)
            return w;
        if (successes == 10) {
            eta *= 2;
            successes = 0;
            continue;
        }
        double next = w - eta * bar;
        if (fabs(w - next) <= 1e-5)
            return w;
        double slope, there = flight(next, &slope);
        if (there < value) {
            value = there;
            bar = slope;
            w = next;
            successes++;
        } else {
            eta /= 2;
            successes = 0;
        }
    }
}

// ---- saddle: two unknowns, whose derivatives each number carries ---------------------------------

typedef struct { double v, d[2]; } dual;

static inline dual constant(double v) { return (dual){v, {0, 0}}; }
static inline dual added(dual a, dual b) {
    return (dual){a.v + b.v, {a.d[0] + b.d[0], a.d[1] + b.d[1]}};
}
static inline dual scaled(double k, dual a) { return (dual){k * a.v, {k * a.d[0], k * a.d[1]}}; }
static inline dual squared(dual a) { return (dual){a.v * a.v, {2 * a.v * a.d[0], 2 * a.v * a.d[1]}}; }

// Minus f(p, q) = (p1^2 + p2^2) - (q1^2 + q2^2), and its gradient by q.
static dual inner(dual p1, dual p2, const dual q[2]) {
    dual p = added(squared(p1), squared(p2)), r = added(squared(q[0]), squared(q[1]));
    return added(r, scaled(-1, p));
}

static dual greatest(dual p1, dual p2, const double start[2], dual q[2]) {
    dual value, g[2];
    double eta = 1e-5;
    int successes = 0;
    q[0] = constant(start[0]);
    q[1] = constant(start[1]);
    value = inner(p1, p2, q);
    for (int k = 0; k < 2; k++)
        g[k] = scaled(2, q[k]);
    for (;;) {
        if (sqrt(g[0].v * g[0].v + g[1].v * g[1].v) <= 1e-5)
            break;
        if (successes == 10) {
            eta *= 2;
            successes = 0;
            continue;
        }
        dual next[2] = {added(q[0], scaled(-eta, g[0])), added(q[1], scaled(-eta, g[1]))};
        double a = q[0].v - next[0].v, b = q[1].v - next[1].v;
        if (sqrt(a * a + b * b) <= 1e-5)
            break;
        dual there = inner(p1, p2, next);
        if (there.v < value.v) {
            value = there;
            for (int k = 0; k < 2; k++) {
                q[k] = next[k];
                g[k] = scaled(2, q[k]);
            }
            successes++;
        } else {
            eta /= 2;
            successes = 0;
        }
    }
    return scaled(-1, value);
}

double saddle(const double *start, double *out) {
    double x[2] = {start[0], start[1]}, eta = 1e-5;
    dual q[2], at;
    int successes = 0;
    at = greatest((dual){x[0], {1, 0}}, (dual){x[1], {0, 1}}, start, q);
    for (;;) {
        if (sqrt(at.d[0] * at.d[0] + at.d[1] * at.d[1]) <= 1e-5)
            break;
        if (successes == 10) {
            eta *= 2;
            successes = 0;
            continue;
        }
        double next[2] = {x[0] - eta * at.d[0], x[1] - eta * at.d[1]};
        double a = x[0] - next[0], b = x[1] - next[1];
        if (sqrt(a * a + b * b) <= 1e-5)
            break;
        dual there = greatest((dual){next[0], {1, 0}}, (dual){next[1], {0, 1}}, start, q);
        if (there.v < at.v) {
            at = there;
            x[0] = next[0];
            x[1] = next[1];
            successes++;
        } else {
            eta /= 2;
            successes = 0;
        }
    }
    greatest(constant(x[0]), constant(x[1]), start, q);
    out[0] = x[0];
    out[1] = x[1];
    out[2] = q[0].v;
    out[3] = q[1].v;
    return at.v;
}

// ---- Kepler's equation ---------------------------------------------------------------------------

// The sum of E over n mean anomalies, E - e sin E = 2 pi k / n + shift, and its gradient.
double kepler(size_t n, const double *p, double *bar) {
    double sum = 0, by_e = 0, by_shift = 0;
    for (size_t k = 0; k < n; k++) {
        double m = 2 * M_PI * k / n + p[1], x = m, e_bar = 0, m_bar = 1, step;
        do {
            double s = sin(x), c = cos(x), r = x - p[0] * s - m, d = 1 - p[0] * c;
            step = r / d;
            // derivatives of r and d by e and m, in the directions (1, 0) and (0, 1)
            double r_e = d * e_bar - s, r_m = d * m_bar - 1;
            double d_e = p[0] * s * e_bar - c, d_m = p[0] * s * m_bar;
            e_bar -= (r_e - step * d_e) / d;
            m_bar -= (r_m - step * d_m) / d;
            x -= step;
        } while (fabs(step) > 1e-10);
        sum += x;
        by_e += e_bar;
        by_shift += m_bar;
    }
    bar[0] = by_e;
    bar[1] = by_shift;
    return sum;
}
