/* Routines of programs that are built ahead of time. */

#include "runtime.h"

#include <stdlib.h>
#include <string.h>

static int64_t
count(const RtRef *ref)
{
    int64_t n = 1;
    for (int64_t d = 0; d < ref->rank; d++)
        n *= ref->shape[d];
    return n;
}

/* An index array whose entries lie in 0 to n - 1, as int64; sizes: n, whether it has signs. */
int
rt_within(Run *run, const void *what, char **slots)
{
    const RtRoutine *r = what;
    const RtRef *index = r->operands;
    const char *at = rt_in_order(run, index, slots);
    int64_t *to = (int64_t *)slots[r->dest], n = r->sizes[0];
    for (int64_t i = 0, many = count(index); i < many; i++, at += index->itemsize) {
        int64_t k = rt_integer(at, index->itemsize, (int)r->sizes[1]);
        if (k < 0 && r->sizes[1])
            k += n;
        if (k < 0 || k >= n)
            return RT_REFUSED;
        to[i] = k;
    }
    return RT_OK;
}

/* What a scan along an axis gives; sizes: the axis. */
int
rt_scan(Run *run, const void *what, char **slots)
{
    const RtRoutine *r = what;
    const RtRef *x = r->operands;
    int64_t axis = r->sizes[0], n = x->shape[axis], inner = x->itemsize, outer = 1;
    char *to = rt_copied(slots[r->dest], x, slots);
    (void)run;
    for (int64_t d = 0; d < x->rank; d++)
        if (d < axis)
            outer *= x->shape[d];
        else if (d > axis)
            inner *= x->shape[d];
    /* (Rows of what the axis is outside of follow one another: each joins the one before.) */
    for (int64_t i = 0; i < outer; i++, to += n * inner)
        for (int64_t k = 1; k < n; k++) {
            char *at[3] = {to + (k - 1) * inner, to + k * inner, to + k * inner};
            int64_t many = inner / x->itemsize, steps[3] = {x->itemsize, x->itemsize, x->itemsize};
            r->loop(at, &many, steps, NULL);
        }
    return RT_OK;
}

/* Elements put, or joined by a loop, where index arrays say, in their order. Operands: what they are put into, their
   values, index arrays, which are stretched to one shape; sizes: its rank, its lengths. */
int
rt_scatter(Run *run, const void *what, char **slots)
{
    const RtRoutine *r = what;
    const RtRef *into = r->operands, *values = r->operands + 1, *indices = r->operands + 2;
    int64_t n_indices = r->n_operands - 2, rank = r->sizes[0], part = into->itemsize, places = 1, at[32] = {0};
    const int64_t *shape = r->sizes + 1;
    char *to = rt_copied(slots[r->dest], into, slots);
    (void)run;
    int64_t distance[32];
    const char *index_at[32], *value = slots[values->slot] + values->offset;
    for (int64_t d = into->rank - 1; d >= 0; d--) {
        distance[d] = d + 1 < into->rank ? distance[d + 1] * into->shape[d + 1] : into->itemsize;
        if (d >= n_indices)
            part *= into->shape[d];
    }
    for (int64_t d = 0; d < rank; d++)
        places *= shape[d];
    for (int64_t k = 0; k < n_indices; k++)
        index_at[k] = slots[indices[k].slot] + indices[k].offset;
    char *row = malloc((size_t)part + 1);
    if (row == NULL)
        return RT_MEMORY;
    int64_t tail = into->rank - n_indices, failed = RT_OK;
    for (int64_t i = 0; i < places; i++) {
        char *place = to;
        for (int64_t k = 0; k < n_indices; k++) {
            const RtRef *index = indices + k;
            const char *p = index_at[k];
            for (int64_t d = 0; d < index->rank; d++)
                if (index->shape[d] != 1)
                    p += at[rank - index->rank + d] * index->strides[d];
            int64_t where = rt_integer(p, index->itemsize, 1);
            if (where < 0)
                where += into->shape[k];
            if (where < 0 || where >= into->shape[k]) {
                failed = RT_REFUSED;
                break;
            }
            place += where * distance[k];
        }
        if (failed)
            break;
        /* The values for this place: of its own shape, stretched. */
        int64_t whole = rank + tail, many = part / into->itemsize;
        for (int64_t e = 0; e < many; e++) {
            const char *p = value;
            int64_t rest = e;
            for (int64_t d = whole - 1; d >= 0; d--) {
                int64_t here = d >= rank ? rest % into->shape[n_indices + d - rank] : at[d];
                if (d >= rank)
                    rest /= into->shape[n_indices + d - rank];
                int64_t own = d - (whole - values->rank);
                if (own >= 0 && values->shape[own] != 1)
                    p += here * values->strides[own];
            }
            memcpy(row + e * into->itemsize, p, (size_t)into->itemsize);
        }
        if (r->loop) {
            char *joined[3] = {place, row, place};
            int64_t steps[3] = {into->itemsize, into->itemsize, into->itemsize};
            r->loop(joined, &many, steps, NULL);
        } else
            memcpy(place, row, (size_t)part);
        for (int64_t d = rank - 1; d >= 0; d--) {
            if (++at[d] < shape[d])
                break;
            at[d] = 0;
        }
    }
    free(row);
    return (int)failed;
}
