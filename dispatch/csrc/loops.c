/* What NumPy takes longer to find than to do: its own loops on few elements, copies of few doubles, and a matrix times a
   vector. Each gives what NumPy gives, to the last bit, or is left to it. */

#include "native.h"
#define NO_IMPORT_UFUNC
#include <numpy/ufuncobject.h>

/* Of more, NumPy's loops, which are made for the processor, make up for what it takes to find them. */
#define FEW_ELEMENTS 2048
/* Where the result belongs to an operand's memory nothing is made room for: of more they take longer than kernels. */
#define FEW_IN_PLACE 32768
/* Of operands whose elements lie apart, so many are put side by side first. */
#define APART 512
/* Products of so many multiplications let other threads run. */
#define LONG 8192

/* The loops */

int
find_loop(PyObject *function, PyObject *const *ins, int n, PyObject *out, Loop *loop)
{
    loop->call = NULL;
    if (n < 1 || n > 2 || strcmp(Py_TYPE(function)->tp_name, "numpy.ufunc") != 0 || !PyArray_DescrCheck(out))
        return 0;
    const PyUFuncObject *ufunc = (PyUFuncObject *)function;
    if (ufunc->nin != n || ufunc->nout != 1 || ufunc->functions == NULL || ufunc->core_enabled)
        return 0;
    for (int i = 0; i <= n; i++) {
        PyArray_Descr *dtype = (PyArray_Descr *)(i < n ? ins[i] : out);
        int known = PyArray_DescrCheck((PyObject *)dtype) && (PyTypeNum_ISNUMBER(dtype->type_num) || PyTypeNum_ISBOOL(dtype->type_num));
        if (!known || PyDataType_ELSIZE(dtype) > NUMBER_SIZE || !PyArray_ISNBO(dtype->byteorder))
            return 0;
        *(i < n ? &loop->ins[i] : &loop->out) = dtype;
    }
    for (int k = 0; k < ufunc->ntypes && loop->call == NULL; k++) {
        const char *types = ufunc->types + (n + 1) * k;
        int same = types[n] == loop->out->type_num;
        for (int i = 0; i < n; i++)
            same = same && types[i] == loop->ins[i]->type_num;
        if (same) {
            loop->call = ufunc->functions[k];
            loop->data = ufunc->data == NULL ? NULL : ufunc->data[k];
        }
    }
    int op = operation_of(function), real = !PyTypeNum_ISCOMPLEX(loop->ins[0]->type_num);
    loop->exact = op >= 0 && (real || op == ADD || op == SUBTRACT || op == NEGATIVE);
    return loop->call != NULL;
}

/* Elements of one of two arrays each, as a truth value says. */
#define CHOOSE(type) \
    for (npy_intp i = 0; i < *length; i++, c += steps[0], x += steps[1], y += steps[2], z += steps[3]) \
        *(type *)z = *c ? *(const type *)x : *(const type *)y; \
    return;

typedef struct {
    uint64_t parts[2];
} Wide;

static void
choose(char **at, npy_intp const *length, npy_intp const *steps, void *size)
{
    const char *c = at[0], *x = at[1], *y = at[2];
    char *z = at[3];
    switch ((uintptr_t)size) {
    case 1: CHOOSE(uint8_t)
    case 2: CHOOSE(uint16_t)
    case 4: CHOOSE(uint32_t)
    case 8: CHOOSE(uint64_t)
    case 16: CHOOSE(Wide)
    }
}

int
find_choice(PyObject *const *ins, PyObject *out, Loop *loop)
{
    if (!PyArray_DescrCheck(out) || ins[0] != state.boolean || ins[1] != out || ins[2] != out)
        return 0;
    PyArray_Descr *dtype = (PyArray_Descr *)out;
    npy_intp size = PyDataType_ELSIZE(dtype);
    if (!(PyTypeNum_ISNUMBER(dtype->type_num) || PyTypeNum_ISBOOL(dtype->type_num)) || size > NUMBER_SIZE ||
        size & (size - 1) || !PyArray_ISNBO(dtype->byteorder))
        return 0;
    for (int i = 0; i < 3; i++)
        loop->ins[i] = (PyArray_Descr *)ins[i];
    loop->out = dtype;
    loop->call = choose;
    loop->data = (void *)(uintptr_t)size;
    loop->exact = 1;
    return 1;
}

void
run_loop(const Loop *loop, int n, char *const *from, const npy_intp *steps, char *out, npy_intp step, npy_intp length)
{
    char *at[4];
    npy_intp by[4];
    for (int i = 0; i < 4; i++) {
        at[i] = i < n ? from[i] : out;
        by[i] = i < n ? steps[i] : step;
    }
    loop->call(at, &length, by, loop->data);
}

/* One of the operations on doubles, of which numbers have a step of 0. */
static void
operate(int op, void *out, const double *a, int da, const double *b, int db, Py_ssize_t n)
{
    static Loop loops[OPERATIONS];
    PyObject *of[] = {state.float64, state.float64};
    int arity = is_of_one(op) ? 1 : 2;
    if (loops[op].call == NULL &&
        !find_loop(PyTuple_GET_ITEM(state.operations, op), of, arity, op >= LESS ? state.boolean : state.float64, &loops[op]))
        Py_FatalError("NumPy has no loop for doubles.");
    char *from[] = {(char *)a, (char *)b};
    npy_intp steps[] = {da * (npy_intp)sizeof(double), db * (npy_intp)sizeof(double)};
    run_loop(&loops[op], arity, from, steps, out, op >= LESS ? 1 : sizeof(double), n);
}

int
as_double(PyObject *x, double *value)
{
    if (PyFloat_Check(x)) { /* (NumPy's are among them) */
        *value = PyFloat_AS_DOUBLE(x);
        return 1;
    }
    if (!PyLong_CheckExact(x))
        return 0;
    int overflow;
    long long n = PyLong_AsLongLongAndOverflow(x, &overflow);
    *value = (double)n;
    return !overflow && n >= -(1LL << 53) && n <= 1LL << 53;
}

/* New memory: NULL, without an error, where there is none. */
static PyArrayObject *
fresh(int nd, const npy_intp *dims, int type)
{
    PyObject *array = PyArray_EMPTY(nd, dims, type, 0);
    if (array == NULL)
        PyErr_Clear();
    return (PyArrayObject *)array;
}

void
copy_row(char *to, Py_ssize_t step, const char *from, Py_ssize_t by, Py_ssize_t n)
{
    if (step == sizeof(double) && by == sizeof(double))
        memcpy(to, from, n * sizeof(double));
    else
        for (Py_ssize_t i = 0; i < n; i++)
            *(double *)(to + i * step) = *(const double *)(from + i * by);
}

int
operation_of(PyObject *function)
{
    if (state.operations == NULL || PyTuple_GET_SIZE(state.operations) != OPERATIONS)
        return -1;
    for (int op = 0; op < OPERATIONS; op++)
        if (PyTuple_GET_ITEM(state.operations, op) == function)
            return op;
    return -1;
}

/* The sum of doubles, in NumPy's order: eight at a time, halves of many by themselves. */
static double
pairwise_sum(const double *a, Py_ssize_t n)
{
    if (n > 128) {
        Py_ssize_t half = n / 2 - n / 2 % 8;
        return pairwise_sum(a, half) + pairwise_sum(a + half, n - half);
    }
    double sum = -0.0, lane[8];
    Py_ssize_t i = 0;
    if (n >= 8) {
        memcpy(lane, a, sizeof(lane));
        for (i = 8; i + 8 <= n; i += 8)
            for (int k = 0; k < 8; k++)
                lane[k] += a[i + k];
        sum = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    }
    for (; i < n; i++)
        sum += a[i];
    return sum;
}

/* The largest or smallest of some elements, as NumPy's loop finds it: from the first on. */
static void
extreme(const Loop *loop, const char *from, Py_ssize_t n, char *out)
{
    npy_intp size = PyDataType_ELSIZE(loop->out), by[3] = {0, size, 0}, rest = n - 1;
    char *at[3] = {out, (char *)from + size, out};
    memcpy(out, from, (size_t)size);
    if (rest > 0)
        loop->call(at, &rest, by, loop->data);
}

/* Is a function of NumPy's one that picks, the largest or the smallest? Then its loop. */
static int
find_extreme(PyObject *function, PyObject *dtype, Loop *loop)
{
    PyObject *ins[] = {dtype, dtype};
    if (strcmp(Py_TYPE(function)->tp_name, "numpy.ufunc") != 0)
        return 0;
    const char *name = ((const PyUFuncObject *)function)->name;
    return name != NULL && (strcmp(name, "maximum") == 0 || strcmp(name, "minimum") == 0) &&
           find_loop(function, ins, 2, dtype, loop);
}

PyObject *
reduced_whole(PyObject *function, PyArrayObject *a, PyObject *dtype, int nd)
{
    npy_intp ones[DIMENSIONS];
    Py_ssize_t n = elements(a);
    int sum = operation_of(function) == ADD, doubles = dtype == state.float64;
    Loop loop = {NULL};
    if (DTYPE(a) != dtype || PyArray_NDIM(a) == 0 || n < 1 || !PyArray_IS_C_CONTIGUOUS(a) || !PyArray_ISALIGNED(a))
        return NULL;
    if (sum && !doubles && (!PyArray_ISINTEGER(a) || PyArray_ITEMSIZE(a) != 8 || !PyArray_ISNOTSWAPPED(a)))
        return NULL;
    if (!sum && !find_extreme(function, dtype, &loop))
        return NULL;
    for (int d = 0; d < nd; d++)
        ones[d] = 1;
    PyArrayObject *out = fresh(nd, ones, PyArray_TYPE(a));
    if (out == NULL)
        return NULL;
    if (!sum)
        extreme(&loop, PyArray_BYTES(a), n, PyArray_BYTES(out));
    else if (doubles)
        *(double *)PyArray_BYTES(out) = 0.0 + pairwise_sum((const double *)PyArray_BYTES(a), n);
    else {
        uint64_t total = 0;
        for (Py_ssize_t i = 0; i < n; i++)
            total += ((const uint64_t *)PyArray_BYTES(a))[i];
        *(uint64_t *)PyArray_BYTES(out) = total;
    }
    return (PyObject *)out;
}

/* Add one row to another. */
#define ADD_ROW(type) \
    for (npy_intp i = 0; i < n; i++) \
        ((type *)to)[i] += ((const type *)from)[i]; \
    return;

static void
add_row(char *to, const char *from, npy_intp n, int type)
{
    switch (type) {
    case NPY_FLOAT: ADD_ROW(float)
    case NPY_DOUBLE: ADD_ROW(double)
    case NPY_LONG: ADD_ROW(uint64_t)
    }
}

PyObject *
reduced_along(PyObject *function, PyArrayObject *a, PyObject *dtype, PyObject *axes, PyObject *shape)
{
    int nd = PyArray_NDIM(a), type = PyArray_TYPE(a), left = 0, sum = operation_of(function) == ADD;
    npy_intp size = PyArray_ITEMSIZE(a), reduced[DIMENSIONS] = {0}, by[DIMENSIONS], at[DIMENSIONS] = {0}, dims[DIMENSIONS];
    npy_intp n = nd < 2 || nd > DIMENSIONS ? 0 : PyArray_DIM(a, nd - 1), to = 0;
    Loop loop = {NULL};
    if (n < 2 || DTYPE(a) != dtype || PyArray_STRIDE(a, nd - 1) != size || !PyArray_ISALIGNED(a) || elements(a) == 0 ||
        PyTuple_GET_SIZE(shape) > DIMENSIONS)
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(axes); i++) {
        Py_ssize_t d = PyLong_AsSsize_t(PyTuple_GET_ITEM(axes, i));
        if (d < 0 || d >= nd - 1)
            return NULL;
        reduced[d] = 1;
    }
    /* (NumPy goes through memory as it lies; where that is the order of the axes, both add up in the same order.) */
    for (int d = nd - 1, inner = 0; d >= 0; d--) {
        npy_intp stride = PyArray_STRIDE(a, d);
        if (PyArray_DIM(a, d) > 1 && stride < inner)
            return NULL;
        if (PyArray_DIM(a, d) > 1)
            inner = (int)(stride < INT_MAX ? stride : INT_MAX);
        by[d] = reduced[d] ? 0 : to == 0 ? size : to;
        if (!reduced[d])
            to = by[d] * PyArray_DIM(a, d);
    }
    if (sum ? !PyArray_ISNOTSWAPPED(a) || (type != NPY_FLOAT && type != NPY_DOUBLE && type != NPY_LONG)
            : !find_extreme(function, dtype, &loop))
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); i++) {
        dims[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
        left++;
    }
    PyArrayObject *out = fresh(left, dims, type);
    if (out == NULL || PyArray_NBYTES(out) != to) {
        Py_XDECREF(out);
        return NULL;
    }
    char *from = PyArray_BYTES(a), *result = PyArray_BYTES(out);
    if (sum)
        memset(result, 0, (size_t)to); /* (a sum begins with 0.0) */
    for (int d = 0; d >= 0;) {
        int first = !sum;
        for (int k = 0; k < nd - 1; k++)
            first = first && (!reduced[k] || at[k] == 0);
        if (sum)
            add_row(result, from, n, type);
        else if (first)
            memcpy(result, from, (size_t)(n * size));
        else {
            char *const both[] = {result, from};
            const npy_intp steps[] = {size, size};
            run_loop(&loop, 2, both, steps, result, size, n);
        }
        for (d = nd - 2; d >= 0; d--) {
            from += PyArray_STRIDE(a, d);
            result += by[d];
            if (++at[d] < PyArray_DIM(a, d))
                break;
            from -= at[d] * PyArray_STRIDE(a, d);
            result -= at[d] * by[d];
            at[d] = 0;
        }
    }
    return (PyObject *)out;
}

PyObject *
operated(PyObject *function, PyObject *const *values, int n, PyObject *shape, int mine)
{
    int op = operation_of(function);
    if (op < 0 || n != (is_of_one(op) ? 1 : 2))
        return NULL;
    if (PyTuple_GET_SIZE(shape) == 0)
        return calculated(op, values, n);
    if (op > NOT_EQUAL)
        return NULL;
    const double *from[2];
    double numbers[2] = {0, 0};
    double beside[2][APART];
    int steps[2] = {0, 0};
    from[1] = &numbers[1];
    Py_ssize_t size = -1;
    PyArrayObject *out = NULL, *whole = NULL; /* borrowed, until all operands are known to fit */
    for (int i = 0; i < n; i++) {
        PyArrayObject *a = (PyArrayObject *)values[i];
        from[i] = &numbers[i];
        if (!IS_ARRAY(a)) {
            if (!as_double(values[i], &numbers[i]))
                return NULL;
            continue;
        }
        int apart = !PyArray_IS_C_CONTIGUOUS(a);
        if (DTYPE(a) != state.float64 || !PyArray_ISALIGNED(a) ||
            (apart && (PyArray_NDIM(a) != 1 || PyArray_DIMS(a)[0] > APART)))
            return NULL;
        if (PyArray_NDIM(a) == 0) {
            from[i] = (const double *)PyArray_BYTES(a);
            continue;
        }
        if (!has_shape(a, shape))
            return NULL;
        whole = a;
        size = elements(a);
        if (size > (mine & IN_PLACE_ONLY ? FEW_IN_PLACE : FEW_ELEMENTS))
            return NULL;
        steps[i] = 1;
        from[i] = apart ? beside[i] : (const double *)PyArray_BYTES(a);
        if (apart)
            copy_row((char *)beside[i], sizeof(double), PyArray_BYTES(a), PyArray_STRIDES(a)[0], size);
        if (out == NULL && !apart && mine & 1 << i)
            out = a;
    }
    if (size < 1)
        return NULL;
    if (op >= LESS || out == NULL)
        out = fresh(PyArray_NDIM(whole), PyArray_DIMS(whole), op >= LESS ? NPY_BOOL : NPY_DOUBLE);
    else
        Py_INCREF(out);
    if (out != NULL)
        operate(op, PyArray_BYTES(out), from[0], steps[0], from[1], steps[1], size);
    return (PyObject *)out;
}

/* From the first to behind the last byte that a part shows. */
static void
bounds(const Part *part, Py_ssize_t item, char **first, char **last)
{
    *first = *last = part->data;
    for (int d = 0; d < part->nd; d++)
        *(part->strides[d] < 0 ? first : last) += (part->dims[d] - 1) * part->strides[d];
    *last += item;
}

/* Do two parts, neither of them empty, reach over the same bytes? */
int
meet(const Part *a, const Part *b, Py_ssize_t item)
{
    char *first, *last, *start, *end;
    bounds(a, item, &first, &last);
    bounds(b, item, &start, &end);
    return first < end && start < last;
}

int
lies_together(const Part *part, Py_ssize_t step)
{
    for (int d = part->nd - 1; d >= 0; d--) {
        if (part->strides[d] != step && part->dims[d] != 1)
            return 0;
        step *= part->dims[d];
    }
    return 1;
}

/* How an operation steps through parts that are stretched to some lengths. */
typedef struct {
    npy_intp along[3][DIMENSIONS];
    /* Do all lie side by side, or are one number? Does any that is not stretched; does one run down columns? */
    int together, rows, columns;
} Steps;

static void
find_steps(const Loop *loop, int n, const Part *parts, int nd, const npy_intp *dims, Steps *steps)
{
    steps->together = 1;
    steps->rows = steps->columns = 0;
    for (int i = 0; i < n; i++) {
        const Part *part = &parts[i];
        Py_ssize_t item = PyDataType_ELSIZE(loop->ins[i]);
        int whole = part->nd == nd && same_lengths(part->dims, dims, nd);
        int beside = whole ? lies_together(part, item) : part->nd == 0;
        steps->together &= beside;
        /* (where some run down rows and others down columns, NumPy's results do as the former) */
        int along = whole && nd == 2 && Py_ABS(part->strides[0]) > Py_ABS(part->strides[1]);
        steps->rows |= whole && (beside || along);
        for (int d = 0; d < nd; d++) {
            int k = d - (nd - part->nd);
            steps->along[i][d] = k < 0 || part->dims[k] != dims[d] ? 0 : part->strides[k];
        }
        steps->columns |= whole && nd > 1 && dims[0] > 1 && Py_ABS(part->strides[0]) < Py_ABS(part->strides[nd - 1]);
    }
}

/* An operation, row by row, or at once where all lies together. */
static void
run_steps(const Loop *loop, int n, const Part *parts, const Steps *steps, const Part *out)
{
    npy_intp at[DIMENSIONS] = {0}, by[3] = {0}, rows = 1, length = out->dims[out->nd - 1];
    Py_ssize_t item = PyDataType_ELSIZE(loop->out);
    char *from[3] = {NULL}, *to = out->data;
    for (int i = 0; i < n; i++)
        from[i] = parts[i].data;
    for (int d = 0; d < out->nd - 1; d++)
        rows *= out->dims[d];
    if (steps->together && lies_together(out, item)) {
        for (int i = 0; i < n; i++)
            by[i] = parts[i].nd ? PyDataType_ELSIZE(loop->ins[i]) : 0;
        run_loop(loop, n, from, by, to, item, rows * length);
        return;
    }
    for (npy_intp row = 0; row < rows; row++) {
        to = out->data;
        for (int i = 0; i < n; i++) {
            by[i] = steps->along[i][out->nd - 1];
            from[i] = parts[i].data;
        }
        for (int d = 0; d < out->nd - 1; d++) {
            to += at[d] * out->strides[d];
            for (int i = 0; i < n; i++)
                from[i] += at[d] * steps->along[i][d];
        }
        run_loop(loop, n, from, by, to, out->strides[out->nd - 1], length);
        for (int d = out->nd - 2; d >= 0 && ++at[d] == out->dims[d]; d--)
            at[d] = 0;
    }
}

/* The axes of a matrix exchanged. */
static Part
exchanged(const Part *part)
{
    Part found = *part;
    for (int d = 0; d < 2 && part->nd == 2; d++) {
        found.dims[d] = part->dims[1 - d];
        found.strides[d] = part->strides[1 - d];
    }
    return found;
}

/* An operation on matrices whose columns lie together, and numbers: so do those of the result, as NumPy's do. */
static PyObject *
looped_by_columns(const Loop *loop, int n, const Part *parts, const npy_intp *dims)
{
    Part across[3], whole, by_columns;
    npy_intp lengths[] = {dims[1], dims[0]};
    Steps steps;
    for (int i = 0; i < n; i++) {
        if (parts[i].nd && (parts[i].nd != 2 || !same_lengths(parts[i].dims, dims, 2)))
            return NULL;
        across[i] = exchanged(&parts[i]);
    }
    find_steps(loop, n, across, 2, lengths, &steps);
    if (!steps.together && (!loop->exact || steps.columns))
        return NULL;
    PyArrayObject *out = (PyArrayObject *)PyArray_EMPTY(2, (npy_intp *)dims, loop->out->type_num, 1);
    if (out == NULL || !resolve_index(Py_Ellipsis, out, &whole)) {
        PyErr_Clear();
        Py_XDECREF(out);
        return NULL;
    }
    by_columns = exchanged(&whole);
    run_steps(loop, n, across, &steps, &by_columns);
    return (PyObject *)out;
}

PyObject *
looped(const Loop *loop, int n, const Part *parts, int nd, const npy_intp *dims)
{
    npy_intp size = 1;
    Steps steps;
    for (int d = 0; d < nd; d++)
        size *= dims[d];
    if (size < 1 || size > FEW_ELEMENTS)
        return NULL;
    find_steps(loop, n, parts, nd, dims, &steps);
    /* (Other loops than of one operation may round what lies apart in other ways; and what runs down columns has NumPy's
       results do so.) */
    if (nd == 2 && steps.columns && !steps.rows)
        return looped_by_columns(loop, n, parts, dims);
    if (!steps.together && (!loop->exact || (steps.columns && !steps.rows)))
        return NULL;
    PyArrayObject *out = fresh(nd, dims, loop->out->type_num);
    Part whole;
    if (out == NULL || !resolve_index(Py_Ellipsis, out, &whole)) {
        Py_XDECREF(out);
        return NULL;
    }
    run_steps(loop, n, parts, &steps, &whole);
    return (PyObject *)out;
}

int
looped_into(const Loop *loop, int n, const Part *parts, const Part *out)
{
    char *first, *last, *start, *end;
    npy_intp size = 1;
    Steps steps;
    for (int d = 0; d < out->nd; d++)
        size *= out->dims[d];
    if (out->nd < 1 || size < 1 || size > FEW_ELEMENTS || !loop->exact)
        return 0;
    bounds(out, PyDataType_ELSIZE(loop->out), &first, &last);
    for (int i = 0; i < n; i++) {
        const Part *part = &parts[i];
        if (part->nd > out->nd)
            return 0;
        for (int d = 0; d < part->nd; d++)
            if (part->dims[d] != 1 && part->dims[d] != out->dims[d + out->nd - part->nd])
                return 0;
        bounds(part, PyDataType_ELSIZE(loop->ins[i]), &start, &end);
        int same = part->data == out->data && part->nd == out->nd && loop->ins[i] == loop->out &&
                   same_lengths(part->dims, out->dims, out->nd) && same_lengths(part->strides, out->strides, out->nd);
        if (!same && first < end && start < last)
            return 0;
    }
    find_steps(loop, n, parts, out->nd, out->dims, &steps);
    run_steps(loop, n, parts, &steps, out);
    return 1;
}

/* Copy doubles from one part to another: 1, or 0 where they may overlap, or NumPy is to do it. */
int
copied(const Part *to, const Part *from)
{
    if (to->nd != from->nd || to->nd > 2 || to->nd < 1)
        return 0;
    int empty = 0;
    for (int d = 0; d < to->nd; d++) {
        if (to->dims[d] != from->dims[d])
            return 0;
        empty |= to->dims[d] < 1;
    }
    if (empty)
        return 1;
    if (meet(to, from, sizeof(double)))
        return 0;
    Py_ssize_t rows = to->nd == 2 ? to->dims[0] : 1, n = to->dims[to->nd - 1];
    for (Py_ssize_t r = 0; r < rows; r++)
        copy_row(to->data + r * to->strides[0] * (to->nd == 2), to->strides[to->nd - 1],
                 from->data + r * from->strides[0] * (to->nd == 2), from->strides[to->nd - 1], n);
    return 1;
}

/* Write a number to a part: 1, or 0 where NumPy is to do it. */
int
filled(const Part *to, PyObject *number)
{
    double value;
    if (to->nd > 2 || !as_double(number, &value))
        return 0;
    Py_ssize_t rows = to->nd == 2 ? to->dims[0] : 1, n = to->nd ? to->dims[to->nd - 1] : 1;
    Py_ssize_t step = to->nd ? to->strides[to->nd - 1] : 0;
    for (Py_ssize_t r = 0; r < rows; r++)
        for (Py_ssize_t i = 0; i < n; i++)
            *(double *)(to->data + (to->nd == 2 ? r * to->strides[0] : 0) + i * step) = value;
    return 1;
}

/* cblas_dgemv of 64-bit sizes */
typedef void (*Gemv)(int order, int transposed, int64_t rows, int64_t columns, double alpha, const double *a,
                     int64_t step, const double *x, int64_t by, double beta, double *y, int64_t to);
enum { BY_ROWS = 101, BY_COLUMNS = 102, AS_IT_IS = 111, TRANSPOSED = 112 };

PyObject *
times_vector(PyArrayObject *a, PyArrayObject *b)
{
    PyArrayObject *matrix = PyArray_NDIM(a) == 2 ? a : b, *x = PyArray_NDIM(a) == 2 ? b : a;
    if (state.gemv == NULL || PyArray_NDIM(matrix) != 2 || PyArray_NDIM(x) != 1 || DTYPE(a) != state.float64 ||
        DTYPE(b) != state.float64)
        return NULL;
    int across = PyArray_STRIDES(matrix)[1] != sizeof(double);
    Py_ssize_t rows = PyArray_DIMS(matrix)[0], columns = PyArray_DIMS(matrix)[1];
    Py_ssize_t step = PyArray_STRIDES(matrix)[across];
    npy_intp length = matrix == a ? rows : columns;
    if (rows < 2 || columns < 2)
        return NULL;
    PyArrayObject *out = fresh(1, &length, NPY_DOUBLE);
    if (out == NULL)
        return NULL;
    PyThreadState *others = rows * columns < LONG ? NULL : PyEval_SaveThread();
    ((Gemv)state.gemv)(across ? BY_COLUMNS : BY_ROWS, matrix == a ? AS_IT_IS : TRANSPOSED, rows, columns, 1.0,
                       (const double *)PyArray_BYTES(matrix), step / (Py_ssize_t)sizeof(double),
                       (const double *)PyArray_BYTES(x),
                       PyArray_STRIDES(x)[0] / (Py_ssize_t)sizeof(double), 0.0, (double *)PyArray_BYTES(out), 1);
    if (others != NULL)
        PyEval_RestoreThread(others);
    return (PyObject *)out;
}

PyObject *
times_matrix(PyObject *matmul, PyArrayObject *a, PyArrayObject *b)
{
    if (PyArray_NDIM(a) != 2 || PyArray_NDIM(b) != 2 || strcmp(Py_TYPE(matmul)->tp_name, "numpy.ufunc") != 0 ||
        !PyArray_ISALIGNED(a) || !PyArray_ISALIGNED(b))
        return NULL;
    const PyUFuncObject *ufunc = (PyUFuncObject *)matmul;
    Py_ssize_t rows = PyArray_DIMS(a)[0], inner = PyArray_DIMS(a)[1], columns = PyArray_DIMS(b)[1];
    int type = PyArray_TYPE(a), k = 0;
    if (!ufunc->core_enabled || ufunc->functions == NULL || ufunc->nin != 2 || ufunc->nout != 1 ||
        rows * inner * columns > LONG || !(PyTypeNum_ISNUMBER(type) || PyTypeNum_ISBOOL(type)))
        return NULL;
    while (k < ufunc->ntypes &&
           (ufunc->types[3 * k] != type || ufunc->types[3 * k + 1] != type || ufunc->types[3 * k + 2] != type))
        k++;
    if (k == ufunc->ntypes || ufunc->functions[k] == NULL)
        return NULL;
    npy_intp shape[] = {rows, columns};
    PyArrayObject *out = fresh(2, shape, type);
    if (out == NULL)
        return NULL;
    char *at[] = {PyArray_BYTES(a), PyArray_BYTES(b), PyArray_BYTES(out)};
    npy_intp lengths[] = {1, rows, inner, columns};
    npy_intp steps[] = {0, 0, 0, PyArray_STRIDES(a)[0], PyArray_STRIDES(a)[1], PyArray_STRIDES(b)[0],
                        PyArray_STRIDES(b)[1], PyArray_STRIDES(out)[0], PyArray_STRIDES(out)[1]};
    ufunc->functions[k](at, lengths, steps, ufunc->data == NULL ? NULL : ufunc->data[k]);
    return (PyObject *)out;
}
