/* The buffer protocol of arrays (arraytypes/buffers.py) for CPython before 3.12, where no class in Python can offer
   it: a base type with nothing but this one slot. */

#include "native.h"

/* What shows the memory of an array that is evaluated, and that nobody else can write to: a new array, or NULL (with an
   error only if somebody interrupts). */
static PyObject *
snapshot(PyObject *x)
{
    int part = PyType_IsSubtype(Py_TYPE(x), state.view);
    PyObject *whole = part ? SLOT(x, state.view_parent) : x;
    if (whole == NULL || !PyType_IsSubtype(Py_TYPE(whole), state.dense) || !unobserved())
        return NULL;
    compute_few(whole);
    if (PyErr_Occurred())
        return NULL;
    PyObject *version = VERSION_OF(whole);
    if (version != NULL && IS_NODE(version))
        version = ((Node *)version)->value;
    else if (version != NULL && IS_REDUCED(version))
        version = ((Reduced *)version)->value;
    if (version == NULL || !IS_LEAF(version) || !IS_ARRAY(((Leaf *)version)->view) || !adopted((Leaf *)version))
        return NULL;
    PyObject *shown = PyArray_View((PyArrayObject *)((Leaf *)version)->view, NULL, NULL);
    shown = memory_shown(x, shown);
    if (shown != NULL)
        PyArray_CLEARFLAGS((PyArrayObject *)shown, NPY_ARRAY_WRITEABLE);
    left_to_python();
    return shown;
}

/* A buffer of the array is one of what its attribute `_exported` says; errors on the way are the caller's. */
static int
get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    PyObject *exported = state.dense == NULL ? NULL : snapshot(self);
    if (exported == NULL && !PyErr_Occurred())
        exported = PyObject_GetAttrString(self, "_exported");
    if (exported == NULL)
        return -1;
    int failed = PyObject_GetBuffer(exported, view, flags);
    Py_DECREF(exported);
    return failed;
}

static PyType_Slot slots[] = {{Py_bf_getbuffer, get_buffer}, {0}};
PyType_Spec buffered_spec = {"mirabelle.Buffered", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
