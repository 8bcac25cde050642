/* Parts of arrays: what an index shows, and views of host arrays (backends/host/direct.py). */

#include "native.h"

/* Is it an integer of Python's, or None? (To ask others may run what takes away what is looked at.) */
static int
plain(PyObject *bound)
{
    return bound == Py_None || PyLong_CheckExact(bound);
}

/* One entry of an index, along what is left of the dimensions: as `resolve_part`. */
static int
resolve_entry(PyObject *entry, int *d, int nd, const Py_ssize_t *dims, const Py_ssize_t *strides, Part *part)
{
    if (entry == Py_None) {
        if (part->nd == DIMENSIONS)
            return 0;
        part->dims[part->nd] = 1;
        part->strides[part->nd++] = 0;
        return 1;
    }
    if (*d >= nd || part->nd == DIMENSIONS)
        return 0;
    Py_ssize_t n = dims[*d], step = strides[*d];
    if (PyLong_CheckExact(entry)) {
        int overflow;
        long i = PyLong_AsLongAndOverflow(entry, &overflow);
        if (overflow || i < -n || i >= n)
            return 0;
        part->data += (i < 0 ? i + n : i) * step;
    }
    else if (PySlice_Check(entry)) {
        PySliceObject *slice = (PySliceObject *)entry;
        Py_ssize_t start, stop, by;
        if (!plain(slice->start) || !plain(slice->stop) || !plain(slice->step))
            return 0;
        if (PySlice_Unpack(entry, &start, &stop, &by) < 0) {
            PyErr_Clear(); /* (Python says what is wrong) */
            return 0;
        }
        Py_ssize_t length = PySlice_AdjustIndices(n, &start, &stop, by);
        if (length > 0)
            part->data += start * step;
        part->dims[part->nd] = length;
        part->strides[part->nd++] = by * step;
    }
    else
        return 0;
    ++*d;
    return 1;
}

int
resolve_part(PyObject *index, int nd, const Py_ssize_t *dims, const Py_ssize_t *strides, char *data, Part *part)
{
    PyObject *single = index;
    PyObject **entries = &single;
    Py_ssize_t n = 1;
    int d = 0, consumed = 0, open = 0;
    part->data = data;
    part->nd = 0;
    if (PyTuple_CheckExact(index)) {
        entries = &PyTuple_GET_ITEM(index, 0);
        n = PyTuple_GET_SIZE(index);
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        open += entries[i] == Py_Ellipsis;
        consumed += entries[i] != Py_Ellipsis && entries[i] != Py_None;
    }
    if (open > 1 || consumed > nd)
        return 0;
    for (Py_ssize_t i = 0; i <= n; i++) {
        /* What the index does not name is shown whole: where the ellipsis is, or behind. */
        if (i < n ? entries[i] == Py_Ellipsis : !open) {
            for (int left = nd - consumed; left > 0; left--, d++) {
                if (part->nd == DIMENSIONS)
                    return 0;
                part->dims[part->nd] = dims[d];
                part->strides[part->nd++] = strides[d];
            }
        }
        else if (i < n && !resolve_entry(entries[i], &d, nd, dims, strides, part))
            return 0;
    }
    return 1;
}

PyObject *
whole_index(PyObject *index)
{
    if (!PyTuple_CheckExact(index))
        return index == Py_Ellipsis ? PyTuple_Pack(1, index) : PyTuple_Pack(2, index, Py_Ellipsis);
    Py_ssize_t n = PyTuple_GET_SIZE(index);
    for (Py_ssize_t i = 0; i < n; i++)
        if (PyTuple_GET_ITEM(index, i) == Py_Ellipsis)
            return Py_NewRef(index);
    PyObject *whole = PyTuple_New(n + 1);
    if (whole == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < n; i++)
        PyTuple_SET_ITEM(whole, i, Py_NewRef(PyTuple_GET_ITEM(index, i)));
    PyTuple_SET_ITEM(whole, n, Py_NewRef(Py_Ellipsis));
    return whole;
}

/* x[index] of host arrays of one type: a view, or what Python makes of it. */

#define TYPES 8

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    /* The types of views by their dimensions; what answers all else. */
    PyObject *views, *python;
    /* Is it of a wrapper, which has a shape itself? */
    int wrapped;
    PyTypeObject *types[TYPES];
} Getter;

static PyTypeObject *
type_of_views(Getter *self, int nd)
{
    if (nd < TYPES && self->types[nd] != NULL)
        return self->types[nd];
    PyObject *key = PyLong_FromLong(nd);
    PyObject *type = key == NULL ? NULL : PyObject_GetItem(self->views, key);
    Py_XDECREF(key);
    if (type == NULL)
        return NULL;
    if (nd < TYPES)
        self->types[nd] = (PyTypeObject *)Py_NewRef(type);
    Py_DECREF(type); /* (the views keep it) */
    return (PyTypeObject *)type;
}

static PyObject *
getter_vectorcall(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    Getter *self = (Getter *)callable;
    Py_ssize_t dims[DIMENSIONS], no_strides[DIMENSIONS];
    PyObject *node = NULL, *shape = NULL, *memory = NULL;
    Part part;
    int known = 0;
    if (names != NULL || PyVectorcall_NARGS(flags) != 2)
        return PyObject_Vectorcall(self->python, args, flags, names);
    if (self->wrapped)
        shape = SLOT(args[0], state.view_shape);
    else
        node = SLOT(args[0], state.handle_node);
    if (node != NULL && IS_LEAF(node))
        memory = ((Leaf *)node)->view;
    else if (node != NULL && IS_NODE(node))
        shape = ((Node *)node)->shape;
    if (memory != NULL && !IS_ARRAY(memory)) /* (of other processes, too) */
        shape = ((Leaf *)node)->shape;
    if (memory != NULL && IS_ARRAY(memory))
        known = resolve_index(args[1], (PyArrayObject *)memory, &part);
    else if (shape != NULL && PyTuple_CheckExact(shape) && PyTuple_GET_SIZE(shape) <= DIMENSIONS) {
        int nd = (int)PyTuple_GET_SIZE(shape);
        for (int i = 0; i < nd; i++) {
            dims[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
            no_strides[i] = 0;
        }
        known = resolve_part(args[1], nd, dims, no_strides, NULL, &part);
    }
    if (!known || part.nd == 0)
        return PyObject_Vectorcall(self->python, args, flags, NULL);
    PyTypeObject *type = type_of_views(self, part.nd);
    PyObject *how = type == NULL ? NULL : whole_index(args[1]);
    if (how == NULL)
        return NULL;
    PyObject *view = NULL;
    shape = PyTuple_New(part.nd);
    if (shape != NULL) {
        int whole = 1;
        for (int i = 0; i < part.nd; i++) {
            PyObject *n = PyLong_FromSsize_t(part.dims[i]);
            whole = whole && n != NULL;
            PyTuple_SET_ITEM(shape, i, n);
        }
        if (whole)
            view = type->tp_alloc(type, 0);
    }
    if (view == NULL) {
        Py_DECREF(how);
        Py_XDECREF(shape);
        return NULL;
    }
    SLOT(view, state.view_parent) = Py_NewRef(args[0]);
    SLOT(view, state.view_how) = how;
    SLOT(view, state.view_shape) = shape;
    return view;
}

/* Getter(types of views by their dimensions, what answers all else, of a wrapper?) */
static PyObject *
getter_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *views, *python;
    int wrapped = 0;
    if (!PyArg_ParseTuple(args, "OO|p", &views, &python, &wrapped))
        return NULL;
    Getter *self = (Getter *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = getter_vectorcall;
    self->views = Py_NewRef(views);
    self->python = Py_NewRef(python);
    self->wrapped = wrapped;
    return (PyObject *)self;
}

static void
getter_dealloc(Getter *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_CLEAR(self->views);
    Py_CLEAR(self->python);
    for (int i = 0; i < TYPES; i++)
        Py_CLEAR(self->types[i]);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef getter_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Getter, vectorcall), READONLY, NULL},
    {NULL},
};

static PyType_Slot getter_slots[] = {
    {Py_tp_new, getter_new},
    {Py_tp_dealloc, getter_dealloc},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, getter_members},
    {0, NULL},
};

PyType_Spec getter_spec = {
    "mirabelle.dispatch._native.Getter", sizeof(Getter), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, getter_slots,
};
