// particle and saddle by forward mode by hand, with the pointers of GradBench's driver.
#include "../nested.c"

void crossing(void **a) { *(double *)a[2] = particle(*(double *)a[1]); }

void saddle_point(void **a) { saddle(a[1], a[2]); }
