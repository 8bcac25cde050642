/* What runs a library that is built ahead of time. See runtime.h; the lists themselves are run by pool.c. */

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

/* Views */

static char *
strided_copy(char *to, const char *from, int64_t itemsize, int64_t rank, const int64_t *shape, const int64_t *strides)
{
    if (rank == 0) {
        memcpy(to, from, (size_t)itemsize);
        return to + itemsize;
    }
    for (int64_t i = 0; i < shape[0]; i++)
        to = strided_copy(to, from + i * strides[0], itemsize, rank - 1, shape + 1, strides + 1);
    return to;
}

char *
rt_copied(char *to, const RtRef *ref, char **slots)
{
    strided_copy(to, slots[ref->slot] + ref->offset, ref->itemsize, ref->rank, ref->shape, ref->strides);
    return to;
}

char *
rt_in_order(Run *run, const RtRef *ref, char **slots)
{
    return ref->packed < 0 ? slots[ref->slot] + ref->offset : rt_copied(run->workspace + ref->packed, ref, slots);
}

int64_t
rt_integer(const char *at, int64_t itemsize, int is_signed)
{
    int64_t wide;
    int32_t four;
    int16_t two;
    switch (itemsize) {
    case 1:
        return is_signed ? *(const int8_t *)at : *(const uint8_t *)at;
    case 2:
        memcpy(&two, at, 2);
        return is_signed ? two : (uint16_t)two;
    case 4:
        memcpy(&four, at, 4);
        return is_signed ? four : (int64_t)(uint32_t)four;
    default:
        memcpy(&wide, at, 8);
        return wide;
    }
}

/* A bound of a loop: the number `offset` where there is no slot. (Bounds have signs, or are small.) */
static int64_t
bound(const RtRef *ref, char **slots)
{
    return ref->slot < 0 ? ref->offset : rt_integer(slots[ref->slot] + ref->offset, ref->itemsize, 1);
}

/* Plans */

static int run_plan(Run *run, const RtPlan *plan, char **inputs, char **news, char **results);

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

static void
deliver(const RtDest *dests, int64_t n, char **from, char **slots)
{
    for (int64_t i = 0; i < n; i++)
        if (slots[dests[i].slot] != from[dests[i].number])
            memcpy(slots[dests[i].slot], from[dests[i].number], (size_t)dests[i].nbytes);
}

int
rt_loop(Run *run, const void *what, char **slots)
{
    const RtLoop *loop = what;
    int64_t n = loop->n_carried, made = loop->body->n_new, computed = loop->body->n_results;
    char **state = alloca(sizeof(char *) * (size_t)(loop->n_operands + 1)),
         **next = alloca(sizeof(char *) * (size_t)(n + 1)), **news = alloca(sizeof(char *) * (size_t)(made + 1)),
         **results = alloca(sizeof(char *) * (size_t)(computed + 1)), *truth = run->workspace + loop->test_at;
    /* (Copies: they may be written to.) */
    for (int64_t k = 0; k < n; k++)
        state[k] = rt_copied(run->workspace + loop->state_at[k], loop->operands + k, slots);
    for (int64_t k = n; k < loop->n_operands; k++)
        state[k] = rt_in_order(run, loop->operands + k, slots);
    int64_t trips = loop->trips;
    int failed = 0;
    if (loop->test) {
        char *only[1];
        failed = run_plan(run, loop->test, state, &truth, only);
        if (failed)
            return failed;
        trips = *only[0] ? INT64_MAX : 0;
    } else if (loop->bounded) {
        int64_t low = bound(&loop->lower, slots), high = bound(&loop->upper, slots);
        trips = high > low ? high - low : 0;
    }
    for (int64_t trip = 0; trip < trips; trip++) {
        for (int64_t i = 0; i < made; i++)
            news[i] = run->workspace + loop->new_at[i] + trip % loop->ring * loop->new_nbytes[i];
        failed = run_plan(run, loop->body, state, news, results);
        if (failed)
            return failed;
        for (int64_t k = 0, at = 0; k < n; k++)
            next[k] = loop->passed[k] >= 0 ? state[loop->passed[k]] : results[at++];
        memcpy(state, next, sizeof(char *) * (size_t)n);
        if (loop->test && !*results[computed - 1])
            break;
    }
    deliver(loop->dests, loop->n_dests, state, slots);
    return RT_OK;
}

int
rt_branch(Run *run, const void *what, char **slots)
{
    const RtBranch *branch = what;
    int which = !*(slots[branch->predicate.slot] + branch->predicate.offset);
    const RtPlan *plan = branch->plans[which];
    char **operands = alloca(sizeof(char *) * (size_t)(branch->n_operands + 1)),
         **news = alloca(sizeof(char *) * (size_t)(plan->n_new + 1)),
         **results = alloca(sizeof(char *) * (size_t)(plan->n_results + 1));
    for (int64_t k = 0; k < branch->n_operands; k++)
        operands[k] = rt_in_order(run, branch->operands + k, slots);
    for (int64_t i = 0; i < plan->n_new; i++)
        news[i] = run->workspace + branch->new_at[which][i];
    int failed = run_plan(run, plan, operands, news, results);
    if (!failed)
        deliver(branch->dests, branch->n_dests, results, slots);
    return failed;
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

static int
run_plan(Run *run, const RtPlan *plan, char **inputs, char **news, char **results)
{
    char **slots = alloca(sizeof(char *) * (size_t)plan->n_slots), **at = slots;
    *at++ = run->workspace + plan->arena_at;
    for (int64_t i = 0; i < plan->n_data; i++)
        *at++ = (char *)plan->data[i];
    for (int64_t i = 0; i < plan->n_inputs; i++)
        *at++ = inputs[i];
    for (int64_t i = 0; i < plan->n_outputs; i++)
        *at++ = news[i];
    for (int64_t i = 0; i < plan->n_made; i++)
        *at++ = plan->made_at[i] < 0 ? news[-1 - plan->made_at[i]] : run->workspace + plan->made_at[i];
    int failed = RT_OK;
    for (int64_t i = 0; i < plan->n_steps && !failed; i++)
        failed = plan->steps[i].run(run, plan->steps[i].what, slots);
    for (int64_t i = 0; i < plan->n_results; i++)
        results[i] = slots[plan->results[i]];
    return failed;
}

/* Programs */

static pthread_once_t begun = PTHREAD_ONCE_INIT;

static void
begin(void)
{
    pool_begin();
}

static int
overlap(const char *a, int64_t a_bytes, const char *b, int64_t b_bytes)
{
    return a_bytes && b_bytes && a < b + b_bytes && b < a + a_bytes;
}

void
rt_begin(void)
{
    pthread_once(&begun, begin);
}

int
rt_refused(const RtArray *arrays, int64_t n, void *const *given, const char *workspace, int64_t workspace_bytes,
           int64_t needed)
{
    for (int64_t i = 0; i < n; i++) {
        if (given[i] == NULL && arrays[i].nbytes)
            return RT_NULL;
        int64_t most = arrays[i].itemsize < 8 ? arrays[i].itemsize : 8;
        if ((uintptr_t)given[i] % (uintptr_t)most)
            return RT_ALIGNMENT;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            if (i != j && arrays[i].written && overlap(given[i], arrays[i].nbytes, given[j], arrays[j].nbytes))
                return RT_OVERLAP;
    if (workspace == NULL)
        return workspace_bytes ? RT_NULL : RT_OK;
    if (workspace_bytes < needed + (int64_t)(-(uintptr_t)workspace % 64))
        return RT_WORKSPACE;
    for (int64_t i = 0; i < n; i++)
        if (overlap(workspace, workspace_bytes, given[i], arrays[i].nbytes))
            return RT_OVERLAP;
    return RT_OK;
}

int
rt_run(const RtSignature *signature, void *const *given, void *workspace, int64_t workspace_bytes, int threads)
{
    const RtProgram *program = signature->program;
    const RtPlan *plan = program->plan;
    int failed = rt_refused(signature->arrays, signature->n_arguments + signature->n_results, given, workspace,
                            workspace_bytes, program->workspace);
    if (failed)
        return failed;
    void *own = NULL;
    Run run = {(char *)workspace + -(uintptr_t)workspace % 64, NULL};
    if (workspace == NULL && program->workspace) {
        if (posix_memalign(&own, 64, (size_t)program->workspace))
            return RT_MEMORY;
        run.workspace = own;
    }
    run.own = run.workspace + program->own_at;
    rt_begin();
    threads = threads < 1 || threads > signature->threads ? (int)signature->threads : threads;
    for (int64_t i = 0; i < program->n_lists; i++)
        lay_out(program->lists[i], run.own, threads);
    char **news = alloca(sizeof(char *) * (size_t)(plan->n_new + 1)),
         **results = alloca(sizeof(char *) * (size_t)(plan->n_results + 1));
    for (int64_t i = 0; i < plan->n_new; i++)
        news[i] = program->new_given[i] >= 0 ? given[program->new_given[i]] : run.workspace + program->new_at[i];
    failed = run_plan(&run, plan, (char **)given, news, results);
    for (const RtCopy *c = program->copies; !failed && c < program->copies + program->n_copies; c++)
        if (given[c->given] != results[c->result])
            memcpy(given[c->given], results[c->result], (size_t)signature->arrays[c->given].nbytes);
    free(own);
    return failed;
}

int
rt_fits(const RtArray *wanted, const RtDescribed *x)
{
    if (x->dtype != wanted->dtype)
        return RT_DTYPE;
    if (x->rank != wanted->rank || (x->rank && x->shape == NULL))
        return RT_SHAPE;
    for (int64_t d = 0; d < wanted->rank; d++)
        if (x->shape[d] != wanted->shape[d])
            return RT_SHAPE;
    int64_t step = wanted->itemsize;
    if (x->strides && wanted->nbytes)
        for (int64_t d = wanted->rank - 1; d >= 0; step *= wanted->shape[d--])
            if (wanted->shape[d] != 1 && x->strides[d] != step)
                return RT_STRIDES;
    return RT_OK;
}

/* The program for such arguments; else what is wrong with the one that is nearest to them. */
static const RtSignature *
signature_of(const RtSignature *const *signatures, int64_t n, const RtDescribed *arguments, int n_arguments, int *wrong)
{
    *wrong = arguments == NULL && n_arguments ? RT_NULL : RT_COUNT;
    for (int64_t i = 0; i < n && *wrong != RT_NULL; i++) {
        const RtSignature *s = signatures[i];
        int found = RT_OK;
        if (s->n_arguments != n_arguments)
            continue;
        for (int k = 0; k < n_arguments && !found; k++)
            found = rt_fits(s->arrays + k, arguments + k);
        if (!found)
            return s;
        if (found > *wrong)
            *wrong = found;
    }
    return NULL;
}

int
rt_given(const RtArray *wanted, const RtDescribed *arguments, int n_arguments, const RtDescribed *results, int n_results,
         void **given)
{
    if (results == NULL && n_results)
        return RT_NULL;
    for (int k = 0; k < n_arguments; k++)
        given[k] = arguments[k].data;
    for (int k = 0; k < n_results; k++) {
        given[n_arguments + k] = results[k].data;
        int wrong = rt_fits(wanted + n_arguments + k, results + k);
        if (wrong)
            return wrong;
    }
    return 0;
}

int
rt_call(const RtSignature *const *signatures, int64_t n, const RtDescribed *arguments, int n_arguments,
        const RtDescribed *results, int n_results, void *workspace, int64_t workspace_bytes, int threads)
{
    int wrong;
    const RtSignature *s = signature_of(signatures, n, arguments, n_arguments, &wrong);
    if (s == NULL)
        return wrong;
    if (s->n_results != n_results)
        return RT_COUNT;
    void **given = alloca(sizeof(void *) * (size_t)(n_arguments + n_results + 1));
    wrong = rt_given(s->arrays, arguments, n_arguments, results, n_results, given);
    return wrong ? wrong : rt_run(s, given, workspace, workspace_bytes, threads);
}

int64_t
rt_workspace(const RtSignature *const *signatures, int64_t n, const RtDescribed *arguments, int n_arguments)
{
    int wrong;
    const RtSignature *s = signature_of(signatures, n, arguments, n_arguments, &wrong);
    /* (It begins a cache line.) */
    return s == NULL ? -wrong : s->program->workspace + 63;
}
