/* Functions of NumPy's on the memory of few elements: operations on an array of ours beside one of NumPy's
   (arraytypes/elementwise.py), and elements that an array of integers names (backends/host/picking.py). */

#include "native.h"

/* So many times the elements for which one thread computes, it moves (dispatch/native.py). */
#define MOVED 4
/* An operation on elements, or x[integers]. */
enum { ELEMENTWISE, PICKED };

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    /* NumPy's function; the type of arrays by dtype and dimensions; what answers all else. */
    PyObject *function, *type_of, *python;
    /* The type of the last result, and what it was of. */
    PyTypeObject *type;
    PyObject *dtype;
    int nd, kind;
    /* What NumPy computed the last one with, of two dtypes. */
    Loop loop;
} OnMemory;

/* The number of elements of an operand: -1 if it is none. */
static double
size_of(PyObject *x)
{
    PyObject *shape = NULL;
    if (IS_ARRAY(x))
        return (double)elements((PyArrayObject *)x);
    if (PyType_IsSubtype(Py_TYPE(x), state.wrapper))
        shape = SLOT(x, state.view_shape);
    else if (PyType_IsSubtype(Py_TYPE(x), state.dense)) {
        PyObject *version = VERSION_OF(x);
        shape = version == NULL ? NULL : IS_LEAF(version) ? ((Leaf *)version)->shape
                                     : IS_NODE(version)   ? ((Node *)version)->shape
                                                          : NULL;
    }
    return shape == NULL || !PyTuple_CheckExact(shape) ? -1 : shape_size(shape);
}

/* An operand as an array of NumPy's of numbers that we hold, too: a new reference, or NULL. */
static PyArrayObject *
operand_memory(PyObject *x)
{
    PyObject *memory = NULL;
    if (IS_ARRAY(x))
        memory = Py_NewRef(x);
    else {
        compute_few(x);
        memory = PyErr_Occurred() ? NULL : memory_shown(x, whole_memory(x, 1));
    }
    if (memory == NULL)
        return NULL;
    PyArrayObject *a = (PyArrayObject *)memory;
    int type = PyArray_TYPE(a);
    if ((PyTypeNum_ISNUMBER(type) || type == NPY_BOOL) && type != NPY_LONGDOUBLE && type != NPY_CLONGDOUBLE &&
        PyArray_ISNOTSWAPPED(a) && PyArray_ISALIGNED(a))
        return a;
    Py_DECREF(memory);
    return NULL;
}

/* Will the result have few elements? (Whether two shapes fit is for NumPy to say.) */
static int
are_few(OnMemory *self, PyObject *x, PyObject *y)
{
    double a = size_of(x), b = size_of(y), most = 4 * (double)state.few;
    Part part;
    /* (Of more, a tree joins the kernel; and several threads compute from a part of those on that they move.) */
    if (self->kind == ELEMENTWISE && a > most && part_of(x, &part) != NULL && part_of(y, &part) != NULL)
        most = (double)state.moved / MOVED;
    if (a < 0 || b < 0 || b > most)
        return 0;
    if (self->kind == PICKED)
        return 1; /* (of each row as many elements: see `picked_few`) */
    return a <= most && (a == b || a <= 1 || b <= 1 || a * b <= most);
}

static int
picked_few(PyArrayObject *a, PyArrayObject *places)
{
    return PyArray_NDIM(a) > 0 && PyArray_NDIM(places) > 0 && PyArray_ISINTEGER(places) && PyArray_DIMS(a)[0] > 0 &&
           (double)elements(places) * (double)(elements(a) / PyArray_DIMS(a)[0]) <= 4 * (double)state.few;
}

/* New memory as an array of ours: a new reference, or NULL. */
static PyObject *
as_ours(OnMemory *self, PyArrayObject *array)
{
    if (self->type == NULL || self->dtype != DTYPE(array) || self->nd != PyArray_NDIM(array)) {
        PyObject *type = PyObject_CallFunction(self->type_of, "Oi", DTYPE(array), PyArray_NDIM(array));
        if (type == NULL || !PyType_Check(type)) {
            Py_XDECREF(type);
            return NULL;
        }
        Py_XSETREF(self->type, (PyTypeObject *)type);
        Py_XSETREF(self->dtype, Py_NewRef(DTYPE(array)));
        self->nd = PyArray_NDIM(array);
    }
    PyObject *shape = PyTuple_New(PyArray_NDIM(array));
    for (int d = 0; shape != NULL && d < PyArray_NDIM(array); d++)
        PyTuple_SET_ITEM(shape, d, PyLong_FromSsize_t(PyArray_DIMS(array)[d]));
    Leaf *leaf = shape == NULL || PyErr_Occurred() ? NULL : new_leaf((PyObject *)array, shape, DTYPE(array));
    Py_XDECREF(shape);
    return leaf == NULL ? NULL : new_handle(self->type, (PyObject *)leaf);
}

/* Is it a dtype of NumPy's that stays? */
static int
stays(PyArray_Descr *dtype)
{
    PyArray_Descr *own = PyArray_DescrFromType(dtype->type_num);
    Py_XDECREF(own);
    return own == dtype;
}

/* Find what NumPy computes such operands with, which gave this result. */
static void
remember_loop(OnMemory *self, PyArrayObject *a, PyArrayObject *b, PyArrayObject *out)
{
    PyObject *ins[] = {DTYPE(a), DTYPE(b)};
    if (self->loop.call != NULL && self->loop.ins[0] == PyArray_DESCR(a) && self->loop.ins[1] == PyArray_DESCR(b))
        return;
    self->loop.call = NULL;
    if (stays(PyArray_DESCR(a)) && stays(PyArray_DESCR(b)) && stays(PyArray_DESCR(out)))
        find_loop(self->function, ins, 2, DTYPE(out), &self->loop);
}

/* An operation on few elements that are in memory, by that: an array of NumPy's, the one it goes `into` if there is one;
   NULL, without an error, where NumPy is to find it. */
static PyObject *
by_loop(OnMemory *self, PyObject *const *args, PyObject *into, Py_ssize_t *read)
{
    Part parts[2], to;
    npy_intp dims[DIMENSIONS];
    const Loop *loop = &self->loop;
    PyObject *out = NULL;
    if (self->kind != ELEMENTWISE || loop->call == NULL || state.immediate < 1)
        return NULL;
    for (int i = 0; i < 2; i++) {
        PyArrayObject *memory = part_of(args[i], &parts[i]);
        if (memory == NULL || PyArray_DESCR(memory) != loop->ins[i] || !PyArray_ISALIGNED(memory))
            return NULL;
        *read += part_size(&parts[i]) * PyArray_ITEMSIZE(memory);
    }
    int nd = common_lengths(parts, 2, dims);
    if (nd < 1)
        return NULL;
    if (into == NULL)
        out = looped(loop, 2, parts, nd, dims);
    else {
        PyArrayObject *target = (PyArrayObject *)into;
        if (PyArray_DESCR(target) == loop->out && PyArray_ISBEHAVED(target) && resolve_index(Py_Ellipsis, target, &to) &&
            looped_into(loop, 2, parts, &to))
            out = Py_NewRef(into);
    }
    if (PyErr_Occurred()) {
        Py_CLEAR(out);
        PyErr_Clear();
    }
    return out;
}

/* NumPy's function of two arrays, into a third if there is one: a new reference, or NULL with an error. */
static PyObject *
called(OnMemory *self, PyArrayObject *a, PyArrayObject *b, PyObject *into)
{
    PyObject *operands[] = {(PyObject *)a, (PyObject *)b, into}, *context = hush();
    PyObject *out = PyObject_Vectorcall(self->function, operands, into == NULL ? 2 : 3, NULL);
    speak(context);
    return out;
}

/* What was computed, as ours unless it is the array that it was to go into (it is taken over). */
static PyObject *
given(OnMemory *self, PyObject *out, PyObject *into, Py_ssize_t read)
{
    if (out != NULL && !IS_ARRAY(out))
        Py_SETREF(out, PyObject_CallOneArg(state.asarray, out));
    if (out == NULL || !IS_ARRAY(out)) {
        Py_XDECREF(out);
        return NULL;
    }
    Py_ssize_t written = PyArray_NBYTES((PyArrayObject *)out);
    if (out != into)
        Py_SETREF(out, as_ours(self, (PyArrayObject *)out));
    if (out != NULL)
        count_launch(read, written);
    return out;
}

PyObject *
on_memory(PyObject *callable, PyObject *const *args, PyObject *into)
{
    OnMemory *self = (OnMemory *)callable;
    PyObject *made = NULL, *out = NULL;
    Py_ssize_t read = 0;
    /* (To ask Python whether methods changed lets others run.) */
    if (!unobserved() || !unchanged())
        return NULL;
    out = by_loop(self, args, into, &read);
    if (out != NULL) {
        made = given(self, out, into, read);
        if (made == NULL)
            left_to_python();
        return made;
    }
    if (!are_few(self, args[0], args[1]))
        return NULL;
    PyArrayObject *a = operand_memory(args[0]), *b = a == NULL ? NULL : operand_memory(args[1]);
    if (b != NULL && self->kind == PICKED && picked_few(a, b))
        out = PyObject_GetItem((PyObject *)a, (PyObject *)b);
    else if (b != NULL && self->kind == ELEMENTWISE) {
        out = called(self, a, b, into);
        if (out != NULL && IS_ARRAY(out))
            remember_loop(self, a, b, (PyArrayObject *)out);
    }
    if (out != NULL)
        made = given(self, out, into, PyArray_NBYTES(a) + PyArray_NBYTES(b));
    Py_XDECREF(a);
    Py_XDECREF(b);
    if (made == NULL)
        left_to_python();
    return made;
}

static PyObject *
onmemory_vectorcall(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    if (names == NULL && PyVectorcall_NARGS(flags) == 2) {
        PyObject *made = on_memory(callable, args, NULL);
        if (made != NULL || PyErr_Occurred())
            return made;
    }
    return PyObject_Vectorcall(((OnMemory *)callable)->python, args, flags, names);
}

/* OnMemory(NumPy's function or None for x[integers], type by dtype and dimensions, what answers all else) */
static PyObject *
onmemory_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *function, *type_of, *python;
    if (!PyArg_ParseTuple(args, "OOO", &function, &type_of, &python))
        return NULL;
    OnMemory *self = (OnMemory *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = onmemory_vectorcall;
    self->function = Py_NewRef(function);
    self->type_of = Py_NewRef(type_of);
    self->python = Py_NewRef(python);
    self->kind = function == Py_None ? PICKED : ELEMENTWISE;
    return (PyObject *)self;
}

static void
onmemory_dealloc(OnMemory *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_CLEAR(self->function);
    Py_CLEAR(self->type_of);
    Py_CLEAR(self->python);
    Py_CLEAR(self->type);
    Py_CLEAR(self->dtype);
    type->tp_free(self);
    Py_DECREF(type);
}

CALLABLE_TYPE(OnMemory, onmemory)
