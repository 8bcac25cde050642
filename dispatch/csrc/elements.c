/* Single numbers as arrays without axes. Loops over elements make and let go of millions, and most of what one costs is
   memory for a handle, its leaf and NumPy's array: some of those that nobody has any more are kept for the next. */

#include "native.h"

#define PLACES 64
#define SPARE 8

/* Handles of one type that nobody has, each with a version that nobody else has. */
typedef struct {
    PyTypeObject *type;
    int n;
    Handle *spare[SPARE];
} Place;

static Place places[PLACES];

static inline Place *
place_of(PyTypeObject *type)
{
    size_t at = (size_t)type >> 4;
    return &places[(at ^ at >> 6 ^ at >> 12) % PLACES];
}

/* What NumPy says of an array without axes that it has just made. */
#define NEW (NPY_ARRAY_CARRAY | NPY_ARRAY_F_CONTIGUOUS | NPY_ARRAY_OWNDATA)

static inline int
has_no_names(PyObject *x)
{
    Py_ssize_t names = Py_TYPE(x)->tp_weaklistoffset;
    return names <= 0 || SLOT(x, names) == NULL;
}

/* Is a version, which one handle has, as good as new? */
static int
is_as_new(PyObject *version)
{
    Leaf *leaf = (Leaf *)version;
    if (version == NULL || !IS_LEAF(version) || !is_alone(version) || leaf->root != Py_None || leaf->parts != NULL || leaf->known != Py_None || leaf->reducers != Py_None ||
        leaf->foreign != Py_False || leaf->table != Py_False || leaf->checked != Py_False || leaf->address != NULL ||
        !has_no_names(version))
        return 0;
    PyArrayObject *a = (PyArrayObject *)leaf->view;
    return a != NULL && is_unshared((PyObject *)a) && PyArray_NDIM(a) == 0 && PyArray_FLAGS(a) == NEW && DTYPE(a) == leaf->dtype && !PyArray_HASFIELDS(a) &&
           !PyDataType_REFCHK(PyArray_DESCR(a)) && has_no_names((PyObject *)a);
}

int
keep_element(Handle *self)
{
    Place *place = place_of(Py_TYPE(self));
    if (place->type != Py_TYPE(self) || place->n == SPARE || !is_as_new(self->version))
        return 0;
    /* (The handle may go because the collector takes a cycle apart, and the leaf would be next.) */
    PyObject_GC_UnTrack(self->version);
    place->spare[place->n++] = self;
    return 1;
}

/* Have what goes of a type kept from now on, unless others of the same place are, or it is more than a handle. */
static void
begin_keeping(PyTypeObject *type)
{
    Place *place = place_of(type);
    if (place->type == type || place->n > 0 || type->tp_dictoffset != 0 || type->tp_finalize != NULL ||
        type->tp_del != NULL || !PyType_IsSubtype(type, state.dense))
        return;
    Py_XSETREF(place->type, (PyTypeObject *)Py_NewRef((PyObject *)type));
}

PyObject *
new_element(PyTypeObject *type, PyArray_Descr *dtype, const void *data, int picked)
{
    Place *place = place_of(type);
    if (place->type == type && place->n > 0) {
        Handle *self = place->spare[place->n - 1];
        Leaf *leaf = (Leaf *)self->version;
        if (leaf->dtype == (PyObject *)dtype) {
            place->n--;
            memcpy(PyArray_BYTES((PyArrayObject *)leaf->view), data, (size_t)PyDataType_ELSIZE(dtype));
            leaf->writes = 0;
            leaf->holders = 1;
            Py_SETREF(leaf->element, Py_NewRef(picked ? Py_True : Py_False));
            _Py_NewReference((PyObject *)self);
            return (PyObject *)self;
        }
    }
    Py_INCREF(dtype);
    PyObject *value = PyArray_NewFromDescr(&PyArray_Type, dtype, 0, NULL, NULL, NULL, 0, NULL);
    PyObject *shape = value == NULL ? NULL : PyTuple_New(0);
    Leaf *leaf = shape == NULL ? NULL : new_leaf(value, shape, (PyObject *)dtype);
    Py_XDECREF(shape);
    if (leaf == NULL) {
        Py_XDECREF(value);
        return NULL;
    }
    memcpy(PyArray_BYTES((PyArrayObject *)value), data, (size_t)PyDataType_ELSIZE(dtype));
    Py_DECREF(value);
    if (picked)
        Py_SETREF(leaf->element, Py_NewRef(Py_True));
    PyObject *self = new_handle(type, (PyObject *)leaf);
    if (self == NULL)
        return NULL;
    /* (A number leads back to no array: they are part of no cycle.) */
    PyObject_GC_UnTrack(leaf);
    PyObject_GC_UnTrack(self);
    begin_keeping(type);
    return self;
}
