// Prices of European calls and their derivatives by spot, time and volatility, in one pass.
#include <stddef.h>
#include <tgmath.h>

void black_scholes(size_t n, const REAL *restrict spot, const REAL *restrict strike,
                   const REAL *restrict time, const REAL *restrict sigma, REAL rate,
                   REAL *restrict price, REAL *restrict delta, REAL *restrict theta,
                   REAL *restrict vega) {
    const REAL root_half = (REAL)0.70710678118654752440, density = (REAL)0.39894228040143267794;
#pragma omp parallel for simd
    for (size_t i = 0; i < n; i++) {
        REAL s = spot[i], v = sigma[i], t = time[i], root = sqrt(t);
        REAL d1 = (log(s / strike[i]) + (rate + (REAL)0.5 * v * v) * t) / (v * root);
        REAL d2 = d1 - v * root;
        REAL n1 = (REAL)0.5 + (REAL)0.5 * erf(root_half * d1);
        REAL n2 = (REAL)0.5 + (REAL)0.5 * erf(root_half * d2);
        REAL paid = strike[i] * exp(-rate * t) * n2;
        REAL bell = s * density * exp((REAL)-0.5 * d1 * d1);
        price[i] = s * n1 - paid;
        delta[i] = n1;
        theta[i] = bell * v / (2 * root) + rate * paid;
        vega[i] = bell * root;
    }
}
