/* Numbers beside their places, and how they are put in order: without Python, for libraries too. */
#ifndef RECORDS_H
#define RECORDS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    uint64_t number;
    int64_t at;
} Record;

/* How elements are read as numbers in order. */
enum { UNSIGNED, SIGNED, FLOATING };

/* Records so few are put in order by moving each to its place; of these runs, fewer than so many are merged. */
#define RUN 16
#define MERGED 384

/* The number of an element, given as its `width` bits. */
static inline __attribute__((always_inline)) uint64_t
record_number(uint64_t bits, const int kind, const int width)
{
    const uint64_t sign = (uint64_t)1 << (width - 1), all = sign | (sign - 1);
    if (kind == UNSIGNED)
        return bits;
    if (kind == SIGNED)
        return bits ^ sign;
    const int fraction = width == 64 ? 52 : width == 32 ? 23 : 10;
    const uint64_t infinity = (sign - 1) & ~(((uint64_t)1 << fraction) - 1), size = bits & (sign - 1);
    if (size > infinity)
        return all;
    if (size == 0)
        return sign;
    return bits & sign ? ~bits & all : bits | sign;
}

#define RECORDS(type, kind) \
    for (ptrdiff_t i = 0; i < n; i++) { \
        type bits; \
        memcpy(&bits, from + i * (ptrdiff_t)sizeof(type), sizeof(type)); \
        to[i].number = record_number(bits, kind, 8 * sizeof(type)); \
        to[i].at = first + i; \
    }

#define RECORDS_OF_KIND(type) \
    if (kind == FLOATING) \
        RECORDS(type, FLOATING) \
    else if (kind == SIGNED) \
        RECORDS(type, SIGNED) \
    else \
        RECORDS(type, UNSIGNED)

static __attribute__((unused)) void
make_records(Record *to, const char *from, ptrdiff_t n, int64_t first, int kind, int size)
{
    if (size == 8)
        RECORDS_OF_KIND(uint64_t)
    else if (size == 4)
        RECORDS_OF_KIND(uint32_t)
    else if (size == 2)
        RECORDS_OF_KIND(uint16_t)
    else
        RECORDS_OF_KIND(uint8_t)
}

static __attribute__((unused)) void
insertion(Record *a, ptrdiff_t n)
{
    for (ptrdiff_t i = 1; i < n; i++) {
        Record r = a[i];
        ptrdiff_t j = i;
        for (; j > 0 && a[j - 1].number > r.number; j--)
            a[j] = a[j - 1];
        a[j] = r;
    }
}

/* Two runs, one after the other; of equal records that of the first comes first. */
static __attribute__((unused)) void
merge(Record *to, const Record *a, ptrdiff_t na, const Record *b, ptrdiff_t nb)
{
    const Record *ends[2] = {a + na, b + nb};
    while (a < ends[0] && b < ends[1]) {
        int second = b->number < a->number;
        *to++ = second ? *b : *a;
        b += second;
        a += !second;
    }
    memcpy(to, a, (ends[0] - a) * sizeof(Record));
    memcpy(to + (ends[0] - a), b, (ends[1] - b) * sizeof(Record));
}

/* The records in order, in `a` or in `b`. */
static __attribute__((unused)) Record *
sort_few(Record *a, Record *b, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i += RUN)
        insertion(a + i, n - i < RUN ? n - i : RUN);
    for (ptrdiff_t run = RUN; run < n; run *= 2) {
        for (ptrdiff_t i = 0; i < n; i += 2 * run) {
            ptrdiff_t first = n - i < run ? n - i : run, rest = n - i - first;
            merge(b + i, a + i, first, a + i + first, rest < run ? rest : run);
        }
        Record *other = a;
        a = b;
        b = other;
    }
    return a;
}

/* So few of a group are moved to their places one by one; others go to groups by so many bits of their numbers, that
   about eight are in each. */
#define LONE 24
#define DIGIT 11
#define SHORT_DIGIT 6

static inline int
bits_of_count(uint64_t n)
{
    int bits = 0;
    for (; n; n >>= 1)
        bits++;
    return bits;
}

static __attribute__((unused)) uint64_t
differing(const Record *a, ptrdiff_t n)
{
    uint64_t bits = 0;
    for (ptrdiff_t i = 1; i < n; i++)
        bits |= a[i].number ^ a[0].number;
    return bits;
}

/* The records in order, in `b` or in `a`: their numbers are alike from bit `top` on. They go to groups by their first
   bits below it, each of which is put in order by the next. */
static __attribute__((unused)) void
sort_groups(Record *a, Record *b, ptrdiff_t n, int top, int in_b)
{
    uint32_t next[1 << DIGIT], before = 0;
    int bits = 0, shift = 0;
    uint64_t mask = 0;
    for (int looked = 0; n > LONE && top; looked = 1) {
        bits = bits_of_count((uint64_t)n) - 3;
        bits = bits < SHORT_DIGIT ? SHORT_DIGIT : bits > DIGIT ? DIGIT : bits;
        bits = bits < top ? bits : top;
        shift = top - bits;
        mask = ((uint64_t)1 << bits) - 1;
        memset(next, 0, ((size_t)1 << bits) * sizeof(*next));
        for (ptrdiff_t i = 0; i < n; i++)
            next[a[i].number >> shift & mask]++;
        if (looked || next[a[0].number >> shift & mask] < n)
            break;
        top = bits_of_count(differing(a, n));
    }
    if (n <= LONE || !top) {
        if (top)
            insertion(a, n);
        if (in_b)
            memcpy(b, a, n * sizeof(Record));
        return;
    }
    for (uint64_t value = 0; value <= mask; value++) {
        uint32_t count = next[value];
        next[value] = before;
        before += count;
    }
    for (ptrdiff_t i = 0; i < n; i++)
        b[next[a[i].number >> shift & mask]++] = a[i];
    if (!shift && !in_b)
        memcpy(a, b, n * sizeof(Record));
    for (ptrdiff_t value = 0, start = 0, end; shift && start < n; value++, start = end) {
        end = next[value];
        if (end - start > 1)
            sort_groups(b + start, a + start, end - start, shift, !in_b);
        else if (end > start && !in_b)
            a[start] = b[start];
    }
}

/* The records in order, in `a` or in `b`. */
static __attribute__((unused)) Record *
records_sorted(Record *a, Record *b, ptrdiff_t n)
{
    if (n < MERGED)
        return sort_few(a, b, n);
    sort_groups(a, b, n, bits_of_count(differing(a, n)), 0);
    return a;
}

#endif
