// The loss of a character model and its adjoint by hand, with the pointers of GradBench's driver.
//
// Sizes: layers, characters, bits of each.  Then parameters of the layers, extra parameters, state,
// text; the gradient has work space as its last array.
#include <stdint.h>

#include "../character.c"

void objective(void **a) {
    const int64_t *n = a[0];
    *(double *)a[5] = character(n[0], n[1], n[2], a[1], a[2], a[3], a[4]);
}

void jacobian(void **a) {
    const int64_t *n = a[0];
    double *bars = a[5];
    character_gradient(n[0], n[1], n[2], a[1], a[2], a[3], a[4], a[6], bars,
                       bars + 8 * n[0] * n[2]);
}
