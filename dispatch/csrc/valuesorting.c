/* The elements of lines in order (backends/host/sorting.py), where nobody asks where they stood.

   As in sorting.c elements become numbers without sign that are ordered as NumPy orders elements, and those are
   sorted by one byte after the other, from the lowest on; bytes that all have in common are left out. Here each
   element has a number of its own, from which it comes back with all its bits: zeros by their sign, NaNs of either
   sign above all else. */

#include "native.h"

#define VALUES 256
#define MOST_RANGES 64
/* What a number is, the compiler may not ask (it would branch). */
#ifdef __GNUC__
#define HIDDEN(number) __asm__("" : "+r"(number))
#else
#define HIDDEN(number) (void)0
#endif

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

/* Two ranges by AVX-512, where that is quick (AMD's processors store what is compressed one by one), as far as whole
   vectors fit; how many elements are done. */
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define VECTORS(name, type, each, vector, load, set, less, bits, store) \
    static __attribute__((target("avx512f"))) Py_ssize_t name( \
        const type *x, Py_ssize_t n, type middle, type *to, npy_int64 *at, const npy_int64 *ends) \
    { \
        const vector between = set(middle); \
        npy_int64 low = at[0], high = at[1]; \
        Py_ssize_t i = 0; \
        for (; i + each <= n && low + each <= ends[0] && high + each <= ends[1]; i += each) { \
            vector v = load(x + i); \
            bits below = less(v, between); \
            store(to + low, below, v); \
            store(to + high, (bits)~below, v); \
            npy_int64 count = __builtin_popcount(below); \
            low += count; \
            high += each - count; \
        } \
        at[0] = low; \
        at[1] = high; \
        return i; \
    }
#define LESS_PS(a, b) _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ)
#define LESS_PD(a, b) _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ)
VECTORS(vectors_f32, float, 16, __m512, _mm512_loadu_ps, _mm512_set1_ps, LESS_PS, __mmask16,
        _mm512_mask_compressstoreu_ps)
VECTORS(vectors_f64, double, 8, __m512d, _mm512_loadu_pd, _mm512_set1_pd, LESS_PD, __mmask8,
        _mm512_mask_compressstoreu_pd)
VECTORS(vectors_i32, int32_t, 16, __m512i, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_cmplt_epi32_mask, __mmask16,
        _mm512_mask_compressstoreu_epi32)
VECTORS(vectors_u32, uint32_t, 16, __m512i, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_cmplt_epu32_mask, __mmask16,
        _mm512_mask_compressstoreu_epi32)
VECTORS(vectors_i64, int64_t, 8, __m512i, _mm512_loadu_si512, _mm512_set1_epi64, _mm512_cmplt_epi64_mask, __mmask8,
        _mm512_mask_compressstoreu_epi64)
VECTORS(vectors_u64, uint64_t, 8, __m512i, _mm512_loadu_si512, _mm512_set1_epi64, _mm512_cmplt_epu64_mask, __mmask8,
        _mm512_mask_compressstoreu_epi64)
#define BY_VECTORS(name, x, n, middle, to, at, ends) \
    (__builtin_cpu_is("intel") && __builtin_cpu_supports("avx512f") ? name(x, n, middle, to, at, ends) : 0)
#else
#define BY_VECTORS(name, x, n, middle, to, at, ends) 0
#endif
#define BY_NONE(x, n, middle, to, at, ends) 0
#define BY_F32(...) BY_VECTORS(vectors_f32, __VA_ARGS__)
#define BY_F64(...) BY_VECTORS(vectors_f64, __VA_ARGS__)
#define BY_I32(...) BY_VECTORS(vectors_i32, __VA_ARGS__)
#define BY_U32(...) BY_VECTORS(vectors_u32, __VA_ARGS__)
#define BY_I64(...) BY_VECTORS(vectors_i64, __VA_ARGS__)
#define BY_U64(...) BY_VECTORS(vectors_u64, __VA_ARGS__)

/* Elements go to their ranges: each from `next` on, which goes on with them, and as far as `ends` (so that whoever changes
   elements meanwhile does not make us write beyond). A range has what is not less than its first value, but less than the
   next one's; those are no NaNs, which so come last. (Two of them without a branch, which would be guessed wrong.) */
#define SPREAD(name, type, LESS, VECTORS) \
    static void name(const void *elements, Py_ssize_t n, const void *edges, Py_ssize_t ranges, void *out, \
                     npy_int64 *next, const npy_int64 *ends) \
    { \
        const type *x = elements, *first = (const type *)edges - 1; \
        type *to = out; \
        npy_int64 at[MOST_RANGES]; \
        memcpy(at, next, ranges * sizeof(*at)); \
        Py_ssize_t i = 0; \
        if (ranges == 2) { \
            const type middle = first[1]; \
            i = VECTORS(x, n, middle, to, at, ends); \
            npy_int64 low = at[0], high = at[1]; \
            for (; i < n && low < ends[0] && high < ends[1]; i++) { \
                npy_int64 below = LESS(x[i], middle); \
                HIDDEN(below); \
                to[high + ((low - high) & -below)] = x[i]; \
                low += below; \
                high += 1 - below; \
            } \
            at[0] = low; \
            at[1] = high; \
        } \
        for (; i < n; i++) { \
            Py_ssize_t range = 0; \
            for (Py_ssize_t r = 1; r < ranges; r++) \
                range += !LESS(x[i], first[r]); \
            if (at[range] < ends[range]) \
                to[at[range]++] = x[i]; \
        } \
        memcpy(next, at, ranges * sizeof(*at)); \
    }

#define IS_LESS(a, b) ((a) < (b))
#define HALF_IS_LESS(a, b) (number_of(a, FLOATING, 16) < number_of(b, FLOATING, 16))

#define BOTH(suffix, type, kind, value, LESS, VECTORS) \
    SORT(sort_##suffix, type, kind) \
    SPREAD(spread_##suffix, value, LESS, VECTORS)

BOTH(u8, uint8_t, UNSIGNED, uint8_t, IS_LESS, BY_NONE)
BOTH(u16, uint16_t, UNSIGNED, uint16_t, IS_LESS, BY_NONE)
BOTH(u32, uint32_t, UNSIGNED, uint32_t, IS_LESS, BY_U32)
BOTH(u64, uint64_t, UNSIGNED, uint64_t, IS_LESS, BY_U64)
BOTH(i8, uint8_t, SIGNED, int8_t, IS_LESS, BY_NONE)
BOTH(i16, uint16_t, SIGNED, int16_t, IS_LESS, BY_NONE)
BOTH(i32, uint32_t, SIGNED, int32_t, IS_LESS, BY_I32)
BOTH(i64, uint64_t, SIGNED, int64_t, IS_LESS, BY_I64)
BOTH(f16, uint16_t, FLOATING, uint16_t, HALF_IS_LESS, BY_NONE)
BOTH(f32, uint32_t, FLOATING, float, IS_LESS, BY_F32)
BOTH(f64, uint64_t, FLOATING, double, IS_LESS, BY_F64)

typedef void (*Sort)(void *, void *, Py_ssize_t);
typedef void (*Spread)(const void *, Py_ssize_t, const void *, Py_ssize_t, void *, npy_int64 *, const npy_int64 *);

/* By the kind, and the logarithm of the size. */
static const Sort sorts[3][4] = {
    {sort_u8, sort_u16, sort_u32, sort_u64},
    {sort_i8, sort_i16, sort_i32, sort_i64},
    {NULL, sort_f16, sort_f32, sort_f64},
};
static const Spread spreads[3][4] = {
    {spread_u8, spread_u16, spread_u32, spread_u64},
    {spread_i8, spread_i16, spread_i32, spread_i64},
    {NULL, spread_f16, spread_f32, spread_f64},
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

/* spread_part(x, kind, edges, next, out, first, last): put the elements of a part of a line into the ranges between some
   edges, each of which goes from next[0] to next[1]. */
PyObject *
spread_part(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Lines x, edges;
    Py_ssize_t part[2];
    if (n != 7) {
        PyErr_SetString(PyExc_TypeError, "spread_part(x, kind, edges, next, out, first, last)");
        return NULL;
    }
    if (!lines_of(args[0], args[1], &x) || !lines_of(args[2], args[1], &edges) ||
        !edges_of(args + 5, 2, part, x.length))
        return NULL;
    Py_ssize_t ranges = edges.length + 1;
    npy_int64 *next = room(args[3], 2 * ranges);
    if (next == NULL || PyArray_ITEMSIZE((PyArrayObject *)args[3]) != 8 || edges.size != x.size || ranges > MOST_RANGES)
        return no_room();
    char *out = room(args[4], x.length);
    if (out == NULL || PyArray_ITEMSIZE((PyArrayObject *)args[4]) != x.size)
        return no_room();
    for (Py_ssize_t r = 0; r < ranges; r++)
        if (next[r] < 0 || next[ranges + r] > x.length)
            return no_room();
    Spread spread = spreads[x.kind][logarithm(x.size)];
    Py_BEGIN_ALLOW_THREADS
    spread((char *)x.data + part[0] * x.size, part[1] - part[0], edges.data, ranges, out, next, next + ranges);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}
