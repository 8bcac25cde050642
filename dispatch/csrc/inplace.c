/* x += y and the like: of numbers, which Python binds to a new array, of parts of memory, which are statements like
   x[part] = x[part] + y, and of few elements, which are computed at once. All else is Python's (arraytypes/operators.py). */

#include "native.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    /* What the operator computes, how a part is assigned to, what writes any result, and what does all else. */
    PyObject *method, *assign, *write, *python;
} Inplace;

/* The dimensions of an array's version; -1 if they are not to be seen. */
static Py_ssize_t
dimensions(PyObject *x)
{
    int view = PyType_IsSubtype(Py_TYPE(x), state.view);
    PyObject *version = view ? NULL : VERSION_OF(x), *shape = view ? SLOT(x, state.view_shape) : NULL;
    if (version != NULL && IS_LEAF(version))
        shape = ((Leaf *)version)->shape;
    else if (version != NULL && IS_NODE(version))
        shape = ((Node *)version)->shape;
    else if (version != NULL && IS_REDUCED(version))
        shape = ((Reduced *)version)->shape;
    return shape == NULL || !PyTuple_CheckExact(shape) ? -1 : PyTuple_GET_SIZE(shape);
}

/* Is it memory that nobody else can write to, or shows a part of such? (Its leaf: borrowed.) */
static int
is_own_memory(PyObject *x, Leaf **leaf)
{
    PyObject *whole = PyType_IsSubtype(Py_TYPE(x), state.view) ? SLOT(x, state.view_parent) : x;
    PyObject *version = whole == NULL || !PyType_IsSubtype(Py_TYPE(whole), state.dense) ? NULL : VERSION_OF(whole);
    *leaf = (Leaf *)version;
    return version != NULL && IS_LEAF(version) && IS_ARRAY(((Leaf *)version)->view) && adopted((Leaf *)version);
}

/* Compute a small tree that may read what is about to be written: until the statement ends Python holds it, so that
   what it reads would be copied. (With an error only if somebody interrupts.) */
static void
settle_reader(PyObject *y, Leaf *written)
{
    if (count_parts(written) > 0)
        compute_few(y);
}

/* Few elements that nobody else reads are computed where they are: 1 done, 0 left, -1 somebody interrupts, or an error. */
static int
written_where_it_is(Inplace *self, PyObject *const *args, Leaf *leaf)
{
    PyObject *whole = PyType_IsSubtype(Py_TYPE(args[0]), state.view) ? SLOT(args[0], state.view_parent) : args[0];
    if (SLOT(whole, state.copy_of) != NULL)
        return 0;
    PyObject *builder = method_in_c(self->method, args);
    if (builder == NULL)
        return PyErr_Occurred() ? -1 : 0;
    Py_INCREF(leaf); /* (others may run) */
    int done = compute_readers((PyObject *)leaf) < 0 ? -1 : built_over(builder, args, leaf, self->assign);
    Py_DECREF(leaf);
    Py_DECREF(builder);
    return done;
}

static PyObject *
inplace_vectorcall(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    Inplace *self = (Inplace *)callable;
    if (names != NULL || PyVectorcall_NARGS(flags) != 2)
        return PyObject_Vectorcall(self->python, args, flags, names);
    PyObject *x = args[0];
    if (PyType_IsSubtype(Py_TYPE(x), state.dense) && SLOT(x, state.constructed) == NULL && dimensions(x) == 0)
        Py_RETURN_NOTIMPLEMENTED; /* (who else holds the result keeps it as it is) */
    Leaf *leaf;
    if (!is_own_memory(x, &leaf))
        return PyObject_Vectorcall(self->python, args, flags, NULL);
    int over = written_where_it_is(self, args, leaf);
    if (over)
        return over < 0 ? NULL : Py_NewRef(x);
    settle_reader(args[1], leaf);
    if (PyErr_Occurred())
        return NULL;
    PyObject *result = PyObject_Vectorcall(self->method, args, 2, NULL);
    if (result == NULL || result == Py_NotImplemented)
        return result;
    PyObject *written[] = {x, result}, *setter = NULL;
    int done = 0;
    if (PyType_IsSubtype(Py_TYPE(result), state.dense) && dimensions(result) == dimensions(x)) {
        setter = method_in_c(self->assign, written);
        if (setter == NULL && PyErr_Occurred())
            done = -1;
    }
    if (setter != NULL) {
        done = put_in_part(setter, x, result);
        Py_DECREF(setter);
    }
    PyObject *found = done < 0 ? NULL : done ? Py_NewRef(x) : PyObject_Vectorcall(self->write, written, 2, NULL);
    Py_DECREF(result);
    return found;
}

/* Inplace(operator, generic function that assigns, what writes any result, what does all else) */
static PyObject *
inplace_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *method, *assign, *write, *python;
    if (!PyArg_ParseTuple(args, "OO!OO", &method, operator_type, &assign, &write, &python))
        return NULL;
    Inplace *self = (Inplace *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = inplace_vectorcall;
    self->method = Py_NewRef(method);
    self->assign = Py_NewRef(assign);
    self->write = Py_NewRef(write);
    self->python = Py_NewRef(python);
    return (PyObject *)self;
}

static void
inplace_dealloc(Inplace *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_CLEAR(self->method);
    Py_CLEAR(self->assign);
    Py_CLEAR(self->write);
    Py_CLEAR(self->python);
    type->tp_free(self);
    Py_DECREF(type);
}

/* Name, signature and the like are those of the function. */
static PyObject *
inplace_getattro(PyObject *self, PyObject *name)
{
    return PyObject_GetAttr(((Inplace *)self)->python, name);
}

METHOD_TYPE(Inplace, inplace, {Py_tp_getattro, inplace_getattro},)
