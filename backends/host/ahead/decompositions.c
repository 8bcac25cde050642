/* Decompositions by LAPACK's routines, called as NumPy calls them. Results that nobody needs have slot -1. */

#include "matrices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void RT_LAPACK(dgeqrf)(const Int *, const Int *, void *, const Int *, void *, void *, const Int *, Int *);
void RT_LAPACK(zgeqrf)(const Int *, const Int *, void *, const Int *, void *, void *, const Int *, Int *);
void RT_LAPACK(dorgqr)(const Int *, const Int *, const Int *, void *, const Int *, const void *, void *, const Int *,
                       Int *);
void RT_LAPACK(zungqr)(const Int *, const Int *, const Int *, void *, const Int *, const void *, void *, const Int *,
                       Int *);
void RT_LAPACK(dgesdd)(const char *, const Int *, const Int *, void *, const Int *, void *, void *, const Int *, void *,
                       const Int *, void *, const Int *, Int *, Int *, size_t);
void RT_LAPACK(zgesdd)(const char *, const Int *, const Int *, void *, const Int *, void *, void *, const Int *, void *,
                       const Int *, void *, const Int *, void *, Int *, Int *, size_t);
void RT_LAPACK(dsyevd)(const char *, const char *, const Int *, void *, const Int *, void *, void *, const Int *, Int *,
                       const Int *, Int *, size_t, size_t);
void RT_LAPACK(zheevd)(const char *, const char *, const Int *, void *, const Int *, void *, void *, const Int *, void *,
                       const Int *, Int *, const Int *, Int *, size_t, size_t);
void RT_LAPACK(dgelsd)(const Int *, const Int *, const Int *, void *, const Int *, void *, const Int *, void *,
                       const double *, Int *, void *, const Int *, Int *, Int *);
void RT_LAPACK(zgelsd)(const Int *, const Int *, const Int *, void *, const Int *, void *, const Int *, void *,
                       const double *, Int *, void *, const Int *, void *, Int *, Int *);
void RT_LAPACK(dgetrf)(const Int *, const Int *, void *, const Int *, Int *, Int *);
void RT_LAPACK(zgetrf)(const Int *, const Int *, void *, const Int *, Int *, Int *);

/* Memory of a routine: all of it is given back together. */
typedef struct {
    void *of[8];
    int n, missing;
} Memory;

static double *
doubles(Memory *m, int64_t n)
{
    void *made = m->of[m->n++] = malloc((size_t)(n > 0 ? n : 1) * 8);
    m->missing |= made == NULL;
    return made;
}

static int
given_back(Memory *m, int code)
{
    while (m->n)
        free(m->of[--m->n]);
    return code;
}

static Int
at_least(int64_t least, double wanted)
{
    return (Int)(wanted > (double)least ? (int64_t)wanted : least);
}

static int64_t
lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static Int
leading(int64_t rows)
{
    return (Int)(rows > 0 ? rows : 1);
}

static char *
place(const RtRoutine *r, int result, char **slots)
{
    return r->dests[result] < 0 ? NULL : slots[r->dests[result]];
}

/* Sizes: how many, rows, columns, columns of Q, is R all there is? */
int
rt_qr(Run *run, const void *what, char **slots)
{
    const RtRoutine *r = what;
    int64_t stack = r->sizes[0], m = r->sizes[1], n = r->sizes[2], mc = r->sizes[3], only = r->sizes[4];
    int64_t k = lesser(m, n), parts = parts_of(r), size = r->operands[0].itemsize;
    const char *a = rt_in_order(run, r->operands, slots);
    char *q_out = only ? NULL : place(r, 0, slots), *r_out = place(r, only ? 0 : 1, slots);
    Int rows = (Int)m, columns = (Int)n, of_q = (Int)mc, inner = (Int)k, lead = leading(m), query = -1, info = 0;
    double first[2] = {0}, second[2] = {0};
    Memory memory = {{0}, 0, 0};
    double *matrix = doubles(&memory, m * (mc > n ? mc : n) * parts), *tau = doubles(&memory, k * parts);
    double *upper = doubles(&memory, mc * n * parts);
    if (memory.missing)
        return given_back(&memory, RT_MEMORY);
    pool_dismiss();
    if (parts == 1) {
        RT_LAPACK(dgeqrf)(&rows, &columns, matrix, &lead, tau, first, &query, &info);
        RT_LAPACK(dorgqr)(&rows, &of_q, &inner, matrix, &lead, tau, second, &query, &info);
    } else {
        RT_LAPACK(zgeqrf)(&rows, &columns, matrix, &lead, tau, first, &query, &info);
        RT_LAPACK(zungqr)(&rows, &of_q, &inner, matrix, &lead, tau, second, &query, &info);
    }
    Int room = at_least(n > 0 ? n : 1, first[0]), room_q = at_least(mc > 0 ? mc : 1, second[0]);
    double *work = doubles(&memory, (room > room_q ? room : room_q) * parts);
    if (memory.missing)
        return given_back(&memory, RT_MEMORY);
    for (int64_t s = 0; s < stack && !info; s++) {
        turned_in(matrix, a + s * m * n * size, m, n, r);
        if (k && parts == 1)
            RT_LAPACK(dgeqrf)(&rows, &columns, matrix, &lead, tau, work, &room, &info);
        else if (k)
            RT_LAPACK(zgeqrf)(&rows, &columns, matrix, &lead, tau, work, &room, &info);
        if (r_out) {
            memset(upper, 0, (size_t)(mc * n * parts) * 8);
            for (int64_t j = 0; j < n; j++)
                memcpy(upper + j * mc * parts, matrix + j * m * parts, (size_t)(lesser(j + 1, mc) * parts) * 8);
            turned_out(r_out + s * mc * n * size, upper, n, mc, r);
        }
        if (q_out && m && mc && !info) {
            if (parts == 1)
                RT_LAPACK(dorgqr)(&rows, &of_q, &inner, matrix, &lead, tau, work, &room_q, &info);
            else
                RT_LAPACK(zungqr)(&rows, &of_q, &inner, matrix, &lead, tau, work, &room_q, &info);
            turned_out(q_out + s * m * mc * size, matrix, mc, m, r);
        }
    }
    return given_back(&memory, info ? RT_REFUSED : RT_OK);
}

/* Sizes: how many, rows, columns, 'N' (values alone), 'S' or 'A'. */
int
rt_svd(Run *run, const void *what, char **slots)
{
    const RtRoutine *r = what;
    int64_t stack = r->sizes[0], m = r->sizes[1], n = r->sizes[2], k = lesser(m, n), parts = parts_of(r);
    int64_t size = r->operands[0].itemsize, of_u, of_v;
    char job = (char)r->sizes[3], *u_out = NULL, *s_out, *v_out = NULL;
    const char *a = rt_in_order(run, r->operands, slots);
    of_u = job == 'A' ? m : job == 'S' ? k : 0;
    of_v = job == 'A' ? n : job == 'S' ? k : 0;
    if (job == 'N')
        s_out = place(r, 0, slots);
    else
        u_out = place(r, 0, slots), s_out = place(r, 1, slots), v_out = place(r, 2, slots);
    Int rows = (Int)m, columns = (Int)n, lead = leading(m), lead_v = leading(of_v), query = -1, info = 0;
    double best[2] = {0};
    Memory memory = {{0}, 0, 0};
    double *matrix = doubles(&memory, m * n * parts), *values = doubles(&memory, k);
    double *u = doubles(&memory, m * of_u * parts), *v = doubles(&memory, of_v * n * parts);
    double *real = doubles(&memory, parts == 1 ? 0 : job == 'N' ? 7 * k : 5 * k * k + 5 * k);
    Int *whole = (Int *)doubles(&memory, 8 * k);
    if (memory.missing)
        return given_back(&memory, RT_MEMORY);
    pool_dismiss();
    if (!k) {
        /* (Nothing is decomposed: the vectors are the axes.) */
        for (int64_t s = 0; s < stack; s++) {
            for (int side = 0; side < 2; side++) {
                int64_t length = side ? of_v : of_u, lines = side ? n : m;
                double *unit = side ? v : u;
                char *to = side ? v_out : u_out;
                memset(unit, 0, (size_t)(length * lines * parts) * 8);
                for (int64_t i = 0; i < lesser(length, lines); i++)
                    unit[i * (length + 1) * parts] = 1;
                if (to)
                    turned_out(to + s * length * lines * size, unit, length, lines, r);
            }
        }
        return given_back(&memory, RT_OK);
    }
#define SVD(work, room)                                                                                                \
    (parts == 1 ? RT_LAPACK(dgesdd)(&job, &rows, &columns, matrix, &lead, values, u, &lead, v, &lead_v, work, room,    \
                                    whole, &info, 1)                                                                   \
                : RT_LAPACK(zgesdd)(&job, &rows, &columns, matrix, &lead, values, u, &lead, v, &lead_v, work, room,    \
                                    real, whole, &info, 1))
    SVD(best, &query);
    Int room = at_least(1, best[0]);
    double *work = doubles(&memory, room * parts);
    if (memory.missing)
        return given_back(&memory, RT_MEMORY);
    for (int64_t s = 0; s < stack && !info; s++) {
        turned_in(matrix, a + s * m * n * size, m, n, r);
        SVD(work, &room);
        if (s_out)
            reals_out(s_out, s * k, values, k, r);
        if (u_out)
            turned_out(u_out + s * m * of_u * size, u, of_u, m, r);
        if (v_out)
            turned_out(v_out + s * of_v * n * size, v, n, of_v, r);
    }
    return given_back(&memory, info ? RT_REFUSED : RT_OK);
}

/* Of symmetric matrices; sizes: how many, n, are vectors wanted, 'L' or 'U'. */
int
rt_eigh(Run *run, const void *what, char **slots)
{
    const RtRoutine *r = what;
    int64_t stack = r->sizes[0], n = r->sizes[1], vectors = r->sizes[2], parts = parts_of(r);
    int64_t size = r->operands[0].itemsize;
    char job = vectors ? 'V' : 'N', half = (char)r->sizes[3];
    const char *a = rt_in_order(run, r->operands, slots);
    char *w_out = place(r, 0, slots), *v_out = vectors ? place(r, 1, slots) : NULL;
    Int order = (Int)n, lead = leading(n), query = -1, info = 0, room_i = 0, room_r = 0;
    double best[2] = {0}, best_r = 0;
    Memory memory = {{0}, 0, 0};
    double *matrix = doubles(&memory, n * n * parts), *values = doubles(&memory, n);
    if (memory.missing)
        return given_back(&memory, RT_MEMORY);
    if (!n)
        return given_back(&memory, RT_OK);
    pool_dismiss();
    if (parts == 1)
        RT_LAPACK(dsyevd)(&job, &half, &order, matrix, &lead, values, best, &query, &room_i, &query, &info, 1, 1);
    else
        RT_LAPACK(zheevd)(&job, &half, &order, matrix, &lead, values, best, &query, &best_r, &query, &room_i, &query,
                          &info, 1, 1);
    Int room = at_least(1, best[0]);
    room_r = at_least(1, best_r);
    double *work = doubles(&memory, room * parts), *real = doubles(&memory, room_r);
    Int *whole = (Int *)doubles(&memory, room_i);
    if (memory.missing)
        return given_back(&memory, RT_MEMORY);
    for (int64_t s = 0; s < stack && !info; s++) {
        turned_in(matrix, a + s * n * n * size, n, n, r);
        if (parts == 1)
            RT_LAPACK(dsyevd)(&job, &half, &order, matrix, &lead, values, work, &room, whole, &room_i, &info, 1, 1);
        else
            RT_LAPACK(zheevd)(&job, &half, &order, matrix, &lead, values, work, &room, real, &room_r, whole, &room_i,
                              &info, 1, 1);
        if (w_out)
            reals_out(w_out, s * n, values, n, r);
        if (v_out)
            turned_out(v_out + s * n * n * size, matrix, n, n, r);
    }
    return given_back(&memory, info ? RT_REFUSED : RT_OK);
}

/* Least squares: x, (squares of what remains are not known beforehand,) the rank, singular values. Sizes: rows,
   columns, right sides, the bits of the number under which a part of the greatest singular value counts as none. */
int
rt_lstsq(Run *run, const void *what, char **slots)
{
    const RtRoutine *r = what;
    int64_t m = r->sizes[0], n = r->sizes[1], sides = r->sizes[2], k = lesser(m, n), parts = parts_of(r);
    int64_t tall = m > n ? m : n;
    const char *a = rt_in_order(run, r->operands, slots), *b = rt_in_order(run, r->operands + 1, slots);
    char *x_out = place(r, 0, slots), *rank_out = place(r, 2, slots), *s_out = place(r, 3, slots);
    Int rows = (Int)m, columns = (Int)n, right = (Int)sides, lead = leading(m), lead_b = leading(tall), query = -1;
    Int rank = 0, room_i = 0, info = 0;
    double limit, best[2] = {0}, best_r = 0;
    memcpy(&limit, r->sizes + 3, 8);
    Memory memory = {{0}, 0, 0};
    double *matrix = doubles(&memory, m * n * parts), *x = doubles(&memory, tall * sides * parts);
    double *values = doubles(&memory, k), *short_x = doubles(&memory, n * sides * parts);
    if (memory.missing)
        return given_back(&memory, RT_MEMORY);
    pool_dismiss();
    memset(x, 0, (size_t)(tall * sides * parts) * 8);
    memset(short_x, 0, (size_t)(n * sides * parts) * 8);
    if (k && sides) {
        if (parts == 1)
            RT_LAPACK(dgelsd)(&rows, &columns, &right, matrix, &lead, x, &lead_b, values, &limit, &rank, best, &query,
                              &room_i, &info);
        else
            RT_LAPACK(zgelsd)(&rows, &columns, &right, matrix, &lead, x, &lead_b, values, &limit, &rank, best, &query,
                              &best_r, &room_i, &info);
        Int room = at_least(1, best[0]);
        double *work = doubles(&memory, room * parts), *real = doubles(&memory, at_least(1, best_r));
        Int *whole = (Int *)doubles(&memory, room_i);
        if (memory.missing)
            return given_back(&memory, RT_MEMORY);
        turned_in(matrix, a, m, n, r);
        turned_in(x, b, m, sides, r);
        for (int64_t j = sides - 1; j >= 0 && tall > m; j--) {
            memmove(x + j * tall * parts, x + j * m * parts, (size_t)(m * parts) * 8);
            memset(x + (j * tall + m) * parts, 0, (size_t)((tall - m) * parts) * 8);
        }
        if (parts == 1)
            RT_LAPACK(dgelsd)(&rows, &columns, &right, matrix, &lead, x, &lead_b, values, &limit, &rank, work, &room,
                              whole, &info);
        else
            RT_LAPACK(zgelsd)(&rows, &columns, &right, matrix, &lead, x, &lead_b, values, &limit, &rank, work, &room,
                              real, whole, &info);
        for (int64_t j = 0; j < sides; j++)
            memcpy(short_x + j * n * parts, x + j * tall * parts, (size_t)(n * parts) * 8);
    }
    if (info)
        return given_back(&memory, RT_REFUSED);
    if (x_out)
        turned_out(x_out, short_x, sides, n, r);
    if (rank_out)
        *(int64_t *)rank_out = rank;
    if (s_out)
        reals_out(s_out, 0, values, k, r);
    return given_back(&memory, RT_OK);
}

/* Determinants, by their signs and logarithms as NumPy has them; sizes: how many, n, are these the results? */
int
rt_det(Run *run, const void *what, char **slots)
{
    const RtRoutine *r = what;
    int64_t stack = r->sizes[0], n = r->sizes[1], apart = r->sizes[2], parts = parts_of(r);
    int64_t size = r->operands[0].itemsize;
    const char *a = rt_in_order(run, r->operands, slots);
    char *first = place(r, 0, slots), *logarithms = apart ? place(r, 1, slots) : NULL;
    Int order = (Int)n, lead = leading(n), info = 0;
    Memory memory = {{0}, 0, 0};
    double *matrix = doubles(&memory, n * n * parts);
    Int *pivots = (Int *)doubles(&memory, n);
    if (memory.missing)
        return given_back(&memory, RT_MEMORY);
    pool_dismiss();
    for (int64_t s = 0; s < stack; s++) {
        double sign[2] = {1, 0}, logarithm = 0;
        info = 0;
        turned_in(matrix, a + s * n * n * size, n, n, r);
        if (n && parts == 1)
            RT_LAPACK(dgetrf)(&order, &order, matrix, &lead, pivots, &info);
        else if (n)
            RT_LAPACK(zgetrf)(&order, &order, matrix, &lead, pivots, &info);
        if (info) {
            sign[0] = 0;
            logarithm = -INFINITY;
        } else {
            for (int64_t i = 0; i < n; i++)
                if (pivots[i] != i + 1)
                    sign[0] = -sign[0];
            for (int64_t i = 0; i < n; i++) {
                const double *x = matrix + i * (n + 1) * parts;
                if (parts == 1) {
                    if (x[0] < 0)
                        sign[0] = -sign[0];
                    logarithm += log(fabs(x[0]));
                } else {
                    double length = hypot(x[0], x[1]), re = x[0] / length, im = x[1] / length;
                    double turned = sign[0] * re - sign[1] * im;
                    sign[1] = sign[0] * im + sign[1] * re;
                    sign[0] = turned;
                    logarithm += log(length);
                }
            }
        }
        if (!apart) {
            double scale = exp(logarithm), re = sign[0] * scale - sign[1] * 0.0;
            sign[1] = sign[0] * 0.0 + sign[1] * scale;
            sign[0] = parts == 1 ? sign[0] * scale : re;
        }
        if (first)
            reals_out(first, s * parts, sign, parts, r);
        if (logarithms)
            reals_out(logarithms, s, &logarithm, 1, r);
    }
    return given_back(&memory, RT_OK);
}
