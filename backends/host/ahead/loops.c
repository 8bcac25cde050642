/* The loops of NumPy's functions that kernels call on blocks, for programs without NumPy. Functions of reals are those
   of the C library: their last bits may be others than NumPy's vector code gives. Sums are NumPy's to the last bit.

   LOOP_<function>_<NumPy's letters of operands and results>: ahead/loops.py reads here which there are. */

#include "loops.h"

#include <complex.h>
#include <math.h>

#undef I /* (complex.h has it) */

typedef int8_t b_;
typedef uint8_t B_;
typedef int16_t h_;
typedef uint16_t H_;
typedef int32_t i_;
typedef uint32_t I_;
typedef int64_t l_;
typedef uint64_t L_;
typedef uint8_t bool_;
typedef float f_;
typedef double d_;
typedef float _Complex F_;
typedef double _Complex D_;

#define ONE(NAME, X, R, VALUE)                                                                                          \
    void LOOP_##NAME##_##X##R(LOOP_ARGUMENTS)                                                                           \
    {                                                                                                                   \
        (void)data;                                                                                                     \
        char *in = at[0], *out = at[1];                                                                                 \
        for (int64_t i = 0; i < *n; i++, in += steps[0], out += steps[1]) {                                             \
            const X##_ x = *(X##_ *)in;                                                                                 \
            *(R##_ *)out = (R##_)(VALUE);                                                                               \
        }                                                                                                               \
    }
#define TWO(NAME, X, Y, R, VALUE)                                                                                       \
    void LOOP_##NAME##_##X##Y##R(LOOP_ARGUMENTS)                                                                        \
    {                                                                                                                   \
        (void)data;                                                                                                     \
        char *first = at[0], *second = at[1], *out = at[2];                                                             \
        for (int64_t i = 0; i < *n; i++, first += steps[0], second += steps[1], out += steps[2]) {                      \
            const X##_ x = *(X##_ *)first;                                                                              \
            const Y##_ y = *(Y##_ *)second;                                                                             \
            *(R##_ *)out = (R##_)(VALUE);                                                                               \
        }                                                                                                               \
    }

/* Sums of reals: pairs of halves, down to 128 elements, which eight sums share. */
#define SUM(X)                                                                                                          \
    static X##_ sum_##X(const char *at, int64_t n, int64_t step)                                                        \
    {                                                                                                                   \
        if (n > 128) {                                                                                                  \
            int64_t half = n / 2 - n / 2 % 8;                                                                           \
            return sum_##X(at, half, step) + sum_##X(at + half * step, n - half, step);                                 \
        }                                                                                                               \
        X##_ sum = (X##_)-0.0, part[8];                                                                                 \
        int64_t i = 0;                                                                                                  \
        if (n >= 8) {                                                                                                   \
            for (; i < 8; i++)                                                                                          \
                part[i] = *(const X##_ *)(at + i * step);                                                               \
            for (; i + 8 <= n; i += 8)                                                                                  \
                for (int k = 0; k < 8; k++)                                                                             \
                    part[k] += *(const X##_ *)(at + (i + k) * step);                                                    \
            sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));            \
        }                                                                                                               \
        for (; i < n; i++)                                                                                              \
            sum += *(const X##_ *)(at + i * step);                                                                      \
        return sum;                                                                                                     \
    }
SUM(f)
SUM(d)

static int
reduces(char **at, const int64_t *steps)
{
    return at[0] == at[2] && steps[0] == 0 && steps[2] == 0;
}

#define ADD(X)                                                                                                          \
    TWO(add_each, X, X, X, x + y)                                                                                       \
    void LOOP_add_##X##X##X(LOOP_ARGUMENTS)                                                                             \
    {                                                                                                                   \
        if (reduces(at, steps))                                                                                         \
            *(X##_ *)at[0] = *(X##_ *)at[0] + sum_##X(at[1], *n, steps[1]);                                             \
        else                                                                                                            \
            LOOP_add_each_##X##X##X(at, n, steps, data);                                                                \
    }
ADD(f)
ADD(d)

/* Of complex numbers the same with 64 at a time, of which four sums each of both parts. */
#define COMPLEX_ADD(X, PART)                                                                                            \
    static X##_ sum_##X(const char *at, int64_t n, int64_t step)                                                        \
    {                                                                                                                   \
        if (n > 64) {                                                                                                   \
            int64_t half = n / 2 - n / 2 % 4;                                                                           \
            X##_ low = sum_##X(at, half, step), high = sum_##X(at + half * step, n - half, step);                       \
            return low + high;                                                                                          \
        }                                                                                                               \
        PART real = (PART)-0.0, imag = (PART)-0.0, part[8];                                                             \
        int64_t i = 0;                                                                                                  \
        if (n >= 4) {                                                                                                   \
            for (; i < 4; i++) {                                                                                        \
                part[2 * i] = ((const PART *)(at + i * step))[0];                                                       \
                part[2 * i + 1] = ((const PART *)(at + i * step))[1];                                                   \
            }                                                                                                           \
            for (; i + 4 <= n; i += 4)                                                                                  \
                for (int k = 0; k < 4; k++) {                                                                           \
                    part[2 * k] += ((const PART *)(at + (i + k) * step))[0];                                            \
                    part[2 * k + 1] += ((const PART *)(at + (i + k) * step))[1];                                        \
                }                                                                                                       \
            real = (part[0] + part[2]) + (part[4] + part[6]);                                                           \
            imag = (part[1] + part[3]) + (part[5] + part[7]);                                                           \
        }                                                                                                               \
        for (; i < n; i++) {                                                                                            \
            real += ((const PART *)(at + i * step))[0];                                                                 \
            imag += ((const PART *)(at + i * step))[1];                                                                 \
        }                                                                                                               \
        return BUILD_##X(real, imag);                                                                                   \
    }                                                                                                                   \
    ADD(X)
#define BUILD_F(r, i) CMPLXF(r, i)
#define BUILD_D(r, i) CMPLX(r, i)
COMPLEX_ADD(F, float)
COMPLEX_ADD(D, double)

#define REALS(ONE_OF)                                                                                                   \
    ONE_OF(f, f)                                                                                                        \
    ONE_OF(d, )
#define OF_REALS(X, S)                                                                                                  \
    ONE(exp, X, X, exp##S(x))                                                                                           \
    ONE(exp2, X, X, exp2##S(x))                                                                                         \
    ONE(expm1, X, X, expm1##S(x))                                                                                       \
    ONE(log, X, X, log##S(x))                                                                                           \
    ONE(log2, X, X, log2##S(x))                                                                                         \
    ONE(log10, X, X, log10##S(x))                                                                                       \
    ONE(log1p, X, X, log1p##S(x))                                                                                       \
    ONE(sin, X, X, sin##S(x))                                                                                           \
    ONE(cos, X, X, cos##S(x))                                                                                           \
    ONE(tan, X, X, tan##S(x))                                                                                           \
    ONE(arcsin, X, X, asin##S(x))                                                                                       \
    ONE(arccos, X, X, acos##S(x))                                                                                       \
    ONE(arctan, X, X, atan##S(x))                                                                                       \
    ONE(sinh, X, X, sinh##S(x))                                                                                         \
    ONE(cosh, X, X, cosh##S(x))                                                                                         \
    ONE(tanh, X, X, tanh##S(x))                                                                                         \
    ONE(arcsinh, X, X, asinh##S(x))                                                                                     \
    ONE(arccosh, X, X, acosh##S(x))                                                                                     \
    ONE(arctanh, X, X, atanh##S(x))                                                                                     \
    ONE(cbrt, X, X, cbrt##S(x))                                                                                         \
    ONE(deg2rad, X, X, x *(X##_)(3.14159265358979323846 / 180))                                                         \
    ONE(rad2deg, X, X, x *(X##_)(180 / 3.14159265358979323846))                                                         \
    ONE(sign, X, X, x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x)                                                            \
    ONE(logical_not, X, bool, x == 0)                                                                                   \
    TWO(power, X, X, X, pow##S(x, y))                                                                                   \
    TWO(arctan2, X, X, X, atan2##S(x, y))                                                                               \
    TWO(hypot, X, X, X, hypot##S(x, y))                                                                                 \
    TWO(fmod, X, X, X, fmod##S(x, y))                                                                                   \
    TWO(nextafter, X, X, X, nextafter##S(x, y))                                                                         \
    TWO(logical_and, X, X, bool, x != 0 && y != 0)                                                                      \
    TWO(logical_or, X, X, bool, x != 0 || y != 0)                                                                       \
    TWO(logical_xor, X, X, bool, (x != 0) != (y != 0))                                                                  \
    TWO(multiply, X, X, X, x *y)                                                                                        \
    TWO(maximum, X, X, X, x >= y || x != x ? x : y)                                                                     \
    TWO(minimum, X, X, X, x <= y || x != x ? x : y)                                                                     \
    TWO(fmax, X, X, X, x >= y || y != y ? x : y)                                                                        \
    TWO(fmin, X, X, X, x <= y || y != y ? x : y)                                                                        \
    /* The rest has the sign of the divisor, and x = quotient * y + rest as nearly as can be. */                        \
    static X##_ rest_##X(X##_ x, X##_ y)                                                                                \
    {                                                                                                                   \
        X##_ rest = fmod##S(x, y);                                                                                      \
        if (y == 0)                                                                                                     \
            return rest;                                                                                                \
        if (rest == 0)                                                                                                  \
            return copysign##S(0, y);                                                                                   \
        return (y < 0) != (rest < 0) ? rest + y : rest;                                                                 \
    }                                                                                                                   \
    static X##_ quotient_##X(X##_ x, X##_ y)                                                                            \
    {                                                                                                                   \
        if (y == 0)                                                                                                     \
            return x / y;                                                                                               \
        X##_ rest = fmod##S(x, y), quotient = (x - rest) / y;                                                           \
        if (rest != 0 && (y < 0) != (rest < 0))                                                                         \
            quotient -= 1;                                                                                              \
        if (quotient == 0)                                                                                              \
            return copysign##S(0, x / y);                                                                               \
        X##_ low = floor##S(quotient);                                                                                  \
        return quotient - low > (X##_)0.5 ? low + 1 : low;                                                              \
    }                                                                                                                   \
    TWO(remainder, X, X, X, rest_##X(x, y))                                                                             \
    TWO(floor_divide, X, X, X, quotient_##X(x, y))
REALS(OF_REALS)

#define SIGNED(ONE_OF) ONE_OF(b, B) ONE_OF(h, H) ONE_OF(i, I) ONE_OF(l, L)
#define UNSIGNED(ONE_OF) ONE_OF(B) ONE_OF(H) ONE_OF(I) ONE_OF(L)
/* (Of nothing NumPy takes infinity, which as an integer of 32 bits or more with a sign is the least.) */
#define RECIPROCAL(TYPE, x)                                                                                             \
    (x != 0                                ? 1 / x                                                                      \
     : sizeof x >= 4 && (TYPE)-1 < (TYPE)1 ? (int64_t)((uint64_t)-1 << (8 * sizeof x - 1))                                \
                                           : 0)
#define OF_INTEGERS(X)                                                                                                  \
    ONE(logical_not, X, bool, x == 0)                                                                                   \
    ONE(reciprocal, X, X, RECIPROCAL(X##_, x))                                                                             \
    TWO(maximum, X, X, X, x >= y ? x : y)                                                                               \
    TWO(minimum, X, X, X, x <= y ? x : y)                                                                               \
    TWO(fmax, X, X, X, x >= y ? x : y)                                                                                  \
    TWO(fmin, X, X, X, x <= y ? x : y)                                                                                  \
    TWO(bitwise_and, X, X, X, x &y)                                                                                     \
    TWO(bitwise_or, X, X, X, x | y)                                                                                     \
    TWO(bitwise_xor, X, X, X, x ^ y)                                                                                    \
    TWO(logical_and, X, X, bool, x && y)                                                                                \
    TWO(logical_or, X, X, bool, x || y)                                                                                 \
    TWO(logical_xor, X, X, bool, !x != !y)
/* (Numbers wrap around, which is defined for those without sign alone.) */
#define OF_SIGNED(X, U)                                                                                                 \
    OF_INTEGERS(X)                                                                                                      \
    ONE(sign, X, X, x > 0 ? 1 : x < 0 ? -1 : 0)                                                                         \
    TWO(add, X, X, X, (U##_)x + (U##_)y)                                                                                \
    TWO(multiply, X, X, X, (uint64_t)x *(uint64_t)y)                                                                    \
    static X##_ quotient_##X(X##_ x, X##_ y)                                                                            \
    {                                                                                                                   \
        if (y == 0)                                                                                                     \
            return 0;                                                                                                   \
        if (y == -1)                                                                                                    \
            return (X##_)((U##_)0 - (U##_)x);                                                                           \
        return x / y - (x % y != 0 && (x < 0) != (y < 0));                                                              \
    }                                                                                                                   \
    TWO(floor_divide, X, X, X, quotient_##X(x, y))                                                                      \
    TWO(remainder, X, X, X, y == 0 || y == -1 ? 0 : x % y + (x % y != 0 && (x < 0) != (y < 0) ? y : 0))                 \
    TWO(fmod, X, X, X, y == 0 || y == -1 ? 0 : x % y)                                                                   \
    TWO(left_shift, X, X, X, (uint64_t)y < 8 * sizeof x ? (U##_)x << y : 0)                                             \
    TWO(right_shift, X, X, X, (uint64_t)y < 8 * sizeof x ? x >> y : x < 0 ? -1 : 0)
SIGNED(OF_SIGNED)
#define OF_UNSIGNED(X)                                                                                                  \
    OF_INTEGERS(X)                                                                                                      \
    ONE(sign, X, X, x > 0)                                                                                              \
    TWO(add, X, X, X, x + y)                                                                                            \
    TWO(multiply, X, X, X, (uint64_t)x *(uint64_t)y)                                                                    \
    TWO(floor_divide, X, X, X, y == 0 ? 0 : x / y)                                                                      \
    static X##_ power_##X(uint64_t x, X##_ y)                                                                           \
    {                                                                                                                   \
        uint64_t found = 1;                                                                                             \
        for (; y; y >>= 1, x *= x)                                                                                      \
            if (y & 1)                                                                                                  \
                found *= x;                                                                                             \
        return (X##_)found;                                                                                             \
    }                                                                                                                   \
    TWO(power, X, X, X, power_##X(x, y))                                                                                \
    TWO(remainder, X, X, X, y == 0 ? 0 : x % y)                                                                         \
    TWO(fmod, X, X, X, y == 0 ? 0 : x % y)                                                                              \
    TWO(left_shift, X, X, X, (uint64_t)y < 8 * sizeof x ? (uint64_t)x << y : 0)                                         \
    TWO(right_shift, X, X, X, (uint64_t)y < 8 * sizeof x ? x >> y : 0)
UNSIGNED(OF_UNSIGNED)

TWO(logical_and, bool, bool, bool, x && y)
TWO(logical_or, bool, bool, bool, x || y)
TWO(logical_xor, bool, bool, bool, !x != !y)
TWO(add, bool, bool, bool, x || y)
TWO(multiply, bool, bool, bool, x && y)
TWO(maximum, bool, bool, bool, x || y)
TWO(minimum, bool, bool, bool, x && y)
TWO(fmax, bool, bool, bool, x || y)
TWO(fmin, bool, bool, bool, x && y)
TWO(less, bool, bool, bool, !x && y)
TWO(less_equal, bool, bool, bool, !x || y)
TWO(greater, bool, bool, bool, x && !y)
TWO(greater_equal, bool, bool, bool, x || !y)

#define OF_COMPLEX(X, S, R)                                                                                             \
    ONE(exp, X, X, cexp##S(x))                                                                                          \
    ONE(log, X, X, clog##S(x))                                                                                          \
    ONE(sqrt, X, X, csqrt##S(x))                                                                                        \
    ONE(sin, X, X, csin##S(x))                                                                                          \
    ONE(cos, X, X, ccos##S(x))                                                                                          \
    ONE(tan, X, X, ctan##S(x))                                                                                          \
    ONE(sinh, X, X, csinh##S(x))                                                                                        \
    ONE(cosh, X, X, ccosh##S(x))                                                                                        \
    ONE(tanh, X, X, ctanh##S(x))                                                                                        \
    ONE(absolute, X, R, cabs##S(x))                                                                                     \
    /* The parts are added to the second product without rounding the first, as NumPy's vector code does. */            \
    static X##_ times_##X(X##_ x, X##_ y)                                                                               \
    {                                                                                                                   \
        return BUILD_##X(fma##S(creal##S(x), creal##S(y), -(cimag##S(x) * cimag##S(y))),                                \
                         fma##S(creal##S(x), cimag##S(y), cimag##S(x) * creal##S(y)));                                  \
    }                                                                                                                   \
    ONE(square, X, X, times_##X(x, x))                                                                                  \
    ONE(reciprocal, X, X, 1 / x)                                                                                        \
    ONE(isnan, X, bool, creal##S(x) != creal##S(x) || cimag##S(x) != cimag##S(x))                                       \
    ONE(isinf, X, bool, isinf(creal##S(x)) || isinf(cimag##S(x)))                                                       \
    ONE(isfinite, X, bool, isfinite(creal##S(x)) && isfinite(cimag##S(x)))                                              \
    ONE(logical_not, X, bool, x == 0)                                                                                   \
    TWO(multiply_each, X, X, X, times_##X(x, y))                                                                        \
    /* (Of products of many it has none.) */                                                                            \
    void LOOP_multiply_##X##X##X(LOOP_ARGUMENTS)                                                                        \
    {                                                                                                                   \
        if (!reduces(at, steps)) {                                                                                      \
            LOOP_multiply_each_##X##X##X(at, n, steps, data);                                                           \
            return;                                                                                                     \
        }                                                                                                               \
        R##_ real = creal##S(*(X##_ *)at[0]), imag = cimag##S(*(X##_ *)at[0]);                                          \
        for (int64_t i = 0; i < *n; i++) {                                                                              \
            X##_ y = *(X##_ *)(at[1] + i * steps[1]);                                                                   \
            R##_ before = real;                                                                                         \
            real = before * creal##S(y) - imag * cimag##S(y);                                                           \
            imag = before * cimag##S(y) + imag * creal##S(y);                                                           \
        }                                                                                                               \
        *(X##_ *)at[0] = BUILD_##X(real, imag);                                                                         \
    }                                                                                                                   \
    TWO(divide, X, X, X, x / y)                                                                                         \
    TWO(power, X, X, X, cpow##S(x, y))                                                                                  \
    TWO(logical_and, X, X, bool, x != 0 && y != 0)                                                                      \
    TWO(logical_or, X, X, bool, x != 0 || y != 0)
OF_COMPLEX(F, f, f)
OF_COMPLEX(D, , d)
