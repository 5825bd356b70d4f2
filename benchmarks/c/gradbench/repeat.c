// Evaluate a function until both rules are met (at least `runs` times, at least `least`
// nanoseconds spent in it) or `space` times are filled, and keep the time of each evaluation.
#include <stdint.h>
#include <time.h>

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t repeat(void (*function)(void **), void **arguments, int64_t *times, int64_t space,
               int64_t runs, int64_t least) {
    int64_t n = 0, elapsed = 0;
    while (n < space && (n < runs || elapsed < least)) {
        int64_t begin = now();
        function(arguments);
        times[n] = now() - begin;
        elapsed += times[n++];
    }
    return n;
}
