/* What runs programs on the host: task lists, which pool.c runs, products, functions. See runtime.h. */

#define _GNU_SOURCE
#include "runtime.h"

#include <alloca.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "products.h"

/* Task lists */

static void
lay_out(const RtTasks *tasks, char *own, int threads)
{
    const RtLayout *how = threads > 1 ? &tasks->shared : &tasks->alone;
    List *list = (List *)(own + tasks->list_at);
    char *words = own + tasks->words_at;
    Call *calls = (Call *)(own + tasks->calls_at);
    Ticket *tickets = (Ticket *)(own + tasks->tickets_at);
    int64_t n = how->n_tickets, most = 0;
    memcpy(words, tasks->words, (size_t)tasks->n_words * 8);
    memcpy(calls, how->calls, (size_t)how->n_calls * sizeof(Call));
    for (int64_t i = 0; i < how->n_calls; i++)
        calls[i].args += (int64_t)(intptr_t)words;
    for (int64_t i = 0; i < n; i++) {
        tickets[i].first = how->tickets[i];
        tickets[i].end = how->tickets[i + 1];
        atomic_init(&tickets[i].taken, -1);
    }
    for (int64_t i = 0; i < how->n_stages; i++)
        if (how->stages[i + 1] - how->stages[i] > most)
            most = how->stages[i + 1] - how->stages[i];
    memset(list, 0, sizeof *list);
    list->stages = how->stages;
    list->tickets = tickets;
    list->calls = calls;
    list->each = n;
    list->threads = threads;
    list->helpers = (most < threads ? most : threads) - 1;
    if (list->helpers < 0)
        list->helpers = 0;
    for (const RtPatch *p = tasks->patches; p < tasks->patches + tasks->n_patches; p++)
        if (p->slot < 0)
            *(int64_t *)(words + 8 * p->word) = (int64_t)(intptr_t)(own + tasks->scratch_at + p->offset);
}

int
rt_tasks(Run *run, const void *what, char **slots)
{
    const RtTasks *tasks = what;
    char *words = run->own + tasks->words_at;
    for (const RtPatch *p = tasks->patches; p < tasks->patches + tasks->n_patches; p++)
        if (p->slot >= 0)
            *(int64_t *)(words + 8 * p->word) = (int64_t)(intptr_t)(slots[p->slot] + p->offset);
    List *list = (List *)(run->own + tasks->list_at);
    if (list->each == 0)
        return RT_OK;
    return pool_run(list, 1, NULL) ? RT_REFUSED : RT_OK;
}

/* Products and functions */

int
rt_product(Run *run, const void *what, char **slots)
{
    const RtProduct *product = what;
    (void)run;
    const char *a = slots[product->a.slot] + product->a.offset, *b = slots[product->b.slot] + product->b.offset;
    char *out = slots[product->dest];
    int64_t rank = product->rank;
    int64_t at[32] = {0};
    pool_dismiss(); /* (BLAS has threads of its own.) */
    for (int64_t i = 0; i < rank; i++)
        if (product->stack[i] == 0)
            return RT_OK;
    for (;;) {
        multiply(product->type, a, product->a_strides + rank, b, product->b_strides + rank, out,
                 product->out_strides + rank, product->m, product->n, product->p);
        int64_t d = rank - 1;
        for (; d >= 0; d--) {
            a += product->a_strides[d];
            b += product->b_strides[d];
            out += product->out_strides[d];
            if (++at[d] < product->stack[d])
                break;
            a -= at[d] * product->a_strides[d];
            b -= at[d] * product->b_strides[d];
            out -= at[d] * product->out_strides[d];
            at[d] = 0;
        }
        if (d < 0)
            return RT_OK;
    }
}

/* A function of mb.jit's. What it writes to are copies, which are its results; numbers that it returns follow. */
int
rt_function(Run *run, const void *what, char **slots)
{
    const RtFunction *function = what;
    int64_t n = function->n_operands, all = n + function->n_returned;
    int64_t *at = alloca(sizeof(int64_t) * (size_t)(all + 1));
    char nowhere[256];
    for (int64_t k = 0; k < all; k++) {
        char *to = function->to_slot[k] >= 0  ? slots[function->to_slot[k]]
                   : function->to_at[k] >= 0 ? run->workspace + function->to_at[k]
                                             : NULL;
        if (k < n && to == NULL)
            to = rt_in_order(run, function->operands + k, slots);
        else if (k < n)
            rt_copied(to, function->operands + k, slots);
        at[k] = (int64_t)(intptr_t)to;
    }
    return function->code(nowhere, nowhere, (int64_t)(intptr_t)at, 0, 1, 0, 1, 0, 1, 0) ? RT_REFUSED : RT_OK;
}

/* Programs */

static pthread_once_t begun = PTHREAD_ONCE_INIT;

static void
begin(void)
{
    pool_begin();
}

void
rt_begin(void)
{
    pthread_once(&begun, begin);
}

int
rt_run(const RtSignature *signature, void *const *given, void *workspace, int64_t workspace_bytes, int threads)
{
    const RtProgram *program = signature->program;
    int failed = rt_refused(signature->arrays, signature->n_arguments + signature->n_results, given, workspace,
                            workspace_bytes, program->workspace, signature->line);
    if (failed)
        return failed;
    void *own = NULL;
    Run run = {.workspace = (char *)workspace + -(uintptr_t)workspace % (uintptr_t)signature->line};
    if (workspace == NULL && program->workspace) {
        if (posix_memalign(&own, (size_t)signature->line, (size_t)program->workspace))
            return RT_MEMORY;
        run.workspace = own;
    }
    run.own = run.workspace + program->own_at;
    rt_begin();
    threads = threads < 1 || threads > signature->threads ? (int)signature->threads : threads;
    for (int64_t i = 0; i < program->n_lists; i++)
        lay_out(program->lists[i], run.own, threads);
    failed = rt_through(&run, signature, given);
    free(own);
    return failed;
}

int
rt_call(const RtSignature *const *signatures, int64_t n, const RtDescribed *arguments, int n_arguments,
        const RtDescribed *results, int n_results, void *workspace, int64_t workspace_bytes, int threads)
{
    int wrong;
    const RtSignature *s = rt_found(signatures, n, arguments, n_arguments, n_results, &wrong);
    if (s == NULL)
        return wrong;
    void **given = alloca(sizeof(void *) * (size_t)(n_arguments + n_results + 1));
    wrong = rt_given(s->arrays, arguments, n_arguments, results, n_results, given);
    return wrong ? wrong : rt_run(s, given, workspace, workspace_bytes, threads);
}

