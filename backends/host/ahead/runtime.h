/* What a library that is built ahead of time consists of: tables, which tables.py writes, and what runs them
   (runtime.c, and lists.c on the host). All offsets are bytes, in the workspace that a caller gives; those of lists
   count from where the memory of lists begins there. */

#ifndef MIRABELLE_RUNTIME_H
#define MIRABELLE_RUNTIME_H

#include "pool.h"

/* A word of an argument block that is an address: that of a slot and so many bytes (slot -1: the list's own scratch). */
typedef struct {
    int64_t word, slot, offset;
} RtPatch;

/* How a list is run by one thread or by several: the first tickets of stages, the first calls of tickets (and the
   ends of both), calls, whose `args` is where their blocks begin. */
typedef struct {
    const int64_t *stages, *tickets;
    const Call *calls;
    int64_t n_stages, n_tickets, n_calls;
} RtLayout;

typedef struct {
    const int64_t *words;
    const RtPatch *patches;
    int64_t n_words, n_patches;
    RtLayout alone, shared;
    int64_t list_at, words_at, calls_at, tickets_at, scratch_at;
} RtTasks;

/* A view of a slot. `packed` says where a copy in C's order goes, where it does not lie so. */
typedef struct {
    int64_t slot, offset, itemsize, rank;
    const int64_t *shape, *strides;
    int64_t packed;
} RtRef;

struct RtPlan;

struct RtPlace;

/* A run: the memory of plans, and that of lists. On a card the addresses are that card's: what copies there (`place`;
   NULL on the host), how far from where the host has them data lie (`shift`), what else card.c knows (`card`), and the
   code of what the card refused (`failed`). */
typedef struct {
    char *workspace, *own;
    const struct RtPlace *place;
    int64_t shift;
    void *card;
    int failed;
} Run;

/* Copies within a card, and to the host, which are there when it returns `to`. */
typedef struct RtPlace {
    void (*copy)(Run *run, char *to, const char *from, int64_t nbytes);
    const char *(*fetch)(Run *run, char *to, const char *from, int64_t nbytes);
} RtPlace;

/* A matrix product: a stack of them, of these lengths. Strides are those of the stack, then of the matrices. */
typedef struct {
    RtRef a, b;
    int64_t dest, type, m, n, p, rank;
    const int64_t *stack, *a_strides, *b_strides, *out_strides;
} RtProduct;

/* Where a result of a plan within a plan goes: the slot of which its number is. */
typedef struct {
    int64_t number, slot, nbytes;
} RtDest;

/* A loop. The operands are first the carried values, then what else is read. What a trip makes anew goes to the next
   of `ring` places; `passed` says which carried value of the trip before another one is (-1: it is computed). `many`
   does several trips at once, after which all is where it was, and says how many (NULL: that is not done). */
typedef struct {
    const struct RtPlan *test, *body;
    const RtRef *operands;
    const int64_t *state_at, *nbytes, *passed, *new_at, *new_nbytes;
    int64_t n_carried, n_operands, ring;
    int64_t trips, bounded;
    RtRef lower, upper;
    int64_t test_at;
    const RtDest *dests;
    int64_t n_dests;
    int64_t (*many)(Run *run, const void *rounds, const struct RtPlan *body, char **state, int64_t trips);
    const void *rounds;
} RtLoop;

typedef struct {
    const struct RtPlan *plans[2];
    RtRef predicate;
    const RtRef *operands;
    int64_t n_operands;
    const int64_t *new_at[2];
    const RtDest *dests;
    int64_t n_dests;
} RtBranch;

/* A function of arrays: where copies of what it writes to go (a slot, or the workspace; -1: no copy), and after these
   where the numbers go that it returns. Its argument block are addresses. */
typedef struct {
    TaskKernel code;
    const RtRef *operands;
    const int64_t *to_slot, *to_at;
    int64_t n_operands, n_returned;
} RtFunction;

/* Routines (routines.c), which copy what they work on: `operands` are read, `dest` is a slot, `type` NumPy's letter of
   the elements. What else they are told: `sizes`; a loop of NumPy's; where there are several results, the slots of all
   (-1: nobody needs it). */
typedef struct {
    const RtRef *operands;
    int64_t n_operands, dest, type;
    const int64_t *sizes;
    void (*loop)(char **, const int64_t *, const int64_t *, void *);
    const int64_t *dests;
} RtRoutine;

/* A step: what runs it, on what it is told and the slots. It returns RT_OK, or why it could not. */
typedef struct {
    int (*run)(Run *, const void *, char **);
    const void *what;
} RtStep;

/* The slots are: temporaries, data, inputs, new results, what else is made. Its caller says where new results go, and
   those of what is made that are results, too: `made_at` is -1 - i for the i-th of these places. `results` are slots. */
typedef struct RtPlan {
    int64_t n_slots, n_data, n_inputs, n_outputs, n_new, n_made, n_steps, n_results;
    const void *const *data;
    const int64_t *made_at;
    const RtStep *steps;
    const int64_t *results;
    int64_t arena_at;
} RtPlan;

/* The contents of something given, which are a result of the plan. */
typedef struct {
    int64_t result, given;
} RtCopy;

/* A program: its lists are laid out before it begins. What is made anew goes to what is given (`new_given`) or, where
   that is -1, to the workspace. */
typedef struct {
    const RtPlan *plan;
    const RtTasks *const *lists;
    int64_t n_lists, workspace, own_at;
    const int64_t *new_given, *new_at;
    const RtCopy *copies;
    int64_t n_copies;
} RtProgram;

/* What functions return (interface.py has the texts). */
enum {
    RT_OK,
    RT_NULL,
    RT_COUNT,
    RT_DTYPE,
    RT_SHAPE,
    RT_STRIDES,
    RT_ALIGNMENT,
    RT_OVERLAP,
    RT_WORKSPACE,
    RT_MEMORY,
    RT_REFUSED,
    /* of cards */
    RT_CARD,
    RT_CODE,
    RT_LIBRARY,
    RT_DRIVER,
    RT_RECORDED
};

/* An array that a program takes: NumPy's letter of its elements, how many bytes one has, where it may begin. */
typedef struct {
    int64_t dtype, itemsize, alignment, rank;
    const int64_t *shape;
    int64_t nbytes, written;
} RtArray;

/* A program for one combination of dtypes and shapes: arguments first, then results. Its workspace begins at a multiple
   of `line`. */
typedef struct {
    const RtProgram *program;
    const RtArray *arrays;
    int64_t n_arguments, n_results, threads, line;
} RtSignature;

/* An array as a caller describes it (mirabelle_array in the headers of libraries). */
typedef struct {
    void *data;
    int dtype, rank;
    const int64_t *shape, *strides;
} RtDescribed;

/* Steps. */
int rt_tasks(Run *run, const void *what, char **slots);
int rt_product(Run *run, const void *what, char **slots);
int rt_loop(Run *run, const void *what, char **slots);
int rt_branch(Run *run, const void *what, char **slots);
int rt_function(Run *run, const void *what, char **slots);
int rt_within(Run *run, const void *what, char **slots);
int rt_scan(Run *run, const void *what, char **slots);
int rt_sort(Run *run, const void *what, char **slots);
int rt_scatter(Run *run, const void *what, char **slots);
int rt_solve(Run *run, const void *what, char **slots);
int rt_inv(Run *run, const void *what, char **slots);
int rt_cholesky(Run *run, const void *what, char **slots);
int rt_qr(Run *run, const void *what, char **slots);
int rt_svd(Run *run, const void *what, char **slots);
int rt_eigh(Run *run, const void *what, char **slots);
int rt_lstsq(Run *run, const void *what, char **slots);
int rt_det(Run *run, const void *what, char **slots);

/* The elements of a view in C's order: where they lie, or a copy that begins at `to` (which is returned). */
char *rt_in_order(Run *run, const RtRef *ref, char **slots);
char *rt_copied(char *to, const RtRef *ref, char **slots);
/* An integer of a width, with its sign or without. */
int64_t rt_integer(const char *at, int64_t itemsize, int is_signed);

/* To be called before a list is run. */
void rt_begin(void);
/* What is wrong with what is given for so many arrays, in a workspace of which so much is needed from a multiple of
   `line` on; RT_OK if nothing. */
int rt_refused(const RtArray *arrays, int64_t n, void *const *given, const char *workspace, int64_t workspace_bytes,
               int64_t needed, int64_t line);
/* Is an array as it is described? */
int rt_fits(const RtArray *wanted, const RtDescribed *x);
/* Find the addresses of arguments that fit, and of results, which are looked at here: RT_OK, or what is wrong. */
int rt_given(const RtArray *wanted, const RtDescribed *arguments, int n_arguments, const RtDescribed *results,
             int n_results, void **given);
/* Go through a program's plan, with a workspace. */
int rt_through(Run *run, const RtSignature *signature, void *const *given);
/* The one of several programs that is for such arrays; NULL where there is none, and what is wrong. */
const RtSignature *rt_found(const RtSignature *const *signatures, int64_t n, const RtDescribed *arguments,
                            int n_arguments, int n_results, int *wrong);
/* Run a program on arguments and room for results, given as their addresses. Nothing is written unless all of it can
   be used. */
int rt_run(const RtSignature *signature, void *const *given, void *workspace, int64_t workspace_bytes, int threads);
/* The same for the one of several programs that is for such arrays; the workspace that it takes, or minus a code. */
int rt_call(const RtSignature *const *signatures, int64_t n, const RtDescribed *arguments, int n_arguments,
            const RtDescribed *results, int n_results, void *workspace, int64_t workspace_bytes, int threads);
int64_t rt_workspace(const RtSignature *const *signatures, int64_t n, const RtDescribed *arguments, int n_arguments);

#endif
