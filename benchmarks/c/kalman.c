// The log-likelihood of a linear state-space model with 4 states and M observations (1 or 2), by
// Kalman's filter, and its gradient by (F, Q, R): the adjoint by hand.
//
// A step, with G = P H' and w = S^-1 v:
//     m <- F m, P <- F P F' + Q; v = y - H m; S = H P H' + R;
//     value -= (v' w + log det S) / 2; m <- m + G w; P <- P - G S^-1 G'
// Forward, m and P before each step are kept (160 bytes a step); backward, a step computes the rest
// again.  Bars are adjoints; those of symmetric matrices are not made symmetric.
#include <math.h>
#include <stddef.h>
#include <string.h>

#define N 4

typedef struct { double m[N], p[N][N]; } belief;

// What a step computes from the belief before it.
#define FILTER(M)                                                                                 \
    typedef struct { double fp[N][N], m[N], p[N][N], v[M], g[N][M], s[M][M], w[M]; } inner##M;    \
                                                                                                  \
    static inline double forward##M(const double f[N][N], const double q[N][N],                   \
                                    const double r[M][M], const double h[M][N], const double *y,  \
                                    const belief *b, inner##M *o) {                               \
        for (int i = 0; i < N; i++) {                                                             \
            o->m[i] = 0;                                                                          \
            for (int k = 0; k < N; k++)                                                           \
                o->m[i] += f[i][k] * b->m[k];                                                     \
            for (int j = 0; j < N; j++) {                                                         \
                double sum = 0;                                                                   \
                for (int k = 0; k < N; k++)                                                       \
                    sum += f[i][k] * b->p[k][j];                                                  \
                o->fp[i][j] = sum;                                                                \
            }                                                                                     \
        }                                                                                         \
        for (int i = 0; i < N; i++)                                                               \
            for (int j = 0; j < N; j++) {                                                         \
                double sum = q[i][j];                                                             \
                for (int k = 0; k < N; k++)                                                       \
                    sum += o->fp[i][k] * f[j][k];                                                 \
                o->p[i][j] = sum;                                                                 \
            }                                                                                     \
        for (int a = 0; a < M; a++) {                                                             \
            o->v[a] = y[a];                                                                       \
            for (int k = 0; k < N; k++)                                                           \
                o->v[a] -= h[a][k] * o->m[k];                                                     \
            for (int i = 0; i < N; i++) {                                                         \
                double sum = 0;                                                                   \
                for (int k = 0; k < N; k++)                                                       \
                    sum += o->p[i][k] * h[a][k];                                                  \
                o->g[i][a] = sum;                                                                 \
            }                                                                                     \
        }                                                                                         \
        for (int a = 0; a < M; a++)                                                               \
            for (int c = 0; c < M; c++) {                                                         \
                o->s[a][c] = r[a][c];                                                             \
                for (int k = 0; k < N; k++)                                                       \
                    o->s[a][c] += h[a][k] * o->g[k][c];                                           \
            }                                                                                     \
        double determinant = inverted##M(o->s), square = 0;                                       \
        for (int a = 0; a < M; a++) {                                                             \
            o->w[a] = 0;                                                                          \
            for (int c = 0; c < M; c++)                                                           \
                o->w[a] += o->s[a][c] * o->v[c];                                                  \
            square += o->w[a] * o->v[a];                                                          \
        }                                                                                         \
        return -0.5 * (square + log(determinant) + M * 1.8378770664093454836);                    \
    }                                                                                             \
                                                                                                  \
    static inline void updated##M(const inner##M *o, belief *b) {                                 \
        for (int i = 0; i < N; i++) {                                                             \
            double gs[M];                                                                         \
            b->m[i] = o->m[i];                                                                    \
            for (int a = 0; a < M; a++) {                                                         \
                b->m[i] += o->g[i][a] * o->w[a];                                                  \
                gs[a] = 0;                                                                        \
                for (int c = 0; c < M; c++)                                                       \
                    gs[a] += o->g[i][c] * o->s[c][a];                                             \
            }                                                                                     \
            for (int j = 0; j < N; j++) {                                                         \
                b->p[i][j] = o->p[i][j];                                                          \
                for (int a = 0; a < M; a++)                                                       \
                    b->p[i][j] -= gs[a] * o->g[j][a];                                             \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    static inline void back##M(const double f[N][N], const double h[M][N], const belief *b,       \
                               const inner##M *o, belief *bar, double f_bar[N][N],                \
                               double q_bar[N][N], double r_bar[M][M]) {                          \
        double a2[N][N], ag[N][M], w_bar[M], s_bar[M][M], v_bar[M], g_bar[N][M];                  \
        for (int i = 0; i < N; i++)                                                               \
            for (int j = 0; j < N; j++)                                                           \
                a2[i][j] = bar->p[i][j] + bar->p[j][i];                                           \
        for (int i = 0; i < N; i++)                                                               \
            for (int a = 0; a < M; a++) {                                                         \
                ag[i][a] = 0;                                                                     \
                for (int j = 0; j < N; j++)                                                       \
                    ag[i][a] += a2[i][j] * o->g[j][a];                                            \
            }                                                                                     \
        for (int a = 0; a < M; a++) {                                                             \
            w_bar[a] = -0.5 * o->v[a];                                                            \
            for (int i = 0; i < N; i++)                                                           \
                w_bar[a] += o->g[i][a] * bar->m[i];                                               \
        }                                                                                         \
        for (int a = 0; a < M; a++) {                                                             \
            v_bar[a] = -0.5 * o->w[a];                                                            \
            for (int c = 0; c < M; c++) {                                                         \
                v_bar[a] += o->s[c][a] * w_bar[c];                                                \
                double sum = w_bar[a] * o->v[c]; /* of the inverse of S */                        \
                for (int i = 0; i < N; i++)                                                       \
                    sum -= 0.5 * o->g[i][a] * ag[i][c];                                           \
                s_bar[a][c] = sum;                                                                \
            }                                                                                     \
        }                                                                                         \
        double left[M][M];                                                                        \
        for (int a = 0; a < M; a++)                                                               \
            for (int c = 0; c < M; c++) {                                                         \
                left[a][c] = 0;                                                                   \
                for (int k = 0; k < M; k++)                                                       \
                    left[a][c] += o->s[k][a] * s_bar[k][c];                                       \
            }                                                                                     \
        for (int a = 0; a < M; a++)                                                               \
            for (int c = 0; c < M; c++) {                                                         \
                double sum = -0.5 * o->s[c][a];                                                   \
                for (int k = 0; k < M; k++)                                                       \
                    sum -= left[a][k] * o->s[c][k];                                               \
                s_bar[a][c] = sum;                                                                \
                r_bar[a][c] += sum;                                                               \
            }                                                                                     \
        for (int i = 0; i < N; i++)                                                               \
            for (int a = 0; a < M; a++) {                                                         \
                double sum = bar->m[i] * o->w[a];                                                 \
                for (int c = 0; c < M; c++)                                                       \
                    sum += h[c][i] * s_bar[c][a] - ag[i][c] * o->s[c][a];                         \
                g_bar[i][a] = sum;                                                                \
            }                                                                                     \
        double m_bar[N], p_bar[N][N], pf[N][N];                                                   \
        for (int i = 0; i < N; i++) {                                                             \
            m_bar[i] = bar->m[i];                                                                 \
            for (int a = 0; a < M; a++)                                                           \
                m_bar[i] -= h[a][i] * v_bar[a];                                                   \
            for (int j = 0; j < N; j++) {                                                         \
                p_bar[i][j] = bar->p[i][j];                                                       \
                for (int a = 0; a < M; a++)                                                       \
                    p_bar[i][j] += g_bar[i][a] * h[a][j];                                         \
                q_bar[i][j] += p_bar[i][j];                                                       \
            }                                                                                     \
        }                                                                                         \
        for (int i = 0; i < N; i++)                                                               \
            for (int j = 0; j < N; j++) {                                                         \
                double sum = m_bar[i] * b->m[j];                                                  \
                pf[i][j] = 0;                                                                     \
                for (int k = 0; k < N; k++) {                                                     \
                    pf[i][j] += p_bar[i][k] * f[k][j];                                            \
                    sum += (p_bar[i][k] + p_bar[k][i]) * o->fp[k][j];                             \
                }                                                                                 \
                f_bar[i][j] += sum;                                                               \
            }                                                                                     \
        for (int i = 0; i < N; i++) {                                                             \
            bar->m[i] = 0;                                                                        \
            for (int k = 0; k < N; k++)                                                           \
                bar->m[i] += f[k][i] * m_bar[k];                                                  \
            for (int j = 0; j < N; j++) {                                                         \
                bar->p[i][j] = 0;                                                                 \
                for (int k = 0; k < N; k++)                                                       \
                    bar->p[i][j] += f[k][i] * pf[k][j];                                           \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    double kalman##M(size_t n, const double *f, const double *q, const double *r,                 \
                     const double *h, const double *y) {                                          \
        belief b = {{0}, {{0}}};                                                                  \
        inner##M o;                                                                               \
        double value = 0;                                                                         \
        for (int i = 0; i < N; i++)                                                               \
            b.p[i][i] = 1;                                                                        \
        for (size_t t = 0; t < n; t++) {                                                          \
            value += forward##M((void *)f, (void *)q, (void *)r, (void *)h, y + M * t, &b, &o);   \
            updated##M(&o, &b);                                                                   \
        }                                                                                         \
        return value;                                                                             \
    }                                                                                             \
                                                                                                  \
    double kalman##M##_gradient(size_t n, const double *f, const double *q, const double *r,      \
                                const double *h, const double *y, double *kept, double *f_bar,    \
                                double *q_bar, double *r_bar) {                                   \
        belief b = {{0}, {{0}}}, *beliefs = (belief *)kept, bar = {{0}, {{0}}};                   \
        inner##M o;                                                                               \
        double value = 0, sums_f[N][N] = {{0}}, sums_q[N][N] = {{0}}, sums_r[M][M] = {{0}};       \
        for (int i = 0; i < N; i++)                                                               \
            b.p[i][i] = 1;                                                                        \
        for (size_t t = 0; t < n; t++) {                                                          \
            beliefs[t] = b;                                                                       \
            value += forward##M((void *)f, (void *)q, (void *)r, (void *)h, y + M * t, &b, &o);   \
            updated##M(&o, &b);                                                                   \
        }                                                                                         \
        for (size_t t = n; t-- > 0;) {                                                            \
            forward##M((void *)f, (void *)q, (void *)r, (void *)h, y + M * t, beliefs + t, &o);   \
            back##M((void *)f, (void *)h, beliefs + t, &o, &bar, sums_f, sums_q, sums_r);         \
        }                                                                                         \
        memcpy(f_bar, sums_f, sizeof sums_f);                                                     \
        memcpy(q_bar, sums_q, sizeof sums_q);                                                     \
        memcpy(r_bar, sums_r, sizeof sums_r);                                                     \
        return value;                                                                             \
    }

// The inverse in place; returns the determinant.
static inline double inverted1(double s[1][1]) {
    double d = s[0][0];
    s[0][0] = 1 / d;
    return d;
}

static inline double inverted2(double s[2][2]) {
    double a = s[0][0], d = s[1][1], e = a * d - s[0][1] * s[1][0], i = 1 / e;
    s[0][0] = i * d;
    s[1][1] = i * a;
    s[0][1] *= -i;
    s[1][0] *= -i;
    return e;
}

FILTER(1)
FILTER(2)
