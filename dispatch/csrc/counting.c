/* What is done here, told to whoever counts (dispatch/counters.py). While nobody does, that is one comparison. */

#include "native.h"

PyObject *
count_blocks(PyObject *module, PyObject *n)
{
    long blocks = PyLong_AsLong(n);
    if (blocks == -1 && PyErr_Occurred())
        return NULL;
    state.counting = blocks > 0;
    Py_RETURN_NONE;
}

/* What went wrong in counting is said, and does not undo what was counted; who interrupts it, interrupts what is next. */
static void
forgive(void)
{
    if (!PyErr_Occurred())
        return;
    if (!PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
        PyErr_WriteUnraisable(state.add);
        return;
    }
    PyErr_SetInterrupt();
    PyErr_Clear();
}

/* Add amounts, a dictionary (taken over). */
static void
add(PyObject *amounts)
{
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyObject *nothing = PyTuple_New(0);
    if (amounts != NULL && nothing != NULL)
        Py_XDECREF(PyObject_Call(state.add, nothing, amounts));
    Py_XDECREF(nothing);
    Py_XDECREF(amounts);
    forgive();
    PyErr_Restore(type, error, traceback);
}

void
count_launch(Py_ssize_t read, Py_ssize_t written)
{
    if (state.counting)
        add(Py_BuildValue("{s:i,s:n,s:n}", "launches", 1, "bytes_read", read, "bytes_written", written));
}

void
count_element(void)
{
    if (state.counting)
        add(Py_BuildValue("{s:i}", "scalar_reads", 1));
}

void
count_messages(Py_ssize_t n, Py_ssize_t bytes)
{
    if (state.counting && n)
        add(Py_BuildValue("{s:n,s:n}", "messages", n, "bytes_sent", bytes));
}

/* How many bytes an operand of an operation shows; 0 for a number, or what lies elsewhere. */
static PyArrayObject *
shown_by(PyObject *x)
{
    if (IS_NODE(x))
        x = ((Node *)x)->value;
    else if (IS_REDUCED(x))
        x = ((Reduced *)x)->value;
    if (x == NULL || !IS_LEAF(x) || !IS_ARRAY(((Leaf *)x)->view))
        return NULL;
    return (PyArrayObject *)((Leaf *)x)->view;
}

static int
show_the_same(PyArrayObject *a, PyArrayObject *b)
{
    return PyArray_BYTES(a) == PyArray_BYTES(b) && DTYPE(a) == DTYPE(b) && PyArray_NDIM(a) == PyArray_NDIM(b) &&
           same_lengths(PyArray_DIMS(a), PyArray_DIMS(b), PyArray_NDIM(a)) &&
           same_lengths(PyArray_STRIDES(a), PyArray_STRIDES(b), PyArray_NDIM(a));
}

void
count_operation(PyObject *operands, Leaf *value)
{
    if (!state.counting)
        return;
    Py_ssize_t read = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(operands); i++) {
        PyArrayObject *a = shown_by(PyTuple_GET_ITEM(operands, i));
        int met = a == NULL;
        for (Py_ssize_t j = 0; j < i && !met; j++) {
            PyArrayObject *b = shown_by(PyTuple_GET_ITEM(operands, j));
            met = b != NULL && show_the_same(a, b);
        }
        read += met ? 0 : PyArray_NBYTES(a);
    }
    count_launch(read, PyArray_NBYTES((PyArrayObject *)value->view));
}

PyObject *
begin_count(PyObject *version, PyObject *together)
{
    if (!state.counting || state.evaluation == NULL)
        return NULL;
    PyObject *evaluation = PyObject_CallFunctionObjArgs(state.evaluation, version, together, NULL);
    forgive();
    return evaluation;
}

void
end_count(PyObject *evaluation, int done)
{
    if (evaluation == NULL)
        return;
    if (done) {
        PyObject *type, *error, *traceback;
        PyErr_Fetch(&type, &error, &traceback);
        Py_XDECREF(PyObject_CallMethod(evaluation, "done", NULL));
        forgive();
        PyErr_Restore(type, error, traceback);
    }
    Py_DECREF(evaluation);
}
