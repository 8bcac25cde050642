/* Systems and factors by LAPACK's routines, called as NumPy calls them. */

#include "matrices.h"

#include <stdlib.h>
#include <string.h>

#define DECLARE(t)                                                                                                      \
    void RT_LAPACK(t##gesv)(const Int *, const Int *, void *, const Int *, Int *, void *, const Int *, Int *);          \
    void RT_LAPACK(t##potrf)(const char *, const Int *, void *, const Int *, Int *, size_t);
DECLARE(d)
DECLARE(z)

/* Solve a stack of systems; sizes: how many, n, right sides (of the unit matrix if there are none). */
static int
solved(const RtRoutine *r, const char *a, const char *b, char *out)
{
    int64_t stack = r->sizes[0], n = r->sizes[1], m = r->sizes[2], parts = parts_of(r), failed = RT_OK;
    int64_t size = r->operands[0].itemsize;
    double *matrix = malloc((size_t)(n * n * parts) * 8 + 1), *right = malloc((size_t)(n * m * parts) * 8 + 1);
    Int *pivots = malloc((size_t)n * sizeof(Int) + 1), order = (Int)n, sides = (Int)m, info = 0;
    if (matrix == NULL || right == NULL || pivots == NULL)
        failed = RT_MEMORY;
    for (int64_t k = 0; k < stack && !failed; k++) {
        turned_in(matrix, a + k * n * n * size, n, n, r);
        if (b)
            turned_in(right, b + k * n * m * size, n, m, r);
        else {
            memset(right, 0, (size_t)(n * n * parts) * 8);
            for (int64_t i = 0; i < n; i++)
                right[i * (n + 1) * parts] = 1;
        }
        if (n && m && parts == 1)
            RT_LAPACK(dgesv)(&order, &sides, matrix, &order, pivots, right, &order, &info);
        else if (n && m)
            RT_LAPACK(zgesv)(&order, &sides, matrix, &order, pivots, right, &order, &info);
        if (info)
            failed = RT_REFUSED;
        turned_out(out + k * n * m * size, right, m, n, r);
    }
    free(matrix);
    free(right);
    free(pivots);
    return (int)failed;
}

int
rt_solve(Run *run, const void *what, char **slots)
{
    const RtRoutine *r = what;
    pool_dismiss();
    return solved(r, rt_in_order(run, r->operands, slots), rt_in_order(run, r->operands + 1, slots), slots[r->dest]);
}

int
rt_inv(Run *run, const void *what, char **slots)
{
    const RtRoutine *r = what;
    pool_dismiss();
    return solved(r, rt_in_order(run, r->operands, slots), NULL, slots[r->dest]);
}

/* The lower factor of a stack of matrices; sizes: how many, n. */
int
rt_cholesky(Run *run, const void *what, char **slots)
{
    const RtRoutine *r = what;
    int64_t stack = r->sizes[0], n = r->sizes[1], size = r->operands[0].itemsize, parts = parts_of(r);
    const char *a = rt_in_order(run, r->operands, slots);
    double *matrix = malloc((size_t)(n * n * parts) * 8 + 1);
    Int order = (Int)n, info = 0;
    if (matrix == NULL)
        return RT_MEMORY;
    pool_dismiss();
    for (int64_t k = 0; k < stack && n && !info; k++) {
        turned_in(matrix, a + k * n * n * size, n, n, r);
        if (parts == 1)
            RT_LAPACK(dpotrf)("L", &order, matrix, &order, &info, 1);
        else
            RT_LAPACK(zpotrf)("L", &order, matrix, &order, &info, 1);
        for (int64_t j = 1; j < n; j++)
            memset(matrix + j * n * parts, 0, (size_t)(j * parts) * 8);
        turned_out(slots[r->dest] + k * n * n * size, matrix, n, n, r);
    }
    free(matrix);
    return info ? RT_REFUSED : RT_OK;
}
