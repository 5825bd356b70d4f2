// Gradients of a few numbers.
#include <stddef.h>
#include <math.h>

double sine_square(double x) { return (cos(x) * x + 2 * sin(x)) * x; }

void rosenbrock(size_t n, const double *restrict x, double *restrict gradient) {
    for (size_t i = 0; i < n; i++)
        gradient[i] = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        double off = x[i + 1] - x[i] * x[i];
        gradient[i] += -400 * off * x[i] - 2 * (1 - x[i]);
        gradient[i + 1] += 200 * off;
    }
}
