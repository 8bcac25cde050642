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
    /* The types of views by their dimensions; what answers all else; the type of single elements, or NULL. */
    PyObject *views, *python;
    PyTypeObject *element;
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

/* Does an index that leaves no dimension say so with integers alone? (With an ellipsis it shows a view.) */
static int
names_element(PyObject *index)
{
    if (!PyTuple_CheckExact(index))
        return PyLong_CheckExact(index);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index); i++)
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(index, i)))
            return 0;
    return 1;
}

/* A copy of one element, as a handle of its own: a new reference. */
static PyObject *
element_at(PyTypeObject *type, PyArrayObject *memory, PyObject *dtype, const char *data)
{
    PyArray_Descr *descr = PyArray_DESCR(memory);
    Py_INCREF(descr);
    PyObject *value = PyArray_NewFromDescr(&PyArray_Type, descr, 0, NULL, NULL, NULL, 0, NULL);
    PyObject *shape = value == NULL ? NULL : PyTuple_New(0);
    if (shape == NULL) {
        Py_XDECREF(value);
        return NULL;
    }
    memcpy(PyArray_BYTES((PyArrayObject *)value), data, (size_t)PyArray_ITEMSIZE(memory));
    Leaf *leaf = new_leaf(value, shape, dtype);
    Py_DECREF(value);
    Py_DECREF(shape);
    if (leaf == NULL)
        return NULL;
    Py_SETREF(leaf->element, Py_NewRef(Py_True));
    return new_handle(type, (PyObject *)leaf);
}

/* An element of what a wrapper shows of memory: NULL, without an error, where Python is to say. */
static PyObject *
element_shown(Getter *self, PyObject *x, PyObject *index)
{
    PyObject *parent = SLOT(x, state.view_parent), *made = NULL;
    if (self->element == NULL || !names_element(index) || parent == NULL || !PyObject_TypeCheck(parent, state.dense))
        return NULL;
    PyObject *node = VERSION_OF(parent);
    if (node == NULL || !IS_LEAF(node) || !IS_ARRAY(((Leaf *)node)->view))
        return NULL;
    PyObject *leaf = shown_part(x);
    Part part;
    if (leaf != NULL && IS_LEAF(leaf) && IS_ARRAY(((Leaf *)leaf)->view)) {
        PyArrayObject *memory = (PyArrayObject *)((Leaf *)leaf)->view;
        if (resolve_index(index, memory, &part) && part.nd == 0)
            made = element_at(self->element, memory, ((Leaf *)leaf)->dtype, part.data);
    }
    Py_XDECREF(leaf);
    return made;
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
        node = VERSION_OF(args[0]);
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
    if (known && part.nd == 0 && self->element != NULL && memory != NULL && IS_ARRAY(memory) && names_element(args[1]))
        return element_at(self->element, (PyArrayObject *)memory, ((Leaf *)node)->dtype, part.data);
    if (known && part.nd == 0 && self->wrapped) {
        PyObject *element = element_shown(self, args[0], args[1]);
        if (element != NULL || PyErr_Occurred())
            return element;
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
    /* They hold numbers, None and slices of these, and so are part of no cycle. (An array that is split into 10**5
       views has the collector look at each of them, again and again.) */
    PyObject_GC_UnTrack(how);
    PyObject_GC_UnTrack(shape);
    SLOT(view, state.view_parent) = Py_NewRef(args[0]);
    SLOT(view, state.view_how) = how;
    SLOT(view, state.view_shape) = shape;
    return view;
}

/* Getter(types of views by their dimensions, what answers all else, of a wrapper?, type of elements or None) */
static PyObject *
getter_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *views, *python, *element = Py_None;
    int wrapped = 0;
    if (!PyArg_ParseTuple(args, "OO|pO", &views, &python, &wrapped, &element))
        return NULL;
    if (element != Py_None && !PyType_Check(element)) {
        PyErr_SetString(PyExc_TypeError, "The type of elements is a type.");
        return NULL;
    }
    Getter *self = (Getter *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = getter_vectorcall;
    self->views = Py_NewRef(views);
    self->python = Py_NewRef(python);
    self->wrapped = wrapped;
    self->element = element == Py_None ? NULL : (PyTypeObject *)Py_NewRef(element);
    return (PyObject *)self;
}

static void
getter_dealloc(Getter *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_CLEAR(self->views);
    Py_CLEAR(self->python);
    Py_CLEAR(self->element);
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

/* float(x), int(x), complex(x), bool(x) of arrays of one element in the memory of the host. */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    /* What answers all else; 'f', 'i', 'c' or 'b'. */
    PyObject *python;
    char kind;
} Converter;

static PyObject *
converter_vectorcall(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    Converter *self = (Converter *)callable;
    PyObject *node, *value, *result;
    if (names != NULL || PyVectorcall_NARGS(flags) != 1 || !PyObject_TypeCheck(args[0], state.dense))
        return PyObject_Vectorcall(self->python, args, flags, names);
    node = VERSION_OF(args[0]);
    if (node == NULL || !IS_LEAF(node) || !unobserved())
        return PyErr_Occurred() ? NULL : PyObject_Vectorcall(self->python, args, flags, NULL);
    PyArrayObject *memory = (PyArrayObject *)((Leaf *)node)->view;
    if (!IS_ARRAY(memory) || elements(memory) != 1 || (PyArray_ISCOMPLEX(memory) && self->kind != 'c'))
        return PyObject_Vectorcall(self->python, args, flags, NULL);
    value = PyArray_GETITEM(memory, PyArray_BYTES(memory));
    if (value == NULL)
        return NULL;
    count_element();
    if (self->kind == 'f')
        result = PyNumber_Float(value);
    else if (self->kind == 'i')
        result = PyNumber_Long(value);
    else if (self->kind == 'c')
        result = PyObject_CallOneArg((PyObject *)&PyComplex_Type, value);
    else {
        int yes = PyObject_IsTrue(value);
        result = yes < 0 ? NULL : PyBool_FromLong(yes);
    }
    Py_DECREF(value);
    return result;
}

/* Converter(what answers all else, kind) */
static PyObject *
converter_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *python;
    int kind;
    if (!PyArg_ParseTuple(args, "OC", &python, &kind))
        return NULL;
    if (kind != 'f' && kind != 'i' && kind != 'c' && kind != 'b') {
        PyErr_SetString(PyExc_ValueError, "Arrays become floats, integers, complex numbers or truth values.");
        return NULL;
    }
    Converter *self = (Converter *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = converter_vectorcall;
    self->python = Py_NewRef(python);
    self->kind = (char)kind;
    return (PyObject *)self;
}

static void
converter_dealloc(Converter *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_CLEAR(self->python);
    type->tp_free(self);
    Py_DECREF(type);
}

/* As functions do: a method of what it is looked up on. */
static PyObject *
converter_get(PyObject *self, PyObject *object, PyObject *type)
{
    return object == NULL || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}

/* Name, signature and the like are those of the function. */
static PyObject *
converter_getattro(PyObject *self, PyObject *name)
{
    return PyObject_GetAttr(((Converter *)self)->python, name);
}

static PyMemberDef converter_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Converter, vectorcall), READONLY, NULL},
    {NULL},
};

static PyType_Slot converter_slots[] = {
    {Py_tp_new, converter_new},
    {Py_tp_dealloc, converter_dealloc},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_descr_get, converter_get},
    {Py_tp_getattro, converter_getattro},
    {Py_tp_members, converter_members},
    {0, NULL},
};

PyType_Spec converter_spec = {
    "mirabelle.dispatch._native.Converter", sizeof(Converter), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, converter_slots,
};
