/* Sorts, which are those of dispatch/csrc/records.h: elements in the order in which NumPy has them. */

#include "runtime.h"

#include "records.h"

#include <stdlib.h>

/* Lines of an array along an axis in order; sizes: the axis, of what kind elements are, whether their places are
   asked for. (Zeros of both signs, and NaNs of different bits, are equal: they stay as they come.) */
int
rt_sort(Run *run, const void *what, char **slots)
{
    const RtRoutine *r = what;
    const RtRef *x = r->operands;
    int64_t axis = r->sizes[0], kind = r->sizes[1], places = r->sizes[2], n = x->shape[axis], size = x->itemsize;
    int64_t outer = 1, inner = 1;
    const char *from = rt_in_order(run, x, slots);
    char *to = slots[r->dest];
    for (int64_t d = 0; d < x->rank; d++)
        if (d < axis)
            outer *= x->shape[d];
        else if (d > axis)
            inner *= x->shape[d];
    Record *records = malloc((size_t)n * 2 * sizeof(Record) + 1);
    char *line = malloc((size_t)(n * size) + 1);
    if (records == NULL || line == NULL) {
        free(records);
        free(line);
        return RT_MEMORY;
    }
    for (int64_t i = 0; i < outer && n; i++)
        for (int64_t k = 0; k < inner; k++) {
            int64_t first = i * n * inner + k;
            for (int64_t j = 0; j < n; j++)
                memcpy(line + j * size, from + (first + j * inner) * size, (size_t)size);
            make_records(records, line, n, 0, (int)kind, (int)size);
            const Record *sorted = records_sorted(records, records + n, n);
            for (int64_t j = 0; j < n; j++)
                if (places)
                    memcpy(to + (first + j * inner) * 8, &sorted[j].at, 8);
                else
                    memcpy(to + (first + j * inner) * size, line + sorted[j].at * size, (size_t)size);
        }
    free(records);
    free(line);
    return RT_OK;
}
