/* Where the elements of lines are in their order, equal ones as they come (backends/host/sorting.py).

   Each element becomes a number without sign that is ordered as NumPy orders elements (zeros of both signs are one
   number, and so are all NaNs, the largest), beside its place: a record. Records go to groups by the first bits in
   which their numbers differ, and those of a group to groups by the next, until few are left in each (records.h). */

#include "native.h"

Record *
sort_records(Record *a, Record *b, Py_ssize_t n)
{
    return records_sorted(a, b, n);
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
        const Record *sorted = sort_records(records, records + x.length, x.length);
        for (Py_ssize_t i = 0; i < x.length; i++)
            out[line * x.length + i] = sorted[i].at;
    }
    Py_END_ALLOW_THREADS
    PyMem_RawFree(records);
    Py_RETURN_NONE;
}

/* Places of equal elements, as they come; was there memory for it? */
static int
ascend(int64_t *at, Py_ssize_t n)
{
    if (n <= LONE) {
        for (Py_ssize_t i = 1; i < n; i++) {
            int64_t place = at[i];
            Py_ssize_t j = i;
            for (; j > 0 && at[j - 1] > place; j--)
                at[j] = at[j - 1];
            at[j] = place;
        }
        return 1;
    }
    Record *records = PyMem_RawMalloc(2 * n * sizeof(Record));
    if (records == NULL)
        return 0;
    for (Py_ssize_t i = 0; i < n; i++)
        records[i] = (Record){(uint64_t)at[i], i};
    const Record *sorted = sort_records(records, records + n, n);
    for (Py_ssize_t i = 0; i < n; i++)
        at[i] = (int64_t)sorted[i].number;
    PyMem_RawFree(records);
    return 1;
}

/* Of equal elements of a line whose order this is, the places as they come; was there memory for it? (NaNs are equal to
   nothing, and stand at the end.) */
#define NO_ORDER (-1)
#define TIES(name, type) \
    static int name(const char *line, Py_ssize_t n, int64_t *at) \
    { \
        const type *x = (const type *)line; \
        Py_ssize_t start = 0, i = 1; \
        if (n == 0 || (uint64_t)at[0] >= (uint64_t)n) \
            return n ? NO_ORDER : 1; \
        for (type last = x[at[0]]; i < n && (uint64_t)at[i] < (uint64_t)n; i++) { \
            type element = x[at[i]]; \
            if (element != last) { \
                if (i - start > 1 && !ascend(at + start, i - start)) \
                    return 0; \
                start = i; \
                last = element; \
            } \
        } \
        if (i < n) \
            return NO_ORDER; \
        if (i - start > 1 && !ascend(at + start, i - start)) \
            return 0; \
        for (; i > 0 && x[at[i - 1]] != x[at[i - 1]]; i--) \
            ; \
        return n - i < 2 || ascend(at + i, n - i); \
    }

TIES(ties_i32, int32_t)
TIES(ties_i64, int64_t)
TIES(ties_f32, float)
TIES(ties_f64, double)

/* argsort_ties(x, kind, out, first, last): `out` has an order of each of some lines, of elements of four or eight bytes;
   that of equal ones becomes the one in which they come. */
PyObject *
argsort_ties(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Lines x;
    Py_ssize_t part[2];
    if (n != 5) {
        PyErr_SetString(PyExc_TypeError, "argsort_ties(x, kind, out, first, last)");
        return NULL;
    }
    if (!lines_of(args[0], args[1], &x) || !edges_of(args + 3, 2, part, x.lines))
        return NULL;
    int64_t *out = room(args[2], x.lines * x.length);
    if (out == NULL)
        return NULL;
    if (x.size < 4)
        return no_room();
    int done = 1, real = x.kind == FLOATING;
    int (*ties)(const char *, Py_ssize_t, int64_t *) = real ? ties_f32 : ties_i32;
    if (x.size == 8)
        ties = real ? ties_f64 : ties_i64;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t line = part[0]; line < part[1] && done == 1; line++)
        done = ties(x.data + line * x.length * x.size, x.length, out + line * x.length);
    Py_END_ALLOW_THREADS
    if (done != 1)
        return done ? no_room() : PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* Records of elements in an order of them; is each of it a place? */
static int
records_in_order(Record *to, char *beside, const char *x, Py_ssize_t n, const int64_t *at, const Lines *of, int64_t first)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        if ((uint64_t)at[i] >= (uint64_t)n)
            return 0;
        memcpy(beside + i * of->size, x + at[i] * of->size, of->size);
    }
    make_records(to, beside, n, 0, of->kind, of->size);
    for (Py_ssize_t i = 0; i < n; i++)
        to[i].at = first + at[i];
    return 1;
}

/* argsort_part(x, kind, records, scratch, first, last[, order]): the records of a part of a line, in order, which may be
   known (argsort_ties). */
PyObject *
argsort_part(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Lines x;
    Py_ssize_t part[2];
    if (n != 6 && n != 7) {
        PyErr_SetString(PyExc_TypeError, "argsort_part(x, kind, records, scratch, first, last, order)");
        return NULL;
    }
    if (!lines_of(args[0], args[1], &x) || !edges_of(args + 4, 2, part, x.length))
        return NULL;
    Record *records = room(args[2], 2 * x.length), *scratch = room(args[3], 2 * x.length);
    Py_ssize_t count = part[1] - part[0];
    int64_t *order = n == 7 && records && scratch ? room(args[6], count) : NULL;
    if (records == NULL || scratch == NULL || (n == 7 && order == NULL))
        return NULL;
    int done = 1;
    Py_BEGIN_ALLOW_THREADS
    const char *from = x.data + part[0] * x.size;
    records += part[0];
    scratch += part[0];
    if (order != NULL)
        done = records_in_order(records, (char *)scratch, from, count, order, &x, part[0]);
    else {
        make_records(records, from, count, part[0], x.kind, x.size);
        if (sort_records(records, scratch, count) != records)
            memcpy(records, scratch, count * sizeof(Record));
    }
    Py_END_ALLOW_THREADS
    if (!done)
        return no_room();
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
