// Bundle adjustment: residuals of all observations, and their Jacobian in compressed rows, by hand.
//
// An observation is a camera (rotation r as axis times angle, centre, focal length f, principal
// point, two coefficients of radial distortion), a point x, a weight w and a feature:
//     y = R(r) (x - centre),  p = (y0, y1) / y2,  L = 1 + k0 |p|^2 + k1 |p|^4,
//     residual = w (f L p + origin - feature),    and 1 - w^2
// R(r) v = v cos a + (k x v) sin a + k (k . v)(1 - cos a),  a = |r|, k = r / a.
// Its derivative by r_j is written with s = sin(a) / a and t = (1 - cos a) / a^2:
//     R v = v cos a + s (r x v) + t (r . v) r.
#include <math.h>
#include <stddef.h>
#include <stdint.h>

enum { CAMERA = 11, POINT = 3, COLUMNS = CAMERA + POINT + 1 };

// Values of the two rows of an observation; residual alone if there is no `row`.
static inline void observation(const double *cam, const double *x, double w, const double *feature,
                               double *residual, double *row) {
    const double *r = cam, f = cam[6], k0 = cam[9], k1 = cam[10];
    double v[3], y[3], cross[3], square = 0, dot = 0, c = 1, s = 1, t = 0.5, ds = 0, dt = 0;
    for (int i = 0; i < 3; i++) {
        v[i] = x[i] - cam[3 + i];
        square += r[i] * r[i];
        dot += r[i] * v[i];
    }
    if (square > 0) {
        double a = sqrt(square), over = 1 / square, sine = sin(a);
        c = cos(a);
        s = sine / a;
        t = (1 - c) * over;
        ds = (c - s) * over;     // ds / dr_j = ds r_j
        dt = (s - 2 * t) * over; // dt / dr_j = dt r_j
    }
    cross[0] = r[1] * v[2] - r[2] * v[1];
    cross[1] = r[2] * v[0] - r[0] * v[2];
    cross[2] = r[0] * v[1] - r[1] * v[0];
    for (int i = 0; i < 3; i++)
        y[i] = v[i] * c + s * cross[i] + t * dot * r[i];
    double over = 1 / y[2], p0 = y[0] * over, p1 = y[1] * over, rsq = p0 * p0 + p1 * p1;
    double distorted = 1 + k0 * rsq + k1 * rsq * rsq, slope = k0 + 2 * k1 * rsq;
    residual[0] = w * (f * distorted * p0 + cam[7] - feature[0]);
    residual[1] = w * (f * distorted * p1 + cam[8] - feature[1]);
    if (!row)
        return;
    // by p, then by y
    double wf = w * f, q00 = wf * (distorted + 2 * slope * p0 * p0), q01 = wf * 2 * slope * p0 * p1;
    double q11 = wf * (distorted + 2 * slope * p1 * p1);
    double by_y[2][3] = {{q00 * over, q01 * over, -(q00 * p0 + q01 * p1) * over},
                         {q01 * over, q11 * over, -(q01 * p0 + q11 * p1) * over}};
    for (int k = 0; k < 2; k++) {
        double *o = row + k * COLUMNS, *g = by_y[k], pk = k ? p1 : p0;
        double gv = g[0] * v[0] + g[1] * v[1] + g[2] * v[2];
        double gr = g[0] * r[0] + g[1] * r[1] + g[2] * r[2];
        double gc = g[0] * cross[0] + g[1] * cross[1] + g[2] * cross[2];
        // the part along r: dc / dr_j = -s r_j
        double along = -s * gv + ds * gc + dt * dot * gr;
        double vg[3] = {v[1] * g[2] - v[2] * g[1], v[2] * g[0] - v[0] * g[2],
                        v[0] * g[1] - v[1] * g[0]};
        double gcross[3] = {g[1] * r[2] - g[2] * r[1], g[2] * r[0] - g[0] * r[2],
                            g[0] * r[1] - g[1] * r[0]};
        for (int j = 0; j < 3; j++) {
            o[j] = along * r[j] + s * vg[j] + t * (gr * v[j] + dot * g[j]);
            o[CAMERA + j] = c * g[j] + s * gcross[j] + t * gr * r[j];
            o[3 + j] = -o[CAMERA + j];
        }
        o[6] = w * distorted * pk;
        o[7] = k ? 0 : w;
        o[8] = k ? w : 0;
        o[9] = wf * pk * rsq;
        o[10] = wf * pk * rsq * rsq;
        o[14] = f * distorted * pk + cam[7 + k] - feature[k];
    }
}

// Sizes: n cameras, m points, p observations.
void objective(void **a) {
    const size_t p = ((int64_t *)a[0])[2];
    const double *cams = a[1], *points = a[2], *weights = a[3], *features = a[4];
    const int64_t *pairs = a[5];
    double *residuals = a[6], *excess = a[7];
    for (size_t i = 0; i < p; i++) {
        observation(cams + CAMERA * pairs[2 * i], points + POINT * pairs[2 * i + 1], weights[i],
                    features + 2 * i, residuals + 2 * i, NULL);
        excess[i] = 1 - weights[i] * weights[i];
    }
}

// The Jacobian of all residuals by cameras, points and weights: row pointers, columns, values.
void jacobian(void **a) {
    const int64_t *sizes = a[0], n = sizes[0], m = sizes[1], p = sizes[2];
    const double *cams = a[1], *points = a[2], *weights = a[3], *features = a[4];
    const int64_t *pairs = a[5];
    int32_t *rows = a[6], *columns = a[7];
    double *values = a[8], residual[2];
    const int32_t first_point = CAMERA * n, first_weight = first_point + POINT * m;
    rows[0] = 0;
    for (int64_t i = 0; i < p; i++) {
        int64_t camera = pairs[2 * i], point = pairs[2 * i + 1];
        observation(cams + CAMERA * camera, points + POINT * point, weights[i], features + 2 * i,
                    residual, values + 2 * COLUMNS * i);
        for (int k = 0; k < 2; k++) {
            int32_t *o = columns + COLUMNS * (2 * i + k);
            rows[2 * i + k + 1] = COLUMNS * (2 * i + k + 1);
            for (int j = 0; j < CAMERA; j++)
                o[j] = CAMERA * camera + j;
            for (int j = 0; j < POINT; j++)
                o[CAMERA + j] = first_point + POINT * point + j;
            o[CAMERA + POINT] = first_weight + i;
        }
    }
    for (int64_t i = 0; i < p; i++) {
        rows[2 * p + i + 1] = 2 * COLUMNS * p + i + 1;
        columns[2 * COLUMNS * p + i] = first_weight + i;
        values[2 * COLUMNS * p + i] = -2 * weights[i];
    }
}
