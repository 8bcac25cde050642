/* What a library for NVIDIA's cards has besides (see runtime.h): code for cards, launches, and what does them (card.c),
   by the driver's functions, which are looked for when the first program is called. Addresses are the card's. */

#ifndef MIRABELLE_CARD_H
#define MIRABELLE_CARD_H

#include "runtime.h"

/* A kernel's code: for cards of a compute capability (10 * major + minor) and later ones of its major, or as text from
   which the driver makes it for any later card. `early`: kernels begin by waiting for the one before them. */
typedef struct {
    int64_t capability, is_text, early, at;
} RtImage;

typedef struct {
    const char *name;
    const RtImage *images;
} RtKernel;

/* All that a card is given once: kernels (their images lie from `code` on), and data. */
typedef struct {
    const RtKernel *kernels;
    int64_t n_kernels, n_images;
    const unsigned char *code, *data;
    int64_t data_bytes, n_lists;
} RtCode;

/* A launch, or a call of cuBLAS (of which `kernel` is -1): its words, of which some are addresses. `after` are the
   launches of its list that it waits for; `chained` says that it waits for one alone, which nobody else waits for, and
   that both are kernels. A call has the name of its function, `by_address` if numbers that it reads and writes are on
   the card, and memory to work in (of `word` bytes). */
typedef struct {
    int64_t kernel;
    int64_t grid[3], block[3];
    const int64_t *words;
    const RtPatch *patches;
    int64_t n_words, n_patches;
    const int64_t *after;
    int64_t n_after, chained;
    const char *call;
    int64_t by_address;
    RtPatch memory;
} RtLaunch;

/* Launches in an order in which they may be done: the number of the list in the library, the slots they know. */
typedef struct {
    const RtLaunch *launches;
    const int64_t *slots;
    int64_t n_launches, n_slots, number, n_words;
} RtLaunches;

/* Where a kernel says that it has found an index out of range. */
typedef struct {
    int64_t slot, offset;
} RtFlag;

/* So many trips of a loop as one list of launches. Its slots are those of the loop's body up to data, what is carried
   and read, and further memories in the workspace. */
typedef struct {
    RtLaunches launches;
    int64_t trips, n_operands, n_further;
    const int64_t *further_at;
} RtRounds;

/* Numbers that are given by value: which argument, and where in the workspace it goes. */
typedef struct {
    int64_t argument, at;
} RtNumber;

/* A program on a card. `numbers` go there by the first kernel, so many at once; `looks` says that the host looks at
   values between launches, which a stream that is recorded has not. */
typedef struct {
    RtSignature signature;
    const RtNumber *numbers;
    int64_t n_numbers, looks;
} RtCardProgram;

enum { RT_NUMBERS = 8 };

int rt_launches(Run *run, const void *what, char **slots);
int rt_flagged(Run *run, const void *what, char **slots);
int64_t rt_rounds(Run *run, const void *rounds, const RtPlan *body, char **state, int64_t trips);

/* Run a program by its launches; or, if there is somewhere to keep them, by graphs. */
int rt_card_run(const RtCode *code, const RtCardProgram *program, void *const *given, void *workspace,
                int64_t workspace_bytes, void *stream, void **graphs);
int rt_card_call(const RtCode *code, const RtSignature *const *signatures, int64_t n, const RtDescribed *arguments,
                 int n_arguments, const RtDescribed *results, int n_results, void *workspace, int64_t workspace_bytes,
                 void *stream);
/* Have code and data on the card of the current context; give them up; give up graphs. */
int rt_card_load(const RtCode *code);
int rt_card_unload(void);
int rt_card_forget(void *graphs);
/* What the driver (or cuBLAS) refused last, in this thread. */
int rt_card_said(void);

#endif
