/* Elements that masks pick, and writes to them (backends/host/picking.py).

   A mask is gone through eight elements at a time: where it holds for all of them, or for none, as it mostly does,
   nothing is asked of each; elsewhere nothing is guessed. */

#include "native.h"

#define EIGHT 0x0101010101010101u
/* Others may run meanwhile if so many bytes are looked at. */
#define LONG (1 << 17)
#define LANES 64

/* What a mask is of: elements of so many bytes, side by side, as many as the mask has. */
typedef struct {
    const unsigned char *mask;
    char *data;
    Py_ssize_t count, size;
} Masked;

/* 1; 0 if array and mask do not lie as is needed here, or the shape of the mask is another. */
static int
masked(PyObject *x, PyObject *y, Masked *found)
{
    if (!IS_ARRAY(x) || !IS_ARRAY(y))
        return 0;
    const PyArrayObject *a = (PyArrayObject *)x, *mask = (PyArrayObject *)y;
    if (!PyArray_IS_C_CONTIGUOUS(a) || !PyArray_IS_C_CONTIGUOUS(mask) || PyArray_NDIM(mask) > PyArray_NDIM(a) ||
        PyArray_NDIM(mask) < 1 || PyArray_ITEMSIZE(mask) != 1)
        return 0;
    for (int d = 0; d < PyArray_NDIM(mask); d++)
        if (PyArray_DIMS(a)[d] != PyArray_DIMS(mask)[d])
            return 0;
    found->size = PyArray_ITEMSIZE(a);
    for (int d = PyArray_NDIM(mask); d < PyArray_NDIM(a); d++)
        found->size *= PyArray_DIMS(a)[d];
    found->mask = (unsigned char *)PyArray_BYTES(mask);
    found->count = elements(mask);
    found->data = PyArray_BYTES(a);
    return 1;
}

/* The lowest bit that is set of some. (The first byte of eight is the lowest: native.py asks for that.) */
static inline int
first_bit(uint64_t w)
{
#if defined(__GNUC__)
    return __builtin_ctzll(w);
#else
    int i = 0;
    while (!(w >> i & 1))
        i++;
    return i;
#endif
}

static Py_ssize_t
count_true(const unsigned char *mask, Py_ssize_t n)
{
    Py_ssize_t count = 0, i = 0;
    while (i + LANES <= n) {
        /* In each lane as many as a byte can count. */
        unsigned char lanes[LANES] = {0};
        Py_ssize_t stop = n - i > 255 * LANES ? i + 255 * LANES : n - LANES + 1;
        for (; i < stop; i += LANES)
            for (int j = 0; j < LANES; j++)
                lanes[j] += mask[i + j] != 0;
        for (int j = 0; j < LANES; j++)
            count += lanes[j];
    }
    for (; i < n; i++)
        count += mask[i] != 0;
    return count;
}

/* Copy eight elements. (In sixteens, as compilers make string instructions of larger copies, which begin slowly.) */
static Py_ALWAYS_INLINE inline void
copy_eight(char *to, const char *from, const Py_ssize_t size)
{
    if (size == 2 || size == 4 || size == 8 || size == 16)
        for (Py_ssize_t b = 0; b < 8 * size; b += 16)
            memcpy(to + b, from + b, 16);
    else
        memcpy(to, from, 8 * size);
}

/* The picked elements one after another, at most so many (somebody may write to the mask meanwhile). */
static Py_ALWAYS_INLINE inline void
pick_sized(const unsigned char *mask, Py_ssize_t n, const char *from, char *to, Py_ssize_t room, const Py_ssize_t size)
{
    Py_ssize_t k = 0, i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t w;
        memcpy(&w, mask + i, 8);
        if (w == 0)
            continue;
        if (k + 8 > room) { /* (what would be written and not count has no room) */
            for (int j = 0; j < 8; j++)
                if (mask[i + j] && k < room)
                    memcpy(to + k++ * size, from + (i + j) * size, size);
        }
        else if (w == EIGHT) {
            copy_eight(to + k * size, from + i * size, size);
            k += 8;
        }
        else
            for (int j = 0; j < 8; j++) {
                memcpy(to + k * size, from + (i + j) * size, size);
                k += mask[i + j] != 0;
            }
    }
    for (; i < n; i++)
        if (mask[i] && k < room)
            memcpy(to + k++ * size, from + i * size, size);
}

/* Eight truth values, each a byte that is 0 or 1. (Who looks at other bytes as truth values may see others.) */
static inline uint64_t
truths(const unsigned char *mask)
{
    uint64_t w;
    memcpy(&w, mask, 8);
    if (w == EIGHT || w == 0)
        return w;
    w |= w >> 4 & 0x0f0f0f0f0f0f0f0fu;
    w |= w >> 2 & 0x3f3f3f3f3f3f3f3fu;
    w |= w >> 1;
    return w & EIGHT;
}

/* Values to picked elements, one after another, at most so many. */
static Py_ALWAYS_INLINE inline void
put_sized(const unsigned char *mask, Py_ssize_t n, char *to, const char *values, Py_ssize_t room, const Py_ssize_t size)
{
    Py_ssize_t k = 0, i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t w = truths(mask + i);
        if (w == EIGHT && k + 8 <= room) {
            copy_eight(to + i * size, values + k * size, size);
            k += 8;
        }
        else
            for (; w && k < room; w &= w - 1, k++)
                memcpy(to + (i + (first_bit(w) >> 3)) * size, values + k * size, size);
    }
    for (; i < n; i++)
        if (mask[i] && k < room)
            memcpy(to + i * size, values + k++ * size, size);
}

/* One value to all of them. */
static Py_ALWAYS_INLINE inline void
fill_sized(const unsigned char *mask, Py_ssize_t n, char *to, const char *value, const Py_ssize_t size)
{
    Py_ssize_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t w = truths(mask + i);
        if (w == EIGHT)
            for (int j = 0; j < 8; j++)
                memcpy(to + (i + j) * size, value, size);
        else
            for (; w; w &= w - 1)
                memcpy(to + (i + (first_bit(w) >> 3)) * size, value, size);
    }
    for (; i < n; i++)
        if (mask[i])
            memcpy(to + i * size, value, size);
}

#define SIZED(size, call) \
    switch (size) { \
    case 1: call(1); break; \
    case 2: call(2); break; \
    case 4: call(4); break; \
    case 8: call(8); break; \
    case 16: call(16); break; \
    default: call(size); \
    }

static void
pick(const Masked *m, Py_ssize_t start, Py_ssize_t stop, char *to, Py_ssize_t room)
{
    const unsigned char *mask = m->mask + start;
    const char *from = m->data + start * m->size;
#define PICK(size) pick_sized(mask, stop - start, from, to, room, size)
    SIZED(m->size, PICK)
}

static void
put(const Masked *m, const char *values, Py_ssize_t count)
{
#define PUT(size) put_sized(m->mask, m->count, m->data, values, count, size)
    SIZED(m->size, PUT)
}

static void
fill(const Masked *m, const char *value)
{
#define FILL(size) fill_sized(m->mask, m->count, m->data, value, size)
    SIZED(m->size, FILL)
}

/* Let others run while so many bytes are looked at. */
static PyThreadState *
leave(Py_ssize_t bytes)
{
    return bytes >= LONG ? PyEval_SaveThread() : NULL;
}

static void
come_back(PyThreadState *left)
{
    if (left != NULL)
        PyEval_RestoreThread(left);
}

/* A part of what is masked: from ... to. */
static int
within(const Masked *m, PyObject *from, PyObject *to, Py_ssize_t *start, Py_ssize_t *stop)
{
    *start = PyLong_AsSsize_t(from);
    *stop = PyLong_AsSsize_t(to);
    if (!PyErr_Occurred() && (*start < 0 || *start > *stop || *stop > m->count))
        PyErr_SetString(PyExc_ValueError, "The mask has no such part.");
    return !PyErr_Occurred();
}

PyObject *
mask_count(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Masked m;
    Py_ssize_t start, stop;
    if (n != 3 || !masked(args[0], args[0], &m)) {
        PyErr_SetString(PyExc_TypeError, "mask_count(mask, start, stop)");
        return NULL;
    }
    if (!within(&m, args[1], args[2], &start, &stop))
        return NULL;
    PyThreadState *left = leave(stop - start);
    Py_ssize_t count = count_true(m.mask + start, stop - start);
    come_back(left);
    return PyLong_FromSsize_t(count);
}

PyObject *
mask_pick(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Masked m;
    Py_ssize_t start, stop, first, last;
    if (n != 7 || !masked(args[0], args[1], &m) || !IS_ARRAY(args[2])) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "mask_pick(array, mask, values, start, stop, first, last)");
        return NULL;
    }
    PyArrayObject *out = (PyArrayObject *)args[2];
    Masked whole = {NULL, PyArray_BYTES(out), m.size ? elements(out) * PyArray_ITEMSIZE(out) / m.size : 0, m.size};
    if (!within(&m, args[3], args[4], &start, &stop) || !within(&whole, args[5], args[6], &first, &last))
        return NULL;
    if (!PyArray_IS_C_CONTIGUOUS(out) || DTYPE(out) != DTYPE((PyArrayObject *)args[0])) {
        PyErr_SetString(PyExc_ValueError, "The values lie elsewhere.");
        return NULL;
    }
    PyThreadState *left = leave((last - first) * m.size);
    pick(&m, start, stop, PyArray_BYTES(out) + first * m.size, last - first);
    come_back(left);
    Py_RETURN_NONE;
}

PyObject *
mask_picked(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Masked m;
    if (n != 2) {
        PyErr_SetString(PyExc_TypeError, "mask_picked(array, mask)");
        return NULL;
    }
    if (!masked(args[0], args[1], &m))
        Py_RETURN_NONE;
    const PyArrayObject *a = (PyArrayObject *)args[0];
    int nd = PyArray_NDIM((PyArrayObject *)args[1]);
    PyThreadState *left = leave(m.count);
    Py_ssize_t count = count_true(m.mask, m.count);
    come_back(left);
    PyObject *shape = PyTuple_New(PyArray_NDIM(a) - nd + 1);
    if (shape == NULL)
        return NULL;
    PyTuple_SET_ITEM(shape, 0, PyLong_FromSsize_t(count));
    for (int d = nd; d < PyArray_NDIM(a); d++)
        PyTuple_SET_ITEM(shape, d - nd + 1, PyLong_FromSsize_t(PyArray_DIMS(a)[d]));
    PyObject *out = PyErr_Occurred() ? NULL : PyObject_CallFunctionObjArgs(state.empty, shape, DTYPE(a), NULL);
    Py_DECREF(shape);
    if (out != NULL && !IS_ARRAY(out)) {
        Py_CLEAR(out);
        PyErr_SetString(PyExc_TypeError, "An array of NumPy is expected.");
    }
    if (out == NULL)
        return NULL;
    left = leave(count * m.size);
    pick(&m, 0, m.count, PyArray_BYTES((PyArrayObject *)out), count);
    come_back(left);
    return out;
}

/* Do the bytes of an array and those of values not meet? */
static int
apart(const Masked *m, const PyArrayObject *values)
{
    Py_ssize_t bytes = elements(values) * PyArray_ITEMSIZE(values);
    return PyArray_BYTES(values) + bytes <= m->data || m->data + m->count * m->size <= PyArray_BYTES(values);
}

PyObject *
mask_put(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Masked m;
    if (n != 3) {
        PyErr_SetString(PyExc_TypeError, "mask_put(array, mask, values)");
        return NULL;
    }
    if (!masked(args[0], args[1], &m) || !IS_ARRAY(args[2]))
        Py_RETURN_FALSE;
    const PyArrayObject *a = (PyArrayObject *)args[0], *mask = (PyArrayObject *)args[1];
    const PyArrayObject *values = (PyArrayObject *)args[2];
    Masked over = {NULL, PyArray_BYTES(mask), m.count, 1};
    if (DTYPE(values) != DTYPE(a) || !PyArray_IS_C_CONTIGUOUS(values) || !PyArray_ISWRITEABLE(a) ||
        !apart(&m, values) || !apart(&over, a) ||
        (PyArray_NDIM(values) && PyArray_NDIM(values) != PyArray_NDIM(a) - PyArray_NDIM(mask) + 1))
        Py_RETURN_FALSE;
    if (PyArray_NDIM(values) == 0 && PyArray_NDIM(a) > PyArray_NDIM(mask)) /* (one element of many) */
        Py_RETURN_FALSE;
    for (int d = PyArray_NDIM(mask); d < PyArray_NDIM(a); d++)
        if (PyArray_DIMS(values)[d - PyArray_NDIM(mask) + 1] != PyArray_DIMS(a)[d])
            Py_RETURN_FALSE;
    PyThreadState *left = leave(m.count);
    int meets = PyArray_NDIM(values) == 0;
    if (meets)
        fill(&m, PyArray_BYTES(values));
    else {
        Py_ssize_t count = count_true(m.mask, m.count);
        meets = PyArray_DIMS(values)[0] == count;
        if (meets)
            put(&m, PyArray_BYTES(values), count);
    }
    come_back(left);
    return PyBool_FromLong(meets); /* (who is to say what is wrong with others knows) */
}
