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

#define BYTES 8
#define VALUES 256
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

static __attribute__((unused)) Record *
records_sorted(Record *a, Record *b, ptrdiff_t n, int size)
{
    if (n < MERGED)
        return sort_few(a, b, n);
    ptrdiff_t counts[BYTES][VALUES];
    memset(counts, 0, sizeof(counts));
    for (ptrdiff_t i = 0; i < n; i++) {
        uint64_t number = a[i].number;
        for (int byte = 0; byte < size; byte++)
            counts[byte][number >> (8 * byte) & 0xff]++;
    }
    for (int byte = 0; byte < size; byte++) {
        ptrdiff_t *next = counts[byte], before = 0;
        if (next[a[0].number >> (8 * byte) & 0xff] == n)
            continue;
        for (int value = 0; value < VALUES; value++) {
            ptrdiff_t count = next[value];
            next[value] = before;
            before += count;
        }
        for (ptrdiff_t i = 0; i < n; i++)
            b[next[a[i].number >> (8 * byte) & 0xff]++] = a[i];
        Record *other = a;
        a = b;
        b = other;
    }
    return a;
}

#endif
