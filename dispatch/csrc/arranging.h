/* How the operands of one launch lie in memory (arranging.c): what a kernel's argument block is filled from. */

#ifndef MIRABELLE_ARRANGING_H
#define MIRABELLE_ARRANGING_H

#include "native.h"

/* An operand as it lies: its own dimensions, the last ones of what it is stretched over. */
typedef struct {
    int nd;
    const Py_ssize_t *dims, *strides;
    Py_ssize_t size;
} Operand;

/* Dimensions merged: for each operand the strides over what is left, and how it steps through the innermost one, in
   the letters of backends/codegen/source.py. */
typedef struct {
    int rank, tiled, in_order;
    Py_ssize_t sizes[DIMENSIONS];
    /* Room for all operands, and for a zero behind the classes. */
    Py_ssize_t (*strides)[DIMENSIONS];
    char *classes;
} Arrangement;

/* The first operand is what is written, of `nd` dimensions. Sizes only say what is merged: what comes out is told
   apart by rank, classes and `tiled`, of which there are few. */
void arrange(Arrangement *found, int nd, const Py_ssize_t *dims, const Operand *operands, int n);
/* Dimensions of a reduction, each kind merged: the kept ones, the reduced ones, and the innermost of either. */
typedef struct {
    /* How many dimensions there are, and how many of them are kept and reduced, beside the innermost. */
    int rank, kept, reduced;
    /* Is the innermost one kept? Are all gone through in the order of their indices? */
    int inner_kept, natural;
    /* The kept dimensions of the operand in the order that partial results have. */
    int ordered, order[DIMENSIONS];
    Py_ssize_t sizes[DIMENSIONS];
    Py_ssize_t (*strides)[DIMENSIONS];
    char *classes;
} ReducedArrangement;

void arrange_reduction(ReducedArrangement *found, int nd, const Py_ssize_t *dims, const char *reduces,
                       const Operand *operands, int n);
/* Are elements in the order of C, without gaps? */
int is_contiguous(int nd, const Py_ssize_t *dims, const Py_ssize_t *strides, Py_ssize_t size);
/* The strides of new memory, in the order of C or in that of Fortran. */
void dense_strides(int nd, const Py_ssize_t *dims, Py_ssize_t size, int columns, Py_ssize_t *strides);
/* Of two parts of memory, the second so far behind the first: does one end before the other begins? And is it certain
   that they have no byte in common? */
int surely_beside(const Operand *first, const Operand *second, Py_ssize_t offset);
int surely_apart(const Operand *first, const Operand *second, Py_ssize_t offset);

#endif
