/* Products of matrices: by BLAS, called as NumPy calls it, so that the bits are the same with the same BLAS; of other
   elements, or without BLAS (RT_BLAS is not defined), by plain loops. RT_BLAS(name) is what a function of CBLAS is
   called, RT_INT what it counts in. */

#include "products.h"

#include <complex.h>
#include <stdlib.h>
#include <string.h>

/* Plain loops, in the order of a sum as it is written. */
#define LOOPS(NAME, TYPE, START, JOIN)                                                                                  \
    static void NAME(const char *a, const int64_t *as, const char *b, const int64_t *bs, char *out,                     \
                     const int64_t *os, int64_t m, int64_t n, int64_t p)                                                \
    {                                                                                                                   \
        for (int64_t i = 0; i < m; i++)                                                                                 \
            for (int64_t j = 0; j < p; j++) {                                                                           \
                TYPE sum = START;                                                                                       \
                for (int64_t k = 0; k < n; k++) {                                                                       \
                    TYPE x = *(const TYPE *)(a + i * as[0] + k * as[1]), y = *(const TYPE *)(b + k * bs[0] + j * bs[1]); \
                    sum = JOIN;                                                                                         \
                }                                                                                                       \
                *(TYPE *)(out + i * os[0] + j * os[1]) = sum;                                                           \
            }                                                                                                           \
    }
#define WRAPPED(TYPE, WIDE) (TYPE)((WIDE)sum + (WIDE)x * (WIDE)y)
LOOPS(loops_1, uint8_t, 0, WRAPPED(uint8_t, uint32_t))
LOOPS(loops_2, uint16_t, 0, WRAPPED(uint16_t, uint32_t))
LOOPS(loops_4, uint32_t, 0, WRAPPED(uint32_t, uint32_t))
LOOPS(loops_8, uint64_t, 0, WRAPPED(uint64_t, uint64_t))
LOOPS(loops_bool, uint8_t, 0, (uint8_t)(sum | (x & y)))
LOOPS(loops_f, float, 0, sum + x * y)
LOOPS(loops_d, double, 0, sum + x * y)
LOOPS(loops_F, float _Complex, 0, sum + x * y)
LOOPS(loops_D, double _Complex, 0, sum + x * y)

#ifdef RT_BLAS

enum { ROWS = 101, COLUMNS = 102, AS_IT_IS = 111, TRANSPOSED = 112, UPPER = 121 };
typedef RT_INT Int;

#define DECLARE(c, SCALAR)                                                                                              \
    void RT_BLAS(c##gemm)(int, int, int, Int, Int, Int, SCALAR, const void *, Int, const void *, Int, SCALAR, void *,   \
                          Int);                                                                                         \
    void RT_BLAS(c##gemv)(int, int, Int, Int, SCALAR, const void *, Int, const void *, Int, SCALAR, void *, Int);       \
    void RT_BLAS(c##syrk)(int, int, int, Int, Int, SCALAR, const void *, Int, SCALAR, void *, Int);
DECLARE(s, float)
DECLARE(d, double)
DECLARE(c, const void *)
DECLARE(z, const void *)
float RT_BLAS(sdot)(Int, const void *, Int, const void *, Int);
double RT_BLAS(ddot)(Int, const void *, Int, const void *, Int);
void RT_BLAS(cdotu_sub)(Int, const void *, Int, const void *, Int, void *);
void RT_BLAS(zdotu_sub)(Int, const void *, Int, const void *, Int, void *);

static const float one_f = 1, zero_f = 0, one_F[2] = {1, 0}, zero_F[2] = {0, 0};
static const double one_d = 1, zero_d = 0, one_D[2] = {1, 0}, zero_D[2] = {0, 0};

/* Can BLAS read a matrix whose rows are `down` bytes apart, and whose elements `across`? */
static int
readable(int64_t down, int64_t across, int64_t columns, int64_t size)
{
    return across == size && down % size == 0 && down / size >= columns && down / size <= INT32_MAX;
}

/* A matrix that BLAS cannot read where it lies, in C's order. */
static char *
packed(const char *x, int64_t *strides, int64_t rows, int64_t columns, int64_t size)
{
    char *made = malloc((size_t)(rows * columns * size)), *to = made;
    if (made == NULL)
        return NULL;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++, to += size)
            memcpy(to, x + i * strides[0] + j * strides[1], (size_t)size);
    strides[0] = columns * size;
    strides[1] = size;
    return made;
}

#define BY_BLAS(t, c, TYPE, ONE, ZERO, DOT)                                                                             \
    static void vector_##t(const char *a, const int64_t *as, const char *x, int64_t step, char *out, int64_t out_step,  \
                           int64_t m, int64_t n)                                                                        \
    {                                                                                                                   \
        const int64_t size = sizeof(TYPE);                                                                              \
        int rows = !readable(as[0], as[1], n, size);                                                                    \
        RT_BLAS(c##gemv)                                                                                                \
        (rows ? ROWS : COLUMNS, TRANSPOSED, n, m, ONE, a, (rows ? as[1] : as[0]) / size, x, step / size, ZERO, out,     \
         out_step / size);                                                                                              \
    }                                                                                                                   \
    static void blas_##t(const char *a, int64_t *as, const char *b, int64_t *bs, char *out, const int64_t *os,          \
                         int64_t m, int64_t n, int64_t p)                                                               \
    {                                                                                                                   \
        const int64_t size = sizeof(TYPE);                                                                              \
        char *own_a = NULL, *own_b = NULL;                                                                              \
        if (!readable(as[0], as[1], n, size) && !readable(as[1], as[0], m, size) && (m > 1 || as[1] <= 0))              \
            a = (own_a = packed(a, as, m, n, size)) ? own_a : a;                                                        \
        if (!readable(bs[0], bs[1], p, size) && !readable(bs[1], bs[0], n, size) && (p > 1 || bs[0] <= 0))              \
            b = (own_b = packed(b, bs, n, p, size)) ? own_b : b;                                                        \
        int row_a = readable(as[0], as[1], n, size), row_b = readable(bs[0], bs[1], p, size);                           \
        int any_a = row_a || readable(as[1], as[0], m, size), any_b = row_b || readable(bs[1], bs[0], n, size);         \
        if (m == 0 || n == 0 || p == 0)                                                                                 \
            loops_##t(a, as, b, bs, out, os, m, n, p);                                                                  \
        else if (m == 1 && p == 1) {                                                                                    \
            TYPE sum = 0;                                                                                               \
            DOT;                                                                                                        \
            *(TYPE *)out = (TYPE)0 + sum;                                                                               \
        } else if (n == 1 && (m == 1 || p == 1))                                                                        \
            loops_##t(a, as, b, bs, out, os, m, n, p);                                                                  \
        else if (m == 1 && any_b && as[1] % size == 0 && as[1] > 0) {                                                   \
            const int64_t turned[2] = {bs[1], bs[0]};                                                                   \
            vector_##t(b, turned, a, as[1], out, os[1], p, n);                                                          \
        } else if (p == 1 && any_a && bs[0] % size == 0 && bs[0] > 0)                                                   \
            vector_##t(a, as, b, bs[0], out, os[0], m, n);                                                              \
        else if (m == 1 || n == 1 || p == 1 || !any_a || !any_b)                                                        \
            loops_##t(a, as, b, bs, out, os, m, n, p);                                                                  \
        else {                                                                                                          \
            int how_a = row_a ? AS_IT_IS : TRANSPOSED, how_b = row_b ? AS_IT_IS : TRANSPOSED;                           \
            int64_t lda = (row_a ? as[0] : as[1]) / size, ldb = (row_b ? bs[0] : bs[1]) / size, ldc = os[0] / size;     \
            if (a == b && m == p && as[0] == bs[1] && as[1] == bs[0] && how_a != how_b) {                               \
                RT_BLAS(c##syrk)                                                                                        \
                (ROWS, UPPER, how_a, p, n, ONE, a, how_a == AS_IT_IS ? lda : ldb, ZERO, out, ldc);                      \
                for (int64_t i = 0; i < p; i++)                                                                         \
                    for (int64_t j = i + 1; j < p; j++)                                                                 \
                        *(TYPE *)(out + j * os[0] + i * os[1]) = *(TYPE *)(out + i * os[0] + j * os[1]);                \
            } else                                                                                                      \
                RT_BLAS(c##gemm)(ROWS, how_a, how_b, m, p, n, ONE, a, lda, b, ldb, ZERO, out, ldc);                     \
        }                                                                                                               \
        free(own_a);                                                                                                    \
        free(own_b);                                                                                                    \
    }
BY_BLAS(f, s, float, one_f, zero_f, sum = RT_BLAS(sdot)(n, a, as[1] / size, b, bs[0] / size))
BY_BLAS(d, d, double, one_d, zero_d, sum = RT_BLAS(ddot)(n, a, as[1] / size, b, bs[0] / size))
BY_BLAS(F, c, float _Complex, one_F, zero_F, RT_BLAS(cdotu_sub)(n, a, as[1] / size, b, bs[0] / size, &sum))
BY_BLAS(D, z, double _Complex, one_D, zero_D, RT_BLAS(zdotu_sub)(n, a, as[1] / size, b, bs[0] / size, &sum))

#else

#define blas_f loops_f
#define blas_d loops_d
#define blas_F loops_F
#define blas_D loops_D

#endif

void
multiply(int64_t type, const char *a, const int64_t *a_strides, const char *b, const int64_t *b_strides, char *out,
         const int64_t *os, int64_t m, int64_t n, int64_t p)
{
    int64_t as[2] = {a_strides[0], a_strides[1]}, bs[2] = {b_strides[0], b_strides[1]};
#define WITH(f) f(a, as, b, bs, out, os, m, n, p)
    switch (type) {
    case 'f':
        WITH(blas_f);
        break;
    case 'd':
        WITH(blas_d);
        break;
    case 'F':
        WITH(blas_F);
        break;
    case 'D':
        WITH(blas_D);
        break;
    case '?':
        WITH(loops_bool);
        break;
    case 1:
        WITH(loops_1);
        break;
    case 2:
        WITH(loops_2);
        break;
    case 4:
        WITH(loops_4);
        break;
    default:
        WITH(loops_8);
    }
}
