/* Where memory begins, and where NumPy's inner loops are (dispatch/addresses.py, backends/host/loops.py): read by
   NumPy's own headers. */

#include "native.h"
#define NO_IMPORT_UFUNC
#include <numpy/ufuncobject.h>

static PyObject *
address_of(PyObject *module, PyObject *x)
{
    if (PyArray_Check(x))
        return PyLong_FromVoidPtr(PyArray_DATA((PyArrayObject *)x));
    if (PyBytes_Check(x))
        return PyLong_FromVoidPtr(PyBytes_AS_STRING(x));
    return PyErr_Format(PyExc_TypeError, "A %s has no address: arrays of NumPy's and bytes have.",
                        Py_TYPE(x)->tp_name);
}

/* The code and the data of a ufunc's loops, in the order of its types. (Null where it has none of a kind.) */
static PyObject *
loops_of(PyObject *module, PyObject *x)
{
    if (strcmp(Py_TYPE(x)->tp_name, "numpy.ufunc") != 0)
        return PyErr_Format(PyExc_TypeError, "A %s is no ufunc of NumPy's.", Py_TYPE(x)->tp_name);
    const PyUFuncObject *ufunc = (PyUFuncObject *)x;
    PyObject *made = PyList_New(0);
    for (int i = 0; made != NULL && ufunc->functions != NULL && i < ufunc->ntypes; i++) {
        PyObject *loop = Py_BuildValue("(nn)", (Py_ssize_t)ufunc->functions[i],
                                       ufunc->data == NULL ? (Py_ssize_t)0 : (Py_ssize_t)ufunc->data[i]);
        if (loop == NULL || PyList_Append(made, loop) < 0)
            Py_CLEAR(made);
        Py_XDECREF(loop);
    }
    return made;
}

PyMethodDef address_methods[] = {
    {"address_of", address_of, METH_O, "Where the elements of an array, or the bytes of a bytes object, begin."},
    {"loops_of", loops_of, METH_O, "The addresses of a ufunc's loops: code and data, in the order of its types."},
    {NULL},
};
