/* How a reduction of a small tree, or of what a view shows, makes a node (backends/host/vectors.py). */

#include "native.h"

/* Trees of so few operations are looked through. A reduction may wait for so many others, one after the other, as
   arraytypes/reductions.py has it. */
#define FEW 24
#define LONGEST_CHAIN 16

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    /* What is reduced by, the types of results by their dimensions, the elements' dtype; is `reduce_` what it is by
       default; what answers all else; and the signature of the cast of what is added up in a larger dtype, or NULL. */
    PyObject *reduction, *results, *dtype, *usable, *python, *cast;
    uint64_t asked;
    int answer;
} Reducer;

/* Is `reduce_` what it is by default? */
static int
as_registered(Reducer *self)
{
    if (self->asked != state.generation) {
        uint64_t generation = state.generation;
        PyObject *said = PyObject_CallNoArgs(self->usable);
        int answer = said == NULL ? -1 : PyObject_IsTrue(said);
        Py_XDECREF(said);
        if (answer < 0) {
            left_to_python();
            return 0;
        }
        self->answer = answer;
        self->asked = generation;
    }
    return self->answer;
}

/* Is a tree of few operations? `depth`: how many reductions, one after the other, have to be computed before it. */
static int
is_plain(PyObject *tree, int *looked, Py_ssize_t *depth)
{
    if (IS_REDUCED(tree) && ((Reduced *)tree)->value == Py_None && ((Reduced *)tree)->depth >= *depth)
        *depth = ((Reduced *)tree)->depth + 1;
    if (!IS_NODE(tree) || has_value((Node *)tree))
        return *depth <= LONGEST_CHAIN;
    PyObject *args = ((Node *)tree)->args;
    if (args == NULL || !PyTuple_CheckExact(args) || ++*looked > FEW)
        return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++)
        if (!is_plain(PyTuple_GET_ITEM(args, i), looked, depth))
            return 0;
    return 1;
}

/* What is reduced: a new reference, or NULL where Python is to say (with an error only if somebody interrupts). */
static PyObject *
operand_of(PyObject *x, Py_ssize_t *depth)
{
    if (PyType_IsSubtype(Py_TYPE(x), state.wrapper)) {
        PyObject *part = shown_part(x);
        if (part == NULL)
            left_to_python();
        else if (IS_LEAF(part) && adopted((Leaf *)part))
            return part;
        Py_XDECREF(part);
        return NULL;
    }
    PyObject *node = VERSION_OF(x);
    int looked = 0;
    if (node != NULL && IS_NODE(node) && has_value((Node *)node)) {
        PyObject *value = Py_NewRef(((Node *)node)->value);
        set_held(&VERSION_OF(x), value);
        node = VERSION_OF(x); /* (others may have run) */
    }
    if (node == NULL)
        return NULL;
    if (IS_LEAF(node))
        return adopted((Leaf *)node) ? Py_NewRef(node) : NULL;
    return IS_NODE(node) && ((Node *)node)->size <= FEW && is_plain(node, &looked, depth) ? Py_NewRef(node) : NULL;
}

/* Which of the dimensions are reduced: 1, or 0 where Python is to say. */
static int
axes_of(PyObject *axis, int nd, char *reduced)
{
    memset(reduced, axis == Py_None, DIMENSIONS);
    if (axis == Py_None)
        return 1;
    int many = PyTuple_CheckExact(axis);
    for (Py_ssize_t i = 0; i < (many ? PyTuple_GET_SIZE(axis) : 1); i++) {
        PyObject *one = many ? PyTuple_GET_ITEM(axis, i) : axis;
        int overflow = 0;
        long a = PyLong_CheckExact(one) ? PyLong_AsLongAndOverflow(one, &overflow) : nd;
        a += a < 0 ? nd : 0;
        if (overflow || a < 0 || a >= nd || reduced[a])
            return 0;
        reduced[a] = 1;
    }
    return 1;
}

/* Those that were made last, and may wait: of many elements and of few (backends/host/reduce.py). */
#define LARGE ((Py_ssize_t)1 << 20)
typedef struct {
    PyObject *reference;
    unsigned long thread;
} Waiting;
static Waiting large[4], small[16];

/* Compute what has waited long enough. (What goes wrong goes wrong again for who reads it.) */
static void
wait_no_longer(PyObject *reduced)
{
    if (((Reduced *)reduced)->value != Py_None)
        return;
    PyObject *value = computed_reduction(state.known, reduced);
    if (value == NULL && !PyErr_Occurred())
        value = PyObject_CallOneArg(state.waited, reduced);
    Py_XDECREF(value);
}

/* Have one wait, and the one that has waited longest do so no longer: 0, or -1. (What another thread made, it may be
   computing.) A reduction that waits holds what it reads: memory that a loop over time steps, say, would use again, or
   run out of. So only some may. */
static int
let_wait(PyObject *reduced, int is_large)
{
    static int at_large, at_small;
    int *at = is_large ? &at_large : &at_small, n = is_large ? 4 : 16;
    Waiting *place = &(is_large ? large : small)[*at];
    *at = (*at + 1) % n;
    PyObject *before = place->reference, *longest = NULL;
    unsigned long thread = PyThread_get_thread_ident();
    if (before != NULL && place->thread == thread)
        longest = Py_XNewRef(named_by(before));
    place->thread = thread;
    place->reference = PyWeakref_NewRef(reduced, NULL);
    left_to_python();
    if (longest != NULL)
        wait_no_longer(longest);
    Py_XDECREF(longest);
    Py_XDECREF(before);
    return left_to_python() ? 0 : -1;
}

/* Does a version that waits read some memory, as far as few operations say? */
static int
reads(PyObject *x, Leaf *leaf, int *looked)
{
    if (IS_NODE(x) && has_value((Node *)x))
        x = ((Node *)x)->value;
    if (IS_LEAF(x))
        return (Leaf *)x == leaf || ((Leaf *)x)->root == (PyObject *)leaf;
    PyObject *args = IS_NODE(x) ? ((Node *)x)->args : NULL;
    if (args == NULL || !PyTuple_CheckExact(args) || ++*looked > FEW)
        return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++)
        if (reads(PyTuple_GET_ITEM(args, i), leaf, looked))
            return 1;
    return 0;
}

int
compute_readers(PyObject *version)
{
    Leaf *leaf = (Leaf *)version;
    if (!IS_LEAF(version) || (leaf->holders < 2 && leaf->parts == NULL) || !unobserved())
        return 0;
    unsigned long thread = PyThread_get_thread_ident();
    Py_INCREF(version);
    for (int i = 0; i < 20; i++) {
        Waiting *place = i < 4 ? &large[i] : &small[i - 4];
        PyObject *reduced = place->reference == NULL ? NULL : named_by(place->reference);
        int looked = 0;
        if (reduced == NULL || ((Reduced *)reduced)->value != Py_None) {
            Py_CLEAR(place->reference);
            continue;
        }
        PyObject *operand = ((Reduced *)reduced)->operand;
        if (place->thread != thread || operand == NULL || !reads(operand, leaf, &looked))
            continue;
        Py_INCREF(reduced);
        wait_no_longer(reduced);
        Py_DECREF(reduced);
        if (!left_to_python())
            break;
    }
    Py_DECREF(version);
    return PyErr_Occurred() ? -1 : 0;
}

PyObject *
ask_compute_readers(PyObject *module, PyObject *leaf)
{
    return compute_readers(leaf) < 0 ? NULL : Py_NewRef(Py_None);
}

PyObject *
has_to_wait(PyObject *module, PyObject *reduced)
{
    PyObject *operand = IS_REDUCED(reduced) ? ((Reduced *)reduced)->operand : NULL;
    PyObject *shape = operand == NULL ? NULL : IS_LEAF(operand) ? ((Leaf *)operand)->shape : ((Node *)operand)->shape;
    int is_large = shape != NULL && PyTuple_CheckExact(shape) && shape_size(shape) > LARGE;
    return let_wait(reduced, is_large) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *
reduced_of(Reducer *self, PyObject *x, PyObject *axis, int keepdims)
{
    Py_ssize_t depth = 0;
    PyObject *operand = operand_of(x, &depth);
    if (operand == NULL)
        return NULL;
    PyObject *shape = IS_LEAF(operand) ? ((Leaf *)operand)->shape : ((Node *)operand)->shape;
    PyObject *axes = NULL, *kept = NULL, *node = NULL, *handle = NULL;
    char reduced[DIMENSIONS];
    Py_ssize_t size = 1;
    int nd = PyTuple_CheckExact(shape) ? (int)PyTuple_GET_SIZE(shape) : DIMENSIONS, n = 0;
    if (nd >= DIMENSIONS || !axes_of(axis, nd, reduced))
        goto done;
    for (int i = 0; i < nd; i++) {
        n += reduced[i];
        Py_ssize_t length = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
        if (length < 1)
            goto done;
        size *= length;
    }
    axes = PyTuple_New(n);
    kept = PyTuple_New(keepdims ? nd : nd - n);
    if (axes == NULL || kept == NULL || PyTuple_GET_SIZE(kept) >= PyTuple_GET_SIZE(self->results))
        goto done;
    for (int i = 0, a = 0, k = 0; i < nd; i++) {
        if (reduced[i])
            PyTuple_SET_ITEM(axes, a++, PyLong_FromLong(i));
        if (!reduced[i] || keepdims)
            PyTuple_SET_ITEM(kept, k++, reduced[i] ? PyLong_FromLong(1) : Py_NewRef(PyTuple_GET_ITEM(shape, i)));
    }
    if (self->cast != NULL) {
        PyObject *args = PyTuple_Pack(1, operand);
        PyObject *made =
            args == NULL ? NULL : PyObject_CallFunctionObjArgs((PyObject *)state.node, self->cast, args, shape, NULL);
        Py_XDECREF(args);
        if (made == NULL)
            goto done;
        Py_SETREF(operand, made);
    }
    node = new_reduced(self->reduction, operand, axes, keepdims, kept, self->dtype);
    if (node != NULL) {
        ((Reduced *)node)->plain = 1;
        ((Reduced *)node)->depth = depth;
        PyTypeObject *type = (PyTypeObject *)PyTuple_GET_ITEM(self->results, PyTuple_GET_SIZE(kept));
        /* (Few elements are reduced at once, as they are computed at once.) */
        int is_there = self->cast != NULL ? IS_LEAF(PyTuple_GET_ITEM(((Node *)operand)->args, 0)) : IS_LEAF(operand);
        PyObject *value = size <= state.immediate && is_there ? computed_reduction(NULL, node) : NULL;
        handle = value == NULL && PyErr_Occurred() ? NULL : new_handle(type, Py_NewRef(value != NULL ? value : node));
        if (handle != NULL && value == NULL && let_wait(node, size > LARGE) < 0)
            Py_CLEAR(handle);
        Py_XDECREF(value);
    }
done:
    Py_XDECREF(node);
    Py_XDECREF(axes);
    Py_XDECREF(kept);
    Py_DECREF(operand);
    return handle;
}

static PyObject *
reducer_vectorcall(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    Reducer *self = (Reducer *)callable;
    PyObject *axis = Py_None, *dtype = Py_None, *keepdims = Py_False, *made = NULL;
    int known = PyVectorcall_NARGS(flags) == 1;
    for (Py_ssize_t i = 0; known && names != NULL && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        if (name == state.axis)
            axis = args[1 + i];
        else if (name == state.keepdims)
            keepdims = args[1 + i];
        else if (name == state.dtype)
            dtype = args[1 + i];
        else
            known = 0;
    }
    if (known && dtype == Py_None && (keepdims == Py_False || keepdims == Py_True) && state.node_limit >= 0 &&
        unobserved() && as_registered(self))
        made = reduced_of(self, args[0], axis, keepdims == Py_True);
    if (made != NULL || PyErr_Occurred())
        return made;
    return PyObject_Vectorcall(self->python, args, flags, names);
}

/* Reducer(reduction, types of results by their dimensions, dtype, as by default?, what answers all else, cast) */
static PyObject *
reducer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *reduction, *results, *dtype, *usable, *python, *cast;
    if (!PyArg_ParseTuple(args, "OO!OOOO", &reduction, &PyTuple_Type, &results, &dtype, &usable, &python, &cast))
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(results); i++)
        if (!PyType_Check(PyTuple_GET_ITEM(results, i))) {
            PyErr_SetString(PyExc_TypeError, "Results are of types.");
            return NULL;
        }
    Reducer *self = (Reducer *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = reducer_vectorcall;
    self->reduction = Py_NewRef(reduction);
    self->results = Py_NewRef(results);
    self->dtype = Py_NewRef(dtype);
    self->usable = Py_NewRef(usable);
    self->python = Py_NewRef(python);
    self->cast = cast == Py_None ? NULL : Py_NewRef(cast);
    return (PyObject *)self;
}

static void
reducer_dealloc(Reducer *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_CLEAR(self->reduction);
    Py_CLEAR(self->results);
    Py_CLEAR(self->dtype);
    Py_CLEAR(self->usable);
    Py_CLEAR(self->python);
    Py_CLEAR(self->cast);
    type->tp_free(self);
    Py_DECREF(type);
}

CALLABLE_TYPE(Reducer, reducer)
