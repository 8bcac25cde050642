/* What goes through the plans of a library that is built ahead of time, on the host (lists.c) and on cards (card.c).
   See runtime.h. */

#define _GNU_SOURCE
#include "runtime.h"

#include <alloca.h>
#include <string.h>

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

/* What lies where programs run: copies within it, and of a few bytes from it to the host. */
static void
copy(Run *run, char *to, const char *from, int64_t nbytes)
{
    if (run->place)
        run->place->copy(run, to, from, nbytes);
    else
        memcpy(to, from, (size_t)nbytes);
}

static const char *
fetched(Run *run, char *to, const char *from, int64_t nbytes)
{
    return run->place ? run->place->fetch(run, to, from, nbytes) : from;
}

static int
holds(Run *run, const char *at)
{
    char here[8] = {0};
    return *fetched(run, here, at, 1) != 0;
}

/* A copy in C's order. (What lies otherwise on a card has been copied by a kernel before.) */
static char *
carried(Run *run, char *to, const RtRef *ref, char **slots)
{
    if (run->place == NULL)
        return rt_copied(to, ref, slots);
    int64_t nbytes = ref->itemsize;
    for (int64_t d = 0; d < ref->rank; d++)
        nbytes *= ref->shape[d];
    run->place->copy(run, to, slots[ref->slot] + ref->offset, nbytes);
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
bound(Run *run, const RtRef *ref, char **slots)
{
    char here[8];
    if (ref->slot < 0)
        return ref->offset;
    return rt_integer(fetched(run, here, slots[ref->slot] + ref->offset, ref->itemsize), ref->itemsize, 1);
}

/* Plans */

static int run_plan(Run *run, const RtPlan *plan, char **inputs, char **news, char **results);

static void
deliver(Run *run, const RtDest *dests, int64_t n, char **from, char **slots)
{
    for (int64_t i = 0; i < n; i++)
        if (slots[dests[i].slot] != from[dests[i].number])
            copy(run, slots[dests[i].slot], from[dests[i].number], dests[i].nbytes);
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
        state[k] = carried(run, run->workspace + loop->state_at[k], loop->operands + k, slots);
    for (int64_t k = n; k < loop->n_operands; k++)
        state[k] = rt_in_order(run, loop->operands + k, slots);
    int64_t trips = loop->trips;
    int failed = 0;
    if (loop->test) {
        char *only[1];
        failed = run_plan(run, loop->test, state, &truth, only);
        if (failed)
            return failed;
        trips = holds(run, only[0]) ? INT64_MAX : 0;
    } else if (loop->bounded) {
        int64_t low = bound(run, &loop->lower, slots), high = bound(run, &loop->upper, slots);
        trips = high > low ? high - low : 0;
    }
    int64_t trip = loop->many && !run->failed ? loop->many(run, loop->rounds, loop->body, state, trips) : 0;
    for (; trip < trips && !run->failed; trip++) {
        for (int64_t i = 0; i < made; i++)
            news[i] = run->workspace + loop->new_at[i] + trip % loop->ring * loop->new_nbytes[i];
        failed = run_plan(run, loop->body, state, news, results);
        if (failed)
            return failed;
        for (int64_t k = 0, at = 0; k < n; k++)
            next[k] = loop->passed[k] >= 0 ? state[loop->passed[k]] : results[at++];
        memcpy(state, next, sizeof(char *) * (size_t)n);
        if (loop->test && !holds(run, results[computed - 1]))
            break;
    }
    deliver(run, loop->dests, loop->n_dests, state, slots);
    return run->failed;
}

int
rt_branch(Run *run, const void *what, char **slots)
{
    const RtBranch *branch = what;
    int which = !holds(run, slots[branch->predicate.slot] + branch->predicate.offset);
    const RtPlan *plan = branch->plans[which];
    char **operands = alloca(sizeof(char *) * (size_t)(branch->n_operands + 1)),
         **news = alloca(sizeof(char *) * (size_t)(plan->n_new + 1)),
         **results = alloca(sizeof(char *) * (size_t)(plan->n_results + 1));
    for (int64_t k = 0; k < branch->n_operands; k++)
        operands[k] = rt_in_order(run, branch->operands + k, slots);
    for (int64_t i = 0; i < plan->n_new; i++)
        news[i] = run->workspace + branch->new_at[which][i];
    int failed = run->failed ? run->failed : run_plan(run, plan, operands, news, results);
    if (!failed)
        deliver(run, branch->dests, branch->n_dests, results, slots);
    return failed ? failed : run->failed;
}

static int
run_plan(Run *run, const RtPlan *plan, char **inputs, char **news, char **results)
{
    char **slots = alloca(sizeof(char *) * (size_t)plan->n_slots), **at = slots;
    *at++ = run->workspace + plan->arena_at;
    for (int64_t i = 0; i < plan->n_data; i++)
        *at++ = (char *)plan->data[i] + run->shift;
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

int
rt_through(Run *run, const RtSignature *signature, void *const *given)
{
    const RtProgram *program = signature->program;
    const RtPlan *plan = program->plan;
    char **news = alloca(sizeof(char *) * (size_t)(plan->n_new + 1)),
         **results = alloca(sizeof(char *) * (size_t)(plan->n_results + 1));
    for (int64_t i = 0; i < plan->n_new; i++)
        news[i] = program->new_given[i] >= 0 ? given[program->new_given[i]] : run->workspace + program->new_at[i];
    int failed = run_plan(run, plan, (char **)given, news, results);
    for (const RtCopy *c = program->copies; !failed && c < program->copies + program->n_copies; c++)
        if (given[c->given] != results[c->result])
            copy(run, given[c->given], results[c->result], signature->arrays[c->given].nbytes);
    return failed ? failed : run->failed;
}

static int
overlap(const char *a, int64_t a_bytes, const char *b, int64_t b_bytes)
{
    return a_bytes && b_bytes && a < b + b_bytes && b < a + a_bytes;
}

int
rt_refused(const RtArray *arrays, int64_t n, void *const *given, const char *workspace, int64_t workspace_bytes,
           int64_t needed, int64_t line)
{
    for (int64_t i = 0; i < n; i++) {
        if (given[i] == NULL && arrays[i].nbytes)
            return RT_NULL;
        if ((uintptr_t)given[i] % (uintptr_t)arrays[i].alignment)
            return RT_ALIGNMENT;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            if (i != j && arrays[i].written && overlap(given[i], arrays[i].nbytes, given[j], arrays[j].nbytes))
                return RT_OVERLAP;
    if (workspace == NULL)
        return workspace_bytes ? RT_NULL : RT_OK;
    if (workspace_bytes < needed + (int64_t)(-(uintptr_t)workspace % (uintptr_t)line))
        return RT_WORKSPACE;
    for (int64_t i = 0; i < n; i++)
        if (overlap(workspace, workspace_bytes, given[i], arrays[i].nbytes))
            return RT_OVERLAP;
    return RT_OK;
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
rt_given(const RtArray *wanted, const RtDescribed *arguments, int n_arguments, const RtDescribed *results,
         int n_results, void **given)
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

const RtSignature *
rt_found(const RtSignature *const *signatures, int64_t n, const RtDescribed *arguments, int n_arguments, int n_results,
         int *wrong)
{
    const RtSignature *s = signature_of(signatures, n, arguments, n_arguments, wrong);
    if (s && s->n_results != n_results) {
        *wrong = RT_COUNT;
        return NULL;
    }
    return s;
}

int64_t
rt_workspace(const RtSignature *const *signatures, int64_t n, const RtDescribed *arguments, int n_arguments)
{
    int wrong;
    const RtSignature *s = signature_of(signatures, n, arguments, n_arguments, &wrong);
    return s == NULL ? -wrong : s->program->workspace + s->line - 1;
}
