/* Operations on single numbers, as NumPy's scalars do them: for arrays without axes, which elements and sums are. */

#include "native.h"

#include <math.h>

/* What is computed of two numbers of a type, of integers wrapping around. */
#define COMPARED(a, b) \
    case LESS: *truth = (a) < (b); return 2; \
    case LESS_EQUAL: *truth = (a) <= (b); return 2; \
    case GREATER: *truth = (a) > (b); return 2; \
    case GREATER_EQUAL: *truth = (a) >= (b); return 2; \
    case EQUAL: *truth = (a) == (b); return 2; \
    case NOT_EQUAL: *truth = (a) != (b); return 2;

#define OF_REALS(type, name, absolute, root) \
    static int name(int op, const void *x, const void *y, void *out, char *truth) \
    { \
        type a = *(const type *)x, b = *(const type *)y, *z = out; \
        switch (op) { \
        case ADD: *z = a + b; return 1; \
        case SUBTRACT: *z = a - b; return 1; \
        case MULTIPLY: *z = a * b; return 1; \
        case DIVIDE: *z = a / b; return 1; \
        case NEGATIVE: *z = -a; return 1; \
        case ABSOLUTE: *z = absolute(a); return 1; \
        case SQUARE: *z = a * a; return 1; \
        case SQRT: *z = root(a); return 1; \
        COMPARED(a, b) \
        } \
        return 0; \
    }

/* `wide` is unsigned, and no shorter than int: nothing overflows in it. */
#define OF_INTEGERS(type, wide, name, is_signed) \
    static int name(int op, const void *x, const void *y, void *out, char *truth) \
    { \
        type a = *(const type *)x, b = *(const type *)y, *z = out; \
        switch (op) { \
        case ADD: *z = (type)((wide)a + (wide)b); return 1; \
        case SUBTRACT: *z = (type)((wide)a - (wide)b); return 1; \
        case MULTIPLY: *z = (type)((wide)a * (wide)b); return 1; \
        case NEGATIVE: *z = (type)(0 - (wide)a); return 1; \
        case ABSOLUTE: *z = is_signed && a < 0 ? (type)(0 - (wide)a) : a; return 1; \
        case SQUARE: *z = (type)((wide)a * (wide)a); return 1; \
        case AND: *z = a & b; return 1; \
        case OR: *z = a | b; return 1; \
        case XOR: *z = a ^ b; return 1; \
        case INVERT: *z = (type)~a; return 1; \
        case LEFT: *z = (size_t)b < 8 * sizeof(type) ? (type)((wide)a << b) : 0; return 1; \
        case RIGHT: *z = (size_t)b < 8 * sizeof(type) ? (type)(a >> b) : is_signed && a < 0 ? (type)-1 : 0; return 1; \
        COMPARED(a, b) \
        } \
        return 0; \
    }

OF_REALS(double, of_doubles, fabs, sqrt)
OF_REALS(float, of_floats, fabsf, sqrtf)
OF_INTEGERS(int8_t, uint32_t, of_int8, 1)
OF_INTEGERS(int16_t, uint32_t, of_int16, 1)
OF_INTEGERS(int32_t, uint32_t, of_int32, 1)
OF_INTEGERS(int64_t, uint64_t, of_int64, 1)
OF_INTEGERS(uint8_t, uint32_t, of_uint8, 0)
OF_INTEGERS(uint16_t, uint32_t, of_uint16, 0)
OF_INTEGERS(uint32_t, uint32_t, of_uint32, 0)
OF_INTEGERS(uint64_t, uint64_t, of_uint64, 0)

static int
of_truths(int op, const void *x, const void *y, void *out, char *truth)
{
    char a = *(const char *)x, b = *(const char *)y;
    switch (op) {
    case AND: *truth = a & b; return 2;
    case OR: *truth = a | b; return 2;
    case XOR: *truth = a ^ b; return 2;
    case INVERT: *truth = !a; return 2;
    case EQUAL: *truth = a == b; return 2;
    case NOT_EQUAL: *truth = a != b; return 2;
    }
    return 0;
}

typedef int (*Calculation)(int op, const void *x, const void *y, void *out, char *truth);

/* What computes with numbers of a dtype, or NULL. */
static Calculation
calculation(const PyArray_Descr *dtype)
{
    int is_unsigned = PyTypeNum_ISUNSIGNED(dtype->type_num);
    if (dtype->type_num == NPY_DOUBLE)
        return of_doubles;
    if (dtype->type_num == NPY_FLOAT)
        return of_floats;
    if (dtype->type_num == NPY_BOOL)
        return of_truths;
    if (!PyTypeNum_ISINTEGER(dtype->type_num))
        return NULL;
    switch (PyDataType_ELSIZE(dtype)) {
    case 1: return is_unsigned ? of_uint8 : of_int8;
    case 2: return is_unsigned ? of_uint16 : of_int16;
    case 4: return is_unsigned ? of_uint32 : of_int32;
    case 8: return is_unsigned ? of_uint64 : of_int64;
    }
    return NULL;
}

int
as_number(PyObject *x, const PyArray_Descr *dtype, void *value)
{
    double parts[2] = {0, 0};
    int size = (int)PyDataType_ELSIZE(dtype), overflow, is_complex = PyTypeNum_ISCOMPLEX(dtype->type_num);
    if (PyTypeNum_ISFLOAT(dtype->type_num) || is_complex) {
        if (dtype->type_num != NPY_DOUBLE && dtype->type_num != NPY_FLOAT && dtype->type_num != NPY_CDOUBLE &&
            dtype->type_num != NPY_CFLOAT)
            return 0;
        int is_short = size == (1 + is_complex) * (int)sizeof(float);
        if (is_complex && PyComplex_CheckExact(x)) {
            parts[0] = PyComplex_RealAsDouble(x);
            parts[1] = PyComplex_ImagAsDouble(x);
        }
        else if ((is_short && !PyFloat_CheckExact(x) && !PyLong_CheckExact(x)) || !as_double(x, &parts[0]))
            return 0; /* (NumPy's doubles are wider) */
        for (int i = 0; i <= is_complex; i++)
            if (is_short)
                ((float *)value)[i] = (float)parts[i];
            else
                ((double *)value)[i] = parts[i];
        return 1;
    }
    if (!PyLong_CheckExact(x) || dtype->type_num == NPY_BOOL)
        return 0;
    int64_t n = PyLong_AsLongLongAndOverflow(x, &overflow);
    if (overflow)
        return 0;
    if (PyTypeNum_ISUNSIGNED(dtype->type_num) ? n < 0 || (size < 8 && n >> 8 * size)
                                              : size < 8 && (n < -(1LL << (8 * size - 1)) || n >> (8 * size - 1) > 0))
        return 0;
    memcpy(value, &n, (size_t)size); /* (the lowest bytes come first) */
    return 1;
}

/* A real number, or a truth value, of a dtype: as a double, and as 64 bits of an integer. 1, or 0 if it is none. */
static int
read_number(const void *from, const PyArray_Descr *dtype, double *real, uint64_t *bits)
{
    int type = dtype->type_num;
    if (type == NPY_DOUBLE)
        *real = *(const double *)from;
    else if (type == NPY_FLOAT)
        *real = *(const float *)from;
    if (type == NPY_DOUBLE || type == NPY_FLOAT)
        return 1;
    npy_intp size = PyDataType_ELSIZE(dtype);
    if (!(PyTypeNum_ISINTEGER(type) || PyTypeNum_ISBOOL(type)) || size > 8 || !PyArray_ISNBO(dtype->byteorder))
        return 0;
    *bits = 0;
    memcpy(bits, from, (size_t)size); /* (the lowest bytes come first) */
    int rest = 64 - 8 * (int)size, is_signed = PyTypeNum_ISSIGNED(type);
    if (is_signed)
        *bits = (uint64_t)((int64_t)(*bits << rest) >> rest);
    *real = is_signed ? (double)(int64_t)*bits : (double)*bits;
    return 1;
}

int
convert_number(const void *from, const PyArray_Descr *source, void *to, const PyArray_Descr *target)
{
    double real = 0;
    uint64_t bits = 0;
    int type = target->type_num, whole = PyTypeNum_ISINTEGER(source->type_num) || PyTypeNum_ISBOOL(source->type_num);
    if (!PyArray_ISNBO(target->byteorder) || !read_number(from, source, &real, &bits))
        return 0;
    if (PyTypeNum_ISINTEGER(type) && whole)
        memcpy(to, &bits, (size_t)PyDataType_ELSIZE(target));
    else if (type == NPY_DOUBLE || type == NPY_CDOUBLE) {
        ((double *)to)[0] = real;
        if (type == NPY_CDOUBLE)
            ((double *)to)[1] = 0;
    }
    else if (type == NPY_FLOAT && whole && PyDataType_ELSIZE(source) <= 2)
        *(float *)to = (float)real;
    else
        return 0;
    return 1;
}

int
calculate(int op, const PyArray_Descr *dtype, const void *a, const void *b, void *result)
{
    char truth;
    Calculation found = op < 0 ? NULL : calculation(dtype);
    int made = found == NULL ? 0 : found(op, a, b, result, &truth);
    if (made == 2)
        *(char *)result = truth;
    return made;
}

PyObject *
calculated(int op, PyObject *const *values, int n)
{
    char numbers[2][NUMBER_SIZE] = {{0}}, result[NUMBER_SIZE];
    const void *from[2] = {numbers[0], numbers[1]};
    PyArray_Descr *dtype = NULL;
    for (int i = 0; i < n; i++) {
        PyArrayObject *a = (PyArrayObject *)values[i];
        if (!IS_ARRAY(a))
            continue;
        if ((dtype != NULL && dtype != PyArray_DESCR(a)) || PyArray_NDIM(a) || !PyArray_ISBEHAVED_RO(a))
            return NULL;
        dtype = PyArray_DESCR(a);
        from[i] = PyArray_BYTES(a);
    }
    for (int i = 0; dtype != NULL && i < n; i++)
        if (!IS_ARRAY(values[i]) && !as_number(values[i], dtype, numbers[i]))
            return NULL;
    int made = dtype == NULL ? 0 : calculate(op, dtype, from[0], from[1], result);
    if (!made)
        return NULL;
    dtype = made == 2 ? (PyArray_Descr *)state.boolean : dtype;
    Py_INCREF(dtype);
    PyObject *out = PyArray_NewFromDescr(&PyArray_Type, dtype, 0, NULL, NULL, NULL, 0, NULL);
    if (out == NULL)
        PyErr_Clear();
    else
        memcpy(PyArray_BYTES((PyArrayObject *)out), result, (size_t)PyDataType_ELSIZE(dtype));
    return out;
}
