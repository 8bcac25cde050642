/* What dispatch/native.py explains: the few pieces of mirabelle that every statement passes through, in C.

   What is not the common case is handed to Python. */

#ifndef MIRABELLE_NATIVE_H
#define MIRABELLE_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include "records.h"

#include <Python.h>
#include <stdint.h>
#include <structmember.h>

/* NumPy's arrays, as its headers declare them: the oldest NumPy that pyproject.toml asks for. */
#define NPY_NO_DEPRECATED_API NPY_2_1_API_VERSION
#define NPY_TARGET_VERSION NPY_2_1_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL mirabelle_numpy
#ifndef IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

/* As many dimensions as NumPy has. */
#define DIMENSIONS 64

/* What all versions begin with: how many handles, operations, reductions and values keep it (owners.c). */
typedef struct {
    PyObject_HEAD
    Py_ssize_t holders;
} Version;

/* An array that a user has, or another that keeps a version. */
typedef struct {
    PyObject_HEAD
    PyObject *version;
} Handle;

typedef struct Leaf Leaf;
struct Leaf {
    PyObject_HEAD
    Py_ssize_t holders;
    PyObject *view, *shape, *dtype, *root, *known, *reducers;
    PyObject *foreign, *table, *element, *checked;
    /* Where its memory begins, once a compiled program has asked; else NULL. */
    PyObject *address;
    Py_ssize_t size, writes;
    /* The thread that is writing to a part of it; 0 if there is none. */
    Py_ssize_t writer;
    /* The leaves that show parts of its memory, and its neighbours among those of its root. */
    Leaf *parts, *before, *after;
};

typedef struct {
    PyObject_HEAD
    Py_ssize_t holders;
    PyObject *sig, *args, *shape, *value, *reducers, *layout;
    Py_ssize_t size, evaluations;
    /* Of the pending values in it that had a name when they were read: how many read each other. */
    Py_ssize_t names;
} Node;

typedef struct {
    PyObject_HEAD
    Py_ssize_t holders;
    PyObject *reduction, *operand, *axes, *keepdims, *shape, *dtype, *value, *reducers, *term;
    Py_ssize_t depth;
    /* Is it by a function of NumPy's: 1 or -1, and 0 before that was asked. */
    int plain;
} Reduced;

/* What mirabelle's modules said of themselves. */
typedef struct {
    /* The classes made of Leaf and Node, and those of dense arrays, wrappers, views, permuted dimensions and other shapes; of
       views of distributed memory, and of what programs are captured with. */
    PyTypeObject *leaf, *node, *reduced, *dense, *wrapper, *view, *permuted, *reshaped, *divided, *traced;
    /* Where views keep their parent, index and shape. */
    Py_ssize_t view_parent, view_how, view_shape;
    /* Where arrays without axes say that a constructor made them. */
    Py_ssize_t constructed;
    /* Where copies that stand for a view say so: nobody may write to them. */
    Py_ssize_t copy_of;
    /* Of views of distributed memory: of which buffer, all of it?, and which part; what a buffer is of. */
    Py_ssize_t divided_buffer, divided_whole, divided_map, buffer_comm, buffer_partition, buffer_local,
        buffer_leaf, buffer_came;
    /* Functions of Python for what is not done here. */
    PyObject *capture, *at_once, *evaluated, *waited, *quiet, *asarray, *host_type, *known, *broadcast_shapes, *scalar_words, *empty, *show;
    /* Is `copyto` of host arrays what it is by default? And the generation for which it was asked. */
    PyObject *unchanged;
    uint64_t asked;
    int answer;
    /* Is there a block that counts? The context variable of such, what adds to them, and what says what an evaluation
       reads and writes. */
    int counting;
    PyObject *blocks, *add, *evaluation;
    /* The names of what is counted; grows with each count; how long counting has taken while somebody follows lines,
       and does it right now? */
    PyObject *counted_names;
    uint64_t counted;
    double adding_seconds;
    int following, adding;
    /* Lists of recordings, and of who watches writes. */
    PyObject *recordings, *watchers;
    /* Names of options. */
    PyObject *axis, *dtype, *keepdims, *direct, *reduce;
    /* What kernels return through; the BLAS of NumPy's that multiplies a matrix of doubles by a vector, or NULL. */
    void *nowhere, *gemv;
    /* NumPy's dtypes of doubles and of truth values, and its functions that are the operations of loops.c. */
    PyObject *float64, *boolean, *operations;
    /* Grows when a method appears or disappears: what was found by dispatch holds for one generation. */
    uint64_t generation;
    /* Looks for holders that are not counted (None: nobody looks), and the names of fields that hold versions. */
    PyObject *check_owners, *node_name, *args_name, *value_name, *operand_name;
    /* Trees of more operations are looked at as they are made; writes of so few elements are NumPy's. */
    Py_ssize_t node_limit, few, tree_limit;
    /* Results of so many elements are computed at once: no tree is made for them. */
    Py_ssize_t immediate;
    /* Of values of so many elements, trees do not reach over more than a few names. */
    Py_ssize_t brief;
    /* So many elements are written from memory to memory by NumPy. */
    Py_ssize_t moved;
} State;

extern State state;
extern Py_ssize_t foreign_size;

/* What went wrong goes wrong again in Python, which says so: the error is cleared, 1. But if somebody interrupts, it
   stays, 0. */
static inline int
left_to_python(void)
{
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        return 0;
    PyErr_Clear();
    return 1;
}

/* Are shapes, or strides, of so many dimensions the same? (Of none, NumPy has no memory for them.) */
static inline int
same_lengths(const npy_intp *a, const npy_intp *b, int nd)
{
    for (int d = 0; d < nd; d++)
        if (a[d] != b[d])
            return 0;
    return 1;
}

/* How many elements an array has. */
static inline Py_ssize_t
elements(const PyArrayObject *a)
{
    Py_ssize_t n = 1;
    for (int d = 0; d < PyArray_NDIM(a); d++)
        n *= PyArray_DIMS(a)[d];
    return n;
}

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))
#define VERSION_OF(handle) (((Handle *)(handle))->version)
#define IS_LEAF(x) (Py_TYPE(x) == state.leaf)
#define IS_NODE(x) (Py_TYPE(x) == state.node)
#define IS_REDUCED(x) (Py_TYPE(x) == state.reduced)
#define IS_ARRAY(x) PyArray_CheckExact(x)
#define DTYPE(a) ((PyObject *)PyArray_DESCR(a))

/* owners.c: a field that holds a version, or a tuple of some, gets another (a reference to it, or NULL). */
void set_held(PyObject **place, PyObject *x);
/* Such fields by their names, for classes whose attributes they are. */
typedef struct {
    PyObject **name;
    Py_ssize_t offset;
} Counted;
int set_counted(PyObject *self, PyObject *name, PyObject *value, const Counted *fields);
/* An array on a version (a reference to it). */
PyObject *new_handle(PyTypeObject *type, PyObject *version);
/* Something is about to read versions, and does so no longer. */
void begin_evaluation(void);
void end_evaluation(void);
/* May a leaf's memory be written where it is? It has one handle, is read as a whole so many times by the tree that is
   written and by nobody else; who reads parts of it is for the asker to find out. `shown` are arrays that show some of
   it, and nobody else has them. 1, 0, or -1 with an error. */
int may_write(Leaf *leaf, Py_ssize_t reads, PyObject *const *shown, Py_ssize_t n);
int written_by_others(Leaf *leaf);
int begin_writing(Leaf *leaf);
void end_writing(Leaf *leaf, int began);
/* Can nobody else write to its memory, or not any more? */
int adopted(Leaf *leaf);
/* Does nobody refer to it but who asks? May an array that was computed on the way be written over? */
int is_alone(PyObject *x);
int is_unshared(PyObject *array);
/* Has an array a name? (A guess, at what is worth storing: one without has so many references.) */
int is_named(PyObject *array, Py_ssize_t unnamed);
PyObject *evaluating(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *forget_other_threads(PyObject *module, PyObject *unused);
PyObject *ask_may_write(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *ask_memory_alone(PyObject *module, PyObject *leaf);

/* counting.c: what was done, told to whoever counts: a launch; an element read or written by itself; messages; an
   operation on operands, which has just been computed. */
PyObject *count_blocks(PyObject *module, PyObject *n);
PyObject *add_counts(PyObject *module, PyObject *args, PyObject *amounts);
void count_launch(Py_ssize_t read, Py_ssize_t written);
void count_element(void);
void count_messages(Py_ssize_t n, Py_ssize_t bytes);
void count_operation(PyObject *operands, Leaf *value);
/* A version that is about to be evaluated is looked at (NULL while nobody counts), a reduction with those that are
   computed `together` with it, and was: what it came to is told if it is `done`. */
PyObject *begin_count(PyObject *version, PyObject *together);
void end_count(PyObject *evaluation, int done);

/* following.c: the clock. There are so many counters, and where two of them stand (dispatch/counters.py). */
double seconds_now(void);
void look_again(void);
enum { COMPILATIONS = 5, CAPTURES = 11, COUNTED = 12 };

/* elements.c: a number of a dtype, which lies at `data`, as an array of ours without axes (`picked`: out of an array). A
   handle goes: is it, with its version, kept for the next? */
PyObject *new_element(PyTypeObject *type, PyArray_Descr *dtype, const void *data, int picked);
int keep_element(Handle *self);

/* nodes.c */
Leaf *new_leaf(PyObject *view, PyObject *shape, PyObject *dtype);
void show_part(Leaf *part, Leaf *root);
/* Of the leaves that show parts of its memory, how many are held. */
Py_ssize_t count_parts(Leaf *root);
PyObject *shown_part(PyObject *x);
/* What a chain of wrappers shows of memory: a new reference, or NULL with an error. */
PyObject *memory_through(PyObject *x, PyObject *memory);
PyObject *wrapped(PyObject *module, PyObject *x);
int has_value(Node *node);
/* A reduction of an operand, which is told of it; NULL with an error. */
PyObject *new_reduced(PyObject *reduction, PyObject *operand, PyObject *axes, int keepdims, PyObject *shape,
                      PyObject *dtype);
/* Whom a weak reference names: borrowed, or NULL. */
PyObject *named_by(PyObject *reference);
/* Is it pending, alone, and of a leaf or of a tree that nobody else holds? */
int may_come_back(Reduced *reduced);
/* Does nobody else wait for another reduction of the operand? */
int waits_alone(Reduced *reduced);
/* Where an operand keeps the reductions that wait for it. */
PyObject **waiting_for(PyObject *operand);

/* operators.c, building.c, reducing.c, computing.c, indexing.c, statements.c, assigning.c */
typedef struct {
    char *data;
    int nd;
    Py_ssize_t dims[DIMENSIONS], strides[DIMENSIONS];
} Part;

/* An integer in an index: of Python's, of NumPy's, or an array of ours without axes whose value is there: 1, or 0. */
int as_index(PyObject *x, Py_ssize_t *value);
/* The part of an array that an index of integers, slices, None and ... shows: 1, or 0 where Python is to say. */
int resolve_part(PyObject *index, int nd, const Py_ssize_t *dims, const Py_ssize_t *strides, char *data, Part *part);
static inline int
resolve_index(PyObject *index, PyArrayObject *a, Part *part)
{
    return resolve_part(index, PyArray_NDIM(a), PyArray_DIMS(a), PyArray_STRIDES(a), PyArray_BYTES(a), part);
}

/* The number of elements of a shape, and of a part. */
double shape_size(PyObject *shape);
Py_ssize_t part_size(const Part *part);
/* Do the elements of a part, of so many bytes each, lie side by side, in C's order? (loops.c) */
int lies_together(const Part *part, Py_ssize_t step);
/* The memory that an array of ours, if it is there, or one of NumPy's shows, and which part of it that is: borrowed, or
   NULL. */
PyArrayObject *part_of(PyObject *x, Part *part);
/* The lengths to which one to three parts are stretched: how many dimensions, or -1 where they do not fit. */
int common_lengths(const Part *parts, int n, npy_intp *dims);
/* What an operation on arrays makes; one that nothing else holds has so many `references`. */
PyObject *built(PyObject *builder, PyObject *const *args, Py_ssize_t n, Py_ssize_t references);
/* One on few elements in memory, into the part of a leaf that its first operand shows, if nobody else reads that and
   assigning is ours: 1 done, 0 left, -1 somebody interrupts. */
int built_over(PyObject *builder, PyObject *const *args, Leaf *leaf, PyObject *assign);
/* As a function of the module: how many small trees that nothing knew were computed since it was last called. */
PyObject *count_unasked(PyObject *module, PyObject *unused);
/* Are operations written down, for a program? */
int recorded(void);
/* The index as a tuple with an ellipsis. */
PyObject *whole_index(PyObject *index);
int is_shape(PyObject *shape, int nd, const Py_ssize_t *dims);
static inline int
has_shape(PyArrayObject *a, PyObject *shape)
{
    return is_shape(shape, PyArray_NDIM(a), PyArray_DIMS(a));
}
/* Give a node its value (a reference to it), and let go of what it was computed from. */
void settle(Node *node, Leaf *value);
/* As a function of the module: a reduction waits, and the one that has waited longest does so no longer. */
PyObject *has_to_wait(PyObject *module, PyObject *reduced);
/* Memory is about to be written: compute the reductions that wait for it. They would keep the old contents, and the write would
   go to other memory: 0, or -1 if somebody interrupts. */
int compute_readers(PyObject *version);
PyObject *ask_compute_readers(PyObject *module, PyObject *leaf);
/* The value of a small tree, by NumPy's functions: NULL where Python is to say (with an error only if somebody
   interrupts). */
PyObject *computed(PyObject *tree);
/* Begin to be quiet about floating-point numbers: the context to leave, or NULL (without an error) if it is so already. */
PyObject *hush(void);
void speak(PyObject *context);
/* Have an array's tree or reduction computed, if that was met before, or is of few operations on few elements. (With an error only if
   somebody interrupts.) */
void compute_few(PyObject *x);
/* The memory that an operand shows, or shows a part of, if it is there or is computed soon (`forced`): a new reference;
   NULL where Python is to say (with an error only if somebody interrupts). What the operand shows of it, as NumPy's
   array (`memory` is taken over, and may be NULL): likewise. */
PyObject *whole_memory(PyObject *x, int forced);
PyObject *memory_shown(PyObject *x, PyObject *memory);
/* What a function of NumPy's gives of the memory of two operands, written into an array of NumPy's unless that is NULL;
   NULL likewise (onmemory.c). */
PyObject *on_memory(PyObject *callable, PyObject *const *args, PyObject *into);
/* What a product is of two operands in memory; NULL where Python is to say (with an error only if somebody
   interrupts). */
PyObject *multiplied(PyObject *product, PyObject *const *args);
/* The value of an operation of few elements, all of whose operands are in memory: NULL if it waits (with an error
   only if somebody interrupts). */
Leaf *computed_now(PyObject *function, PyObject *operands, PyObject *shape);
/* That of a small reduction of what nobody else holds; NULL likewise. */
PyObject *computed_reduction(PyObject *known, PyObject *reduced);
void settle_reduced(Reduced *reduced, Leaf *value);
/* Is `copyto` what it is by default? (0 with an error if somebody interrupts.) */
int unchanged(void);
/* The method of an operator for operands, if it is written in C: a new reference; NULL, perhaps with an error. */
PyObject *method_in_c(PyObject *operator, PyObject *const *operands);
/* Is the method of an operator that assigns a Setter, for operands of two types? (Not, with an error perhaps.) */
int sets_in_c(PyObject *operator, PyTypeObject *x, PyTypeObject *value);
/* May a part of a leaf's memory be written where it is, by what reads nothing of it beside that? 1, 0, or -1 with an error. */
int may_put(Leaf *leaf);
/* Write a value to what a view shows, or to all of an array, by such a method: 1 done, 0 left to Python, -1 an error. */
int put_in_part(PyObject *setter, PyObject *view, PyObject *value);
/* Is nothing going on that wants to know of statements? */
int unobserved(void);
/* Do the statement again, if it was met before: 1 done, 0 not met, -1 an error. */
int again(PyObject *known, PyObject *x, PyObject *index, PyObject *value);
/* The value of a tree that was met before (for a reduction, which counts it, if `usual`: in the order in which NumPy
   has it in memory); NULL, without an error, if it was not. */
PyObject *evaluated_again(PyObject *known, PyObject *tree, int usual);
/* Write a tree that was met before to memory whose writer has looked after aliasing: 1 done, 0 not met, -1 an error. */
int stored_again(PyObject *known, PyObject *tree, PyObject *array);
int written_over(PyObject *known, Leaf *leaf, Node *node);
PyObject *inspected(PyObject *tree);

/* arranging.c: how the operands of a launch lie in memory, as a function of the module. */
PyObject *arranged(PyObject *module, PyObject *const *args, Py_ssize_t n);

/* loops.c: what an operation gives, a new reference, into the memory of one of the operands (bits of `mine`) if they may
   be overwritten; NULL, without an error, where NumPy is to do it. */
PyObject *operated(PyObject *function, PyObject *const *values, int n, PyObject *shape, int mine);
/* (A bit beside those: of more elements, too.) */
#define IN_PLACE_ONLY (1 << 8)
/* A number as a double: 1, or 0 if it is none that NumPy would take as one here. */
int as_double(PyObject *x, double *value);
/* In the order of `state.operations`: of two operands, of one, what compares two, and what is of integers alone. */
enum { ADD, SUBTRACT, MULTIPLY, DIVIDE, NEGATIVE, ABSOLUTE, SQUARE, SQRT, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL,
       EQUAL, NOT_EQUAL, AND, OR, XOR, LEFT, RIGHT, INVERT, OPERATIONS };
static inline int
is_of_one(int op)
{
    return (op >= NEGATIVE && op < LESS) || op == INVERT;
}
/* Which of them a function is; -1: none. */
int operation_of(PyObject *function);
/* The sum of all doubles, or integers of eight bytes, of an array, or the largest or smallest element, as an array of so
   many dimensions: likewise. */
PyObject *reduced_whole(PyObject *function, PyArrayObject *a, PyObject *dtype, int nd);
/* The same along some axes of which the last is none, as an array of a shape, in which these axes may be left, of length 1:
   likewise. */
PyObject *reduced_along(PyObject *function, PyArrayObject *a, PyObject *dtype, PyObject *axes, PyObject *shape);
/* scalars.c: a number of Python's as one of a dtype that takes it as it is: 1, or 0. One of the operations on two numbers of
   a dtype, which lie at `a` and `b`: 2 a truth value, 1 a number, 0 where NumPy is to do it. The same of numbers of which
   at least one is an array without axes: a new reference to such; NULL, without an error, likewise. */
#define NUMBER_SIZE 16
int as_number(PyObject *x, const PyArray_Descr *dtype, void *value);
/* A number of one dtype as one of another that all of its numbers fit in: 1, or 0 where NumPy is to convert it. */
int convert_number(const void *from, const PyArray_Descr *source, void *to, const PyArray_Descr *target);
int calculate(int op, const PyArray_Descr *dtype, const void *a, const void *b, void *result);
PyObject *calculated(int op, PyObject *const *values, int n);
/* What NumPy computes an operation with, at definite dtypes: of rows of elements, each so many bytes after the other. Does it
   round alike however they lie? */
typedef struct {
    void (*call)(char **at, npy_intp const *length, npy_intp const *steps, void *data);
    void *data;
    PyArray_Descr *ins[3], *out;
    int exact;
} Loop;
/* That of where(condition, x, y), of dtypes that NumPy gives it: 1, or 0. */
int find_choice(PyObject *const *ins, PyObject *out, Loop *loop);
int find_loop(PyObject *function, PyObject *const *ins, int n, PyObject *out, Loop *loop);
void run_loop(const Loop *loop, int n, char *const *from, const npy_intp *steps, char *out, npy_intp step, npy_intp length);
/* An operation on parts, stretched to some lengths: a new array of NumPy's; NULL, without an error, where it is to do it. */
PyObject *looped(const Loop *loop, int n, const Part *parts, int nd, const npy_intp *dims);
/* One of the operations of `state.operations` on parts, into another part, which may be one of them: 1 done, 0 left. */
int looped_into(const Loop *loop, int n, const Part *parts, const Part *out);
/* Doubles from part to part; a number to all of a part: 1 done, 0 where NumPy is to do it. */
int copied(const Part *to, const Part *from);
int meet(const Part *a, const Part *b, Py_ssize_t item);
void copy_row(char *to, Py_ssize_t step, const char *from, Py_ssize_t by, Py_ssize_t n);
int filled(const Part *to, PyObject *number);
/* The product of a matrix and a vector that BLAS can read: a new reference; NULL, without an error, if NumPy is asked. */
PyObject *times_vector(PyArrayObject *a, PyArrayObject *b);
/* That of two matrices of few elements, by NumPy's loop for `matmul`, if it is that: likewise. */
PyObject *times_matrix(PyObject *matmul, PyArrayObject *a, PyArrayObject *b);

/* halos.c: write a tree of distributed arrays that was met before to what this process holds of its result: 1 done, 0
   not met, -1 an error. */
int halo_again(PyObject *known, PyObject *tree, PyObject *comm, PyObject *partition, PyObject *array);

/* walking.c: the pending operations of a tree; the reductions among their operands; what it costs; whether it is stored
   when it is evaluated and others hold it: 1, 0, or -1 with an error. */
PyObject *tree_operations(PyObject *module, PyObject *root);
PyObject *waiting_reductions(PyObject *module, PyObject *root);
PyObject *tree_cost(PyObject *module, PyObject *root);
int is_worth_storing(PyObject *root, PyObject *stored);
PyObject *ask_worth_storing(PyObject *module, PyObject *const *args, Py_ssize_t n);

/* divided.c: the part of a tree over distributed arrays that this process computes, and the number of what it computes. */
PyObject *local_tree(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *history_number(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *history_mixed(PyObject *module, PyObject *const *args, Py_ssize_t n);

/* picking.c: what masks pick, as functions of the module. */
PyObject *mask_count(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *mask_pick(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *mask_picked(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *mask_put(PyObject *module, PyObject *const *args, Py_ssize_t n);

/* sorting.c (and records.h): a number that says where something belongs, and where it is; so many of them in order, those of equal
   numbers as they come, by the lowest bytes of their numbers: in the first memory, or in the second. */
Record *sort_records(Record *a, Record *b, Py_ssize_t n);

/* The order of the elements of lines, as functions of the module. */
/* How elements are read as numbers in order, and elements side by side in lines along the last axis. */
typedef struct {
    const char *data;
    Py_ssize_t lines, length;
    int kind, size;
} Lines;
int lines_of(PyObject *x, PyObject *kind, Lines *found);
int edges_of(PyObject *const *args, int n, Py_ssize_t *found, Py_ssize_t most);
/* Memory that is written to: so many elements side by side (of an order they have eight bytes each). */
void *room(PyObject *x, Py_ssize_t numbers);
void *no_room(void);

PyObject *argsort_lines(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *argsort_part(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *argsort_ties(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *sort_lines(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *sort_part(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *spread_part(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *argsort_merged(PyObject *module, PyObject *const *args, Py_ssize_t n);

/* sparse.c: matrices in compressed rows, as functions of the module. */
PyObject *csr_dealt(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *csr_ordered(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *csr_merged(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *csr_taken(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *csr_pattern(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *csr_times(PyObject *module, PyObject *const *args, Py_ssize_t n);

/* What all types say alike whose instances are called: a type begins with PyObject_HEAD and `vectorcall`, and has a
   `name_new` and a `name_dealloc`. (Further slots have a comma behind each.) */
#define CALLABLE_TYPE(Type, name) CALLABLE_WITH(Type, name, 0, )
/* Those that are methods of what they are looked up on, as functions are. */
#define METHOD_TYPE(Type, name, ...)                                                                  \
    CALLABLE_WITH(Type, name, Py_TPFLAGS_METHOD_DESCRIPTOR, {Py_tp_descr_get, bound_method}, __VA_ARGS__)
#define CALLABLE_WITH(Type, name, flags, ...)                                                         \
    static PyMemberDef name##_members[] = {                                                           \
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(Type, vectorcall), READONLY, NULL},             \
        {NULL},                                                                                       \
    };                                                                                                \
    static PyType_Slot name##_slots[] = {                                                             \
        {Py_tp_new, name##_new},                                                                      \
        {Py_tp_dealloc, name##_dealloc},                                                              \
        {Py_tp_call, PyVectorcall_Call},                                                              \
        {Py_tp_members, name##_members},                                                              \
        __VA_ARGS__ {0, NULL},                                                                        \
    };                                                                                                \
    PyType_Spec name##_spec = {                                                                       \
        "mirabelle.dispatch._native." #Type, sizeof(Type), 0,                                         \
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | (flags), name##_slots,                      \
    };

/* As functions do: a method of what it is looked up on (operators.c). */
PyObject *bound_method(PyObject *self, PyObject *object, PyObject *type);

extern PyType_Spec handle_spec, leaf_spec, node_spec, reduced_spec, operator_spec, overrides_spec, builder_spec,
    reducer_spec, product_spec, halo_spec, getter_spec, setter_spec, statement_spec, buffered_spec, converter_spec, inplace_spec,
    onmemory_spec, follower_spec, power_spec;
extern PyTypeObject *operator_type, *statement_type, *builder_type, *getter_type, *setter_type, *halo_type,
    *product_type, *onmemory_type, *power_type;

/* addresses.c: functions of the module. */
extern PyMethodDef address_methods[];

/* Task lists (tasks.c). */
PyObject *task_functions(PyObject *module, PyObject *unused);
PyObject *run_tasks(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *helpers_standing(PyObject *module, PyObject *unused);
PyObject *helpers_started(PyObject *module, PyObject *unused);
PyObject *helpers_dismiss(PyObject *module, PyObject *unused);

#endif
