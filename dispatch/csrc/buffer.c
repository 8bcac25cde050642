/* The buffer protocol of arrays (arraytypes/buffers.py) for CPython before 3.12, where no class in Python can offer
   it: a base type with nothing but this one slot. */

#include "native.h"

/* A buffer of the array is one of what its attribute `_exported` says; errors on the way are the caller's. */
static int
get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    PyObject *exported = PyObject_GetAttrString(self, "_exported");
    if (exported == NULL)
        return -1;
    int failed = PyObject_GetBuffer(exported, view, flags);
    Py_DECREF(exported);
    return failed;
}

static PyType_Slot slots[] = {{Py_bf_getbuffer, get_buffer}, {0}};
PyType_Spec buffered_spec = {"mirabelle.Buffered", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
