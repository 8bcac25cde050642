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

/* What begins to count while lines are followed notes the clock, unless who does is counting already. */
static double
begin_adding(void)
{
    return state.following && !state.adding++ ? seconds_now() : 0.0;
}

static void
end_adding(double began)
{
    if (began != 0.0) {
        state.adding = 0;
        state.adding_seconds += seconds_now() - began;
    }
}

/* add_counts(name=amount, ...): to every open block of this context. */
PyObject *
add_counts(PyObject *module, PyObject *args, PyObject *amounts)
{
    PyObject *blocks = NULL, *name, *amount;
    if (amounts == NULL)
        Py_RETURN_NONE;
    double began = begin_adding();
    int failed = PyContextVar_Get(state.blocks, NULL, &blocks) < 0;
    for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(blocks); i++)
        for (Py_ssize_t at = 0; !failed && PyDict_Next(amounts, &at, &name, &amount);) {
            PyObject *counters = PyTuple_GET_ITEM(blocks, i), *before = PyObject_GetAttr(counters, name);
            PyObject *after = before == NULL ? NULL : PyNumber_Add(before, amount);
            failed = after == NULL || PyObject_SetAttr(counters, name, after) < 0;
            Py_XDECREF(before);
            Py_XDECREF(after);
        }
    state.counted++;
    Py_XDECREF(blocks);
    if (state.following)
        look_again();
    end_adding(began);
    return failed ? NULL : Py_NewRef(Py_None);
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

/* Add amounts, numbers by their names (as Py_BuildValue takes them). */
static void
add(const char *format, ...)
{
    double began = begin_adding();
    va_list numbers;
    va_start(numbers, format);
    PyObject *amounts = Py_VaBuildValue(format, numbers);
    va_end(numbers);
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyObject *nothing = PyTuple_New(0);
    if (amounts != NULL && nothing != NULL)
        Py_XDECREF(PyObject_Call(state.add, nothing, amounts));
    Py_XDECREF(nothing);
    Py_XDECREF(amounts);
    forgive();
    PyErr_Restore(type, error, traceback);
    end_adding(began);
}

void
count_launch(Py_ssize_t read, Py_ssize_t written)
{
    if (state.counting)
        add("{s:i,s:n,s:n}", "launches", 1, "bytes_read", read, "bytes_written", written);
}

void
count_element(void)
{
    if (state.counting)
        add("{s:i}", "scalar_reads", 1);
}

void
count_messages(Py_ssize_t n, Py_ssize_t bytes)
{
    if (state.counting && n)
        add("{s:n,s:n}", "messages", n, "bytes_sent", bytes);
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
    double began = begin_adding();
    PyObject *evaluation = PyObject_CallFunctionObjArgs(state.evaluation, version, together, NULL);
    forgive();
    end_adding(began);
    return evaluation;
}

void
end_count(PyObject *evaluation, int done)
{
    if (evaluation == NULL)
        return;
    double began = begin_adding();
    if (done) {
        PyObject *type, *error, *traceback;
        PyErr_Fetch(&type, &error, &traceback);
        Py_XDECREF(PyObject_CallMethod(evaluation, "done", NULL));
        forgive();
        PyErr_Restore(type, error, traceback);
    }
    Py_DECREF(evaluation);
    end_adding(began);
}
