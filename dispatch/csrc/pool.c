/* What runs task lists: the threads that help, and functions called as kernels are. It knows nothing of Python: libraries
   that are built ahead of time (backends/host/ahead) hold this file, too.

   Work is counted in tickets, numbered on and on over all repetitions and all runs of a list, so that no counter is
   ever set back: a thread that comes late, or slept while others went on, can only find that the ticket it had in
   mind is gone. Tickets belong to stages. Those of a stage may run at once; a stage opens when every ticket before
   it is done. A ticket is claimed only when its stage is open, so that nobody ever waits for a thread that holds work
   without doing it. Who has claimed one takes the next that is free of its own share of the stage, and of others'
   when that is done: a thread comes back to the memory it worked on the statement before. A stage that is one ticket
   is left to the caller, in whose cache its data most likely are.

   Helpers are threads of the system. They know nothing of Python, and touch two kinds of memory only: their posts,
   which are never freed, and a list whose caller called them, who waits until they have left it. So they are of no
   concern to an interpreter that ends, and sleep until the system ends the process. */

#define _GNU_SOURCE
#include "pool.h"

#if defined(_WIN32) || defined(__STDC_NO_ATOMICS__)
#error "Threads of POSIX and atomics of C11 are needed: on Windows build mirabelle in WSL."
#endif

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/syscall.h>
#endif

/* Helpers at most (callers remember whom they called in one word); spins before a waiting thread offers its core to
   others; how often a helper that has finished a list looks for another before it sleeps: that takes about as long as
   it takes to wake it up again, a few hundred microseconds at most. */
enum { MOST = 62, SPINS = 300, PATIENCE = 1000 };
/* What a helper does: it is not there, looks for work, sleeps, or the list that it shall work on (plus one: does). */
enum { ABSENT, STANDING, ASLEEP };
/* On so many processors at most helpers are told where not to wake up: where there are more, one is idle near by. */
enum { FEW_PROCESSORS = 4 };
/* A thread that could not be started is tried again after so many seconds. */
enum { RETRY = 1 };

typedef struct {
    _Alignas(64) _Atomic uintptr_t state;
    /* Is it kept off a processor until it is awake? */
    _Atomic int away;
    _Atomic int id;
    pthread_mutex_t lock;
    pthread_cond_t called;
} Post;

static Post posts[MOST];
static _Atomic int started;
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int64_t not_before;

static inline void
pause_core(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

static inline void
rest(int64_t spins)
{
    if (spins < SPINS)
        pause_core();
    else
        sched_yield();
}

static int64_t
seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* Where threads run */

#ifdef __linux__

static int
processor(void)
{
    return sched_getcpu();
}

/* The processors we may use but for one. */
static int
others(int here, cpu_set_t *all, cpu_set_t *rest)
{
    if (here < 0 || sched_getaffinity(getpid(), sizeof *all, all) < 0)
        return 0;
    *rest = *all;
    if (here < CPU_SETSIZE)
        CPU_CLR(here, rest);
    return CPU_COUNT(rest);
}

/* Keep a helper that is about to be woken up off the caller's processor, until it is awake: a virtual machine's idle
   processors often look taken to its scheduler, which then wakes up a thread where the one that calls it runs, to
   wait there for milliseconds until that one has done all the work alone. */
static void
make_way(Post *post, int here)
{
    cpu_set_t all, rest;
    int id = atomic_load(&post->id), n = id ? others(here, &all, &rest) : 0;
    if (n > 0 && n < FEW_PROCESSORS && sched_setaffinity(id, sizeof rest, &rest) == 0)
        atomic_store(&post->away, 1);
}

/* A thread that is awake runs where there is room. */
static void
anywhere(Post *post)
{
    cpu_set_t all;
    if (atomic_exchange(&post->away, 0) && sched_getaffinity(getpid(), sizeof all, &all) == 0)
        sched_setaffinity(0, sizeof all, &all);
}

/* Have the calling thread, which shares a processor with who needs it, go to another. */
static void
elsewhere(void)
{
    cpu_set_t all, rest;
    if (others(sched_getcpu(), &all, &rest) > 0 && sched_setaffinity(0, sizeof rest, &rest) == 0)
        sched_setaffinity(0, sizeof all, &all);
}

static void
introduce(Post *post)
{
    pthread_setname_np(pthread_self(), "mirabelle");
    atomic_store(&post->id, (int)syscall(SYS_gettid));
}

#else

static int
processor(void)
{
    return -1;
}
static void
make_way(Post *post, int here)
{
}
static void
anywhere(Post *post)
{
}
static void
elsewhere(void)
{
}
static void
introduce(Post *post)
{
}

#endif

/* Working */

static void
call_kernels(List *list, const Ticket *ticket)
{
    char nowhere[256]; /* What kernels return through, which nobody reads. */
    for (const Call *c = list->calls + ticket->first; c < list->calls + ticket->end; c++)
        if (c->kernel(nowhere, nowhere, c->args, c->lo, c->hi, c->first, c->last, c->rlo, c->rhi, c->part)) {
            int64_t none = 0;
            atomic_compare_exchange_strong(&list->error, &none, c->number + 1);
            return;
        }
}

/* Take a ticket of an open stage that begins at `here`: as many threads claim as there are, so there is one for each. */
static Ticket *
take(List *list, int64_t here, int64_t count, int64_t opens, int64_t thread)
{
    for (int64_t at = thread * count / list->threads;; at = at + 1 == count ? 0 : at + 1) {
        Ticket *ticket = list->tickets + here + at;
        int64_t taken = atomic_load_explicit(&ticket->taken, memory_order_relaxed);
        if (taken != opens && atomic_compare_exchange_strong(&ticket->taken, &taken, opens))
            return ticket;
    }
}

/* Work on a list until all its tickets are claimed. Thread 0 is the caller. */
static void
work(List *list, int64_t thread)
{
    const int64_t *stages = list->stages, each = list->each;
    int64_t stage = 0, spins = 0;
    for (;;) {
        int64_t ticket = atomic_load_explicit(&list->next, memory_order_acquire);
        if (ticket >= atomic_load_explicit(&list->limit, memory_order_acquire))
            return;
        int64_t k = ticket % each;
        if (k < stages[stage])
            stage = 0;
        while (k >= stages[stage + 1])
            stage++;
        int64_t here = stages[stage], count = stages[stage + 1] - here, opens = ticket - (k - here);
        if ((thread && count < 2) || atomic_load_explicit(&list->done, memory_order_acquire) < opens) {
            rest(spins++);
            continue;
        }
        spins = 0;
        if (!atomic_compare_exchange_strong(&list->next, &ticket, ticket + 1))
            continue;
        const Ticket *mine = count > 1 ? take(list, here, count, opens, thread) : list->tickets + k;
        /* After an error the remaining tickets are counted, and not run. */
        if (atomic_load_explicit(&list->error, memory_order_relaxed) == 0)
            call_kernels(list, mine);
        atomic_fetch_add_explicit(&list->done, 1, memory_order_release);
    }
}

static void
sleep_at(Post *post)
{
    pthread_mutex_lock(&post->lock);
    while (atomic_load_explicit(&post->state, memory_order_acquire) == ASLEEP)
        pthread_cond_wait(&post->called, &post->lock);
    pthread_mutex_unlock(&post->lock);
}

static void *
help(void *at)
{
    Post *post = at;
    introduce(post);
    for (int64_t idle = 0;;) {
        uintptr_t state = atomic_load_explicit(&post->state, memory_order_acquire);
        if (state == STANDING) {
            if (++idle < PATIENCE)
                rest(idle);
            else
                atomic_compare_exchange_strong(&post->state, &state, ASLEEP);
        } else if (state == ASLEEP) {
            sleep_at(post);
            anywhere(post);
            idle = 0;
        } else if (atomic_compare_exchange_strong(&post->state, &state, state | 1)) {
            List *list = (List *)state;
            work(list, 1 + (post - posts) % (list->threads - 1));
            int together = list->processor == processor();
            /* From here on the list may be gone. */
            atomic_store_explicit(&post->state, STANDING, memory_order_release);
            if (together && processor() >= 0)
                elsewhere();
            idle = 0;
        }
    }
    return NULL;
}

/* Start the next helper for a list; false if the system refuses, or somebody else is starting one. */
static int
start(List *list, int number)
{
    if (seconds() < atomic_load(&not_before) || pthread_mutex_trylock(&starting) != 0)
        return 0;
    int failed = atomic_load(&started) != number;
    if (!failed) {
        pthread_t thread;
        pthread_attr_t how;
        sigset_t none, before;
        /* Signals are for the interpreter's threads, but for those that tell of a fault of one's own. */
        sigfillset(&none);
        int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            sigdelset(&none, own[i]);
        pthread_attr_init(&how);
        pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
        pthread_sigmask(SIG_SETMASK, &none, &before);
        atomic_store(&posts[number].state, (uintptr_t)list);
        failed = pthread_create(&thread, &how, help, posts + number);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&how);
        if (failed) {
            atomic_store(&posts[number].state, ABSENT);
            atomic_store(&not_before, seconds() + RETRY);
        } else
            atomic_store(&started, number + 1);
    }
    pthread_mutex_unlock(&starting);
    return !failed;
}

/* Call helpers to a list: those who stand by, then those who sleep, then new ones. Which were called, as bits. */
static uint64_t
call_out(List *list)
{
    uint64_t called = 0;
    int64_t wanted = list->helpers, n = list->threads - 1 < MOST ? list->threads - 1 : MOST;
    static const uintptr_t who[] = {STANDING, ASLEEP};
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < n && i < atomic_load(&started) && wanted > 0; i++) {
            uintptr_t state = who[pass];
            if (atomic_load_explicit(&posts[i].state, memory_order_relaxed) != state)
                continue;
            if (pass)
                make_way(posts + i, (int)list->processor);
            if (!atomic_compare_exchange_strong(&posts[i].state, &state, (uintptr_t)list))
                continue;
            if (pass) {
                pthread_mutex_lock(&posts[i].lock);
                pthread_cond_signal(&posts[i].called);
                pthread_mutex_unlock(&posts[i].lock);
            }
            called |= (uint64_t)1 << i;
            wanted--;
        }
    for (int i; wanted > 0 && (i = atomic_load(&started)) < n && start(list, i); wanted--)
        called |= (uint64_t)1 << i;
    return called;
}

/* Nobody may look at a list when its run returns. */
static void
call_back(List *list, uint64_t called)
{
    for (int i = 0; called; i++, called >>= 1)
        for (int64_t spins = 0; called & 1; rest(spins++)) {
            uintptr_t state = (uintptr_t)list;
            if (atomic_compare_exchange_strong(&posts[i].state, &state, STANDING) || state != ((uintptr_t)list | 1))
                break;
        }
}

int64_t
pool_run(List *list, int64_t times, const int64_t *addresses)
{
    int64_t limit = atomic_load(&list->limit);
    if (atomic_load(&list->done) != limit) {
        /* A forked child, whose parent was in the middle of a run: there are no other threads. */
        atomic_store(&list->next, limit);
        atomic_store(&list->done, limit);
    }
    if (addresses)
        for (const Patch *p = list->patches; p < list->patches + list->n_patches; p++)
            *p->word = addresses[p->slot] + p->offset;
    atomic_store(&list->error, 0);
    limit += list->each * times;
    uint64_t called = 0;
    if (list->helpers > 0)
        list->processor = processor();
    atomic_store_explicit(&list->limit, limit, memory_order_release);
    if (list->helpers > 0)
        called = call_out(list);
    work(list, 0);
    for (int64_t spins = 0; atomic_load_explicit(&list->done, memory_order_acquire) < limit;)
        rest(spins++);
    int64_t error = atomic_load(&list->error);
    call_back(list, called);
    return error;
}

/* A forked child has no helpers. */
static void
forked(void)
{
    atomic_store(&started, 0);
    atomic_store(&not_before, 0);
    pthread_mutex_init(&starting, NULL);
    for (int i = 0; i < MOST; i++) {
        atomic_store(&posts[i].state, ABSENT);
        atomic_store(&posts[i].away, 0);
        atomic_store(&posts[i].id, 0);
        pthread_mutex_init(&posts[i].lock, NULL);
        pthread_cond_init(&posts[i].called, NULL);
    }
}

int
pool_begin(void)
{
    forked();
    return pthread_atfork(NULL, NULL, forked);
}

/* What is called as kernels are */

/* args: destination, source. Bytes from `lo` to `hi` are copied. */
int
pool_copy(SIGNATURE)
{
    char **at = (char **)(intptr_t)args;
    memmove(at[0] + lo, at[1] + lo, (size_t)(hi - lo));
    return 0;
}

typedef struct {
    uint64_t a, b;
} Pair;

/* args: destination, value. Elements from `lo` to `hi` become the value. */
#define FILL(NAME, TYPE)                                                                                           \
    int NAME(SIGNATURE)                                                                                     \
    {                                                                                                              \
        int64_t *at = (int64_t *)(intptr_t)args;                                                                   \
        TYPE *to = (TYPE *)(intptr_t)at[0], value;                                                                 \
        memcpy(&value, at + 1, sizeof value);                                                                      \
        for (int64_t i = lo; i < hi; i++)                                                                          \
            to[i] = value;                                                                                         \
        return 0;                                                                                                  \
    }
FILL(pool_fill_1, uint8_t)
FILL(pool_fill_2, uint16_t)
FILL(pool_fill_4, uint32_t)
FILL(pool_fill_8, uint64_t)
FILL(pool_fill_16, Pair)

/* args: code and data of a NumPy loop, result, source, what they advance by from one call to the next, count of a
   call, the steps of result and source within it. Calls `lo` to `hi`: result = loop(result, source). */
int
pool_fold(SIGNATURE)
{
    typedef void (*Loop)(char **, const intptr_t *, const intptr_t *, void *);
    const int64_t *at = (const int64_t *)(intptr_t)args;
    Loop loop = (Loop)(intptr_t)at[0];
    for (int64_t i = lo; i < hi; i++) {
        char *result = (char *)(intptr_t)at[2] + i * at[4], *source = (char *)(intptr_t)at[3] + i * at[5];
        char *pointers[3] = {result, source, result};
        intptr_t count = at[6], steps[3] = {at[7], at[8], at[7]};
        loop(pointers, &count, steps, (void *)(intptr_t)at[1]);
    }
    return 0;
}

int
pool_standing(void)
{
    int standing = 0;
    for (int i = 0; i < atomic_load(&started); i++)
        standing += atomic_load_explicit(&posts[i].state, memory_order_relaxed) == STANDING;
    return standing;
}

int
pool_started(void)
{
    return atomic_load(&started);
}

void
pool_dismiss(void)
{
    for (int i = 0; i < atomic_load(&started); i++) {
        uintptr_t standing = STANDING;
        atomic_compare_exchange_strong(&posts[i].state, &standing, ASLEEP);
    }
}
