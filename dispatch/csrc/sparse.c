/* Sparse matrices in compressed rows, of entries in any order and of other rows and columns (backends/host/sparse.py).

   What is handed in has been looked at there: rows and columns are within their bounds, and memory has the sizes it
   needs. Sizes are looked at here once more, since nothing may be written behind their ends. */

#include "native.h"

/* Rows so short are put in order by moving each entry to its place. */
#define SHORT_ROW 48

typedef struct {
    char *data;
    Py_ssize_t count;
    int size;
} Vector;

static int
vector(PyObject *x, Vector *found, int written, int index)
{
    const PyArrayObject *a = (PyArrayObject *)x;
    if (!IS_ARRAY(x) || PyArray_NDIM(a) != 1 || !PyArray_IS_C_CONTIGUOUS(a) || (written && !PyArray_ISWRITEABLE(a))) {
        PyErr_SetString(PyExc_TypeError, "A vector of NumPy without gaps is expected.");
        return 0;
    }
    found->size = (int)PyArray_ITEMSIZE(a);
    if (found->size > 16 || (index && found->size != 4 && found->size != 8)) {
        PyErr_SetString(PyExc_TypeError, "Elements of this size are not looked at here.");
        return 0;
    }
    found->data = PyArray_BYTES(a);
    found->count = PyArray_DIMS(a)[0];
    return 1;
}

static int
unfit(int unfitting)
{
    if (unfitting)
        PyErr_SetString(PyExc_ValueError, "These vectors do not fit each other.");
    return unfitting;
}

static Py_ALWAYS_INLINE inline int64_t
get(const Vector *x, Py_ssize_t k)
{
    return x->size == 4 ? ((const int32_t *)x->data)[k] : ((const int64_t *)x->data)[k];
}

static Py_ALWAYS_INLINE inline void
set(const Vector *x, Py_ssize_t k, int64_t value)
{
    if (x->size == 4)
        ((int32_t *)x->data)[k] = (int32_t)value;
    else
        ((int64_t *)x->data)[k] = value;
}

/* One element; its size is mostly one that compilers know instructions for. */
static Py_ALWAYS_INLINE inline void
move(const Vector *to, Py_ssize_t k, const Vector *from, Py_ssize_t m)
{
    if (to->size == 8)
        memcpy(to->data + 8 * k, from->data + 8 * m, 8);
    else if (to->size == 4)
        memcpy(to->data + 4 * k, from->data + 4 * m, 4);
    else if (to->size == 16)
        memcpy(to->data + 16 * k, from->data + 16 * m, 16);
    else
        memcpy(to->data + to->size * k, from->data + to->size * m, to->size);
}

/* Entries to their rows, each row's as they come. (Somebody may write to the rows meanwhile: there are no more entries
   than were counted.) */
static Py_ALWAYS_INLINE inline void
deal(Vector i, Vector j, Vector data, Vector indices, Vector values, int64_t *next, Py_ssize_t rows)
{
    for (Py_ssize_t k = 0; k < i.count; k++) {
        uint64_t row = (uint64_t)get(&i, k);
        if (row >= (uint64_t)rows || next[row] >= i.count)
            continue;
        Py_ssize_t at = next[row]++;
        set(&indices, at, get(&j, k));
        move(&values, at, &data, k);
    }
}

static Py_ALWAYS_INLINE inline Vector
sized(Vector x, const int size)
{
    x.size = size;
    return x;
}

/* Counts become where each row begins; returned is where the last one ends. */
static int64_t
begin_rows(int64_t *next, const Vector *indptr, Py_ssize_t first, Py_ssize_t count, int64_t before)
{
    for (Py_ssize_t row = 0; row < count; row++) {
        int64_t size = next[row];
        set(indptr, first + row, before);
        next[row] = before;
        before += size;
    }
    return before;
}

/* All at once: good where rows come in order, or fit the cache. */
static void
deal_directly(Vector i, Vector j, Vector data, Vector indptr, Vector indices, Vector values, int64_t *next)
{
    Py_ssize_t rows = indptr.count - 1;
    for (Py_ssize_t k = 0; k < i.count; k++) {
        uint64_t row = (uint64_t)get(&i, k);
        if (row < (uint64_t)rows)
            next[row]++;
    }
    set(&indptr, rows, begin_rows(next, &indptr, 0, rows, 0));
    /* (The commonest sizes are known to the compiler.) */
    if (i.size == 8 && j.size == 8 && indices.size == 4 && data.size == 8)
        deal(sized(i, 8), sized(j, 8), sized(data, 8), sized(indices, 4), sized(values, 8), next, rows);
    else if (i.size == 4 && j.size == 4 && indices.size == 4 && data.size == 8)
        deal(sized(i, 4), sized(j, 4), sized(data, 8), sized(indices, 4), sized(values, 8), next, rows);
    else
        deal(i, j, data, indices, values, next, rows);
}

/* Entries anywhere would go to lines of memory that no cache has. So they are dealt to groups of rows first, one
   behind the other, and then each group to its rows, which fit a cache. */
#define GROUPS 1024
#define GROUP_BYTES (1 << 19)

/* A row within its group, and a column; the value's bytes follow. */
typedef struct {
    uint32_t row;
    int32_t column;
} Head;

typedef struct {
    int shift; /* of a row's number, to that of its group */
    Py_ssize_t count;
    int64_t begins[GROUPS + 1], ends[GROUPS];
} Groups;

/* How many entries each group has; returned is how often another one follows. */
static Py_ssize_t
count_groups(const Vector *i, Py_ssize_t rows, Groups *groups, Py_ssize_t *outside)
{
    Py_ssize_t changes = 0;
    uint64_t last = 0;
    for (Py_ssize_t k = 0; k < i->count; k++) {
        uint64_t row = (uint64_t)get(i, k), group = row >> groups->shift;
        if (row >= (uint64_t)rows) {
            ++*outside;
            continue;
        }
        groups->begins[group + 1]++;
        changes += group != last;
        last = group;
    }
    for (Py_ssize_t g = 0; g < groups->count; g++) {
        groups->begins[g + 1] += groups->begins[g];
        groups->ends[g] = groups->begins[g];
    }
    return changes;
}

static Py_ALWAYS_INLINE inline void
deal_to_groups(Vector i, Vector j, Vector data, Groups *groups, char *records, Py_ssize_t rows)
{
    const Py_ssize_t size = sizeof(Head) + data.size;
    const uint64_t within = ((uint64_t)1 << groups->shift) - 1;
    for (Py_ssize_t k = 0; k < i.count; k++) {
        uint64_t row = (uint64_t)get(&i, k), group = row >> groups->shift;
        if (row >= (uint64_t)rows || groups->ends[group] >= groups->begins[group + 1])
            continue; /* (of rows that somebody writes to meanwhile) */
        char *record = records + size * groups->ends[group]++;
        Head head = {(uint32_t)(row & within), (int32_t)get(&j, k)};
        memcpy(record, &head, sizeof(Head));
        memcpy(record + sizeof(Head), data.data + data.size * k, data.size);
    }
}

static Py_ALWAYS_INLINE inline void
deal_group(const char *records, Py_ssize_t count, Vector indices, Vector values, int64_t *next)
{
    const Py_ssize_t size = sizeof(Head) + values.size;
    Head head;
    for (Py_ssize_t k = 0; k < count; k++) {
        const char *record = records + size * k;
        memcpy(&head, record, sizeof(Head));
        Py_ssize_t at = next[head.row]++;
        ((int32_t *)indices.data)[at] = head.column;
        memcpy(values.data + values.size * at, record + sizeof(Head), values.size);
    }
}

static void
deal_by_groups(Vector i, Vector j, Vector data, Vector indptr, Vector indices, Vector values, Groups *groups,
               char *records, int64_t *next)
{
    const Py_ssize_t rows = indptr.count - 1, size = sizeof(Head) + data.size;
    if (i.size == 8 && j.size == 8 && data.size == 8)
        deal_to_groups(sized(i, 8), sized(j, 8), sized(data, 8), groups, records, rows);
    else if (i.size == 4 && j.size == 4 && data.size == 8)
        deal_to_groups(sized(i, 4), sized(j, 4), sized(data, 8), groups, records, rows);
    else
        deal_to_groups(i, j, data, groups, records, rows);
    for (Py_ssize_t g = 0; g < groups->count; g++) {
        Py_ssize_t first = g << groups->shift, inside = Py_MIN((Py_ssize_t)1 << groups->shift, rows - first);
        char *mine = records + size * groups->begins[g];
        Py_ssize_t count = groups->begins[g + 1] - groups->begins[g], came = groups->ends[g] - groups->begins[g];
        memset(mine + size * came, 0, size * (count - came));
        memset(next, 0, inside * sizeof(int64_t));
        for (Py_ssize_t k = 0; k < count; k++) {
            Head head;
            memcpy(&head, mine + size * k, sizeof(Head));
            next[head.row]++;
        }
        begin_rows(next, &indptr, first, inside, groups->begins[g]);
        if (values.size == 8)
            deal_group(mine, count, indices, sized(values, 8), next);
        else
            deal_group(mine, count, indices, values, next);
    }
    set(&indptr, rows, i.count);
}

/* csr_dealt(i, j, data, indptr, indices, values, scratch): entries to their rows. `scratch` has eight bytes and those
   of a value for each entry, or none: then all are dealt at once. */
PyObject *
csr_dealt(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Vector i, j, data, indptr, indices, values, scratch;
    if (n != 7) {
        PyErr_SetString(PyExc_TypeError, "csr_dealt(i, j, data, indptr, indices, values, scratch)");
        return NULL;
    }
    if (!vector(args[0], &i, 0, 1) || !vector(args[1], &j, 0, 1) || !vector(args[2], &data, 0, 0) ||
        !vector(args[3], &indptr, 1, 1) || !vector(args[4], &indices, 1, 1) || !vector(args[5], &values, 1, 0) ||
        !vector(args[6], &scratch, 1, 0) ||
        unfit(indptr.count < 1 || j.count != i.count || data.count != i.count || indices.count != i.count ||
              values.count != i.count || values.size != data.size))
        return NULL;
    Py_ssize_t rows = indptr.count - 1, outside = 0, changes;
    int grouped = indices.size == 4 && rows <= INT32_MAX &&
                  scratch.count * scratch.size >= i.count * ((Py_ssize_t)sizeof(Head) + data.size);
    Py_ssize_t wanted = grouped ? i.count * (indices.size + values.size) / GROUP_BYTES + 1 : 1;
    int64_t *next = PyMem_RawCalloc(rows + 1, sizeof(int64_t));
    Groups *groups = PyMem_RawCalloc(1, sizeof(Groups));
    if (next == NULL || groups == NULL) {
        PyMem_RawFree(next);
        PyMem_RawFree(groups);
        return PyErr_NoMemory();
    }
    while (rows > 0 && (rows - 1) >> groups->shift >= Py_MIN(wanted, GROUPS))
        groups->shift++;
    groups->count = rows > 0 ? ((rows - 1) >> groups->shift) + 1 : 0;
    Py_BEGIN_ALLOW_THREADS
    changes = count_groups(&i, rows, groups, &outside);
    if (!outside && changes > i.count / 8)
        deal_by_groups(i, j, data, indptr, indices, values, groups, scratch.data, next);
    else if (!outside)
        deal_directly(i, j, data, indptr, indices, values, next);
    Py_END_ALLOW_THREADS
    PyMem_RawFree(next);
    PyMem_RawFree(groups);
    if (unfit(outside > 0))
        return NULL;
    Py_RETURN_NONE;
}

static Py_ALWAYS_INLINE inline void
order_entries(const Vector *indices, const Vector *values, Py_ssize_t start, Py_ssize_t stop)
{
    char entry[16];
    Vector one = {entry, 1, values->size};
    for (Py_ssize_t k = start + 1; k < stop; k++) {
        int64_t column = get(indices, k);
        if (get(indices, k - 1) <= column)
            continue;
        Py_ssize_t m = k;
        move(&one, 0, values, k);
        for (; m > start && get(indices, m - 1) > column; m--) {
            set(indices, m, get(indices, m - 1));
            move(values, m, values, m - 1);
        }
        set(indices, m, column);
        move(values, m, &one, 0);
    }
}

static void
order_short(const Vector *indices, const Vector *values, Py_ssize_t start, Py_ssize_t stop)
{
    if (indices->size == 4 && values->size == 8) {
        const Vector four = sized(*indices, 4), eight = sized(*values, 8);
        order_entries(&four, &eight, start, stop);
    }
    else
        order_entries(indices, values, start, stop);
}

static int
order_long(const Vector *indices, const Vector *values, Py_ssize_t start, Py_ssize_t stop)
{
    Py_ssize_t n = stop - start;
    Record *records = PyMem_RawMalloc(2 * n * sizeof(Record)), *sorted;
    char *copy = PyMem_RawMalloc(n * values->size);
    if (records == NULL || copy == NULL) {
        PyMem_RawFree(records);
        PyMem_RawFree(copy);
        return 0;
    }
    Vector old = {copy, n, values->size};
    memcpy(copy, values->data + start * values->size, n * values->size);
    for (Py_ssize_t k = 0; k < n; k++)
        records[k] = (Record){(uint64_t)get(indices, start + k), k};
    sorted = sort_records(records, records + n, n);
    for (Py_ssize_t k = 0; k < n; k++) {
        set(indices, start + k, (int64_t)sorted[k].number);
        move(values, start + k, &old, sorted[k].at);
    }
    PyMem_RawFree(records);
    PyMem_RawFree(copy);
    return 1;
}

/* A row's entries, which lie within the vectors. */
static int
row_of(const Vector *indptr, Py_ssize_t row, Py_ssize_t most, Py_ssize_t *start, Py_ssize_t *stop)
{
    *start = get(indptr, row);
    *stop = get(indptr, row + 1);
    return 0 <= *start && *start <= *stop && *stop <= most;
}

/* The entries of a row are looked for while those of rows before it are copied: rows lie anywhere in memory. Which row it
   is, is looked for twice as early. */
#define AHEAD 12
#ifdef __GNUC__
#define LOOK_FOR(address) __builtin_prefetch(address)
#else
#define LOOK_FOR(address) (void)(address)
#endif

static void
look_ahead(const Vector *data, const Vector *indices, const Vector *indptr, const Vector *rows, Py_ssize_t k)
{
    Py_ssize_t row, start, stop;
    if (k + 2 * AHEAD < rows->count)
        LOOK_FOR(indptr->data + get(rows, k + 2 * AHEAD) * indptr->size);
    if (k + AHEAD >= rows->count)
        return;
    row = get(rows, k + AHEAD);
    if (row < 0 || row >= indptr->count - 1 || !row_of(indptr, row, indices->count, &start, &stop))
        return;
    LOOK_FOR(indices->data + start * indices->size);
    LOOK_FOR(data->data + start * data->size);
    LOOK_FOR(data->data + start * data->size + 64);
}

/* csr_ordered(indptr, indices, values, first, last): the entries of some rows by columns, those of one place as they
   come. Returned is how many have the place of the one before. */
PyObject *
csr_ordered(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Vector indptr, indices, values;
    if (n != 5) {
        PyErr_SetString(PyExc_TypeError, "csr_ordered(indptr, indices, values, first, last)");
        return NULL;
    }
    if (!vector(args[0], &indptr, 0, 1) || !vector(args[1], &indices, 1, 1) || !vector(args[2], &values, 1, 0))
        return NULL;
    Py_ssize_t first = PyLong_AsSsize_t(args[3]), last = PyLong_AsSsize_t(args[4]), repeated = 0;
    if (PyErr_Occurred() ||
        unfit(first < 0 || last < first || last > indptr.count - 1 || indices.count != values.count))
        return NULL;
    int fits = 1, room = 1;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t row = first; row < last && room; row++) {
        Py_ssize_t start, stop;
        if (!row_of(&indptr, row, indices.count, &start, &stop)) {
            fits = 0;
            break;
        }
        if (stop - start <= SHORT_ROW)
            order_short(&indices, &values, start, stop);
        else {
            Py_ssize_t k = start + 1;
            while (k < stop && get(&indices, k - 1) <= get(&indices, k))
                k++;
            if (k < stop)
                room = order_long(&indices, &values, start, stop);
        }
        for (Py_ssize_t k = start + 1; k < stop; k++)
            repeated += get(&indices, k - 1) == get(&indices, k);
    }
    Py_END_ALLOW_THREADS
    if (!room)
        return PyErr_NoMemory();
    return unfit(!fits) ? NULL : PyLong_FromSsize_t(repeated);
}

enum { TRUTHS, INTEGERS, REALS };

#define ADD(type) \
    for (int p = 0; p < (int)(size / sizeof(type)); p++) { \
        type x, y; \
        memcpy(&x, to + p * sizeof(type), sizeof(type)); \
        memcpy(&y, from + p * sizeof(type), sizeof(type)); \
        x += y; \
        memcpy(to + p * sizeof(type), &x, sizeof(type)); \
    }

/* (Complex numbers are two reals; the sum of integers is the same with signs and without.) */
static void
add(char *to, const char *from, int size, int kind, int part)
{
    if (kind == TRUTHS)
        *to |= *from;
    else if (kind == REALS && part == 8)
        ADD(double)
    else if (kind == REALS)
        ADD(float)
    else if (part == 8)
        ADD(uint64_t)
    else if (part == 4)
        ADD(uint32_t)
    else if (part == 2)
        ADD(uint16_t)
    else
        ADD(uint8_t)
}

/* csr_merged(indptr, indices, values, kind, bytes of a part): entries of one place are added up, as they come.
   Returned is how many are left. */
PyObject *
csr_merged(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Vector indptr, indices, values;
    if (n != 5) {
        PyErr_SetString(PyExc_TypeError, "csr_merged(indptr, indices, values, kind, part)");
        return NULL;
    }
    if (!vector(args[0], &indptr, 1, 1) || !vector(args[1], &indices, 1, 1) || !vector(args[2], &values, 1, 0))
        return NULL;
    int kind = (int)PyLong_AsLong(args[3]), part = (int)PyLong_AsLong(args[4]);
    if (PyErr_Occurred() || unfit(indptr.count < 1 || indices.count != values.count || part < 1 || part > 8))
        return NULL;
    Py_ssize_t left = 0;
    int fits = 1;
    Py_BEGIN_ALLOW_THREADS
    int64_t stop = get(&indptr, 0);
    for (Py_ssize_t row = 0; row < indptr.count - 1; row++) {
        int64_t start = stop, begin = left;
        stop = get(&indptr, row + 1);
        if (start < left || stop < start || stop > indices.count) {
            fits = 0;
            break;
        }
        for (Py_ssize_t k = start; k < stop; k++)
            if (left > begin && get(&indices, left - 1) == get(&indices, k))
                add(values.data + (left - 1) * values.size, values.data + k * values.size, values.size, kind, part);
            else {
                if (left != k) {
                    set(&indices, left, get(&indices, k));
                    move(&values, left, &values, k);
                }
                left++;
            }
        set(&indptr, row + 1, left);
    }
    Py_END_ALLOW_THREADS
    return unfit(!fits) ? NULL : PyLong_FromSsize_t(left);
}

/* csr_taken(data, indices, indptr, rows, first, step, width, made_indptr[, made_indices, made_data]): some rows, and
   of these each step-th column from the first on, so many; all columns if the step is 0. Without room for entries they
   are only counted. */
PyObject *
csr_taken(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Vector data, indices, indptr, rows, made_indptr, made_indices = {0}, made_data = {0};
    if (n != 8 && n != 10) {
        PyErr_SetString(PyExc_TypeError, "csr_taken(data, indices, indptr, rows, first, step, width, made_indptr, ...)");
        return NULL;
    }
    int counted = n == 8;
    if (!vector(args[0], &data, 0, 0) || !vector(args[1], &indices, 0, 1) || !vector(args[2], &indptr, 0, 1) ||
        !vector(args[3], &rows, 0, 1) || !vector(args[7], &made_indptr, counted, 1) ||
        (!counted && (!vector(args[8], &made_indices, 1, 1) || !vector(args[9], &made_data, 1, 0))))
        return NULL;
    int64_t first = PyLong_AsLongLong(args[4]), step = PyLong_AsLongLong(args[5]), width = PyLong_AsLongLong(args[6]);
    if (PyErr_Occurred() || unfit(made_indptr.count != rows.count + 1 || data.count != indices.count ||
                                  indptr.count < 1 || (!counted && made_data.size != data.size) ||
                                  made_data.count != made_indices.count))
        return NULL;
    int every = step == 0;
    int64_t low = step > 0 ? first : first + (width - 1) * step, high = step > 0 ? first + (width - 1) * step : first;
    int fits = 1;
    Py_BEGIN_ALLOW_THREADS
    int64_t at = 0;
    if (counted)
        set(&made_indptr, 0, 0);
    for (Py_ssize_t k = 0; k < rows.count && fits; k++) {
        Py_ssize_t row = get(&rows, k), start, stop;
        if (row < 0 || row >= indptr.count - 1 || !row_of(&indptr, row, indices.count, &start, &stop)) {
            fits = 0;
            break;
        }
        if (every && !counted) {
            Py_ssize_t count = stop - start;
            look_ahead(&data, &indices, &indptr, &rows, k);
            if (count > made_indices.count - at) {
                fits = 0;
                break;
            }
            if (made_indices.size == indices.size)
                memcpy(made_indices.data + at * indices.size, indices.data + start * indices.size, count * indices.size);
            else
                for (Py_ssize_t m = 0; m < count; m++)
                    set(&made_indices, at + m, get(&indices, start + m));
            memcpy(made_data.data + at * data.size, data.data + start * data.size, count * data.size);
            at += count;
            continue;
        }
        if (every) {
            if (k + AHEAD < rows.count)
                LOOK_FOR(indptr.data + get(&rows, k + AHEAD) * indptr.size);
            at += stop - start;
            set(&made_indptr, k + 1, at);
            continue;
        }
        /* (columns ascend) */
        while (start < stop && get(&indices, start) < low)
            start++;
        while (start < stop && get(&indices, stop - 1) > high)
            stop--;
        if (counted && (step == 1 || step == -1))
            at += stop - start;
        else
            for (Py_ssize_t m = 0; m < stop - start; m++) {
                Py_ssize_t from = step > 0 ? start + m : stop - 1 - m;
                int64_t column = get(&indices, from) - first;
                if (step != 1 && column % step)
                    continue;
                if (!counted) {
                    if (at >= made_indices.count) {
                        fits = 0;
                        break;
                    }
                    set(&made_indices, at, step == 1 ? column : column / step);
                    move(&made_data, at, &data, from);
                }
                at++;
            }
        if (counted)
            set(&made_indptr, k + 1, at);
    }
    Py_END_ALLOW_THREADS
    if (unfit(!fits))
        return NULL;
    Py_RETURN_NONE;
}

/* A row's sum, added up in the order of its entries. */
#define TIMES(name, real, whole)                                                                                       \
    static void name(const real *data, const whole *indices, const whole *indptr, const real *x, real *y,              \
                     Py_ssize_t first, Py_ssize_t last)                                                                \
    {                                                                                                                  \
        for (Py_ssize_t row = first; row < last; row++) {                                                              \
            real sum = 0;                                                                                              \
            for (whole k = indptr[row]; k < indptr[row + 1]; k++)                                                      \
                sum += data[k] * x[indices[k]];                                                                        \
            y[row] = sum;                                                                                              \
        }                                                                                                              \
    }
TIMES(times_d4, double, int32_t)
TIMES(times_d8, double, int64_t)
TIMES(times_f4, float, int32_t)
TIMES(times_f8, float, int64_t)

/* csr_times(data, indices, indptr, x, y, first, last): some rows of a product with a vector of doubles or singles. */
PyObject *
csr_times(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Vector data, indices, indptr, x, y;
    if (n != 7) {
        PyErr_SetString(PyExc_TypeError, "csr_times(data, indices, indptr, x, y, first, last)");
        return NULL;
    }
    Py_ssize_t first = PyLong_AsSsize_t(args[5]), last = PyLong_AsSsize_t(args[6]);
    if (PyErr_Occurred() || !vector(args[0], &data, 0, 0) || !vector(args[1], &indices, 0, 1) ||
        !vector(args[2], &indptr, 0, 1) || !vector(args[3], &x, 0, 0) || !vector(args[4], &y, 1, 0) ||
        unfit(first < 0 || last < first || last > y.count || indptr.count != y.count + 1 || x.size != data.size ||
              y.size != data.size || indices.size != indptr.size || data.count != indices.count ||
              (data.size != 4 && data.size != 8) || get(&indptr, y.count) > data.count))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    if (data.size == 8 && indices.size == 4)
        times_d4((double *)data.data, (int32_t *)indices.data, (int32_t *)indptr.data, (double *)x.data,
                 (double *)y.data, first, last);
    else if (data.size == 8)
        times_d8((double *)data.data, (int64_t *)indices.data, (int64_t *)indptr.data, (double *)x.data,
                 (double *)y.data, first, last);
    else if (indices.size == 4)
        times_f4((float *)data.data, (int32_t *)indices.data, (int32_t *)indptr.data, (float *)x.data,
                 (float *)y.data, first, last);
    else
        times_f8((float *)data.data, (int64_t *)indices.data, (int64_t *)indptr.data, (float *)x.data,
                 (float *)y.data, first, last);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* Elements that reach rows and columns: a cell adds to every pair of a row and a column of its own. */
typedef struct {
    Vector rows, columns, slots;
    Py_ssize_t across, down; /* columns and rows of a cell */
    int64_t *starts, *sources;
} Elements;

/* Where in the table of rows each row is reached from. */
static int
reached_from(Elements *e, Py_ssize_t rows)
{
    int64_t *starts = e->starts, before = 0;
    for (Py_ssize_t k = 0; k < e->rows.count; k++) {
        int64_t row = get(&e->rows, k);
        if (row < -1 || row >= rows)
            return 0;
        if (row >= 0)
            starts[row + 1]++;
    }
    for (Py_ssize_t row = 0; row <= rows; row++) { /* (one place further on: filling moves them back) */
        int64_t count = starts[row];
        starts[row] = before;
        before += count;
    }
    for (Py_ssize_t k = 0; k < e->rows.count; k++) {
        int64_t row = get(&e->rows, k);
        if (row >= 0)
            e->sources[starts[row + 1]++] = k;
    }
    return 1;
}

static int
by_size(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a > b) - (a < b);
}

static void
order_columns(int64_t *found, Py_ssize_t count)
{
    if (count > SHORT_ROW) {
        qsort(found, count, sizeof(int64_t), by_size);
        return;
    }
    for (Py_ssize_t k = 1; k < count; k++) {
        int64_t column = found[k];
        Py_ssize_t m = k;
        for (; m > 0 && found[m - 1] > column; m--)
            found[m] = found[m - 1];
        found[m] = column;
    }
}

/* One row's columns to `found`: those whose place is before the row's start were not met in it yet. */
static Py_ALWAYS_INLINE inline Py_ssize_t
columns_of(const Elements *e, Py_ssize_t row, int64_t start, int64_t *place, Py_ssize_t columns, int64_t *found,
           Py_ssize_t count, const int size)
{
    const Vector table = sized(e->columns, size);
    for (int64_t s = e->starts[row]; s < e->starts[row + 1]; s++) {
        int64_t cell = e->sources[s] / e->down;
        for (Py_ssize_t j = 0; j < e->across; j++) {
            int64_t column = get(&table, cell * e->across + j);
            if (column == -1)
                continue;
            if (column < 0 || column >= columns)
                return -1;
            if (place[column] < start) {
                place[column] = start;
                found[count++] = column;
            }
        }
    }
    return count;
}

static Py_ALWAYS_INLINE inline void
slots_of(const Elements *e, Py_ssize_t row, const int64_t *place, const int size, const int slot)
{
    const Vector table = sized(e->columns, size), slots = sized(e->slots, slot);
    for (int64_t s = e->starts[row]; s < e->starts[row + 1]; s++) {
        int64_t source = e->sources[s], cell = source / e->down;
        for (Py_ssize_t j = 0; j < e->across; j++) {
            int64_t column = get(&table, cell * e->across + j);
            set(&slots, source * e->across + j, column < 0 ? -1 : place[column]);
        }
    }
}

/* csr_pattern(columns, indptr, indices or None, (rows, columns, of a cell, and across, slots or None), ...): which entries
   cells add to, and which of them each cell does. Without indices the entries of rows are only counted. */
PyObject *
csr_pattern(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Vector indptr, indices = {0};
    if (n < 3) {
        PyErr_SetString(PyExc_TypeError, "csr_pattern(columns, indptr, indices, ...)");
        return NULL;
    }
    Py_ssize_t columns = PyLong_AsSsize_t(args[0]), sets = n - 3;
    int counted = args[2] == Py_None;
    if ((columns < 0 && PyErr_Occurred()) || !vector(args[1], &indptr, 1, 1) ||
        (!counted && !vector(args[2], &indices, 1, 1)) || unfit(columns < 0 || indptr.count < 1))
        return NULL;
    Py_ssize_t rows = indptr.count - 1;
    Elements *elements = PyMem_RawCalloc(sets + 1, sizeof(Elements));
    int64_t *place = PyMem_RawMalloc((columns + 1) * sizeof(int64_t));
    int64_t *found = PyMem_RawMalloc((columns + 1) * sizeof(int64_t));
    int fits = 1, memory = elements != NULL && place != NULL && found != NULL;
    for (Py_ssize_t k = 0; k < sets && memory && fits; k++) {
        Elements *e = &elements[k];
        PyObject *tables[2], *slots;
        fits = PyArg_ParseTuple(args[3 + k], "OOnnO", &tables[0], &tables[1], &e->down, &e->across, &slots) &&
               vector(tables[0], &e->rows, 0, 1) && vector(tables[1], &e->columns, 0, 1) &&
               (counted || vector(slots, &e->slots, 1, 1));
        if (!fits)
            break;
        fits = !unfit(e->down < 1 || e->across < 1 || e->rows.count % e->down || e->columns.count % e->across ||
                      e->rows.count / e->down != e->columns.count / e->across ||
                      (!counted && e->slots.count != e->rows.count * e->across));
        e->starts = PyMem_RawCalloc(rows + 2, sizeof(int64_t));
        e->sources = PyMem_RawMalloc((e->rows.count + 1) * sizeof(int64_t));
        memory = e->starts != NULL && e->sources != NULL;
    }
    if (fits && memory) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t k = 0; k < sets && fits; k++)
            fits = reached_from(&elements[k], rows);
        for (Py_ssize_t c = 0; c < columns; c++)
            place[c] = -1;
        int64_t start = 0;
        for (Py_ssize_t row = 0; row < rows && fits; row++) {
            Py_ssize_t count = 0;
            for (Py_ssize_t k = 0; k < sets && count >= 0; k++)
                count = elements[k].columns.size == 4
                            ? columns_of(&elements[k], row, start, place, columns, found, count, 4)
                            : columns_of(&elements[k], row, start, place, columns, found, count, 8);
            if (count < 0 || (!counted && start + count > indices.count)) {
                fits = 0;
                break;
            }
            if (!counted) {
                order_columns(found, count);
                for (Py_ssize_t m = 0; m < count; m++) {
                    place[found[m]] = start + m;
                    set(&indices, start + m, found[m]);
                }
                for (Py_ssize_t k = 0; k < sets; k++) {
                    const Elements *e = &elements[k];
                    if (e->columns.size == 4 && e->slots.size == 4)
                        slots_of(e, row, place, 4, 4);
                    else
                        slots_of(e, row, place, e->columns.size, e->slots.size);
                }
            }
            set(&indptr, row, start);
            start += count;
        }
        set(&indptr, rows, start);
        Py_END_ALLOW_THREADS
        unfit(!fits);
    }
    for (Py_ssize_t k = 0; k < sets && elements != NULL; k++) {
        PyMem_RawFree(elements[k].starts);
        PyMem_RawFree(elements[k].sources);
    }
    PyMem_RawFree(elements);
    PyMem_RawFree(place);
    PyMem_RawFree(found);
    if (!memory)
        return PyErr_NoMemory();
    if (!fits)
        return NULL;
    Py_RETURN_NONE;
}
