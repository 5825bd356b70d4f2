// The equation of state of seawater: specific volume, the derivative of dynamic enthalpy by
// temperature, and their adjoints, by hand.  Cells are nxy columns of nz layers; pressure is given
// for each layer.  A row of 64 columns is worked on at once, with the pressure of all its cells
// written out, so that the innermost loop is long whatever nz is.
//
// Polynomials and names are those of kernel_cases/state.py.  `_` marks tangents by temperature,
// `B` what the weighted sum gains by a line's result.
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#define COLUMNS 64
#define INLINED static inline __attribute__((always_inline))  // or gcc takes one cell at a time
#define PASCAL 1e4

typedef struct {  // a polynomial and its derivatives by salinity and temperature
    double v, s, t, ts, tt;
} P;

#define P1(c0, c1) ((c0) + t * (c1))
#define P2(c0, c1, c2) ((c0) + t * P1(c1, c2))
#define P3(c0, c1, c2, c3) ((c0) + t * P2(c1, c2, c3))
#define P4(c0, c1, c2, c3, c4) ((c0) + t * P3(c1, c2, c3, c4))

// With coefficients that are polynomials of t: A + s (B + r C + s D), r the root of s.
INLINED P salty(double s, double r, const double A[3], const double B[3], const double C[3],
                      double D) {
    return (P){A[0] + s * (B[0] + r * C[0] + s * D), B[0] + 1.5 * r * C[0] + 2 * s * D,
               A[1] + s * (B[1] + r * C[1]), B[1] + 1.5 * r * C[1], A[2] + s * (B[2] + r * C[2])};
}

#define D4(a, b, c, d, e) \
    {P4(a, b, c, d, e), P3(b, 2 * (c), 3 * (d), 4 * (e)), P2(2 * (c), 6 * (d), 12 * (e))}
#define D3(a, b, c, d) {P3(a, b, c, d), P2(b, 2 * (c), 3 * (d)), P1(2 * (c), 6 * (d))}
#define D2(a, b, c) {P2(a, b, c), P1(b, 2 * (c)), 2 * (c)}
#define D1(a, b) {P1(a, b), b, 0}

#define POLYNOMIALS                                                                                \
    const double zero[3] = {0, 0, 0}, r = sqrt(s);                                                 \
    const double b0a[3] = D3(9.998420897506056e2, 2.839940833161907e0, -3.147759265588511e-2,      \
                             1.181805545074306e-3),                                                \
                 b0b[3] = D2(-6.698001071123802e0, -2.986498947203215e-2, 2.327859407479162e-4),   \
                 b0c[3] = D3(-3.988822378968490e-2, 5.095422573880500e-4, -1.426984671633621e-5,   \
                             1.645039373682922e-7);                                                \
    const double b1a[3] = D2(-2.233269627352527e-2, -3.436090079851880e-4, 3.726050720345733e-6),  \
                 b1b[3] = D1(-1.806789763745328e-4, 6.876837219536232e-7);                         \
    const double b2a[3] = D2(-3.087032500374211e-7, -1.988366587925593e-8,                         \
                             -1.061519070296458e-11),                                              \
                 b2b[3] = {1.550932729220080e-10, 0, 0};                                           \
    const double a0a[3] = D4(1.0, 2.775927747785646e-3, -2.349607444135925e-5,                     \
                             1.119513357486743e-6, 6.743689325042773e-10),                         \
                 a0b[3] = D4(-7.521448093615448e-3, -2.764306979894411e-5, 1.262937315098546e-7,   \
                             9.527875081696435e-10, -1.811147201949891e-11),                       \
                 a0c[3] = D4(-3.303308871386421e-5, 3.801564588876298e-7, -7.672876869259043e-9,   \
                             -4.634182341116144e-11, 2.681097235569143e-12);                       \
    const double a1a[3] = D3(-2.742185394906099e-5, -3.212746477974189e-7, 3.191413910561627e-9,   \
                             -1.931012931541776e-12),                                              \
                 a1b[3] = D1(-1.105097577149576e-7, 6.211426728363857e-10);                        \
    const double a2a[3] = D2(-1.119011592875110e-10, -1.941660213148725e-11,                       \
                             -1.864826425365600e-14),                                              \
                 a2b[3] = D1(0.0, 1.119522344879478e-14);                                          \
    const double a3a[3] = D1(-1.200507748551599e-15, 6.057902487546866e-17);                       \
    P b0 = salty(s, r, b0a, b0b, b0c, 0), b1 = salty(s, r, b1a, b1b, zero, 0);                     \
    P b2 = salty(s, r, b2a, b2b, zero, 0), a0 = salty(s, r, a0a, a0b, a0c, 5.419326551148740e-6);  \
    P a1 = salty(s, r, a1a, a1b, zero, 0), a2 = salty(s, r, a2a, a2b, zero, 0);                    \
    P a3 = salty(s, r, a3a, zero, zero, 0)

INLINED double volume_of(double s, double t, double p) {
    POLYNOMIALS;
    return (a0.v + p * (a1.v + p * (a2.v + p * a3.v))) / (b0.v + p * (b1.v + p * b2.v));
}

INLINED double volume_adjoint_of(double s, double t, double p, double w, double *sB,
                                       double *tB, double *pB) {
    POLYNOMIALS;
    double i = 1 / (b0.v + p * (b1.v + p * b2.v));
    double v = (a0.v + p * (a1.v + p * (a2.v + p * a3.v))) * i;
    w *= i;
    *sB = w * (a0.s + p * (a1.s + p * (a2.s + p * a3.s)) - v * (b0.s + p * (b1.s + p * b2.s)));
    *tB = w * (a0.t + p * (a1.t + p * (a2.t + p * a3.t)) - v * (b0.t + p * (b1.t + p * b2.t)));
    *pB = w * (a1.v + p * (2 * a2.v + 3 * p * a3.v) - v * (b1.v + 2 * p * b2.v));
    return v;
}

#define FORWARD                                                                                    \
    POLYNOMIALS;                                                                                   \
    double h = 0.5 * b1.v, h_ = 0.5 * b1.t, i = 1 / b2.v;                                          \
    double q1 = a3.v * i, q1_ = (a3.t - q1 * b2.t) * i;                                            \
    double q0 = (a2.v - 2 * h * q1) * i, q0_ = (a2.t - 2 * (h_ * q1 + h * q1_) - q0 * b2.t) * i;   \
    double r1 = a1.v - q1 * b0.v - 2 * h * q0;                                                     \
    double r1_ = a1.t - q1_ * b0.v - q1 * b0.t - 2 * (h_ * q0 + h * q0_);                          \
    double r0 = a0.v - q0 * b0.v, r0_ = a0.t - q0_ * b0.v - q0 * b0.t;                             \
    double d = sqrt(h * h - b0.v * b2.v), j = 1 / d;                                               \
    double d_ = (h * h_ - 0.5 * (b0.t * b2.v + b0.v * b2.t)) * j;                                  \
    double k = 1 / b0.v, x = p * (2 * h + b2.v * p) * k;                                           \
    double x_ = (p * (2 * h_ + b2.t * p) - x * b0.t) * k;                                          \
    double low = h - d, up = h + d + b2.v * p, low_ = h_ - d_, up_ = h_ + d_ + b2.t * p;           \
    double f = 1 / (low * up), y = 2 * d * b2.v * p * f;                                           \
    double y_ = (2 * p * (d_ * b2.v + d * b2.t) - y * (low_ * up + low * up_)) * f;                \
    double xi = 1 / (1 + x), yi = 1 / (1 + y);                                                     \
    double near = log(1 + x), near_ = x_ * xi, far = log(1 + y), far_ = y_ * yi;                   \
    double m = r1 * i, m_ = (r1_ - m * b2.t) * i;                                                  \
    double n = (r0 - m * h) * j, n_ = (r0_ - m_ * h - m * h_ - n * d_) * j;                        \
    double sum = p * (q0_ + 0.5 * q1_ * p);                                                        \
    sum += 0.5 * (m_ * near + m * near_ + n_ * far + n * far_)

INLINED double enthalpy_of(double s, double t, double p) {
    FORWARD;
    return PASCAL * sum;
}

INLINED double enthalpy_adjoint_of(double s, double t, double p, double w, double *sB,
                                         double *tB, double *pB) {
    FORWARD;
    w *= PASCAL;
    double g = 0.5 * w;  // sum = ... + 0.5 (m_ near + m near_ + n_ far + n far_)
    double q0_B = w * p, q1_B = 0.5 * w * p * p, pS = w * (q0_ + q1_ * p);
    double m_B = g * near, mB = g * near_, n_B = g * far, nB = g * far_;
    double near_B = g * m, nearB = g * m_, far_B = g * n, farB = g * n_;
    // n_ = (r0_ - m_ h - m h_ - n d_) j, and n = (r0 - m h) j
    double e = n_B * j;
    double r0_B = e, h_B = -e * m, d_B = -e * n, hB = -e * m_, dB = -n_ * e;
    m_B -= e * h;
    mB -= e * h_;
    nB -= e * d_;
    e = nB * j;
    double r0B = e;
    mB -= e * h;
    hB -= e * m;
    dB -= e * n;
    // m_ = (r1_ - m b2_) i, and m = r1 i
    e = m_B * i;
    double r1_B = e, b2_B = -e * m, b2B = -m_ * e;
    mB -= e * b2.t;
    double r1B = mB * i;
    b2B -= mB * m * i;
    // logarithms
    double x_B = near_B * xi, xB = (nearB - near_B * near_) * xi;
    double y_B = far_B * yi, yB = (farB - far_B * far_) * yi;
    // y_ = (2 p (d_ b2 + d b2_) - y (low_ up + low up_)) f, and y = 2 d b2 p f
    e = y_B * f;
    pS += e * 2 * (d_ * b2.v + d * b2.t);
    d_B += e * 2 * p * b2.v;
    b2B += e * 2 * p * d_;
    dB += e * 2 * p * b2.t;
    b2_B += e * 2 * p * d;
    yB -= e * (low_ * up + low * up_);
    double low_B = -e * y * up, up_B = -e * y * low;
    double lowB = -e * y * up_, upB = -e * y * low_, fB = y_B * y_ + yB * y;  // of log f
    e = yB * f;
    dB += e * 2 * b2.v * p;
    b2B += e * 2 * d * p;
    pS += e * 2 * d * b2.v;
    lowB -= fB * up * f;
    upB -= fB * low * f;
    // up = h + d + b2 p, low = h - d, and their tangents
    hB += upB + lowB;
    dB += upB - lowB;
    b2B += upB * p;
    pS += upB * b2.v + up_B * b2.t;
    h_B += up_B + low_B;
    d_B += up_B - low_B;
    b2_B += up_B * p;
    // x_ = (p (2 h_ + b2_ p) - x b0_) k, and x = p (2 h + b2 p) k
    e = x_B * k;
    pS += e * 2 * (h_ + b2.t * p);
    h_B += e * 2 * p;
    b2_B += e * p * p;
    xB -= e * b0.t;
    double b0_B = -e * x, b0B = -e * x_;
    e = xB * k;
    pS += e * 2 * (h + b2.v * p);
    hB += e * 2 * p;
    b2B += e * p * p;
    b0B -= e * x;
    // d_ = (h h_ - (b0_ b2 + b0 b2_) / 2) j, and d the root of h h - b0 b2
    e = d_B * j;
    dB -= e * d_;
    hB += e * h_;
    h_B += e * h;
    b0_B -= 0.5 * e * b2.v;
    b2B -= 0.5 * e * b0.t;
    b0B -= 0.5 * e * b2.t;
    b2_B -= 0.5 * e * b0.v;
    e = dB * j;
    hB += e * h;
    b0B -= 0.5 * e * b2.v;
    b2B -= 0.5 * e * b0.v;
    // r0 and r1
    double a0_B = r0_B, a0B = r0B, a1_B = r1_B, a1B = r1B;
    q0_B -= r0_B * b0.v + 2 * r1_B * h;
    b0B -= r0_B * q0_ + r0B * q0 + r1_B * q1_ + r1B * q1;
    b0_B -= r0_B * q0 + r1_B * q1;
    double q0B = -r0_B * b0.t - r0B * b0.v - 2 * r1_B * h_ - 2 * r1B * h;
    q1_B -= r1_B * b0.v;
    double q1B = -r1_B * b0.t - r1B * b0.v;
    h_B -= 2 * r1_B * q0;
    hB -= 2 * (r1_B * q0_ + r1B * q0);
    // q0_ = (a2_ - 2 (h_ q1 + h q1_) - q0 b2_) i, and q0 = (a2 - 2 h q1) i
    e = q0_B * i;
    double a2_B = e;
    h_B -= 2 * e * q1;
    q1B -= 2 * e * h_;
    hB -= 2 * e * q1_;
    q1_B -= 2 * e * h;
    q0B -= e * b2.t;
    b2_B -= e * q0;
    b2B -= e * q0_;
    e = q0B * i;
    double a2B = e;
    hB -= 2 * e * q1;
    q1B -= 2 * e * h;
    b2B -= e * q0;
    // q1_ = (a3_ - q1 b2_) i, and q1 = a3 i
    e = q1_B * i;
    double a3_B = e;
    q1B -= e * b2.t;
    b2_B -= e * q1;
    b2B -= e * q1_;
    e = q1B * i;
    double a3B = e;
    b2B -= e * q1;
    double b1B = 0.5 * hB, b1_B = 0.5 * h_B;
#define BY(of) (a0B * a0.of + a1B * a1.of + a2B * a2.of + a3B * a3.of + b0B * b0.of + \
                b1B * b1.of + b2B * b2.of)
#define BY_(of) (a0_B * a0.of + a1_B * a1.of + a2_B * a2.of + a3_B * a3.of + b0_B * b0.of + \
                 b1_B * b1.of + b2_B * b2.of)
    *sB = BY(s) + BY_(ts);
    *tB = BY(t) + BY_(tt);
    *pB = pS;
    return PASCAL * sum;
}

static double *pressures(size_t nz, const double *p) {
    double *rows = malloc(2 * COLUMNS * nz * sizeof *rows);
    for (size_t k = 0; k < COLUMNS * nz; k++) rows[k] = p[k % nz];
    return rows;
}

#define VALUES(name)                                                                               \
    void name(size_t nxy, size_t nz, const double *restrict s, const double *restrict t,           \
              const double *restrict p, double *restrict out) {                                    \
        double *restrict row = pressures(nz, p);                                                   \
        for (size_t c = 0; c < nxy; c += COLUMNS) {                                                \
            size_t at = c * nz, wide = (nxy - c < COLUMNS ? nxy - c : COLUMNS) * nz;               \
            _Pragma("omp simd") for (size_t k = 0; k < wide; k++) {                                \
                double v = name##_of(s[at + k], t[at + k], row[k]);                                \
                out[at + k] = v;                                                                   \
            }                                                                                      \
        }                                                                                          \
        free(row);                                                                                 \
    }

#define ADJOINTS(name)                                                                             \
    void name##_adjoint(size_t nxy, size_t nz, const double *restrict s, const double *restrict t, \
                        const double *restrict p, const double *restrict w,                        \
                        double *restrict total, double *restrict sB, double *restrict tB,          \
                        double *restrict pB) {                                                     \
        double *restrict row = pressures(nz, p), *restrict rowB = row + COLUMNS * nz, sum = 0;     \
        for (size_t k = 0; k < COLUMNS * nz; k++) rowB[k] = 0;                                     \
        for (size_t c = 0; c < nxy; c += COLUMNS) {                                                \
            size_t at = c * nz, wide = (nxy - c < COLUMNS ? nxy - c : COLUMNS) * nz;               \
            _Pragma("omp simd reduction(+ : sum)") for (size_t k = 0; k < wide; k++) {             \
                double a, b, e;                                                                    \
                sum += w[at + k] * name##_adjoint_of(s[at + k], t[at + k], row[k], w[at + k], &a,  \
                                                     &b, &e);                                      \
                sB[at + k] = a;                                                                    \
                tB[at + k] = b;                                                                    \
                rowB[k] += e;                                                                      \
            }                                                                                      \
        }                                                                                          \
        for (size_t k = 0; k < nz; k++) pB[k] = 0;                                                 \
        for (size_t k = 0; k < COLUMNS * nz; k++) pB[k % nz] += rowB[k];                           \
        free(row);                                                                                 \
        *total = sum;                                                                              \
    }

VALUES(volume)
ADJOINTS(volume)
VALUES(enthalpy)
ADJOINTS(enthalpy)
