/* What runs programs on NVIDIA's cards. See card.h. */

#define _GNU_SOURCE
#include "card.h"

#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The driver */

typedef int Status;
typedef unsigned long long Address;
typedef void *Handle;

/* CUDA_KERNEL_NODE_PARAMS, second version. */
typedef struct {
    Handle function;
    unsigned grid[3], block[3], shared;
    void **parameters, **extra;
    Handle kernel, context;
} Node;

/* CUlaunchConfig with one attribute. */
typedef struct {
    unsigned grid[3], block[3], shared;
    Handle stream;
    const void *attributes;
    unsigned n_attributes;
} Launching;

/* What says of a launch that it may be set up while the kernel before it in the stream runs, and is a kernel that waits
   for that one itself. */
static const struct {
    int what, nothing;
    int value[16];
} early_launch = {6, 0, {1}};

/* An edge to a kernel that may be set up while the one before it runs. */
static const unsigned char early_edge[8] = {1, 0, 1};

static struct {
    Status (*init)(unsigned);
    Status (*context)(Handle *);
    Status (*context_id)(Handle, unsigned long long *);
    Status (*device)(int *);
    Status (*attribute)(int *, int, int);
    Status (*load)(Handle *, const void *);
    Status (*unload)(Handle);
    Status (*function)(Handle *, Handle, const char *);
    Status (*allocate)(Address *, size_t);
    Status (*release)(Address);
    Status (*allocate_in)(Address *, size_t, Handle);
    Status (*release_in)(Address, Handle);
    Status (*to_card)(Address, const void *, size_t, Handle);
    Status (*to_host)(void *, Address, size_t, Handle);
    Status (*within)(Address, Address, size_t, Handle);
    Status (*stream)(Handle *, unsigned);
    Status (*end_stream)(Handle);
    Status (*wait)(Handle);
    Status (*recorded)(Handle, int *);
    Status (*capture_mode)(int *);
    Status (*begin)(Handle, int);
    Status (*end)(Handle, Handle *);
    Status (*launch)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void **,
                     void **);
    Status (*launch_as)(const Launching *, Handle, void **, void **);
    Status (*graph)(Handle *, unsigned);
    Status (*add)(Handle *, Handle, const Handle *, size_t, const Node *);
    Status (*add_graph)(Handle *, Handle, const Handle *, size_t, Handle);
    Status (*order)(Handle, const Handle *, const Handle *, const void *, size_t);
    Status (*instantiate)(Handle *, Handle, unsigned long long);
    Status (*tell)(Handle, Handle, const Node *);
    Status (*tell_graph)(Handle, Handle, Handle);
    Status (*run)(Handle, Handle);
    Status (*end_run)(Handle);
    Status (*end_graph)(Handle);
} cuda;

/* Where each function goes, what it is called, what it was called before, and whether it may be missing. */
static const struct {
    void *to;
    const char *name, *before;
    int optional;
} functions[] = {
    {&cuda.init, "cuInit", NULL, 0},
    {&cuda.context, "cuCtxGetCurrent", NULL, 0},
    {&cuda.context_id, "cuCtxGetId", NULL, 1},
    {&cuda.device, "cuCtxGetDevice", NULL, 0},
    {&cuda.attribute, "cuDeviceGetAttribute", NULL, 0},
    {&cuda.load, "cuModuleLoadData", NULL, 0},
    {&cuda.unload, "cuModuleUnload", NULL, 0},
    {&cuda.function, "cuModuleGetFunction", NULL, 0},
    {&cuda.allocate, "cuMemAlloc_v2", NULL, 0},
    {&cuda.release, "cuMemFree_v2", NULL, 0},
    {&cuda.allocate_in, "cuMemAllocAsync", NULL, 0},
    {&cuda.release_in, "cuMemFreeAsync", NULL, 0},
    {&cuda.to_card, "cuMemcpyHtoDAsync_v2", NULL, 0},
    {&cuda.to_host, "cuMemcpyDtoHAsync_v2", NULL, 0},
    {&cuda.within, "cuMemcpyDtoDAsync_v2", NULL, 0},
    {&cuda.stream, "cuStreamCreate", NULL, 0},
    {&cuda.end_stream, "cuStreamDestroy_v2", NULL, 0},
    {&cuda.wait, "cuStreamSynchronize", NULL, 0},
    {&cuda.recorded, "cuStreamIsCapturing", NULL, 0},
    {&cuda.capture_mode, "cuThreadExchangeStreamCaptureMode", NULL, 0},
    {&cuda.begin, "cuStreamBeginCapture_v2", NULL, 0},
    {&cuda.end, "cuStreamEndCapture", NULL, 0},
    {&cuda.launch, "cuLaunchKernel", NULL, 0},
    {&cuda.launch_as, "cuLaunchKernelEx", NULL, 1},
    {&cuda.graph, "cuGraphCreate", NULL, 0},
    {&cuda.add, "cuGraphAddKernelNode_v2", "cuGraphAddKernelNode", 0},
    {&cuda.add_graph, "cuGraphAddChildGraphNode", NULL, 0},
    {&cuda.order, "cuGraphAddDependencies_v2", NULL, 1},
    {&cuda.instantiate, "cuGraphInstantiateWithFlags", NULL, 0},
    {&cuda.tell, "cuGraphExecKernelNodeSetParams_v2", "cuGraphExecKernelNodeSetParams", 0},
    {&cuda.tell_graph, "cuGraphExecChildGraphNodeSetParams", NULL, 0},
    {&cuda.run, "cuGraphLaunch", NULL, 0},
    {&cuda.end_run, "cuGraphExecDestroy", NULL, 0},
    {&cuda.end_graph, "cuGraphDestroy", NULL, 0},
};

static pthread_once_t looked = PTHREAD_ONCE_INIT;
static int there;
static __thread Status last_said;

static void
look(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(library, functions[i].name);
        if (found == NULL && functions[i].before)
            found = dlsym(library, functions[i].before);
        if (found == NULL && !functions[i].optional)
            return;
        memcpy(functions[i].to, &found, sizeof found);
    }
    there = cuda.init(0) == 0;
}

static int
refused(Status status)
{
    if (status)
        last_said = status;
    return status != 0;
}

int
rt_card_said(void)
{
    return last_said;
}

/* cuBLAS */

static struct {
    Status (*create)(Handle *);
    Status (*destroy)(Handle);
    Status (*stream)(Handle, Handle);
    Status (*workspace)(Handle, void *, size_t);
    Status (*pointers)(Handle, int);
    void *library;
} blas;

static pthread_once_t looked_for_blas = PTHREAD_ONCE_INIT;

static void
look_for_blas(void)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so"};
    void *library = NULL;
    /* (The one that is loaded already, if there is one.) */
    for (int i = 0; i < 8 && library == NULL; i++)
        library = dlopen(names[i % 4], RTLD_NOW | RTLD_LOCAL | (i < 4 ? RTLD_NOLOAD : 0));
    if (library == NULL)
        return;
    const struct {
        void *to;
        const char *name;
    } found[] = {
        {&blas.create, "cublasCreate_v2"},
        {&blas.destroy, "cublasDestroy_v2"},
        {&blas.stream, "cublasSetStream_v2"},
        {&blas.workspace, "cublasSetWorkspace_v2"},
        {&blas.pointers, "cublasSetPointerMode_v2"},
    };
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        void *at = dlsym(library, found[i].name);
        if (at == NULL)
            return;
        memcpy(found[i].to, &at, sizeof at);
    }
    blas.library = library;
}

/* What is on a card: for each context code, data, and a handle of cuBLAS's */

typedef struct Loaded {
    struct Loaded *next;
    Handle context;
    unsigned long long id;
    Handle *modules, *functions;
    int64_t n_kernels;
    int early;
    Address data;
    Handle blas, recording;
} Loaded;

static Loaded *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void
drop(Loaded *x)
{
    for (int64_t i = 0; i < x->n_kernels; i++)
        if (x->modules && x->modules[i])
            cuda.unload(x->modules[i]);
    if (x->data)
        cuda.release(x->data);
    if (x->blas)
        blas.destroy(x->blas);
    if (x->recording)
        cuda.end_stream(x->recording);
    free(x->modules);
    free(x->functions);
    free(x);
}

/* Which of the images is for this card: its own code rather than text, the newest. -1 for none. */
static int64_t
image_for(const RtCode *code, int64_t capability)
{
    int64_t best = -1;
    const RtImage *images = code->kernels[0].images;
    for (int64_t i = 0; i < code->n_images; i++) {
        const RtImage *x = images + i;
        if (x->capability > capability || (!x->is_text && x->capability / 10 != capability / 10))
            continue;
        if (best < 0 || x->is_text < images[best].is_text ||
            (x->is_text == images[best].is_text && x->capability > images[best].capability))
            best = i;
    }
    return best;
}

static int
put(const RtCode *code, Loaded *x)
{
    int device, major, minor;
    if (refused(cuda.device(&device)) || refused(cuda.attribute(&major, 75, device)) ||
        refused(cuda.attribute(&minor, 76, device)))
        return RT_DRIVER;
    int64_t which = image_for(code, 10 * major + minor);
    if (which < 0)
        return RT_CODE;
    x->early = code->kernels[0].images[which].early;
    x->n_kernels = code->n_kernels;
    x->modules = calloc((size_t)code->n_kernels, sizeof(Handle));
    x->functions = calloc((size_t)code->n_kernels, sizeof(Handle));
    if (x->modules == NULL || x->functions == NULL)
        return RT_MEMORY;
    for (int64_t i = 0; i < code->n_kernels; i++) {
        const RtKernel *kernel = code->kernels + i;
        if (refused(cuda.load(x->modules + i, code->code + kernel->images[which].at)) ||
            refused(cuda.function(x->functions + i, x->modules[i], kernel->name)))
            return RT_DRIVER;
    }
    if (code->data_bytes == 0)
        return RT_OK;
    Handle stream;
    if (refused(cuda.allocate(&x->data, (size_t)code->data_bytes)))
        return RT_MEMORY;
    /* (A stream that waits for no other one, and that nobody records.) */
    if (refused(cuda.stream(&stream, 1)))
        return RT_DRIVER;
    int failed =
        refused(cuda.to_card(x->data, code->data, (size_t)code->data_bytes, stream)) || refused(cuda.wait(stream));
    cuda.end_stream(stream);
    return failed ? RT_DRIVER : RT_OK;
}

static int
loaded(const RtCode *code, Loaded **found)
{
    Handle context = NULL;
    unsigned long long id = 0;
    pthread_once(&looked, look);
    if (!there || refused(cuda.context(&context)) || context == NULL)
        return RT_CARD;
    if (cuda.context_id && refused(cuda.context_id(context, &id)))
        return RT_DRIVER;
    pthread_mutex_lock(&lock);
    int failed = RT_OK;
    for (*found = all; *found; *found = (*found)->next)
        if ((*found)->context == context && (*found)->id == id)
            break;
    if (*found == NULL) {
        Loaded *made = calloc(1, sizeof *made);
        /* (The caller may be recording another stream.) */
        int mode = 2;
        cuda.capture_mode(&mode);
        failed = made ? put(code, made) : RT_MEMORY;
        if (failed && made) {
            drop(made);
        } else if (made) {
            made->context = context;
            made->id = id;
            made->next = all;
            *found = all = made;
        }
        cuda.capture_mode(&mode);
    }
    pthread_mutex_unlock(&lock);
    return failed;
}

int
rt_card_load(const RtCode *code)
{
    Loaded *found;
    return loaded(code, &found);
}

int
rt_card_unload(void)
{
    Handle context = NULL;
    pthread_once(&looked, look);
    if (!there || refused(cuda.context(&context)) || context == NULL)
        return RT_CARD;
    pthread_mutex_lock(&lock);
    for (Loaded **at = &all; *at;) {
        Loaded *x = *at;
        if (x->context == context) {
            *at = x->next;
            drop(x);
        } else
            at = &x->next;
    }
    pthread_mutex_unlock(&lock);
    return RT_OK;
}

/* Graphs that are kept: of each list a few, for other addresses each */

enum { KEPT = 4 };

typedef struct {
    Handle graph, run;
    char **key;
    Handle *nodes;
} Kept;

typedef struct {
    Loaded *loaded;
    Kept (*lists)[KEPT];
    int64_t *made, n_lists;
    Address workspace;
    int64_t workspace_bytes;
} Graphs;

/* A run on a card. */
typedef struct {
    Loaded *loaded;
    Graphs *graphs;
    Handle stream;
} Card;

static int
fail(Run *run, int code)
{
    if (!run->failed)
        run->failed = code;
    return run->failed;
}

static void
card_copy(Run *run, char *to, const char *from, int64_t nbytes)
{
    Card *card = run->card;
    if (nbytes && refused(cuda.within((Address)to, (Address)from, (size_t)nbytes, card->stream)))
        fail(run, RT_DRIVER);
}

static const char *
card_fetch(Run *run, char *to, const char *from, int64_t nbytes)
{
    Card *card = run->card;
    memset(to, 0, (size_t)nbytes);
    if (!run->failed && (refused(cuda.to_host(to, (Address)from, (size_t)nbytes, card->stream)) ||
                         refused(cuda.wait(card->stream)))) {
        memset(to, 0, (size_t)nbytes);
        fail(run, RT_DRIVER);
    }
    return to;
}

static const RtPlace on_card = {card_copy, card_fetch};

/* Launches */

static void
fill(const RtLaunch *x, char **slots, int64_t *words)
{
    memcpy(words, x->words, (size_t)x->n_words * 8);
    for (const RtPatch *p = x->patches; p < x->patches + x->n_patches; p++)
        words[p->word] = (int64_t)(intptr_t)(slots[p->slot] + p->offset);
}

static void
point_at(int64_t *words, int64_t n, void **parameters)
{
    for (int64_t i = 0; i < n; i++)
        parameters[i] = words + i;
}

typedef Status (*Routine)(Handle, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                          int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);

/* A product. (Whole numbers of 32 bits stand in words of 64, as addresses do.) */
static int
call_blas(Loaded *loaded, const RtLaunch *x, char **slots, Handle stream)
{
    int64_t w[17] = {0};
    pthread_once(&looked_for_blas, look_for_blas);
    if (blas.library == NULL)
        return RT_LIBRARY;
    void *found = dlsym(blas.library, x->call);
    Routine routine;
    if (found == NULL || x->n_words > 17)
        return RT_LIBRARY;
    memcpy(&routine, &found, sizeof found);
    fill(x, slots, w);
    /* (A handle has one stream, and is for one thread at a time.) */
    pthread_mutex_lock(&lock);
    Status status = loaded->blas ? 0 : blas.create(&loaded->blas);
    status = status ? status : blas.stream(loaded->blas, stream);
    status = status ? status
                    : blas.workspace(loaded->blas, slots[x->memory.slot] + x->memory.offset, (size_t)x->memory.word);
    status = status ? status : blas.pointers(loaded->blas, (int)x->by_address);
    status = status ? status
                    : routine(loaded->blas, w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11],
                              w[12], w[13], w[14], w[15], w[16]);
    pthread_mutex_unlock(&lock);
    return refused(status) ? RT_DRIVER : RT_OK;
}

static int
launch(Loaded *loaded, const RtLaunch *x, void **parameters, Handle stream)
{
    Handle function = loaded->functions[x->kernel];
    const int64_t *g = x->grid, *b = x->block;
    Status status;
    if (loaded->early && cuda.launch_as) {
        Launching how = {.stream = stream, .attributes = &early_launch, .n_attributes = 1};
        for (int d = 0; d < 3; d++) {
            how.grid[d] = (unsigned)g[d];
            how.block[d] = (unsigned)b[d];
        }
        status = cuda.launch_as(&how, function, parameters, NULL);
    } else
        status = cuda.launch(function, (unsigned)g[0], (unsigned)g[1], (unsigned)g[2], (unsigned)b[0], (unsigned)b[1],
                             (unsigned)b[2], 0, stream, parameters, NULL);
    return refused(status) ? RT_DRIVER : RT_OK;
}

static int
one_by_one(Run *run, const RtLaunches *list, char **slots)
{
    Card *card = run->card;
    int64_t *words = alloca(8 * (size_t)(list->n_words + 1));
    void **parameters = alloca(sizeof(void *) * (size_t)(list->n_words + 1));
    int failed = RT_OK;
    point_at(words, list->n_words, parameters);
    for (const RtLaunch *x = list->launches; x < list->launches + list->n_launches && !failed; x++) {
        if (x->kernel < 0) {
            failed = call_blas(card->loaded, x, slots, card->stream);
            continue;
        }
        fill(x, slots, words);
        failed = launch(card->loaded, x, parameters, card->stream);
    }
    return failed;
}

/* A product as a graph within a graph. */
static int
recorded_call(Loaded *loaded, const RtLaunch *x, char **slots, Handle *graph)
{
    if (loaded->recording == NULL && refused(cuda.stream(&loaded->recording, 1)))
        return RT_DRIVER;
    if (refused(cuda.begin(loaded->recording, 2)))
        return RT_DRIVER;
    int failed = call_blas(loaded, x, slots, loaded->recording);
    Status status = cuda.end(loaded->recording, graph);
    return failed ? failed : refused(status) ? RT_DRIVER : RT_OK;
}

static void
described(const Loaded *loaded, const RtLaunch *x, void **parameters, Node *node)
{
    memset(node, 0, sizeof *node);
    node->function = loaded->functions[x->kernel];
    for (int d = 0; d < 3; d++) {
        node->grid[d] = (unsigned)x->grid[d];
        node->block[d] = (unsigned)x->block[d];
    }
    node->parameters = parameters;
}

static void
end_graph(Kept *kept)
{
    if (kept->run)
        cuda.end_run(kept->run);
    if (kept->graph)
        cuda.end_graph(kept->graph);
    free(kept->key);
    free(kept->nodes);
    memset(kept, 0, sizeof *kept);
}

static int
make_graph(Loaded *loaded, const RtLaunches *list, char **slots, Kept *kept)
{
    int64_t *words = alloca(8 * (size_t)(list->n_words + 1));
    void **parameters = alloca(sizeof(void *) * (size_t)(list->n_words + 1));
    Handle *before = alloca(sizeof(Handle) * (size_t)list->n_launches);
    point_at(words, list->n_words, parameters);
    kept->key = calloc((size_t)list->n_slots + 1, sizeof(char *));
    kept->nodes = calloc((size_t)list->n_launches, sizeof(Handle));
    if (kept->key == NULL || kept->nodes == NULL)
        return RT_MEMORY;
    if (refused(cuda.graph(&kept->graph, 0)))
        return RT_DRIVER;
    for (int64_t i = 0; i < list->n_launches; i++) {
        const RtLaunch *x = list->launches + i;
        int chained = x->chained && loaded->early && cuda.order;
        int64_t n = chained ? 0 : x->n_after;
        Status status;
        for (int64_t k = 0; k < n; k++)
            before[k] = kept->nodes[x->after[k]];
        if (x->kernel < 0) {
            Handle within;
            int failed = recorded_call(loaded, x, slots, &within);
            if (failed)
                return failed;
            status = cuda.add_graph(kept->nodes + i, kept->graph, before, (size_t)n, within);
            cuda.end_graph(within);
        } else {
            Node node;
            fill(x, slots, words);
            described(loaded, x, parameters, &node);
            status = cuda.add(kept->nodes + i, kept->graph, before, (size_t)n, &node);
            if (!status && chained)
                status = cuda.order(kept->graph, kept->nodes + x->after[0], kept->nodes + i, early_edge, 1);
        }
        if (refused(status))
            return RT_DRIVER;
    }
    return refused(cuda.instantiate(&kept->run, kept->graph, 0)) ? RT_DRIVER : RT_OK;
}

static int
tell_graph(Loaded *loaded, const RtLaunches *list, char **slots, Kept *kept)
{
    int64_t *words = alloca(8 * (size_t)(list->n_words + 1));
    void **parameters = alloca(sizeof(void *) * (size_t)(list->n_words + 1));
    point_at(words, list->n_words, parameters);
    for (int64_t i = 0; i < list->n_launches; i++) {
        const RtLaunch *x = list->launches + i;
        Status status;
        if (x->kernel < 0) {
            Handle within;
            int failed = recorded_call(loaded, x, slots, &within);
            if (failed)
                return failed;
            status = cuda.tell_graph(kept->run, kept->nodes[i], within);
            cuda.end_graph(within);
        } else {
            Node node;
            fill(x, slots, words);
            described(loaded, x, parameters, &node);
            status = cuda.tell(kept->run, kept->nodes[i], &node);
        }
        if (refused(status))
            return RT_DRIVER;
    }
    return RT_OK;
}

static int
by_graph(Run *run, const RtLaunches *list, char **slots)
{
    Card *card = run->card;
    Kept *all_kept = card->graphs->lists[list->number], *kept = NULL;
    int64_t *made = card->graphs->made + list->number;
    for (int64_t i = 0; i < KEPT && i < *made && kept == NULL; i++) {
        int64_t k = 0;
        while (all_kept[i].run && k < list->n_slots && all_kept[i].key[k] == slots[list->slots[k]])
            k++;
        if (all_kept[i].run && k == list->n_slots)
            kept = all_kept + i;
    }
    if (kept == NULL) {
        kept = all_kept + *made % KEPT;
        int failed = kept->run ? tell_graph(card->loaded, list, slots, kept)
                               : make_graph(card->loaded, list, slots, kept);
        if (failed) {
            end_graph(kept);
            return failed;
        }
        ++*made;
        for (int64_t k = 0; k < list->n_slots; k++)
            kept->key[k] = slots[list->slots[k]];
    }
    return refused(cuda.run(kept->run, card->stream)) ? RT_DRIVER : RT_OK;
}

int
rt_launches(Run *run, const void *what, char **slots)
{
    const RtLaunches *list = what;
    Card *card = run->card;
    return fail(run, card->graphs ? by_graph(run, list, slots) : one_by_one(run, list, slots));
}

int
rt_flagged(Run *run, const void *what, char **slots)
{
    const RtFlag *flag = what;
    char found[8];
    card_fetch(run, found, slots[flag->slot] + flag->offset, 8);
    return fail(run, rt_integer(found, 8, 1) ? RT_REFUSED : RT_OK);
}

/* (Launches by themselves are the same for each trip.) */
int64_t
rt_rounds(Run *run, const void *what, const RtPlan *body, char **state, int64_t trips)
{
    const RtRounds *rounds = what;
    Card *card = run->card;
    if (card->graphs == NULL)
        return 0;
    char **slots = alloca(sizeof(char *) * (size_t)(1 + body->n_data + rounds->n_operands + rounds->n_further)),
         **at = slots;
    *at++ = run->workspace + body->arena_at;
    for (int64_t i = 0; i < body->n_data; i++)
        *at++ = (char *)body->data[i] + run->shift;
    for (int64_t i = 0; i < rounds->n_operands; i++)
        *at++ = state[i];
    for (int64_t i = 0; i < rounds->n_further; i++)
        *at++ = run->workspace + rounds->further_at[i];
    int64_t done = 0;
    while (trips - done >= rounds->trips && !rt_launches(run, &rounds->launches, slots))
        done += rounds->trips;
    return done;
}

/* Programs */

int
rt_card_forget(void *what)
{
    Graphs *graphs = what;
    if (graphs == NULL)
        return RT_OK;
    for (int64_t i = 0; i < graphs->n_lists; i++)
        for (int k = 0; k < KEPT; k++)
            end_graph(graphs->lists[i] + k);
    if (graphs->workspace)
        cuda.release(graphs->workspace);
    free(graphs->lists);
    free(graphs->made);
    free(graphs);
    return RT_OK;
}

/* Somewhere to keep graphs, with a workspace for programs that are given none. */
static int
graphs_for(const RtCode *code, Loaded *loaded, int64_t bytes, void **where)
{
    Graphs *graphs = *where;
    if (graphs == NULL) {
        graphs = calloc(1, sizeof *graphs);
        if (graphs == NULL)
            return RT_MEMORY;
        graphs->n_lists = code->n_lists;
        graphs->lists = calloc((size_t)code->n_lists + 1, sizeof *graphs->lists);
        graphs->made = calloc((size_t)code->n_lists + 1, sizeof *graphs->made);
        graphs->loaded = loaded;
        if (graphs->lists == NULL || graphs->made == NULL) {
            rt_card_forget(graphs);
            return RT_MEMORY;
        }
        *where = graphs;
    }
    if (graphs->loaded != loaded)
        return RT_CARD;
    if (bytes > graphs->workspace_bytes) {
        if (graphs->workspace)
            cuda.release(graphs->workspace);
        graphs->workspace = 0;
        graphs->workspace_bytes = 0;
        if (refused(cuda.allocate(&graphs->workspace, (size_t)bytes)))
            return RT_MEMORY;
        graphs->workspace_bytes = bytes;
    }
    return RT_OK;
}

/* Numbers go to the card as parameters of a kernel: so a stream that is recorded has them. */
static int
give_numbers(const RtCardProgram *program, Run *run, void **given)
{
    Card *card = run->card;
    int64_t words[1 + RT_NUMBERS];
    void *parameters[1 + RT_NUMBERS];
    RtLaunch first = {.kernel = 0, .grid = {1, 1, 1}, .block = {1, 1, 1}};
    point_at(words, 1 + RT_NUMBERS, parameters);
    for (int64_t i = 0; i < program->n_numbers; i += RT_NUMBERS) {
        const RtNumber *at = program->numbers + i;
        memset(words, 0, sizeof words);
        words[0] = (int64_t)(intptr_t)(run->workspace + at->at);
        for (int64_t k = 0; k < RT_NUMBERS && i + k < program->n_numbers; k++)
            memcpy(words + 1 + k, given[at[k].argument], (size_t)program->signature.arrays[at[k].argument].itemsize);
        int failed = launch(card->loaded, &first, parameters, card->stream);
        if (failed)
            return failed;
        for (int64_t k = 0; k < RT_NUMBERS && i + k < program->n_numbers; k++)
            given[at[k].argument] = run->workspace + at[k].at;
    }
    return RT_OK;
}

int
rt_card_run(const RtCode *code, const RtCardProgram *program, void *const *given, void *workspace,
            int64_t workspace_bytes, void *stream, void **graphs)
{
    const RtSignature *signature = &program->signature;
    int64_t n = signature->n_arguments + signature->n_results, needed = signature->program->workspace;
    int failed = rt_refused(signature->arrays, n, given, workspace, workspace_bytes, needed, signature->line);
    Card card = {.stream = stream};
    Address own = 0;
    if (!failed)
        failed = loaded(code, &card.loaded);
    if (!failed && program->looks) {
        int recorded = 0;
        failed = refused(cuda.recorded(stream, &recorded)) ? RT_DRIVER : recorded ? RT_RECORDED : RT_OK;
    }
    if (!failed && graphs)
        failed = graphs_for(code, card.loaded, workspace ? 0 : needed, graphs);
    if (failed)
        return failed;
    char *at = (char *)workspace + -(uintptr_t)workspace % (uintptr_t)signature->line;
    if (graphs) {
        card.graphs = *graphs;
        at = workspace ? at : (char *)card.graphs->workspace;
    } else if (workspace == NULL && needed) {
        if (refused(cuda.allocate_in(&own, (size_t)needed, stream)))
            return RT_MEMORY;
        at = (char *)own;
    }
    Run run = {.workspace = at, .place = &on_card, .card = &card};
    run.shift = (int64_t)card.loaded->data - (int64_t)(intptr_t)code->data;
    void **on = alloca(sizeof(void *) * (size_t)(n + 1));
    memcpy(on, given, sizeof(void *) * (size_t)n);
    failed = give_numbers(program, &run, on);
    if (!failed)
        failed = rt_through(&run, signature, on);
    if (own && refused(cuda.release_in(own, stream)) && !failed)
        failed = RT_DRIVER;
    return failed;
}

int
rt_card_call(const RtCode *code, const RtSignature *const *signatures, int64_t n, const RtDescribed *arguments,
             int n_arguments, const RtDescribed *results, int n_results, void *workspace, int64_t workspace_bytes,
             void *stream)
{
    int wrong;
    const RtSignature *s = rt_found(signatures, n, arguments, n_arguments, n_results, &wrong);
    if (s == NULL)
        return wrong;
    void **given = alloca(sizeof(void *) * (size_t)(n_arguments + n_results + 1));
    wrong = rt_given(s->arrays, arguments, n_arguments, results, n_results, given);
    /* (A signature of a library for cards begins a program for cards.) */
    return wrong ? wrong
                 : rt_card_run(code, (const RtCardProgram *)s, given, workspace, workspace_bytes, stream, NULL);
}
