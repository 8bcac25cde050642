/* Products of matrices for programs that are built ahead of time (products.c). */

#ifndef MIRABELLE_PRODUCTS_H
#define MIRABELLE_PRODUCTS_H

#include <stdint.h>

/* out = a @ b, for matrices of m by n and n by p elements of a type (NumPy's letter for it); strides in bytes. */
void multiply(int64_t type, const char *a, const int64_t *a_strides, const char *b, const int64_t *b_strides, char *out,
              const int64_t *out_strides, int64_t m, int64_t n, int64_t p);

#endif
