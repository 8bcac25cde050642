/* The elements of lines in order (backends/host/sorting.py), where nobody asks where they stood.

   As in sorting.c elements become numbers without sign that are ordered as NumPy orders elements, and those are
   sorted by one byte after the other, from the lowest on; bytes that all have in common are left out. Here each
   element has a number of its own, from which it comes back with all its bits: zeros by their sign, NaNs of either
   sign above all else. */

#include "native.h"

#define VALUES 256

/* How many NaNs have a sign: turned over, they would come first of all. */
#define SIGNED_NANS(width) (((uint64_t)1 << ((width) == 64 ? 52 : (width) == 32 ? 23 : 10)) - 1)

static Py_ALWAYS_INLINE inline uint64_t
number_of(uint64_t bits, const int kind, const int width)
{
    const uint64_t sign = (uint64_t)1 << (width - 1), all = sign | (sign - 1);
    if (kind == UNSIGNED)
        return bits;
    if (kind == SIGNED)
        return bits ^ sign;
    return ((bits & sign ? ~bits : bits | sign) - SIGNED_NANS(width)) & all;
}

static Py_ALWAYS_INLINE inline uint64_t
bits_of(uint64_t number, const int kind, const int width)
{
    const uint64_t sign = (uint64_t)1 << (width - 1), all = sign | (sign - 1);
    if (kind == UNSIGNED)
        return number;
    if (kind == SIGNED)
        return number ^ sign;
    number = (number + SIGNED_NANS(width)) & all;
    return number & sign ? number & (sign - 1) : ~number & all;
}

/* Sort so many elements, by way of as much memory beside them. */
#define SORT(name, type, kind) \
    static void name(void *elements, void *beside, Py_ssize_t n) \
    { \
        enum { bytes = sizeof(type), width = 8 * sizeof(type) }; \
        Py_ssize_t counts[bytes][VALUES]; \
        type *x = elements, *from = x, *to = beside; \
        memset(counts, 0, sizeof(counts)); \
        for (Py_ssize_t i = 0; i < n; i++) { \
            type number = (type)number_of(x[i], kind, width); \
            x[i] = number; \
            for (int byte = 0; byte < bytes; byte++) \
                counts[byte][number >> (8 * byte) & 0xff]++; \
        } \
        for (int byte = 0; byte < bytes; byte++) { \
            Py_ssize_t *next = counts[byte], before = 0; \
            if (next[from[0] >> (8 * byte) & 0xff] == n) \
                continue; \
            for (int value = 0; value < VALUES; value++) { \
                Py_ssize_t count = next[value]; \
                next[value] = before; \
                before += count; \
            } \
            for (Py_ssize_t i = 0; i < n; i++) \
                to[next[from[i] >> (8 * byte) & 0xff]++] = from[i]; \
            type *other = from; \
            from = to; \
            to = other; \
        } \
        for (Py_ssize_t i = 0; i < n; i++) \
            x[i] = (type)bits_of(from[i], kind, width); \
    }

/* Of two runs, merged, the elements from first to last. */
#define MERGE(name, type, kind) \
    static void name(const void *one, Py_ssize_t na, const void *other, Py_ssize_t nb, void *merged, \
                     Py_ssize_t first, Py_ssize_t last) \
    { \
        enum { width = 8 * sizeof(type) }; \
        const type *a = one, *b = other; \
        type *out = merged; \
        Py_ssize_t low = first > nb ? first - nb : 0, high = first < na ? first : na; \
        while (low < high) { \
            Py_ssize_t i = low + (high - low) / 2; \
            if (number_of(b[first - i - 1], kind, width) < number_of(a[i], kind, width)) \
                high = i; \
            else \
                low = i + 1; \
        } \
        Py_ssize_t i = low, j = first - low, k = first; \
        for (; k < last && i < na && j < nb; k++) { \
            int second = number_of(b[j], kind, width) < number_of(a[i], kind, width); \
            out[k] = second ? b[j] : a[i]; \
            j += second; \
            i += !second; \
        } \
        for (; k < last && i < na; k++) \
            out[k] = a[i++]; \
        for (; k < last; k++) \
            out[k] = b[j++]; \
    }

#define BOTH(suffix, type, kind) SORT(sort_##suffix, type, kind) MERGE(merge_##suffix, type, kind)

BOTH(u8, uint8_t, UNSIGNED)
BOTH(u16, uint16_t, UNSIGNED)
BOTH(u32, uint32_t, UNSIGNED)
BOTH(u64, uint64_t, UNSIGNED)
BOTH(i8, uint8_t, SIGNED)
BOTH(i16, uint16_t, SIGNED)
BOTH(i32, uint32_t, SIGNED)
BOTH(i64, uint64_t, SIGNED)
BOTH(f16, uint16_t, FLOATING)
BOTH(f32, uint32_t, FLOATING)
BOTH(f64, uint64_t, FLOATING)

typedef void (*Sort)(void *, void *, Py_ssize_t);
typedef void (*Merge)(const void *, Py_ssize_t, const void *, Py_ssize_t, void *, Py_ssize_t, Py_ssize_t);

/* By the kind, and the logarithm of the size. */
static const Sort sorts[3][4] = {
    {sort_u8, sort_u16, sort_u32, sort_u64},
    {sort_i8, sort_i16, sort_i32, sort_i64},
    {NULL, sort_f16, sort_f32, sort_f64},
};
static const Merge merges[3][4] = {
    {merge_u8, merge_u16, merge_u32, merge_u64},
    {merge_i8, merge_i16, merge_i32, merge_i64},
    {NULL, merge_f16, merge_f32, merge_f64},
};

static int
logarithm(int size)
{
    return size == 8 ? 3 : size == 4 ? 2 : size - 1;
}

/* sort_lines(x, kind, first, last): put the elements of each of some lines in order. */
PyObject *
sort_lines(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Lines x;
    Py_ssize_t part[2];
    if (n != 4) {
        PyErr_SetString(PyExc_TypeError, "sort_lines(x, kind, first, last)");
        return NULL;
    }
    if (!lines_of(args[0], args[1], &x) || !edges_of(args + 2, 2, part, x.lines) ||
        room(args[0], x.lines * x.length) == NULL)
        return NULL;
    char *beside = PyMem_RawMalloc(x.length * x.size + 1);
    if (beside == NULL)
        return PyErr_NoMemory();
    Sort sort = sorts[x.kind][logarithm(x.size)];
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t line = part[0]; line < part[1] && x.length > 1; line++)
        sort((char *)x.data + line * x.length * x.size, beside, x.length);
    Py_END_ALLOW_THREADS
    PyMem_RawFree(beside);
    Py_RETURN_NONE;
}

/* sort_part(x, kind, beside, first, last): put the elements of a part of a line in order. */
PyObject *
sort_part(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Lines x;
    Py_ssize_t part[2];
    if (n != 5) {
        PyErr_SetString(PyExc_TypeError, "sort_part(x, kind, beside, first, last)");
        return NULL;
    }
    if (!lines_of(args[0], args[1], &x) || !edges_of(args + 3, 2, part, x.length) || room(args[0], x.length) == NULL)
        return NULL;
    char *beside = room(args[2], x.length);
    if (beside == NULL || PyArray_ITEMSIZE((PyArrayObject *)args[2]) != x.size)
        return no_room();
    Sort sort = sorts[x.kind][logarithm(x.size)];
    Py_BEGIN_ALLOW_THREADS
    if (part[1] - part[0] > 1)
        sort((char *)x.data + part[0] * x.size, beside + part[0] * x.size, part[1] - part[0]);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* sort_merged(x, kind, out, start, middle, end, first, last): of the runs start ... middle ... end, merged, the
   elements from first to last. */
PyObject *
sort_merged(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Lines x;
    Py_ssize_t runs[3], part[2];
    if (n != 8) {
        PyErr_SetString(PyExc_TypeError, "sort_merged(x, kind, out, start, middle, end, first, last)");
        return NULL;
    }
    if (!lines_of(args[0], args[1], &x) || !edges_of(args + 3, 3, runs, x.length) ||
        !edges_of(args + 6, 2, part, runs[2] - runs[0]))
        return NULL;
    char *out = room(args[2], x.length);
    if (out == NULL || PyArray_ITEMSIZE((PyArrayObject *)args[2]) != x.size)
        return no_room();
    Merge merge = merges[x.kind][logarithm(x.size)];
    Py_BEGIN_ALLOW_THREADS
    merge(x.data + runs[0] * x.size, runs[1] - runs[0], x.data + runs[1] * x.size, runs[2] - runs[1],
          out + runs[0] * x.size, part[0], part[1]);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}
