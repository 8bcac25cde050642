/* What runs programs for all sizes. See sizes.h. */

#define _GNU_SOURCE
#include "sizes.h"

#include <alloca.h>
#include <stdlib.h>
#include <string.h>

/* A kernel's block of elements, the pieces a thread takes of a statement (source.py, tasks.py). */
enum { BLOCK = 1024, EACH = 3, LINE = 64 };

static int64_t
rounded(int64_t n)
{
    return (n + LINE - 1) / LINE * LINE;
}

static int64_t
least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t
most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t
blocks_of(const RtStatement *s)
{
    return (s->inner + BLOCK - 1) / BLOCK;
}

/* Into how many parts the rows that are added are cut (reduce.py: a matter of shape alone). */
static int64_t
parts_of(const RtStatement *s)
{
    return s->kept * s->inner < 1 << 14 ? most(1, least(16, s->reduced / 4096)) : 1;
}

static int
is_direct(const RtStatement *s)
{
    return s->kind == RT_COLUMNS ? parts_of(s) == 1 : s->reduced * blocks_of(s) == 1;
}

void
rt_measure(const RtSized *sized)
{
    for (int64_t k = 0; k < sized->n_lists; k++) {
        const RtSizedTasks *tasks = sized->lists[k];
        for (const RtStatement *s = tasks->statements; s < tasks->statements + tasks->n_statements; s++) {
            int64_t rows = s->reduced * blocks_of(s), columns = s->kept * s->inner, parts = parts_of(s);
            for (const RtPartial *p = s->partials; p < s->partials + s->n_partials; p++) {
                int64_t *fold = tasks->words + p->fold;
                if (s->kind == RT_ROWS)
                    tasks->words[p->address + 1] = blocks_of(s) * p->size;
                if (is_direct(s))
                    continue;
                sized->rooms[p->room] = p->size * (s->kind == RT_ROWS ? s->kept * rows : parts * columns);
                fold[4] = s->kind == RT_ROWS ? p->size : 0;
                fold[5] = p->size * (s->kind == RT_ROWS ? rows : columns);
                fold[6] = s->kind == RT_ROWS ? rows : columns;
                fold[7] = s->kind == RT_ROWS ? 0 : p->size;
                fold[8] = p->size;
            }
        }
    }
    sized->at[0] = 0;
    for (int64_t i = 0; i < sized->n_rooms; i++)
        sized->at[i + 1] = sized->at[i] + rounded(sized->rooms[i]);
}

/* Lists: calls of tickets of stages, written or only counted. */

typedef struct {
    int64_t threads, size;
    char *words;
    Call *calls;
    int64_t *stages, *firsts;
    int64_t n_stages, n_tickets, n_calls;
    /* Of the stage at hand: is it the caller's alone, how much a ticket is to be, how much the last one is. */
    int alone, several;
    int64_t share, held;
} Cut;

static int
is_small(const Cut *cut, int64_t work)
{
    return work < cut->size || cut->threads < 2;
}

static void
close_ticket(Cut *cut)
{
    cut->n_tickets++;
    if (cut->firsts)
        cut->firsts[cut->n_tickets] = cut->n_calls;
    cut->held = 0;
}

static void
close_stage(Cut *cut)
{
    cut->n_stages++;
    if (cut->stages)
        cut->stages[cut->n_stages] = cut->n_tickets;
}

/* A level of so much work, in one ticket or in several. */
static void
begin(Cut *cut, int64_t work, int several)
{
    cut->several = several && !is_small(cut, work);
    if (cut->several && cut->alone) {
        close_ticket(cut);
        close_stage(cut);
    }
    cut->alone = !cut->several;
    cut->share = least(cut->size, work / (cut->threads * EACH));
}

static void
ended(Cut *cut, int64_t work)
{
    cut->held += work;
    if (cut->several && cut->held >= cut->share)
        close_ticket(cut);
}

static void
end(Cut *cut)
{
    if (!cut->several)
        return;
    if (cut->held)
        close_ticket(cut);
    close_stage(cut);
}

static void
called(Cut *cut, TaskKernel code, int64_t block, int64_t lo, int64_t hi, int64_t first, int64_t last, int64_t rlo,
       int64_t rhi, int64_t part)
{
    if (cut->calls) {
        Call made = {code, (int64_t)(intptr_t)(cut->words + 8 * block), lo, hi, first, last, rlo, rhi, part, 0};
        cut->calls[cut->n_calls] = made;
    }
    cut->n_calls++;
}

/* The results of rows from partial ones. */
static void
combine(Cut *cut, const RtStatement *s, int64_t lo, int64_t hi)
{
    if (is_direct(s))
        return;
    for (const RtPartial *p = s->partials; p < s->partials + s->n_partials; p++) {
        int64_t columns = s->kept * s->inner;
        called(cut, p->fill, p->fill_result, lo, s->kind == RT_COLUMNS ? columns : hi, 0, 0, 0, 1, 0);
        called(cut, pool_fold, p->fold, lo, s->kind == RT_COLUMNS ? parts_of(s) : hi, 0, 0, 0, 1, 0);
    }
}

static void
some_rows(Cut *cut, const RtStatement *s, int64_t lo, int64_t hi, int64_t first, int64_t last)
{
    int64_t blocks = blocks_of(s), from = lo * blocks + first / BLOCK, to = (hi - 1) * blocks + (last + BLOCK - 1) / BLOCK;
    for (const RtPartial *p = s->partials; p < s->partials + s->n_partials; p++)
        called(cut, p->fill, p->fill_partial, from, to, 0, 0, 0, 1, 0);
    called(cut, s->code, s->block, lo, hi, first, last, 0, 1, 0);
}

/* Pieces of a range of rows and of the innermost dimension (run.py), of one part of what is reduced. */
static void
pieces(Cut *cut, const RtStatement *s, int64_t rows, int64_t each, int64_t rlo, int64_t rhi, int64_t part)
{
    int64_t inner = s->inner, n = rows * inner, unit = cut->threads << 16, granule = s->tiled ? 64 : 1;
    int64_t want = cut->threads * most(1, least(each, (n + unit / 2) / unit)), lo = 0;
    int64_t scale = s->kind == RT_COLUMNS ? rhi - rlo : 1;
    if (rows >= want * granule) {
        for (int64_t i = 1; i <= want; i++) {
            int64_t hi = i == want ? rows : rows * i / want / granule * granule;
            if (hi <= lo)
                continue;
            if (s->kind == RT_ROWS)
                some_rows(cut, s, lo, hi, 0, inner);
            else
                called(cut, s->code, s->block, lo, hi, 0, inner, rlo, rhi, part);
            ended(cut, (hi - lo) * inner * scale * s->cost);
            lo = hi;
        }
        return;
    }
    int64_t groups = most(rows / granule, 1), across = (want + groups - 1) / groups;
    int64_t step = ((inner + across - 1) / across + BLOCK - 1) / BLOCK * BLOCK;
    for (; lo < rows; lo += granule)
        for (int64_t first = 0; first < inner; first += step) {
            int64_t hi = least(lo + granule, rows), last = least(first + step, inner);
            if (s->kind == RT_ROWS)
                some_rows(cut, s, lo, hi, first, last);
            else
                called(cut, s->code, s->block, lo, hi, first, last, rlo, rhi, part);
            ended(cut, (hi - lo) * (last - first) * scale * s->cost);
        }
}

static void
cut_rows(Cut *cut, const RtStatement *s)
{
    int64_t kept = s->kept, rows = kept * s->reduced, work = rows * s->inner * s->cost, want = cut->threads * EACH;
    if (is_small(cut, work)) {
        begin(cut, work, 0);
        some_rows(cut, s, 0, rows, 0, s->inner);
        combine(cut, s, 0, kept);
        end(cut);
        return;
    }
    begin(cut, work, 1);
    if (kept >= want) {
        /* (Each piece has all of its rows, and need not wait for others to combine them.) */
        for (int64_t i = 0; i < want; i++) {
            int64_t lo = kept * i / want, hi = kept * (i + 1) / want;
            some_rows(cut, s, lo * s->reduced, hi * s->reduced, 0, s->inner);
            combine(cut, s, lo, hi);
            ended(cut, (hi - lo) * s->reduced * s->inner * s->cost);
        }
        end(cut);
        return;
    }
    pieces(cut, s, rows, EACH, 0, 1, 0);
    end(cut);
    if (is_direct(s))
        return;
    begin(cut, 0, 0);
    combine(cut, s, 0, kept);
    end(cut);
}

static void
cut_columns(Cut *cut, const RtStatement *s)
{
    int64_t parts = parts_of(s), work = s->kept * s->reduced * s->inner * s->cost;
    int small = is_small(cut, work);
    begin(cut, work, !small);
    for (int64_t part = 0; part < parts; part++) {
        int64_t rlo = s->reduced * part / parts, rhi = s->reduced * (part + 1) / parts;
        if (small)
            called(cut, s->code, s->block, 0, s->kept, 0, s->inner, rlo, rhi, part);
        else
            pieces(cut, s, s->kept, (EACH + parts - 1) / parts, rlo, rhi, part);
    }
    if (small) {
        combine(cut, s, 0, 0);
        end(cut);
        return;
    }
    end(cut);
    if (is_direct(s))
        return;
    begin(cut, 0, 0);
    combine(cut, s, 0, 0);
    end(cut);
}

static void
cut_statement(Cut *cut, const RtStatement *s)
{
    int64_t n = s->rows * s->inner;
    switch (s->kind) {
    case RT_ROWS:
        cut_rows(cut, s);
        return;
    case RT_COLUMNS:
        cut_columns(cut, s);
        return;
    case RT_LAUNCH:
        if (n == 0)
            return;
        begin(cut, n * s->cost, 1);
        if (cut->several)
            pieces(cut, s, s->rows, EACH, 0, 1, 0);
        else
            called(cut, s->code, s->block, 0, s->rows, 0, s->inner, 0, 1, 0);
        end(cut);
        return;
    default:
        /* (Bytes that are copied, or elements that get one value: memory is what limits it.) */
        if (s->inner == 0)
            return;
        begin(cut, s->inner * s->cost / 8, 1);
        int64_t want = cut->several ? cut->threads : 1, lo = 0;
        for (int64_t i = 1; i <= want; i++) {
            int64_t hi = i == want ? s->inner : s->inner * i / want / 64 * 64;
            if (hi > lo) {
                called(cut, s->code, s->block, lo, hi, 0, 0, 0, 1, 0);
                ended(cut, (hi - lo) * s->cost / 8 + 1);
            }
            lo = hi;
        }
        end(cut);
    }
}

static void
cut_list(Cut *cut, const RtSizedTasks *tasks)
{
    if (cut->stages)
        cut->stages[0] = cut->firsts[0] = 0;
    for (int64_t i = 0; i < tasks->n_statements; i++)
        cut_statement(cut, tasks->statements + i);
    if (cut->alone && cut->n_calls) {
        close_ticket(cut);
        close_stage(cut);
    }
}

/* How a list lies in the workspace: itself, tickets, calls, stages, and the first calls of tickets. */
static int64_t
list_bytes(const Cut *cut)
{
    return rounded(sizeof(List)) + rounded((cut->n_tickets + 1) * (int64_t)sizeof(Ticket)) +
           rounded(cut->n_calls * (int64_t)sizeof(Call)) + rounded(8 * (cut->n_stages + 1)) +
           rounded(8 * (cut->n_tickets + 1));
}

static int64_t
counted(Cut *cut, const RtFamily *family, const RtSizedTasks *tasks, int threads)
{
    memset(cut, 0, sizeof *cut);
    cut->threads = threads;
    cut->size = family->thread_size;
    cut_list(cut, tasks);
    return list_bytes(cut);
}

static int64_t
needed(const RtFamily *family, const RtSized *sized, int threads)
{
    int64_t bytes = sized->at[sized->n_rooms], largest = 0;
    for (int64_t k = 0; k < sized->n_lists; k++) {
        Cut cut;
        largest = most(largest, counted(&cut, family, sized->lists[k], threads));
    }
    return bytes + largest;
}

static char *
taken(char **at, int64_t bytes)
{
    char *here = *at;
    *at += rounded(bytes);
    return here;
}

static int
run_list(const RtFamily *family, const RtSizedTasks *tasks, char **slots, char *own, int threads)
{
    Cut cut;
    counted(&cut, family, tasks, threads);
    if (cut.n_calls == 0)
        return RT_OK;
    int64_t n_tickets = cut.n_tickets, n_stages = cut.n_stages, widest = 0;
    List *list = (List *)taken(&own, sizeof(List));
    Ticket *tickets = (Ticket *)taken(&own, (n_tickets + 1) * (int64_t)sizeof(Ticket));
    Call *calls = (Call *)taken(&own, cut.n_calls * (int64_t)sizeof(Call));
    int64_t *stages = (int64_t *)taken(&own, 8 * (n_stages + 1));
    int64_t *firsts = (int64_t *)own;
    memset(&cut, 0, sizeof cut);
    cut.threads = threads;
    cut.size = family->thread_size;
    cut.words = (char *)tasks->words;
    cut.calls = calls;
    cut.stages = stages;
    cut.firsts = firsts;
    cut_list(&cut, tasks);
    for (const RtPatch *p = tasks->patches; p < tasks->patches + tasks->n_patches; p++)
        tasks->words[p->word] = (int64_t)(intptr_t)(slots[p->slot] + p->offset);
    for (const RtStatement *s = tasks->statements; s < tasks->statements + tasks->n_statements; s++)
        for (const RtPartial *p = s->partials; p < s->partials + s->n_partials; p++) {
            int64_t result = (int64_t)(intptr_t)(slots[p->slot] + p->offset);
            int64_t partial = is_direct(s) ? result : (int64_t)(intptr_t)slots[p->where];
            tasks->words[p->address] = tasks->words[p->fill_partial] = tasks->words[p->fold + 3] = partial;
            tasks->words[p->fill_result] = tasks->words[p->fold + 2] = result;
        }
    for (int64_t i = 0; i < n_tickets; i++) {
        tickets[i].first = firsts[i];
        tickets[i].end = firsts[i + 1];
        atomic_init(&tickets[i].taken, -1);
    }
    for (int64_t i = 0; i < n_stages; i++)
        widest = most(widest, stages[i + 1] - stages[i]);
    memset(list, 0, sizeof *list);
    list->stages = stages;
    list->tickets = tickets;
    list->calls = calls;
    list->each = n_tickets;
    list->threads = threads;
    list->helpers = most(0, least(widest, threads) - 1);
    return pool_run(list, 1, NULL) ? RT_REFUSED : RT_OK;
}

/* Programs */

static int
threads_of(const RtFamily *family, int threads)
{
    return threads < 1 || threads > family->threads ? (int)family->threads : threads;
}

static int64_t
largest_image(const RtFamily *family)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < family->n_variants; i++)
        bytes = most(bytes, family->variants[i].bytes);
    return bytes;
}

static const RtSized *
filled(const RtFamily *family, const int64_t *sizes, void *image)
{
    for (int64_t i = 0; i < family->n_sizes; i++)
        if (sizes[i] < 0)
            return NULL;
    for (int64_t i = 0; i < family->n_variants; i++) {
        const RtSized *found = family->variants[i].filled(image, sizes);
        if (found)
            return found;
    }
    return NULL;
}

static int
run_sized(const RtFamily *family, const RtSized *sized, void *const *given, void *workspace, int64_t workspace_bytes,
          int threads)
{
    threads = threads_of(family, threads);
    /* (As many bytes as are asked for, whatever the number of threads.) */
    int64_t bytes = needed(family, sized, (int)family->threads);
    bytes = most(bytes, needed(family, sized, threads));
    int failed = rt_refused(sized->arrays, family->n_arguments + family->n_results, given, workspace, workspace_bytes,
                            bytes, LINE);
    if (failed)
        return failed;
    void *own = NULL;
    Run run = {.workspace = (char *)workspace + -(uintptr_t)workspace % LINE};
    if (workspace == NULL && bytes) {
        if (posix_memalign(&own, LINE, (size_t)bytes))
            return RT_MEMORY;
        run.workspace = own;
    }
    run.own = run.workspace + sized->at[sized->n_rooms];
    rt_begin();
    char **slots = alloca(sizeof(char *) * (size_t)(sized->n_slots + 1));
    for (int64_t i = 0; i < sized->n_slots; i++) {
        const RtSlot *s = sized->slots + i;
        slots[i] = s->data ? (char *)s->data : s->given >= 0 ? (char *)given[s->given] : run.workspace + sized->at[s->room];
    }
    for (int64_t i = 0; i < sized->n_steps && !failed; i++) {
        const RtStep *step = sized->steps + i;
        failed = step->run ? step->run(&run, step->what, slots)
                           : run_list(family, step->what, slots, run.own, threads);
    }
    for (const RtCopy *c = sized->copies; !failed && c < sized->copies + sized->n_copies; c++)
        if (given[c->given] != slots[c->result])
            memcpy(given[c->given], slots[c->result], (size_t)sized->arrays[c->given].nbytes);
    free(own);
    return failed;
}

int
rt_sized(const RtFamily *family, const int64_t *sizes, void *const *given, void *workspace, int64_t workspace_bytes,
         int threads)
{
    const RtSized *sized = filled(family, sizes, alloca((size_t)largest_image(family)));
    return sized ? run_sized(family, sized, given, workspace, workspace_bytes, threads) : RT_SHAPE;
}

int64_t
rt_sized_workspace(const RtFamily *family, const int64_t *sizes)
{
    const RtSized *sized = filled(family, sizes, alloca((size_t)largest_image(family)));
    if (sized == NULL)
        return -RT_SHAPE;
    int64_t bytes = needed(family, sized, 1);
    for (int threads = 2; threads <= family->threads; threads++)
        bytes = most(bytes, needed(family, sized, threads));
    return bytes + LINE - 1;
}

/* The lengths that arguments have, or what is wrong with them. */
static int
sizes_of(const RtFamily *family, const RtDescribed *arguments, int64_t *sizes)
{
    for (int64_t i = 0; i < family->n_sizes; i++)
        sizes[i] = -1;
    for (int64_t k = 0; k < family->n_arguments; k++) {
        const RtDescribed *x = arguments + k;
        const RtArray *wanted = family->arguments + k;
        if (x->dtype != wanted->dtype)
            return RT_DTYPE;
        if (x->rank != wanted->rank || (x->rank && x->shape == NULL))
            return RT_SHAPE;
        for (int64_t d = 0; d < wanted->rank; d++) {
            int64_t axis = family->axes[k][d], n = x->shape[d];
            if (axis >= 0 && sizes[axis] < 0 && n >= 0)
                sizes[axis] = n;
            if (n != (axis >= 0 ? sizes[axis] : -1 - axis))
                return RT_SHAPE;
        }
    }
    return RT_OK;
}

int
rt_sized_call(const RtFamily *const *families, int64_t n, const RtDescribed *arguments, int n_arguments,
              const RtDescribed *results, int n_results, void *workspace, int64_t workspace_bytes, int threads)
{
    int wrong = RT_COUNT;
    for (int64_t i = 0; i < n; i++) {
        const RtFamily *family = families[i];
        if (family->n_arguments != n_arguments)
            continue;
        int64_t *sizes = alloca(8 * (size_t)(family->n_sizes + 1));
        int found = sizes_of(family, arguments, sizes);
        const RtSized *sized = found ? NULL : filled(family, sizes, alloca((size_t)largest_image(family)));
        if (sized == NULL) {
            wrong = (int)most(wrong, found ? found : RT_SHAPE);
            continue;
        }
        for (int k = 0; k < n_arguments && !found; k++)
            found = rt_fits(sized->arrays + k, arguments + k);
        if (found) {
            wrong = (int)most(wrong, found);
            continue;
        }
        if (family->n_results != n_results)
            return RT_COUNT;
        void **given = alloca(sizeof(void *) * (size_t)(n_arguments + n_results + 1));
        found = rt_given(sized->arrays, arguments, n_arguments, results, n_results, given);
        return found ? found : run_sized(family, sized, given, workspace, workspace_bytes, threads);
    }
    return wrong;
}

int64_t
rt_sized_called_workspace(const RtFamily *const *families, int64_t n, const RtDescribed *arguments, int n_arguments)
{
    int wrong = RT_COUNT;
    for (int64_t i = 0; i < n; i++) {
        if (families[i]->n_arguments != n_arguments)
            continue;
        int64_t *sizes = alloca(8 * (size_t)(families[i]->n_sizes + 1));
        int found = sizes_of(families[i], arguments, sizes);
        if (!found)
            return rt_sized_workspace(families[i], sizes);
        wrong = (int)most(wrong, found);
    }
    return -wrong;
}
