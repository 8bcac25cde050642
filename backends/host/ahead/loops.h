/* Loops as NumPy has them: addresses of operands and results, how many elements, the distances of these, and what
   nobody needs here (loops.c). Which there are, the tables say that use them. */

#ifndef MIRABELLE_LOOPS_H
#define MIRABELLE_LOOPS_H

#include <stdint.h>

#define LOOP_ARGUMENTS char **at, const int64_t *n, const int64_t *steps, void *data

#endif
