/* A driver of NVIDIA's cards and a cuBLAS that are none, for libraries built ahead of time (aheadcards.py). Memory is
   the host's. Launches are handed to who has hooked in (images of kernels are "fake NUMBER WORDS"), or only counted.
   Graphs are run in an order that their edges allow, and not the one in which they were made. */

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long Address;
typedef void *Handle;

enum { WORDS = 512, NODES = 4096 };

typedef struct {
    int number, words;
} Module;

/* A launch, or a call of a function of the host's. */
typedef struct {
    Module *module;
    unsigned grid[3], block[3];
    int64_t words[WORDS];
    void (*call)(const int64_t *);
    Handle within;
    int before[16], n_before;
} Task;

typedef struct {
    Task *tasks[NODES];
    int n;
} Graph;

typedef struct {
    Graph *recorded;
} Stream;

typedef struct {
    Handle function;
    unsigned grid[3], block[3], shared;
    void **parameters, **extra;
    Handle kernel, context;
} Node;

static struct {
    int (*launch)(int number, const unsigned *grid, const unsigned *block, const int64_t *words);
    void *(*allocate)(int64_t bytes);
    void (*release)(void *);
} hooks;

/* What there is: a context (or none), the card's capability; what was done; the function that fails (after so many). */
static int has_context = 1, capability = 90;
static int64_t counts[8];
static const char *const counted[] = {"launches", "graphs", "told", "runs", "copies", "fetches", "loads",
                                      "allocations"};
static char failing[64];

void
fake_hook(void *launch, void *allocate, void *release)
{
    memcpy(&hooks.launch, &launch, sizeof launch);
    memcpy(&hooks.allocate, &allocate, sizeof allocate);
    memcpy(&hooks.release, &release, sizeof release);
}

void
fake_state(int context, int card)
{
    has_context = context;
    capability = card;
}

void
fake_fail(const char *name)
{
    snprintf(failing, sizeof failing, "%s", name);
}

int64_t
fake_count(const char *name)
{
    for (int i = 0; i < 8; i++)
        if (strcmp(counted[i], name) == 0)
            return counts[i];
    return -1;
}

void
fake_forget(void)
{
    memset(counts, 0, sizeof counts);
}

#define FAILS(NAME)                                                                                                    \
    if (strcmp(failing, NAME) == 0)                                                                                    \
    return 999

static int
perform(const Task *task)
{
    if (task->call) {
        task->call(task->words);
        return 0;
    }
    counts[0]++;
    return hooks.launch ? hooks.launch(task->module->number, task->grid, task->block, task->words) : 0;
}

static int
run_graph(const Graph *graph)
{
    char *done = calloc((size_t)graph->n + 1, 1);
    int failed = 0;
    for (int left = graph->n; left && !failed; left--) {
        int chosen = -1;
        for (int i = 0; i < graph->n; i++) {
            int ready = !done[i];
            for (int k = 0; ready && k < graph->tasks[i]->n_before; k++)
                ready = done[graph->tasks[i]->before[k]];
            chosen = ready ? i : chosen;
        }
        if (chosen < 0) {
            failed = 998;
            break;
        }
        Task *task = graph->tasks[chosen];
        failed = task->within ? run_graph(task->within) : perform(task);
        done[chosen] = 1;
    }
    free(done);
    return failed;
}

/* In a stream: at once, or when what is recorded is run. */
static int
submit(Handle stream, Task *task)
{
    Graph *graph = stream ? ((Stream *)stream)->recorded : NULL;
    if (graph == NULL) {
        int failed = perform(task);
        free(task);
        return failed;
    }
    if (graph->n) {
        task->before[0] = graph->n - 1;
        task->n_before = 1;
    }
    graph->tasks[graph->n++] = task;
    return 0;
}

static void
fill(Task *task, Handle function, const unsigned *grid, const unsigned *block, void **parameters)
{
    task->module = function;
    memcpy(task->grid, grid, sizeof task->grid);
    memcpy(task->block, block, sizeof task->block);
    for (int i = 0; i < task->module->words; i++)
        memcpy(task->words + i, parameters[i], 8);
}

int cuInit(unsigned flags) { return (int)flags; }
int cuDevicePrimaryCtxRetain(Handle *context, int device) { *context = &has_context; return device; }
int cuCtxSetCurrent(Handle context) { has_context = context != NULL; return 0; }
int cuCtxGetCurrent(Handle *context) { *context = has_context ? &has_context : NULL; return 0; }
int cuCtxGetId(Handle context, unsigned long long *id) { *id = context == &has_context ? 7 : 0; return 0; }
int cuCtxGetDevice(int *device) { *device = 0; return 0; }

int
cuDeviceGetAttribute(int *value, int which, int device)
{
    *value = which == 75 ? capability / 10 : which == 76 ? capability % 10 : device;
    return 0;
}

int
cuModuleLoadData(Handle *module, const void *image)
{
    FAILS("cuModuleLoadData");
    Module *made = calloc(1, sizeof *made);
    made->number = -1;
    if (strncmp(image, "fake ", 5) == 0)
        sscanf((const char *)image + 5, "%d %d", &made->number, &made->words);
    else if (memcmp(image, "\177ELF", 4) && strstr(image, ".version") == NULL)
        return 200;
    *module = made;
    counts[6]++;
    return 0;
}

int cuModuleUnload(Handle module) { free(module); counts[6]--; return 0; }

int
cuModuleGetFunction(Handle *function, Handle module, const char *name)
{
    *function = module;
    return *name ? 0 : 500;
}

int
cuMemAlloc_v2(Address *at, size_t bytes)
{
    FAILS("cuMemAlloc");
    void *found = hooks.allocate ? hooks.allocate((int64_t)bytes) : aligned_alloc(256, (bytes + 255) / 256 * 256);
    *at = (Address)(uintptr_t)found;
    counts[7]++;
    return found ? 0 : 2;
}

int
cuMemFree_v2(Address at)
{
    counts[7]--;
    if (hooks.release)
        hooks.release((void *)(uintptr_t)at);
    else
        free((void *)(uintptr_t)at);
    return 0;
}

int cuMemAllocAsync(Address *at, size_t bytes, Handle stream) { (void)stream; return cuMemAlloc_v2(at, bytes); }
int cuMemFreeAsync(Address at, Handle stream) { (void)stream; return cuMemFree_v2(at); }

static void
moved(const int64_t *words)
{
    memmove((void *)(intptr_t)words[0], (void *)(intptr_t)words[1], (size_t)words[2]);
}

static int
move(Address to, Address from, size_t bytes, Handle stream)
{
    Task *task = calloc(1, sizeof *task);
    task->call = moved;
    task->words[0] = (int64_t)to;
    task->words[1] = (int64_t)from;
    task->words[2] = (int64_t)bytes;
    return submit(stream, task);
}

int
cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, Handle stream)
{
    return move(to, (Address)(uintptr_t)from, bytes, stream);
}

int
cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, Handle stream)
{
    FAILS("cuMemcpyDtoHAsync");
    counts[5]++;
    return move((Address)(uintptr_t)to, from, bytes, stream);
}

int
cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, Handle stream)
{
    counts[4]++;
    return move(to, from, bytes, stream);
}

int cuStreamCreate(Handle *stream, unsigned flags) { (void)flags; *stream = calloc(1, sizeof(Stream)); return 0; }
int cuStreamDestroy_v2(Handle stream) { free(stream); return 0; }
int cuStreamSynchronize(Handle stream) { return stream && ((Stream *)stream)->recorded ? 900 : 0; }
int cuThreadExchangeStreamCaptureMode(int *mode) { *mode = 0; return 0; }

int
cuStreamIsCapturing(Handle stream, int *how)
{
    *how = stream && ((Stream *)stream)->recorded;
    return 0;
}

int
cuStreamBeginCapture_v2(Handle stream, int mode)
{
    (void)mode;
    ((Stream *)stream)->recorded = calloc(1, sizeof(Graph));
    return 0;
}

int
cuStreamEndCapture(Handle stream, Handle *graph)
{
    *graph = ((Stream *)stream)->recorded;
    ((Stream *)stream)->recorded = NULL;
    return 0;
}

int
cuLaunchKernel(Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
               unsigned shared, Handle stream, void **parameters, void **extra)
{
    FAILS("cuLaunchKernel");
    unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
    Task *task = calloc(1, sizeof *task);
    fill(task, function, grid, block, parameters);
    return shared || extra ? 1 : submit(stream, task);
}

/* CUlaunchConfig. */
typedef struct {
    unsigned grid[3], block[3], shared;
    Handle stream;
    const int *attributes;
    unsigned n_attributes;
} Launching;

int
cuLaunchKernelEx(const Launching *how, Handle function, void **parameters, void **extra)
{
    FAILS("cuLaunchKernel");
    Task *task = calloc(1, sizeof *task);
    fill(task, function, how->grid, how->block, parameters);
    if (how->shared || extra || how->n_attributes != 1 || how->attributes[0] != 6 || how->attributes[2] != 1)
        return 1;
    return submit(how->stream, task);
}

int cuGraphCreate(Handle *graph, unsigned flags) { *graph = calloc(1, sizeof(Graph)); return (int)flags; }

static int
add(Handle *node, Graph *graph, const Handle *before, size_t n, Task *task)
{
    for (size_t i = 0; i < n; i++)
        task->before[task->n_before++] = (int)((intptr_t)before[i] - 1);
    graph->tasks[graph->n++] = task;
    *node = (Handle)(intptr_t)graph->n;
    return 0;
}

int
cuGraphAddKernelNode_v2(Handle *node, Handle graph, const Handle *before, size_t n, const Node *said)
{
    Task *task = calloc(1, sizeof *task);
    fill(task, said->function, said->grid, said->block, said->parameters);
    return add(node, graph, before, n, task);
}

int
cuGraphAddChildGraphNode(Handle *node, Handle graph, const Handle *before, size_t n, Handle within)
{
    Task *task = calloc(1, sizeof *task);
    Graph *copy = calloc(1, sizeof *copy);
    memcpy(copy, within, sizeof *copy);
    task->within = copy;
    return add(node, graph, before, n, task);
}

int
cuGraphAddDependencies_v2(Handle graph, const Handle *from, const Handle *to, const void *edges, size_t n)
{
    const unsigned char *early = edges;
    for (size_t i = 0; i < n; i++) {
        Task *task = ((Graph *)graph)->tasks[(intptr_t)to[i] - 1];
        task->before[task->n_before++] = (int)((intptr_t)from[i] - 1);
    }
    return early[0] == 1 && early[2] == 1 ? 0 : 1;
}

int
cuGraphInstantiateWithFlags(Handle *run, Handle graph, unsigned long long flags)
{
    Graph *made = calloc(1, sizeof *made);
    memcpy(made, graph, sizeof *made);
    *run = made;
    counts[1]++;
    return (int)flags;
}

int
cuGraphExecKernelNodeSetParams_v2(Handle run, Handle node, const Node *said)
{
    FAILS("cuGraphExecKernelNodeSetParams");
    fill(((Graph *)run)->tasks[(intptr_t)node - 1], said->function, said->grid, said->block, said->parameters);
    counts[2]++;
    return 0;
}

int
cuGraphExecChildGraphNodeSetParams(Handle run, Handle node, Handle within)
{
    Graph *copy = calloc(1, sizeof *copy);
    memcpy(copy, within, sizeof *copy);
    ((Graph *)run)->tasks[(intptr_t)node - 1]->within = copy;
    counts[2]++;
    return 0;
}

int cuGraphLaunch(Handle run, Handle stream) { (void)stream; counts[3]++; return run_graph(run); }
int cuGraphExecDestroy(Handle run) { free(run); counts[1]--; return 0; }
int cuGraphDestroy(Handle graph) { (void)graph; return 0; }

/* cuBLAS, of doubles: matrices lie in Fortran's order */

static Handle blas_stream;
static int by_address;

int cublasCreate_v2(Handle *handle) { *handle = &blas_stream; return 0; }
int cublasDestroy_v2(Handle handle) { (void)handle; return 0; }
int cublasSetStream_v2(Handle handle, Handle stream) { (void)handle; blas_stream = stream; return 0; }
int cublasSetWorkspace_v2(Handle handle, void *at, size_t bytes) { (void)handle; return at == NULL || bytes < 1024; }
int cublasSetPointerMode_v2(Handle handle, int mode) { (void)handle; by_address = mode; return 0; }

#define NUMBER(WORD) (*(const double *)(intptr_t)(WORD))
#define ARRAY(WORD) ((double *)(intptr_t)(WORD))

static void
gemm(const int64_t *w)
{
    for (int64_t s = 0; s < w[16]; s++)
        for (int64_t j = 0; j < w[3]; j++)
            for (int64_t i = 0; i < w[2]; i++) {
                const double *a = ARRAY(w[6]) + s * w[8], *b = ARRAY(w[9]) + s * w[11];
                double sum = 0, *c = ARRAY(w[13]) + s * w[15] + i + j * w[14];
                for (int64_t k = 0; k < w[4]; k++)
                    sum += (w[0] ? a[k + i * w[7]] : a[i + k * w[7]]) * (w[1] ? b[j + k * w[10]] : b[k + j * w[10]]);
                *c = NUMBER(w[5]) * sum + (NUMBER(w[12]) != 0 ? NUMBER(w[12]) * *c : 0);
            }
}

static void
gemv(const int64_t *w)
{
    int64_t m = w[0] ? w[2] : w[1], n = w[0] ? w[1] : w[2];
    for (int64_t i = 0; i < m; i++) {
        double sum = 0, *y = ARRAY(w[9]) + i * w[10];
        for (int64_t k = 0; k < n; k++)
            sum += (w[0] ? ARRAY(w[4])[k + i * w[5]] : ARRAY(w[4])[i + k * w[5]]) * ARRAY(w[6])[k * w[7]];
        *y = NUMBER(w[3]) * sum + (NUMBER(w[8]) != 0 ? NUMBER(w[8]) * *y : 0);
    }
}

static void
dot(const int64_t *w)
{
    double sum = 0;
    for (int64_t i = 0; i < w[0]; i++)
        sum += ARRAY(w[1])[i * w[2]] * ARRAY(w[3])[i * w[4]];
    *ARRAY(w[5]) = sum;
}

static int
blas(void (*call)(const int64_t *), int n, va_list words)
{
    Task *task = calloc(1, sizeof *task);
    task->call = call;
    for (int i = 0; i < n; i++)
        task->words[i] = va_arg(words, int64_t);
    return submit(blas_stream, task);
}

#define BLAS(NAME, CALL, COUNT)                                                                                        \
    int NAME(Handle handle, ...)                                                                                       \
    {                                                                                                                  \
        va_list words;                                                                                                 \
        va_start(words, handle);                                                                                       \
        int failed = blas(CALL, COUNT, words);                                                                         \
        va_end(words);                                                                                                 \
        return failed;                                                                                                 \
    }

static void
one_gemm(const int64_t *w)
{
    const int64_t stack[17] = {w[0], w[1], w[2], w[3],  w[4],  w[5],  w[6], w[7], 0,
                               w[8], w[9], 0,    w[10], w[11], w[12], 0,    1};
    gemm(stack);
}

BLAS(cublasDgemm_v2, one_gemm, 13)
BLAS(cublasDgemmStridedBatched, gemm, 17)
BLAS(cublasDgemv_v2, gemv, 11)
BLAS(cublasDdot_v2, dot, 6)
