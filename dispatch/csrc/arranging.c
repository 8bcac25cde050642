/* Operands of one launch, reduced to as few dimensions as possible (backends/host/layout.py). */

#include "arranging.h"

int
is_contiguous(int nd, const Py_ssize_t *dims, const Py_ssize_t *strides, Py_ssize_t size)
{
    int fits = 1;
    for (int d = nd - 1; d >= 0; d--) {
        if (dims[d] == 0)
            return 1;
        fits = fits && (dims[d] == 1 || strides[d] == size);
        size *= dims[d];
    }
    return fits;
}

void
dense_strides(int nd, const Py_ssize_t *dims, Py_ssize_t size, int columns, Py_ssize_t *strides)
{
    for (int i = 0; i < nd; i++) {
        int d = columns ? i : nd - 1 - i;
        strides[d] = size;
        size *= dims[d];
    }
}

static Py_ssize_t
distance(Py_ssize_t a)
{
    return a < 0 ? -a : a;
}

/* A part from its lowest byte on: how far that lies before its first element, and which steps it takes how often, from
   the longest on. */
typedef struct {
    Py_ssize_t before, extent, steps[DIMENSIONS], times[DIMENSIONS];
    int n;
} Lattice;

static void
lattice_of(Lattice *found, const Operand *a)
{
    found->n = 0;
    found->before = 0;
    found->extent = a->size;
    for (int d = 0; d < a->nd; d++) {
        Py_ssize_t step = distance(a->strides[d]), times = a->dims[d] - 1;
        if (times < 1)
            continue;
        found->before += a->strides[d] < 0 ? step * times : 0;
        found->extent += step * times;
        int at = found->n++;
        for (; at > 0 && found->steps[at - 1] < step; at--) {
            found->steps[at] = found->steps[at - 1];
            found->times[at] = found->times[at - 1];
        }
        found->steps[at] = step;
        found->times[at] = times;
    }
}

/* So many steps of a lattice that are so long, which are taken from what is left of it. */
static Py_ssize_t
taken(Lattice *a, int *at, Py_ssize_t step)
{
    Py_ssize_t times = 0;
    for (; *at < a->n && a->steps[*at] == step; ++*at)
        times += a->times[*at];
    a->extent -= times * step;
    return times;
}

int
surely_beside(const Operand *first, const Operand *second, Py_ssize_t offset)
{
    Lattice a, b;
    lattice_of(&a, first);
    lattice_of(&b, second);
    offset += a.before - b.before;
    return offset >= a.extent || offset + b.extent <= 0;
}

int
surely_apart(const Operand *first, const Operand *second, Py_ssize_t offset)
{
    Lattice a, b;
    int i = 0, j = 0;
    lattice_of(&a, first);
    lattice_of(&b, second);
    offset += a.before - b.before;
    if (offset >= a.extent || offset + b.extent <= 0)
        return 1;
    /* As an address of a matrix is a row and a column: where all shorter steps stay within one of the longest, two
       elements are the same only if they are so many of the longest apart, and the rest alike. */
    while (i < a.n || j < b.n) {
        Py_ssize_t step = i < a.n ? a.steps[i] : 0;
        step = j < b.n && b.steps[j] > step ? b.steps[j] : step;
        if (step == 0)
            break;
        Py_ssize_t in_a = taken(&a, &i, step), in_b = taken(&b, &j, step);
        Py_ssize_t whole = offset / step - (offset % step < 0);
        offset -= whole * step;
        if (a.extent > step || offset + b.extent > step)
            return 0;
        if (whole > in_a || whole + in_b < 0)
            return 1;
    }
    return offset >= first->size;
}

static char
class_of(Py_ssize_t stride, Py_ssize_t size)
{
    return stride == 0 ? '0' : stride == size ? 'c' : stride == -size ? 'r' : stride % size ? 'u' : 's';
}

/* All operands of the whole shape, side by side, or of one element: one dimension. */
static int
arrange_line(Arrangement *found, int nd, const Py_ssize_t *dims, const Operand *operands, int n)
{
    Py_ssize_t whole = 1;
    for (int d = 0; d < nd; d++)
        whole *= dims[d];
    for (int j = 0; j < n; j++) {
        const Operand *a = &operands[j];
        Py_ssize_t size = 1;
        int same = a->nd == nd;
        for (int d = 0; d < a->nd; d++) {
            size *= a->dims[d];
            same = same && a->dims[d] == dims[d];
        }
        if (same && is_contiguous(a->nd, a->dims, a->strides, a->size))
            found->classes[j] = 'c';
        else if (size == 1)
            found->classes[j] = '0';
        else
            return 0;
        found->strides[j][0] = found->classes[j] == 'c' ? a->size : 0;
    }
    found->rank = found->in_order = 1;
    found->sizes[0] = whole;
    return 1;
}

/* An operand that runs along another dimension than the last one is gone through in tiles: that one comes next to the
   last. */
static void
tile(Arrangement *found, const Operand *operands, int n)
{
    int last = found->rank - 1;
    for (int j = 1; j < n; j++) {
        Py_ssize_t *steps = found->strides[j], inner = distance(steps[last]), nearest = 0;
        int near = 0;
        for (int d = 0; d < last; d++)
            if (steps[d] != 0 && (nearest == 0 || distance(steps[d]) < nearest)) {
                nearest = distance(steps[d]);
                near = d;
            }
        if (nearest == 0 || inner <= nearest || inner < 64 || nearest >= 8 * operands[j].size)
            continue;
        found->tiled = found->sizes[last] >= 8;
        if (near == last - 1)
            return;
        found->in_order = 0;
        for (int k = -1; k < n; k++) {
            Py_ssize_t *row = k < 0 ? found->sizes : found->strides[k], moved = row[near];
            for (int d = near; d < last - 1; d++)
                row[d] = row[d + 1];
            row[last - 1] = moved;
        }
        return;
    }
}

void
arrange(Arrangement *found, int nd, const Py_ssize_t *dims, const Operand *operands, int n)
{
    found->classes[n] = 0;
    found->tiled = 0;
    if (arrange_line(found, nd, dims, operands, n))
        return;
    /* From the longest step of what is written to the shortest, as they come where they are alike. */
    int order[DIMENSIONS], left = 0;
    found->in_order = 1;
    for (int d = 0; d < nd; d++) {
        if (dims[d] == 1)
            continue;
        int at = left++;
        for (; at > 0 && distance(operands[0].strides[order[at - 1]]) < distance(operands[0].strides[d]); at--)
            order[at] = order[at - 1];
        order[at] = d;
        found->in_order = found->in_order && at == left - 1;
    }
    found->rank = 0;
    for (int i = 0; i < left; i++) {
        int d = order[i], at = found->rank, merges = at > 0;
        for (int j = 0; j < n; j++) {
            const Operand *a = &operands[j];
            int own = d - (nd - a->nd);
            Py_ssize_t step = own < 0 || a->dims[own] == 1 ? 0 : a->strides[own];
            found->strides[j][at] = step;
            merges = merges && found->strides[j][at - 1] == step * dims[d];
        }
        if (merges) {
            found->sizes[at - 1] *= dims[d];
            for (int j = 0; j < n; j++)
                found->strides[j][at - 1] = found->strides[j][at];
        }
        else
            found->sizes[found->rank++] = dims[d];
    }
    if (found->rank == 0) {
        found->rank = 1;
        found->sizes[0] = 1;
        for (int j = 0; j < n; j++)
            found->strides[j][0] = 0;
    }
    if (found->rank > 1)
        tile(found, operands, n);
    for (int j = 0; j < n; j++)
        found->classes[j] = class_of(found->strides[j][found->rank - 1], operands[j].size);
}

static Py_ssize_t
stretched_stride(const Operand *a, int nd, int d)
{
    int own = d - (nd - a->nd);
    return own < 0 || a->dims[own] == 1 ? 0 : a->strides[own];
}

/* Some dimensions behind those that are there, merged with one another. */
static int
append_merged(ReducedArrangement *found, const int *which, int count, int nd, const Py_ssize_t *dims,
              const Operand *operands, int n)
{
    int first = found->rank;
    for (int i = 0; i < count; i++) {
        int d = which[i], at = found->rank, merges = at > first;
        for (int j = 0; j < n; j++) {
            found->strides[j][at] = stretched_stride(&operands[j], nd, d);
            merges = merges && found->strides[j][at - 1] == found->strides[j][at] * dims[d];
        }
        if (merges) {
            found->sizes[at - 1] *= dims[d];
            for (int j = 0; j < n; j++)
                found->strides[j][at - 1] = found->strides[j][at];
        }
        else
            found->sizes[found->rank++] = dims[d];
    }
    return found->rank - first;
}

void
arrange_reduction(ReducedArrangement *found, int nd, const Py_ssize_t *dims, const char *reduces,
                  const Operand *operands, int n)
{
    /* The operand that steps through most dimensions says their order. */
    int leader = 0, most = -1, live[DIMENSIONS], left = 0;
    for (int j = 0; j < n; j++) {
        int steps = 0;
        for (int d = 0; d < operands[j].nd; d++)
            steps += operands[j].strides[d] != 0 &&
                     (operands[j].dims[d] != 1 || dims[d + nd - operands[j].nd] == 1);
        if (steps > most) {
            most = steps;
            leader = j;
        }
    }
    found->natural = 1;
    for (int d = 0; d < nd; d++) {
        if (dims[d] == 1)
            continue;
        int at = left++;
        Py_ssize_t step = n ? distance(stretched_stride(&operands[leader], nd, d)) : 0;
        for (; at > 0 && n && distance(stretched_stride(&operands[leader], nd, live[at - 1])) < step; at--)
            live[at] = live[at - 1];
        live[at] = d;
        found->natural = found->natural && at == left - 1;
    }
    int kept[DIMENSIONS] = {0}, reduced[DIMENSIONS] = {0}, n_kept = 0, n_reduced = 0;
    found->ordered = 0;
    for (int i = 0; i < left; i++) {
        if (!reduces[live[i]])
            found->order[found->ordered++] = live[i];
        if (i < left - 1) {
            if (reduces[live[i]])
                reduced[n_reduced++] = live[i];
            else
                kept[n_kept++] = live[i];
        }
    }
    int last = left ? live[left - 1] : -1, all_kept = 0;
    found->inner_kept = left && !reduces[last] && n_reduced;
    if (left && !reduces[last] && !n_reduced) {
        kept[n_kept++] = last;
        all_kept = 1;
    }
    found->rank = 0;
    found->kept = append_merged(found, kept, n_kept, nd, dims, operands, n);
    if (left && reduces[last]) {
        reduced[n_reduced++] = last;
        found->reduced = append_merged(found, reduced, n_reduced, nd, dims, operands, n) - 1;
    }
    else {
        found->reduced = append_merged(found, reduced, n_reduced, nd, dims, operands, n);
        if (left && !all_kept)
            append_merged(found, &last, 1, nd, dims, operands, n);
        else {
            found->sizes[found->rank] = 1;
            for (int j = 0; j < n; j++)
                found->strides[j][found->rank] = 0;
            found->rank++;
        }
    }
    for (int j = 0; j < n; j++)
        found->classes[j] = class_of(found->strides[j][found->rank - 1], operands[j].size);
    found->classes[n] = 0;
}

static int
lengths(PyObject *tuple, Py_ssize_t *numbers)
{
    if (!PyTuple_CheckExact(tuple) || PyTuple_GET_SIZE(tuple) > DIMENSIONS) {
        PyErr_SetString(PyExc_ValueError, "A launch has fewer dimensions.");
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
        numbers[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, i));
    return PyErr_Occurred() ? -1 : (int)PyTuple_GET_SIZE(tuple);
}

static int
operand_of(Operand *a, PyObject *x, Py_ssize_t *room)
{
    if (IS_ARRAY(x)) {
        PyArrayObject *array = (PyArrayObject *)x;
        *a = (Operand){PyArray_NDIM(array), PyArray_DIMS(array), PyArray_STRIDES(array), PyArray_ITEMSIZE(array)};
        return 0;
    }
    PyObject *shape, *strides;
    if (!PyTuple_CheckExact(x)) {
        PyErr_SetString(PyExc_TypeError, "An operand is an array, or a tuple.");
        return -1;
    }
    if (!PyArg_ParseTuple(x, "OOn", &shape, &strides, &a->size))
        return -1;
    a->nd = lengths(shape, room);
    a->dims = room;
    a->strides = room + DIMENSIONS;
    if (a->nd < 0 || lengths(strides, room + DIMENSIONS) == a->nd)
        return a->nd < 0 ? -1 : 0;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "An operand has a stride for each dimension.");
    return -1;
}

static PyObject *
list_of(const Py_ssize_t *numbers, int n)
{
    PyObject *list = PyList_New(n);
    for (int i = 0; list != NULL && i < n; i++) {
        PyObject *number = PyLong_FromSsize_t(numbers[i]);
        if (number == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, number);
    }
    return list;
}

static PyObject *
rows_of(Py_ssize_t (*strides)[DIMENSIONS], Py_ssize_t count, int rank)
{
    PyObject *rows = PyList_New(count);
    for (Py_ssize_t j = 0; rows != NULL && j < count; j++) {
        PyObject *row = list_of(strides[j], rank);
        if (row == NULL)
            Py_CLEAR(rows);
        else
            PyList_SET_ITEM(rows, j, row);
    }
    return rows;
}

static PyObject *
described(Py_ssize_t nd, const Py_ssize_t *dims, const Operand *operands, Py_ssize_t count,
          Py_ssize_t (*room)[DIMENSIONS], char *classes)
{
    Arrangement found = {.strides = room, .classes = classes};
    arrange(&found, (int)nd, dims, operands, (int)count);
    return Py_BuildValue("(NNsOO)", list_of(found.sizes, found.rank), rows_of(room, count, found.rank), classes,
                         found.tiled ? Py_True : Py_False, found.in_order ? Py_True : Py_False);
}

static PyObject *
described_reduction(Py_ssize_t nd, const Py_ssize_t *dims, const char *reduces, const Operand *operands,
                    Py_ssize_t count, Py_ssize_t (*room)[DIMENSIONS], char *classes)
{
    ReducedArrangement found = {.strides = room, .classes = classes};
    Py_ssize_t order[DIMENSIONS];
    arrange_reduction(&found, (int)nd, dims, reduces, operands, (int)count);
    for (int i = 0; i < found.ordered; i++)
        order[i] = found.order[i];
    return Py_BuildValue("(NNNNsONO)", list_of(found.sizes, found.kept),
                         list_of(found.sizes + found.kept, found.reduced), list_of(found.sizes, found.rank),
                         rows_of(room, count, found.rank), classes, found.inner_kept ? Py_True : Py_False,
                         list_of(order, found.ordered), found.natural ? Py_True : Py_False);
}

/* arrange(shape, operands) or arrange(shape, operands, reduced axes): operands are arrays, or (shape, strides, size of an
   element). */
PyObject *
arranged(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Py_ssize_t dims[DIMENSIONS], axes[DIMENSIONS];
    char reduces[DIMENSIONS] = {0};
    if (n < 2 || n > 3 || !PyList_CheckExact(args[1]) || (n == 2 && PyList_GET_SIZE(args[1]) == 0)) {
        PyErr_SetString(PyExc_TypeError, "A launch has a shape, and a list of operands.");
        return NULL;
    }
    Py_ssize_t count = PyList_GET_SIZE(args[1]);
    int nd = lengths(args[0], dims), n_axes = nd >= 0 && n > 2 ? lengths(args[2], axes) : 0;
    if (nd < 0 || n_axes < 0)
        return NULL;
    for (int i = 0; i < n_axes; i++) {
        if (axes[i] < 0 || axes[i] >= nd) {
            PyErr_SetString(PyExc_ValueError, "What is reduced are axes of the launch.");
            return NULL;
        }
        reduces[axes[i]] = 1;
    }
    /* (Room for the numbers of operands that are no arrays, and for what is found.) */
    Operand *operands = PyMem_Malloc((count + 1) * sizeof *operands);
    Py_ssize_t (*room)[DIMENSIONS] = PyMem_Malloc((3 * count + 1) * sizeof *room);
    char *classes = PyMem_Malloc(count + 1);
    PyObject *made = NULL;
    int fine = operands != NULL && room != NULL && classes != NULL;
    if (!fine)
        PyErr_NoMemory();
    for (Py_ssize_t j = 0; fine && j < count; j++) {
        fine = operand_of(&operands[j], PyList_GET_ITEM(args[1], j), room[count + 2 * j]) == 0;
        if (fine && operands[j].nd > nd) {
            PyErr_SetString(PyExc_ValueError, "An operand has no more dimensions than the launch.");
            fine = 0;
        }
    }
    if (fine)
        made = n == 2 ? described(nd, dims, operands, count, room, classes)
                      : described_reduction(nd, dims, reduces, operands, count, room, classes);
    PyMem_Free(classes);
    PyMem_Free(room);
    PyMem_Free(operands);
    return made;
}
