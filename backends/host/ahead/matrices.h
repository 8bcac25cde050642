/* Matrices as LAPACK has them: in double precision, as NumPy computes, and with rows and columns exchanged. RT_LAPACK
   says what a routine is called, RT_INT what it counts in. */

#ifndef MIRABELLE_MATRICES_H
#define MIRABELLE_MATRICES_H

#include "runtime.h"

typedef RT_INT Int;

/* Elements are of one or two parts. */
static inline int64_t
parts_of(const RtRoutine *r)
{
    return r->type == 'F' || r->type == 'D' ? 2 : 1;
}

static inline int
is_single(const RtRoutine *r)
{
    return r->type == 'f' || r->type == 'F';
}

/* A matrix in double precision, with rows and columns exchanged. */
static inline void
turned_in(double *to, const void *from, int64_t rows, int64_t columns, const RtRoutine *r)
{
    int64_t parts = parts_of(r), single = is_single(r);
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t part = 0; part < parts; part++) {
                int64_t at = (i * columns + j) * parts + part;
                *to++ = single ? ((const float *)from)[at] : ((const double *)from)[at];
            }
}

/* The same back. */
static inline void
turned_out(void *to, const double *from, int64_t rows, int64_t columns, const RtRoutine *r)
{
    int64_t parts = parts_of(r), single = is_single(r);
    for (int64_t j = 0, at = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t part = 0; part < parts; part++, at++) {
                double value = from[(i * columns + j) * parts + part];
                if (single)
                    ((float *)to)[at] = (float)value;
                else
                    ((double *)to)[at] = value;
            }
}

/* Real numbers of a result that goes with such matrices, from the n-th on. */
static inline void
reals_out(void *to, int64_t n, const double *from, int64_t count, const RtRoutine *r)
{
    for (int64_t i = 0; i < count; i++)
        if (is_single(r))
            ((float *)to)[n + i] = (float)from[i];
        else
            ((double *)to)[n + i] = from[i];
}

#endif
