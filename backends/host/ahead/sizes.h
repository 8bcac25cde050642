/* Programs for all sizes: plans whose numbers are polynomials of the lengths of arrays. For the lengths of a call the
   tables of a plan are filled in (functions that sizedtables.py writes), room is found for what lies in the workspace, and
   lists are cut into calls as backends/host/tasks.py cuts them: whatever the number of threads, bits are the same. */

#ifndef MIRABELLE_SIZES_H
#define MIRABELLE_SIZES_H

#include "runtime.h"

#define MOST(a, b) ((a) > (b) ? (a) : (b))

/* Results that are partial at first: the word of their address in the block, which lie in a room of their own (and its
   slot, `where`), unless there is one for each result. `fill` writes the neutral element; its blocks are for partial results and for
   results, and `fold` is the block of the loop that adds those to these. */
typedef struct {
    int64_t address, size, slot, offset, where, room;
    TaskKernel fill;
    int64_t fill_partial, fill_result, fold;
} RtPartial;

enum { RT_LAUNCH, RT_ROWS, RT_COLUMNS, RT_COPY, RT_FILL };

/* A statement: its code, where its block begins, so many rows of so many elements (of reductions also how many are
   kept, and how many become one). */
typedef struct {
    int64_t kind;
    TaskKernel code;
    int64_t block, rows, inner, tiled, cost, kept, reduced;
    const RtPartial *partials;
    int64_t n_partials;
} RtStatement;

typedef struct {
    int64_t *words;
    const RtPatch *patches;
    const RtStatement *statements;
    int64_t n_words, n_patches, n_statements;
} RtSizedTasks;

/* Where a slot lies: data, what is given, or a room in the workspace. */
typedef struct {
    const void *data;
    int64_t given, room;
} RtSlot;

/* A program for some sizes. `rooms` are bytes, `at` is where they begin (and where all end). */
typedef struct {
    const RtArray *arrays;
    const RtSlot *slots;
    const RtStep *steps;
    const RtSizedTasks *const *lists;
    const RtCopy *copies;
    int64_t *rooms, *at;
    int64_t n_slots, n_steps, n_lists, n_copies, n_rooms;
} RtSized;

/* One of the programs of a function: those for which it is not say so (NULL). */
typedef struct {
    const RtSized *(*filled)(void *image, const int64_t *sizes);
    int64_t bytes;
} RtVariant;

/* A function for all sizes: which length each axis of its arguments has (a number of the sizes, or -1 - the length). */
typedef struct {
    const RtVariant *variants;
    int64_t n_variants, n_sizes, n_arguments, n_results, threads, thread_size;
    const RtArray *arguments;
    const int64_t *const *axes;
} RtFamily;

/* The rooms of a program: what reductions need, and where each begins. */
void rt_measure(const RtSized *sized);
int rt_sized(const RtFamily *family, const int64_t *sizes, void *const *given, void *workspace, int64_t workspace_bytes,
             int threads);
/* The bytes of a workspace for some sizes, or minus a code. */
int64_t rt_sized_workspace(const RtFamily *family, const int64_t *sizes);
/* As rt_call and rt_workspace (runtime.h), of functions for all sizes. */
int rt_sized_call(const RtFamily *const *families, int64_t n, const RtDescribed *arguments, int n_arguments,
                  const RtDescribed *results, int n_results, void *workspace, int64_t workspace_bytes, int threads);
int64_t rt_sized_called_workspace(const RtFamily *const *families, int64_t n, const RtDescribed *arguments,
                                  int n_arguments);

/* Numbers that are computed of lengths. */
static inline int64_t
rt_bits(double x)
{
    union {
        double d;
        int64_t i;
    } of = {x};
    return of.i;
}

static inline int64_t
rt_bits4(float x)
{
    union {
        float f;
        uint32_t i;
    } of = {x};
    return (int64_t)of.i;
}

static inline int64_t
rt_floor(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static inline int64_t
rt_rest(int64_t a, int64_t b)
{
    return a - rt_floor(a, b) * b;
}

#endif
