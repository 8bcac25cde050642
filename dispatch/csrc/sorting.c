/* Where the elements of lines are in their order, equal ones as they come (backends/host/sorting.py).

   Each element becomes a number without sign that is ordered as NumPy orders elements (zeros of both signs are one
   number, and so are all NaNs, the largest), beside its place: a record. Records are sorted by one byte of the number
   after the other, from the lowest on. Bytes that all have in common are left out. */

#include "native.h"

Record *
sort_records(Record *a, Record *b, Py_ssize_t n, int size)
{
    return records_sorted(a, b, n, size);
}

/* How many records of `a` are among the first `count` of both, merged. */
static Py_ssize_t
split(const Record *a, Py_ssize_t na, const Record *b, Py_ssize_t nb, Py_ssize_t count)
{
    Py_ssize_t low = count > nb ? count - nb : 0, high = count < na ? count : na;
    while (low < high) {
        Py_ssize_t i = low + (high - low) / 2;
        if (b[count - i - 1].number < a[i].number)
            high = i;
        else
            low = i + 1;
    }
    return low;
}

int
lines_of(PyObject *x, PyObject *kind, Lines *found)
{
    if (!IS_ARRAY(x) || !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)x) || PyArray_NDIM((PyArrayObject *)x) < 1) {
        PyErr_SetString(PyExc_TypeError, "An array of NumPy without gaps is expected.");
        return 0;
    }
    const PyArrayObject *a = (PyArrayObject *)x;
    found->size = PyArray_ITEMSIZE(a);
    found->kind = PyLong_AsLong(kind);
    if (PyErr_Occurred())
        return 0;
    if ((found->size != 1 && found->size != 2 && found->size != 4 && found->size != 8) || found->kind < UNSIGNED ||
        found->kind > FLOATING || (found->kind == FLOATING && found->size == 1)) {
        PyErr_SetString(PyExc_ValueError, "Elements of this kind are not sorted here.");
        return 0;
    }
    found->data = PyArray_BYTES(a);
    found->length = PyArray_DIMS(a)[PyArray_NDIM(a) - 1];
    found->lines = found->length ? elements(a) / found->length : 0;
    return 1;
}

void *
no_room(void)
{
    PyErr_SetString(PyExc_TypeError, "Memory for the result is expected.");
    return NULL;
}

void *
room(PyObject *x, Py_ssize_t numbers)
{
    const PyArrayObject *a = (PyArrayObject *)x;
    if (!IS_ARRAY(x) || !PyArray_IS_C_CONTIGUOUS(a) || !PyArray_ISWRITEABLE(a) || elements(a) != numbers)
        return no_room();
    return PyArray_BYTES(a);
}

int
edges_of(PyObject *const *args, int n, Py_ssize_t *found, Py_ssize_t most)
{
    for (int i = 0; i < n; i++) {
        found[i] = PyLong_AsSsize_t(args[i]);
        if (PyErr_Occurred())
            return 0;
        if (found[i] < (i ? found[i - 1] : 0) || found[i] > most) {
            PyErr_SetString(PyExc_ValueError, "There is no such part.");
            return 0;
        }
    }
    return 1;
}

/* argsort_lines(x, kind, out, first, last): the order of each of some lines. */
PyObject *
argsort_lines(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Lines x;
    Py_ssize_t part[2];
    if (n != 5) {
        PyErr_SetString(PyExc_TypeError, "argsort_lines(x, kind, out, first, last)");
        return NULL;
    }
    if (!lines_of(args[0], args[1], &x) || !edges_of(args + 3, 2, part, x.lines))
        return NULL;
    int64_t *out = room(args[2], x.lines * x.length);
    if (out == NULL)
        return NULL;
    Record *records = PyMem_RawMalloc(2 * x.length * sizeof(Record) + 1);
    if (records == NULL)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t line = part[0]; line < part[1]; line++) {
        make_records(records, x.data + line * x.length * x.size, x.length, 0, x.kind, x.size);
        const Record *sorted = sort_records(records, records + x.length, x.length, x.size);
        for (Py_ssize_t i = 0; i < x.length; i++)
            out[line * x.length + i] = sorted[i].at;
    }
    Py_END_ALLOW_THREADS
    PyMem_RawFree(records);
    Py_RETURN_NONE;
}

/* argsort_part(x, kind, records, scratch, first, last): the records of a part of a line, in order. */
PyObject *
argsort_part(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Lines x;
    Py_ssize_t part[2];
    if (n != 6) {
        PyErr_SetString(PyExc_TypeError, "argsort_part(x, kind, records, scratch, first, last)");
        return NULL;
    }
    if (!lines_of(args[0], args[1], &x) || !edges_of(args + 4, 2, part, x.length))
        return NULL;
    Record *records = room(args[2], 2 * x.length), *scratch = room(args[3], 2 * x.length);
    if (records == NULL || scratch == NULL)
        return NULL;
    Py_ssize_t count = part[1] - part[0];
    Py_BEGIN_ALLOW_THREADS
    records += part[0];
    scratch += part[0];
    make_records(records, x.data + part[0] * x.size, count, part[0], x.kind, x.size);
    if (sort_records(records, scratch, count, x.size) != records)
        memcpy(records, scratch, count * sizeof(Record));
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* argsort_merged(records, out, start, middle, end, first, last): of the runs start ... middle ... end, merged, the
   records from first to last; only their places, if there is no room for more. */
PyObject *
argsort_merged(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Py_ssize_t runs[3], part[2];
    if (n != 7 || !IS_ARRAY(args[0]) || !IS_ARRAY(args[1])) {
        PyErr_SetString(PyExc_TypeError, "argsort_merged(records, out, start, middle, end, first, last)");
        return NULL;
    }
    Py_ssize_t all = elements((PyArrayObject *)args[0]);
    const Record *records = room(args[0], all);
    Py_ssize_t each = elements((PyArrayObject *)args[1]) == all ? 2 : 1;
    all /= 2;
    int64_t *out = room(args[1], each * all);
    if (records == NULL || out == NULL || !edges_of(args + 2, 3, runs, all) ||
        !edges_of(args + 5, 2, part, runs[2] - runs[0]))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    const Record *a = records + runs[0], *b = records + runs[1];
    Py_ssize_t na = runs[1] - runs[0], nb = runs[2] - runs[1];
    Py_ssize_t i = split(a, na, b, nb, part[0]), j = part[0] - i;
    for (Py_ssize_t k = part[0]; k < part[1]; k++) {
        int second = j < nb && (i >= na || b[j].number < a[i].number);
        const Record *r = second ? b + j : a + i;
        j += second;
        i += !second;
        if (each == 2)
            ((Record *)out)[runs[0] + k] = *r;
        else
            out[runs[0] + k] = r->at;
    }
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}
