/* Task lists, and what runs them (pool.c). It stands on POSIX and C11 alone. */

#ifndef MIRABELLE_POOL_H
#define MIRABELLE_POOL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef int (*TaskKernel)(void *, void *, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);

/* As backends/host/runner.py lays them out. */
typedef struct {
    TaskKernel kernel;
    int64_t args, lo, hi, first, last, rlo, rhi, part, number;
} Call;

typedef struct {
    int64_t first, end;
    /* Which stage, by the number of the ticket that opened it, last had it taken. */
    _Atomic int64_t taken;
    int64_t apart[5];
} Ticket;

typedef struct {
    int64_t *word, slot, offset;
} Patch;

typedef struct {
    _Atomic int64_t next, apart1[7], done, apart2[7], limit, apart3[7], error, apart4[7];
    const int64_t *stages;
    Ticket *tickets;
    const Call *calls;
    int64_t each;
    const Patch *patches;
    int64_t n_patches, threads, helpers, processor;
} List;

#define SIGNATURE                                                                                                  \
    void *ret, void *exc, int64_t args, int64_t lo, int64_t hi, int64_t first, int64_t last, int64_t rlo,          \
        int64_t rhi, int64_t part

/* Run a list so many times, on the memory at these addresses (which its patches say where to put; NULL: on that of the
   run before). The number of the statement that failed, plus one, or 0. */
int64_t pool_run(List *list, int64_t times, const int64_t *addresses);
/* To be called once, before the first run. */
int pool_begin(void);
/* Helpers that stand by; that were ever started. Those who stand by sleep from now on: something else is about to use
   the processors. */
int pool_standing(void);
int pool_started(void);
void pool_dismiss(void);

/* Functions called as kernels are: bytes that are copied, NumPy's loops, one value for many elements (by its size). */
int pool_copy(SIGNATURE);
int pool_fold(SIGNATURE);
int pool_fill_1(SIGNATURE);
int pool_fill_2(SIGNATURE);
int pool_fill_4(SIGNATURE);
int pool_fill_8(SIGNATURE);
int pool_fill_16(SIGNATURE);

#endif
