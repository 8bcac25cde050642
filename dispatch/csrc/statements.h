/* What knows trees again: statements (statements.c), and those whose operands are divided (halos.c). */

#ifndef MIRABELLE_STATEMENTS_H
#define MIRABELLE_STATEMENTS_H

#include "arranging.h"

#define ITEMS 64
#define WORDS 400
#define NEAR 4096
/* As backends/host/layout.py has it: short are vectors of at most one in so many elements of what is written. */
#define OFTEN 16
/* As backends/codegen has it: a partial result is of so many elements; so many rows are added up in their order. */
#define PARTIAL 1024
#define GROUP 64
#define ALIGNED(size) (((size) + 63) / 64 * 64)

/* What stands in a tree, in the order in which it is met, each node before its operands. */
enum { NODE, REPEATED, LEAF, OWN, SCALAR, DIVIDED };

typedef struct {
    int kind;
    /* The sig of a node, the dtype of a leaf, the type of a number; of what is divided, which part of it is shown. */
    PyObject *what;
    /* Of a node: how many operands of this tree it is; is it held by others, was it evaluated before, and
       then: is it one of the results (-1: it is not)? */
    int uses, held, evaluated, stored;
    /* Of a leaf of what is written: does it show the very elements (else, none of them)? */
    int rewritten;
    /* Of a leaf of an exact statement: its layout. */
    int nd;
    Py_ssize_t dims[DIMENSIONS / 4], strides[DIMENSIONS / 4];
    /* The word of the argument block that it becomes (-1: none); the earlier item that it must equal (-1: none). */
    int word, same;
    /* How a number becomes a word: d, f, or ? for Python; and the dtype it is of. */
    char how;
    PyObject *dtype;
    /* Of a vector that is copied first, as its elements lie apart: their size (0: it is not). */
    Py_ssize_t copied;
} Item;

typedef int (*Kernel)(void *, void *, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);

typedef struct {
    PyObject_HEAD
    uint64_t generation;
    /* The dtype of what is written. */
    PyObject *dtype;
    /* Is it of one layout of all operands, which the argument block is made for: that of what is written, ... */
    int exact, nd;
    Py_ssize_t dims[DIMENSIONS / 4], strides[DIMENSIONS / 4];
    /* ... or of all sizes that are merged to so many dimensions, and whose operands step through the innermost one
       alike? May results lie where operands do? What the kernel reads and writes, in its order: the destination (-1),
       and items. */
    int rank, tiled, shared, operands;
    char *classes;
    int *operand_items;
    /* How many items are parts of the destination's memory, and of what is written; how many are stored. */
    int n, own, rewritten, results;
    Item *items;
    int words, target;
    int64_t *block;
    Kernel kernel;
    int64_t rows, inner, most;
    /* Of a reduction: what it is, of which of how many dimensions (of these, merged, so many remain beside the innermost;
       is that kept?); the value that changes nothing, with which results begin; what combines partial results; and is
       it NumPy's to the last bit, in whatever order? NULL for a tree. */
    PyObject *reduction, *axes, *neutral, *combine;
    int over, reduce_rank, inner_kept, exactly;
    char reduces[DIMENSIONS / 4];
    /* How many bytes a launch of an exact one reads and writes. */
    Py_ssize_t read, written;
    /* Launches it over threads; what lives as long as this. */
    PyObject *launch, *keep;
} Statement;

/* What was found of a tree while it is compared. */
typedef struct {
    Statement *statement;
    /* Whose memory is written, and where; NULL for a value of its own. */
    Leaf *leaf;
    char *target;
    PyObject *shape;
    int nd;
    const Py_ssize_t *dims, *strides;
    int at, own;
    PyObject *met[ITEMS];
    PyArrayObject *views[ITEMS];
    char *addresses[ITEMS];
    /* What its launch is: filled in once all is compared. */
    int64_t rows, inner;
    Py_ssize_t read, written, copies;
    int columns;
    int64_t block[WORDS];
    /* Of a reduction: how many rows become one, in how many partial results each, and how far apart results are where
       they come out. */
    int64_t reduced, partials;
    Py_ssize_t apart[DIMENSIONS / 4];
} Match;

/* Is this what a statement is of, written to memory that lies so? (A leaf stands for itself: it is the operand of a
   reduction.) */
int matches(Match *m, Statement *s, Leaf *leaf, const Part *target, PyObject *operand);
/* Hold what was compared, while others may run who evaluate the tree, and with it let go of what it reads. */
void hold(Match *m);
void let_go(Match *m);
/* A number as two words of an argument block: 0, or -1. */
int write_number(int64_t *at, const Item *item, PyObject *x);
/* Run a kernel on an argument block: 0, or -1. */
int launch(Statement *s, int64_t *block, int64_t rows, int64_t inner);
int same_numbers(int n, const Py_ssize_t *a, const Py_ssize_t *b);
/* The statements known by (sig, size, way), a leaf by its dtype: a list that nobody changes (shortcuts.py puts another
   in its place), a new reference; or NULL (with an error, perhaps). */
PyObject *known_by(PyObject *known, PyObject *operand, long way);

#endif
