/* Parts of arrays: what an index shows, and views of host arrays (backends/host/direct.py). */

#include "native.h"

/* (To ask others may run what takes away what is looked at.) */
int
as_index(PyObject *x, Py_ssize_t *value)
{
    int64_t n = 0;
    if (PyLong_CheckExact(x)) {
        int overflow;
        *value = PyLong_AsLongAndOverflow(x, &overflow);
        return !overflow;
    }
    if (PyArray_IsScalar(x, Integer)) {
        PyObject *number = PyNumber_Long(x);
        int known = number != NULL && as_index(number, value);
        Py_XDECREF(number);
        PyErr_Clear();
        return known;
    }
    if (state.dense == NULL || !PyType_IsSubtype(Py_TYPE(x), state.dense))
        return 0;
    PyObject *version = VERSION_OF(x);
    if (version == NULL || !IS_LEAF(version) || !IS_ARRAY(((Leaf *)version)->view) || !unobserved())
        return 0;
    PyArrayObject *memory = (PyArrayObject *)((Leaf *)version)->view;
    int size = (int)PyArray_ITEMSIZE(memory);
    if (PyArray_NDIM(memory) || !PyArray_ISINTEGER(memory) || !PyArray_ISNOTSWAPPED(memory))
        return 0;
    memcpy(&n, PyArray_BYTES(memory), (size_t)size); /* (the lowest bytes come first) */
    int rest = 64 - 8 * size;
    if (PyArray_ISSIGNED(memory))
        n = (int64_t)((uint64_t)n << rest) >> rest;
    else if (n < 0)
        return 0;
    *value = (Py_ssize_t)n;
    return 1;
}

/* Is it an array that a constructor made? Beside such as an index, NumPy copies what it shows. */
static int
is_constructed(PyObject *x)
{
    return PyType_IsSubtype(Py_TYPE(x), state.dense) && SLOT(x, state.constructed) != NULL;
}

/* Is it an integer of Python's, or None? */
static inline int
is_plain(PyObject *bound)
{
    return bound == Py_None || PyLong_CheckExact(bound);
}

/* Tell who counts that arrays of ours were read as indices. */
static void
count_index(PyObject *index)
{
    if (PyTuple_CheckExact(index))
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index); i++)
            count_index(PyTuple_GET_ITEM(index, i));
    else if (is_plain(index) || index == Py_Ellipsis)
        return;
    else if (PySlice_Check(index)) {
        PySliceObject *slice = (PySliceObject *)index;
        if (is_plain(slice->start) && is_plain(slice->stop) && is_plain(slice->step))
            return;
        count_index(((PySliceObject *)index)->start);
        count_index(((PySliceObject *)index)->stop);
        count_index(((PySliceObject *)index)->step);
    }
    else if (PyType_IsSubtype(Py_TYPE(index), state.dense))
        count_element();
}

/* A bound of a slice as Python's: a new reference; NULL, without an error, for what is none. */
static PyObject *
plain_bound(PyObject *bound)
{
    Py_ssize_t value;
    if (is_plain(bound))
        return Py_NewRef(bound);
    return as_index(bound, &value) ? PyLong_FromSsize_t(value) : NULL;
}

/* A slice whose bounds are Python's: likewise. */
static PyObject *
plain_slice(PyObject *slice)
{
    PySliceObject *s = (PySliceObject *)slice;
    if (is_plain(s->start) && is_plain(s->stop) && is_plain(s->step))
        return Py_NewRef(slice);
    PyObject *start = plain_bound(s->start), *stop = plain_bound(s->stop), *step = plain_bound(s->step), *made = NULL;
    if (start != NULL && stop != NULL && step != NULL)
        made = PySlice_New(start, stop, step);
    Py_XDECREF(start);
    Py_XDECREF(stop);
    Py_XDECREF(step);
    return made;
}

/* What stands in an index, with Python's integers in place of others: likewise. */
static PyObject *
plain_entry(PyObject *entry)
{
    if (PySlice_Check(entry))
        return plain_slice(entry);
    return entry == Py_Ellipsis ? Py_NewRef(entry) : plain_bound(entry);
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
    Py_ssize_t i;
    if (PyLong_CheckExact(entry)) {
        int overflow;
        i = PyLong_AsLongAndOverflow(entry, &overflow);
        if (overflow || i < -n || i >= n)
            return 0;
        part->data += (i < 0 ? i + n : i) * step;
    }
    else if (PySlice_Check(entry)) {
        Py_ssize_t start, stop, by;
        PyObject *slice = plain_slice(entry);
        int known = slice != NULL && PySlice_Unpack(slice, &start, &stop, &by) == 0;
        Py_XDECREF(slice);
        if (!known) {
            PyErr_Clear(); /* (Python says what is wrong) */
            return 0;
        }
        Py_ssize_t length = PySlice_AdjustIndices(n, &start, &stop, by);
        if (length > 0)
            part->data += start * step;
        part->dims[part->nd] = length;
        part->strides[part->nd++] = by * step;
    }
    else {
        if (!as_index(entry, &i) || is_constructed(entry) || i < -n || i >= n)
            return 0;
        part->data += (i < 0 ? i + n : i) * step;
    }
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
    PyObject *single = index, **entries = &single;
    Py_ssize_t n = 1;
    int open = 0;
    if (PyTuple_CheckExact(index)) {
        entries = &PyTuple_GET_ITEM(index, 0);
        n = PyTuple_GET_SIZE(index);
    }
    for (Py_ssize_t i = 0; i < n; i++)
        open |= entries[i] == Py_Ellipsis;
    PyObject *whole = PyTuple_New(n + !open);
    for (Py_ssize_t i = 0; whole != NULL && i < n; i++) {
        PyObject *entry = plain_entry(entries[i]);
        if (entry == NULL) { /* (another number than a moment ago) */
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_IndexError, "An index changed while it was read.");
            Py_CLEAR(whole);
        }
        else
            PyTuple_SET_ITEM(whole, i, entry);
    }
    if (whole != NULL && !open)
        PyTuple_SET_ITEM(whole, n, Py_NewRef(Py_Ellipsis));
    return whole;
}

/* x[index] of host arrays of one type: a view, or what Python makes of it. */

#define TYPES 8

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    /* The types of views by their dimensions; what answers all else; the index, if it is always the same; the type of
       single elements, or NULL. */
    PyObject *views, *python, *index;
    PyTypeObject *element;
    /* Is it of a wrapper, which has a shape itself? Or of parts of arrays, of which parts are parts of these? */
    int wrapped, parts;
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

/* Does an index that leaves no dimension say so with integers alone? (With an ellipsis it shows a view.) 2: not all of
   them are Python's. */
static int
names_element(PyObject *index)
{
    Py_ssize_t i;
    int names = 1;
    if (!PyTuple_CheckExact(index))
        return PyLong_CheckExact(index) ? 1 : 2 * as_index(index, &i);
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(index); k++) {
        PyObject *entry = PyTuple_GET_ITEM(index, k);
        if (PyLong_CheckExact(entry))
            continue;
        if (!as_index(entry, &i))
            return 0;
        names = 2;
    }
    return names;
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
            made = new_element(self->element, PyArray_DESCR(memory), part.data, 1);
    }
    Py_XDECREF(leaf);
    return made;
}

/* The lengths of an array's dimensions: how many, or -1. */
static int
lengths_of(PyObject *x, Py_ssize_t *dims)
{
    PyObject *version = x == NULL || !PyType_IsSubtype(Py_TYPE(x), state.dense) ? NULL : VERSION_OF(x), *shape = NULL;
    if (version != NULL && IS_LEAF(version))
        shape = ((Leaf *)version)->shape;
    else if (version != NULL && IS_NODE(version))
        shape = ((Node *)version)->shape;
    if (shape == NULL || !PyTuple_CheckExact(shape) || PyTuple_GET_SIZE(shape) > DIMENSIONS)
        return -1;
    for (Py_ssize_t d = 0; d < PyTuple_GET_SIZE(shape); d++)
        dims[d] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, d));
    return (int)PyTuple_GET_SIZE(shape);
}

/* A slice that shows `length` places from one on: a new reference. */
static PyObject *
slice_of(Py_ssize_t start, Py_ssize_t step, Py_ssize_t length)
{
    Py_ssize_t stop = start + step * length;
    if (length == 0)
        start = stop = 0;
    PyObject *from = PyLong_FromSsize_t(start), *by = PyLong_FromSsize_t(step), *made = NULL;
    PyObject *to = stop < 0 ? Py_NewRef(Py_None) : PyLong_FromSsize_t(stop);
    if (from != NULL && to != NULL && by != NULL)
        made = PySlice_New(from, to, by);
    Py_XDECREF(from);
    Py_XDECREF(to);
    Py_XDECREF(by);
    return made;
}

/* What an entry of an index says of places of which another says `slice`: a new reference; NULL where Python is to
   say. */
static PyObject *
entry_within(PyObject *slice, Py_ssize_t n, PyObject *entry)
{
    Py_ssize_t start, stop, by, first, last, step, i;
    if (!PySlice_Check(slice) || PySlice_Unpack(slice, &start, &stop, &by) < 0)
        return NULL;
    n = PySlice_AdjustIndices(n, &start, &stop, by);
    if (PySlice_Check(entry)) {
        PyObject *within = plain_slice(entry);
        int known = within != NULL && PySlice_Unpack(within, &first, &last, &step) == 0;
        Py_XDECREF(within);
        if (!known)
            return NULL;
        Py_ssize_t length = PySlice_AdjustIndices(n, &first, &last, step);
        return slice_of(start + first * by, by * step, length);
    }
    if (!as_index(entry, &i) || (!PyLong_CheckExact(entry) && is_constructed(entry)) || i < -n || i >= n)
        return NULL;
    return PyLong_FromSsize_t(start + (i < 0 ? i + n : i) * by);
}

/* The index that shows of an array what another shows of a part of it: a new reference; NULL where Python is to say. */
static PyObject *
composed_index(PyObject *part, PyObject *index)
{
    Py_ssize_t dims[DIMENSIONS], given, further = 1, k = 0, at = 0, open = 0, left, added = 0;
    PyObject *first = SLOT(part, state.view_how), *single = index, **second = &single;
    int nd = lengths_of(SLOT(part, state.view_parent), dims);
    if (nd < 0 || first == NULL || !PyTuple_CheckExact(first))
        return NULL;
    if (PyTuple_CheckExact(index)) {
        second = &PyTuple_GET_ITEM(index, 0);
        further = PyTuple_GET_SIZE(index);
    }
    given = PyTuple_GET_SIZE(first) - 1;
    if (given < 0 || given > nd || PyTuple_GET_ITEM(first, given) != Py_Ellipsis)
        return NULL;
    left = nd; /* how many dimensions of the part an ellipsis stands for: those that nothing else names */
    for (int d = 0; d < given; d++)
        left -= PyLong_CheckExact(PyTuple_GET_ITEM(first, d));
    for (Py_ssize_t i = 0; i < further; i++) {
        open += second[i] == Py_Ellipsis;
        added += second[i] == Py_None;
        left -= second[i] != Py_Ellipsis && second[i] != Py_None;
    }
    if (open > 1 || left < 0)
        return NULL;
    PyObject *made = PyTuple_New(nd + added + 1), *whole = made == NULL ? NULL : PySlice_New(NULL, NULL, NULL);
    int known = whole != NULL;
    for (int d = 0; d <= nd && known; d++) {
        PyObject *entry = d < given ? PyTuple_GET_ITEM(first, d) : whole;
        while (k < further && (second[k] == Py_None || (second[k] == Py_Ellipsis && left == 0)))
            if (second[k++] == Py_None)
                PyTuple_SET_ITEM(made, at++, Py_NewRef(Py_None));
        if (d == nd)
            break;
        if (PyLong_CheckExact(entry) || k == further)
            entry = Py_NewRef(entry);
        else if (second[k] == Py_Ellipsis) {
            entry = Py_NewRef(entry);
            left--;
        }
        else
            entry = entry_within(entry, dims[d], second[k++]);
        known = entry != NULL && (PyLong_CheckExact(entry) || PySlice_Check(entry));
        PyTuple_SET_ITEM(made, at++, entry);
    }
    Py_XDECREF(whole);
    if (!known || k < further) {
        Py_XDECREF(made);
        PyErr_Clear();
        return NULL;
    }
    PyTuple_SET_ITEM(made, at, Py_NewRef(Py_Ellipsis));
    return made;
}

/* x[index], of which a user gave all or the end: a new reference; NULL where Python is to say, or with an error. */
static inline Py_ALWAYS_INLINE PyObject *
shown_by(Getter *self, PyObject *x, PyObject *index, PyObject *given)
{
    Py_ssize_t dims[DIMENSIONS], no_strides[DIMENSIONS];
    PyObject *node = NULL, *shape = NULL, *memory = NULL;
    Part part;
    int known = 0;
    if (self->wrapped)
        shape = SLOT(x, state.view_shape);
    else
        node = VERSION_OF(x);
    if (node != NULL && IS_LEAF(node))
        memory = ((Leaf *)node)->view;
    else if (node != NULL && IS_NODE(node))
        shape = ((Node *)node)->shape;
    if (memory != NULL && !IS_ARRAY(memory)) /* (of other processes, too) */
        shape = ((Leaf *)node)->shape;
    if (memory != NULL && IS_ARRAY(memory))
        known = resolve_index(index, (PyArrayObject *)memory, &part);
    else if (shape != NULL && PyTuple_CheckExact(shape) && PyTuple_GET_SIZE(shape) <= DIMENSIONS) {
        int nd = (int)PyTuple_GET_SIZE(shape);
        for (int i = 0; i < nd; i++) {
            dims[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
            no_strides[i] = 0;
        }
        known = resolve_part(index, nd, dims, no_strides, NULL, &part);
    }
    int names = known && part.nd == 0 && self->element != NULL && memory != NULL && IS_ARRAY(memory)
                    ? names_element(given) : 0;
    if (names) {
        if (names == 2)
            count_index(given);
        return new_element(self->element, PyArray_DESCR((PyArrayObject *)memory), part.data, 1);
    }
    if (known && part.nd == 0 && self->wrapped) {
        PyObject *element = element_shown(self, x, index);
        if (element != NULL || PyErr_Occurred())
            return element;
    }
    if (!known || part.nd == 0)
        return NULL;
    PyTypeObject *type = type_of_views(self, part.nd);
    PyObject *how = type == NULL ? NULL : whole_index(index);
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
    count_index(given);
    PyObject_GC_UnTrack(how);
    PyObject_GC_UnTrack(shape);
    SLOT(view, state.view_parent) = Py_NewRef(x);
    SLOT(view, state.view_how) = how;
    SLOT(view, state.view_shape) = shape;
    if (memory != NULL && IS_ARRAY(memory)) /* (nor does an array of memory lead back to what shows it) */
        PyObject_GC_UnTrack(view);
    return view;
}

/* Of an array that waits, and that is computed whole whoever asks for one of its elements: have it computed. */
static void
compute_for_element(PyObject *x, PyObject *index)
{
    PyObject *node = VERSION_OF(x);
    if (node == NULL || !IS_NODE(node) || has_value((Node *)node) || !PyLong_CheckExact(index) ||
        !PyTuple_CheckExact(((Node *)node)->shape) || PyTuple_GET_SIZE(((Node *)node)->shape) != 1 ||
        shape_size(((Node *)node)->shape) > state.brief)
        return;
    Py_INCREF(node); /* (others may run, and give the array another) */
    compute_few(x);
    if (!PyErr_Occurred() && has_value((Node *)node) && VERSION_OF(x) == node)
        set_held(&VERSION_OF(x), Py_NewRef(((Node *)node)->value));
    Py_DECREF(node);
}

static PyObject *
getter_vectorcall(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    Getter *self = (Getter *)callable;
    PyObject *made = NULL, *index = NULL;
    if (names == NULL && PyVectorcall_NARGS(flags) == (self->index == NULL ? 2 : 1)) {
        PyObject *given = self->index == NULL ? args[1] : self->index;
        if (self->element != NULL && !self->parts && !self->wrapped)
            compute_for_element(args[0], given);
        if (PyErr_Occurred())
            return NULL;
        if (!self->parts)
            made = shown_by(self, args[0], given, given);
        else if ((index = composed_index(args[0], given)) != NULL)
            made = shown_by(self, SLOT(args[0], state.view_parent), index, given);
        Py_XDECREF(index);
        if (made != NULL || PyErr_Occurred())
            return made;
    }
    return PyObject_Vectorcall(self->python, args, flags, names);
}

/* Getter(types of views by their dimensions, what answers all else, of a wrapper?, type of elements or None, of parts?,
          the index, if it is always the same) */
static PyObject *
getter_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *views, *python, *element = Py_None, *index = NULL;
    int wrapped = 0, parts = 0;
    if (!PyArg_ParseTuple(args, "OO|pOpO", &views, &python, &wrapped, &element, &parts, &index))
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
    self->index = Py_XNewRef(index);
    self->wrapped = wrapped;
    self->parts = parts;
    self->element = element == Py_None ? NULL : (PyTypeObject *)Py_NewRef(element);
    return (PyObject *)self;
}

static void
getter_dealloc(Getter *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_CLEAR(self->views);
    Py_CLEAR(self->python);
    Py_CLEAR(self->index);
    Py_CLEAR(self->element);
    for (int i = 0; i < TYPES; i++)
        Py_CLEAR(self->types[i]);
    type->tp_free(self);
    Py_DECREF(type);
}

CALLABLE_TYPE(Getter, getter)

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
    if (node != NULL && !IS_LEAF(node)) {
        compute_few(args[0]);
        node = PyErr_Occurred() ? NULL : VERSION_OF(args[0]);
    }
    if (node != NULL && IS_NODE(node))
        node = ((Node *)node)->value;
    else if (node != NULL && IS_REDUCED(node))
        node = ((Reduced *)node)->value;
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

/* Name, signature and the like are those of the function. */
static PyObject *
converter_getattro(PyObject *self, PyObject *name)
{
    return PyObject_GetAttr(((Converter *)self)->python, name);
}

METHOD_TYPE(Converter, converter, {Py_tp_getattro, converter_getattro},)
