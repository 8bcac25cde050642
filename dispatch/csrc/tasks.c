/* Task lists (backends/host/tasks.py) for Python: pool.c runs them. */

#include "native.h"
#include "pool.h"

PyObject *
task_functions(PyObject *module, PyObject *unused)
{
#define ADDRESS(f) (long long)(intptr_t)(f)
    return Py_BuildValue("LL{iLiLiLiLiL}", ADDRESS(pool_copy), ADDRESS(pool_fold), 1, ADDRESS(pool_fill_1), 2,
                         ADDRESS(pool_fill_2), 4, ADDRESS(pool_fill_4), 8, ADDRESS(pool_fill_8), 16,
                         ADDRESS(pool_fill_16));
}

/* run_tasks(where the list is, times, addresses or None): the number of the statement that failed, plus one, or 0. */
PyObject *
run_tasks(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 3 || (args[2] != Py_None && !PyTuple_CheckExact(args[2]))) {
        PyErr_SetString(PyExc_TypeError, "run_tasks(list, times, addresses)");
        return NULL;
    }
    List *list = PyLong_AsVoidPtr(args[0]);
    int64_t times = PyLong_AsLongLong(args[1]), few[32], *addresses = NULL, failed = 0;
    if (PyErr_Occurred())
        return NULL;
    if (args[2] != Py_None) {
        Py_ssize_t count = PyTuple_GET_SIZE(args[2]);
        addresses = count <= 32 ? few : PyMem_New(int64_t, count);
        if (addresses == NULL)
            return PyErr_NoMemory();
        for (Py_ssize_t i = 0; i < count; i++)
            addresses[i] = (int64_t)(intptr_t)PyLong_AsVoidPtr(PyTuple_GET_ITEM(args[2], i));
    }
    if (!PyErr_Occurred()) {
        Py_BEGIN_ALLOW_THREADS
        failed = pool_run(list, times, addresses);
        Py_END_ALLOW_THREADS
    }
    if (addresses != few)
        PyMem_Free(addresses);
    return PyErr_Occurred() ? NULL : PyLong_FromLongLong(failed);
}

PyObject *
helpers_standing(PyObject *module, PyObject *unused)
{
    return PyLong_FromLong(pool_standing());
}

PyObject *
helpers_started(PyObject *module, PyObject *unused)
{
    return PyLong_FromLong(pool_started());
}

PyObject *
helpers_dismiss(PyObject *module, PyObject *unused)
{
    pool_dismiss();
    Py_RETURN_NONE;
}
