// Hand tracking: differences between points and a posed hand, and their Jacobian by hand.
//
// 22 bones (wrist, five fingers of four, forearm), each a matrix relative to its parent; a pose
// turns the last three bones of each finger (bend 0, spread 0; bend 1; bend 2), and then the whole.
// A vertex is the mean of where the bones take it, by weights.  A point belongs to a vertex, or to
// a place in a triangle, u0 v0 + u1 v1 + (1 - u0 - u1) v2.
//
// Only what depends on a parameter is differentiated: of a finger's bones those behind the joint.
// Matrices are the first three rows of four; sizes are points, vertices, places (0 or 1), mirrored.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BONES = 22, FINGERS = 20, GLOBAL = 6 };
typedef double matrix[3][4];

static void multiply(const matrix a, const matrix b, double last, matrix out) { // b's corner: last
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++)
            out[i][j] = a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j] +
                        (j == 3 ? last * a[i][3] : 0);
}

// Rz Rx, its derivatives by bend (x) and spread (z).
static void turned(double x, double z, matrix r, matrix by_bend, matrix by_spread) {
    double c = cos(x), s = sin(x), cz = cos(z), sz = sin(z);
    memcpy(r, (matrix){{cz, -sz * c, sz * s}, {sz, cz * c, -cz * s}, {0, s, c}}, sizeof(matrix));
    memcpy(by_bend, (matrix){{0, sz * s, sz * c}, {0, -cz * s, -cz * c}, {0, c, -s}},
           sizeof(matrix));
    memcpy(by_spread, (matrix){{-sz, -cz * c, cz * s}, {cz, -sz * c, sz * s}}, sizeof(matrix));
}

// The rotation about an axis by its length, and its derivatives: c I + s [r] + t r r'.
static void rotation(const double *r, double out[3][3], double by[3][3][3]) {
    double square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2], a = sqrt(square);
    memset(out, 0, 9 * sizeof(double));
    memset(by, 0, 27 * sizeof(double));
    if (a < 1e-4) {
        out[0][0] = out[1][1] = out[2][2] = 1;
        return;
    }
    double c = cos(a), s = sin(a) / a, t = (1 - c) / square;
    double ds = (c - s) / square, dt = (s - 2 * t) / square;
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3, k = (i + 2) % 3;
        out[i][i] += c;
        out[j][i] += s * r[k];
        out[i][j] -= s * r[k];
        for (int m = 0; m < 3; m++) {
            out[i][m] += t * r[i] * r[m];
            by[m][i][i] -= s * r[m];
            by[m][j][i] += ds * r[m] * r[k];
            by[m][i][j] -= ds * r[m] * r[k];
            by[i][i][m] += t * r[m];
            by[i][m][i] += t * r[m];
            for (int l = 0; l < 3; l++)
                by[m][i][l] += dt * r[m] * r[i] * r[l];
        }
        by[k][j][i] += s;
        by[k][i][j] -= s;
    }
}

// Where the bones take what is fixed to them, and the derivatives by the finger's parameters.
static void posed(const double *theta, const int64_t *parents, const double *relative,
                  const double *inverse, matrix *out, matrix by[BONES][4], int count[BONES]) {
    matrix absolute[BONES], slopes[BONES][4], local, turn, bend, spread, product;
    for (int i = 0; i < BONES; i++) {
        const matrix *base = (const matrix *)(relative + 16 * i);
        const matrix *back = (const matrix *)(inverse + 16 * i);
        int finger = (i - 1) / 4, joint = (i - 1) % 4, moves = i > 0 && i < BONES - 1 && joint > 0;
        const double *angles = theta + GLOBAL + 4 * finger;
        const matrix *parent = parents[i] < 0 ? NULL : &absolute[parents[i]];
        count[i] = 0;
        if (moves) {
            turned(angles[joint == 1 ? 0 : joint], joint == 1 ? angles[1] : 0, turn, bend, spread);
            multiply(*base, turn, 1, local);
            for (int j = 0; j < count[parents[i]]; j++)
                multiply(slopes[parents[i]][j], local, 1, slopes[i][count[i]++]);
            multiply(*base, bend, 0, product);
            multiply(*parent, product, 0, slopes[i][count[i]++]);
            if (joint == 1) {
                multiply(*base, spread, 0, product);
                multiply(*parent, product, 0, slopes[i][count[i]++]);
            }
        } else {
            memcpy(local, *base, sizeof local);
        }
        if (parent)
            multiply(*parent, local, 1, absolute[i]);
        else
            memcpy(absolute[i], local, sizeof local);
        multiply(absolute[i], *back, 1, out[i]);
        for (int j = 0; j < count[i]; j++)
            multiply(slopes[i][j], *back, 1, by[i][j]);
    }
}

static void add(size_t nv, const matrix t, int bone, const double *base, const double *weights,
                double *out) {
    for (size_t v = 0; v < nv; v++) {
        const double *x = base + 4 * v, w = weights[BONES * v + bone];
        for (int i = 0; i < 3; i++)
            out[3 * v + i] +=
                w * (t[i][0] * x[0] + t[i][1] * x[1] + t[i][2] * x[2] + t[i][3] * x[3]);
    }
}

// Where a point is in an array of vertices.
static inline void place(const double *at, const int64_t *v, const double *u, double *out) {
    for (int i = 0; i < 3; i++)
        out[i] = u ? u[0] * at[3 * v[0] + i] + u[1] * at[3 * v[1] + i] +
                         (1 - u[0] - u[1]) * at[3 * v[2] + i]
                   : at[3 * v[0] + i];
}

static void turn(const double r[3][3], const double *x, double sign, double *out) {
    for (int i = 0; i < 3; i++)
        out[i] = sign * (r[i][0] * x[0] + r[i][1] * x[1] + r[i][2] * x[2]);
}

// Differences, and if there is a `slopes`, the Jacobian: a row for each parameter, places first.
static void hand(void **a, double *out, double *slopes) {
    const int64_t *sizes = a[0], n = sizes[0], nv = sizes[1], places = sizes[2], mirrored = sizes[3];
    const double *theta = a[1], *relative = a[3], *inverse = a[4], *base = a[5], *weights = a[6];
    const int64_t *parents = a[2], *corners = a[7];
    const double *points = a[8], *us = places ? a[9] : NULL;
    const int each = places ? 3 : 1;
    double r[3][3], by_r[3][3][3], x[3];
    matrix bones[BONES], by[BONES][4];
    int count[BONES];
    size_t whole = 3 * nv, arrays = slopes ? 1 + FINGERS : 1;
    double *at = calloc(arrays * whole, sizeof(double)), *by_at = at + whole;
    rotation(theta, r, by_r);
    posed(theta, parents, relative, inverse, bones, by, count);
    for (int b = 0; b < BONES; b++) {
        add(nv, bones[b], b, base, weights, at);
        for (int j = 0; slopes && j < count[b]; j++)
            add(nv, by[b][j], b, base, weights, by_at + whole * (4 * ((b - 1) / 4) + j));
    }
    for (size_t v = 0; mirrored && v < arrays * nv; v++)
        at[3 * v] = -at[3 * v];
    if (slopes) {
        double *o = slopes + (places ? 2 : 0) * 3 * n;
        for (int k = 0; k < 3; k++, o += 3 * n)
            for (int64_t i = 0; i < n; i++) {
                place(at, corners + each * i, us ? us + 2 * i : NULL, x);
                turn(by_r[k], x, -1, o + 3 * i);
            }
        for (int k = 0; k < 3; k++, o += 3 * n)
            for (int64_t i = 0; i < n; i++)
                for (int j = 0; j < 3; j++)
                    o[3 * i + j] = j == k ? -1 : 0;
        for (int k = 0; k < FINGERS; k++, o += 3 * n)
            for (int64_t i = 0; i < n; i++) {
                place(by_at + k * whole, corners + each * i, us ? us + 2 * i : NULL, x);
                turn(r, x, -1, o + 3 * i);
            }
    }
    for (int64_t v = 0; v < nv; v++) {
        turn(r, at + 3 * v, 1, x);
        for (int i = 0; i < 3; i++)
            at[3 * v + i] = x[i] + theta[3 + i];
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t *v = corners + each * i;
        place(at, v, us ? us + 2 * i : NULL, x);
        for (int j = 0; j < 3; j++) {
            out[3 * i + j] = points[3 * i + j] - x[j];
            for (int k = 0; slopes && places && k < 2; k++)
                slopes[3 * n * k + 3 * i + j] = at[3 * v[2] + j] - at[3 * v[k] + j];
        }
    }
    free(at);
}

void objective(void **a) { hand(a, a[10], NULL); }

void jacobian(void **a) { hand(a, a[11], a[10]); }
