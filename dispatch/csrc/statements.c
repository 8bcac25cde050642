/* Statements that come back (backends/host/shortcuts.py): what knows one again, and runs its kernel. */

#include "statements.h"

int
same_numbers(int n, const Py_ssize_t *a, const Py_ssize_t *b)
{
    for (int i = 0; i < n; i++)
        if (a[i] != b[i])
            return 0;
    return 1;
}

int
is_shape(PyObject *shape, int nd, const Py_ssize_t *dims)
{
    if (!PyTuple_CheckExact(shape) || PyTuple_GET_SIZE(shape) != nd)
        return 0;
    for (int i = 0; i < nd; i++)
        if (PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i)) != dims[i])
            return 0;
    return 1;
}

static int
same_shape(PyObject *a, PyObject *b)
{
    return a == b || (a != NULL && b != NULL && PyObject_RichCompareBool(a, b, Py_EQ) == 1);
}

static int match_node(Match *m, Node *node);

static Operand
operand_of(PyArrayObject *view)
{
    return (Operand){PyArray_NDIM(view), PyArray_DIMS(view), PyArray_STRIDES(view), PyArray_ITEMSIZE(view)};
}

static int
same_layout(PyArrayObject *view, int nd, const Py_ssize_t *dims, const Py_ssize_t *strides)
{
    return PyArray_NDIM(view) == nd && same_numbers(nd, PyArray_DIMS(view), dims) &&
           same_numbers(nd, PyArray_STRIDES(view), strides);
}

/* A part of what is written: the very elements, or none of them, as it was then. */
static int
match_own(Match *m, const Item *item, PyArrayObject *view)
{
    Py_ssize_t offset = PyArray_BYTES(view) - m->target;
    m->own++;
    if (offset == 0 && same_layout(view, m->nd, m->dims, m->strides))
        return item->rewritten;
    Operand target = {m->nd, m->dims, m->strides, PyArray_ITEMSIZE((PyArrayObject *)m->leaf->view)};
    Operand read = operand_of(view);
    return !item->rewritten && surely_apart(&target, &read, offset);
}

static int
match_leaf(Match *m, const Item *item, int at, PyObject *x)
{
    int alone = IS_LEAF(x) && ((Leaf *)x)->holders == 1;
    if (IS_NODE(x) && has_value((Node *)x) && item->kind == LEAF)
        x = ((Node *)x)->value;
    Leaf *leaf = (Leaf *)x;
    if (!IS_LEAF(x) || leaf == m->leaf || !IS_ARRAY(leaf->view))
        return 0;
    PyArrayObject *view = (PyArrayObject *)leaf->view;
    if (DTYPE(view) != item->what || PyArray_NDIM(view) > DIMENSIONS / 4 ||
        (m->statement->exact && !same_layout(view, item->nd, item->dims, item->strides)))
        return 0;
    if (item->kind == OWN ? leaf->root != (PyObject *)m->leaf || !alone || !match_own(m, item, view)
                          : m->leaf != NULL && leaf->root == (PyObject *)m->leaf)
        return 0;
    /* What were the same elements must be so again. */
    if (item->same >= 0 && (m->addresses[item->same] != PyArray_BYTES(view) ||
                            !same_layout(view, PyArray_NDIM(m->views[item->same]), PyArray_DIMS(m->views[item->same]),
                                         PyArray_STRIDES(m->views[item->same]))))
        return 0;
    m->addresses[at] = PyArray_BYTES(view);
    m->views[at] = view;
    return 1;
}

/* What a process holds of distributed memory that a view shows (arraytypes/distributed/views.py): borrowed. */
static PyObject *
held_here(PyObject *view)
{
    return SLOT(SLOT(view, state.divided_buffer), state.buffer_local);
}

/* Is it the part of distributed memory that it was, which lies here as it did? */
static int
match_divided(Match *m, const Item *item, int at, PyObject *x)
{
    if (IS_NODE(x) && has_value((Node *)x))
        x = ((Node *)x)->value;
    Leaf *leaf = (Leaf *)x;
    if (!IS_LEAF(x) || leaf->foreign != Py_False || leaf->table != Py_False || state.divided == NULL ||
        !PyType_IsSubtype(Py_TYPE(leaf->view), state.divided))
        return 0;
    PyObject *view = leaf->view, *buffer = SLOT(view, state.divided_buffer);
    if (buffer == NULL || SLOT(buffer, state.buffer_comm) != item->dtype)
        return 0;
    PyObject *shown = SLOT(view, state.divided_whole) == Py_True ? SLOT(buffer, state.buffer_partition)
                                                                 : SLOT(view, state.divided_map);
    if (shown == Py_None) { /* (nobody has asked for it) */
        shown = PyObject_GetAttrString(view, "map");
        if (shown == NULL)
            return 0;
        Py_DECREF(shown); /* (the view keeps it) */
    }
    PyObject *local = SLOT(buffer, state.buffer_local);
    if (shown != item->what || local == NULL || !IS_ARRAY(local))
        return 0;
    PyArrayObject *a = (PyArrayObject *)local;
    if (PyArray_NDIM(a) != item->nd || !same_numbers(item->nd, PyArray_DIMS(a), item->dims) ||
        !same_numbers(item->nd, PyArray_STRIDES(a), item->strides) ||
        (item->same >= 0 && m->addresses[item->same] != PyArray_BYTES(a)))
        return 0;
    /* What was sent by itself must be so again: what is one operand now is sent once. */
    for (int i = 0; item->same < 0 && i < at; i++)
        if (m->statement->items[i].kind == DIVIDED && m->statement->items[i].what == shown &&
            m->addresses[i] == PyArray_BYTES(a))
            return 0;
    m->addresses[at] = PyArray_BYTES(a);
    return 1;
}

static int
match_number(Match *m, const Item *item, PyObject *x)
{
    if ((PyObject *)Py_TYPE(x) != item->what)
        return 0;
    if (item->same < 0)
        return 1;
    /* Numbers that were equal are one argument: it must be what they still are, to the sign of zero. */
    PyObject *other = m->met[item->same];
    return (other == x || PyObject_RichCompareBool(x, other, Py_EQ) == 1) && PyObject_IsTrue(x) == 1;
}

static int
match_operand(Match *m, PyObject *x)
{
    if (m->at >= m->statement->n)
        return 0;
    int at = m->at++;
    const Item *item = &m->statement->items[at];
    m->met[at] = x;
    switch (item->kind) {
    case SCALAR:
        return match_number(m, item, x);
    case LEAF:
    case OWN:
        return match_leaf(m, item, at, x);
    case DIVIDED:
        return match_divided(m, item, at, x);
    case REPEATED:
        return x == m->met[item->same];
    }
    /* What is stored beside the result follows from who is held by others, and what was evaluated before. */
    Node *node = (Node *)x;
    return IS_NODE(x) && node->sig == item->what && same_shape(node->shape, m->shape) &&
           (node->holders > item->uses) == item->held && (node->evaluations > 0) == item->evaluated &&
           match_node(m, node);
}

static int
match_node(Match *m, Node *node)
{
    PyObject *args = node->args;
    if (args == NULL || !PyTuple_CheckExact(args))
        return 0;
    int fits = 1;
    Py_INCREF(args); /* (to ask for a part of distributed memory lets others run, who may evaluate the tree) */
    for (Py_ssize_t i = 0; fits && i < PyTuple_GET_SIZE(args); i++)
        fits = match_operand(m, PyTuple_GET_ITEM(args, i));
    fits = fits && node->args == args;
    Py_DECREF(args);
    return fits;
}

int
write_number(int64_t *at, const Item *item, PyObject *x)
{
    if (item->how != '?' && (PyFloat_Check(x) || PyLong_CheckExact(x))) {
        double d = PyFloat_Check(x) ? PyFloat_AS_DOUBLE(x) : PyLong_AsDouble(x);
        if (d == -1.0 && PyErr_Occurred())
            return -1;
        at[0] = at[1] = 0;
        if (item->how == 'd') {
            memcpy(at, &d, sizeof d);
            return 0;
        }
        /* (A large integer would be rounded twice.) */
        if (PyFloat_Check(x) || (d < 9007199254740992.0 && d > -9007199254740992.0)) {
            float f = (float)d;
            memcpy(at, &f, sizeof f);
            return 0;
        }
    }
    PyObject *words = PyObject_CallFunctionObjArgs(state.scalar_words, x, item->dtype, NULL);
    long long low, high;
    if (words == NULL)
        return -1;
    int fine = PyArg_ParseTuple(words, "LL", &low, &high);
    Py_DECREF(words);
    at[0] = low;
    at[1] = high;
    return fine ? 0 : -1;
}

int
launch(Statement *s, int64_t *block, int64_t rows, int64_t inner)
{
    if (rows * inner < s->most) {
        s->kernel(state.nowhere, state.nowhere, (int64_t)(intptr_t)block, 0, rows, 0, inner, 0, 1, 0);
        return 0;
    }
    PyObject *words = PyList_New(s->words);
    if (words == NULL)
        return -1;
    for (int i = 0; i < s->words; i++) {
        PyObject *word = PyLong_FromLongLong(block[i]);
        if (word == NULL) {
            Py_DECREF(words);
            return -1;
        }
        PyList_SET_ITEM(words, i, word);
    }
    PyObject *done = PyObject_CallFunction(s->launch, "OLL", words, (long long)rows, (long long)inner);
    Py_DECREF(words);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* As arraytypes/pool.py has it: results of so many bytes are of memory that is kept. */
#define POOLED (1 << 20)

/* New memory for a result, as an array of NumPy, in the order of Fortran or of C. */
static PyObject *
allocated(PyObject *shape, PyObject *dtype, int columns)
{
    npy_intp dims[DIMENSIONS];
    PyArray_Descr *descr = (PyArray_Descr *)dtype;
    if (PyArray_DescrCheck(dtype) && PyTuple_CheckExact(shape) && PyTuple_GET_SIZE(shape) <= DIMENSIONS &&
        shape_size(shape) * PyDataType_ELSIZE(descr) < POOLED) {
        for (Py_ssize_t d = 0; d < PyTuple_GET_SIZE(shape); d++)
            dims[d] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, d));
        Py_INCREF(dtype);
        return PyArray_NewFromDescr(&PyArray_Type, descr, (int)PyTuple_GET_SIZE(shape), dims, NULL, NULL,
                                    columns ? NPY_ARRAY_F_CONTIGUOUS : 0, NULL);
    }
    PyObject *array = PyObject_CallFunction(state.empty, "OOs", shape, dtype, columns ? "F" : "C");
    if (array != NULL && !IS_ARRAY(array)) {
        Py_CLEAR(array);
        PyErr_SetString(PyExc_TypeError, "An array of NumPy is expected.");
    }
    return array;
}

void
settle(Node *node, Leaf *value)
{
    set_held(&node->value, (PyObject *)value);
    node->size = 0;
    set_held(&node->args, Py_NewRef(Py_None));
}

void
hold(Match *m)
{
    for (int i = 0; i < m->at; i++) {
        PyObject *x = m->met[i];
        int kind = m->statement->items[i].kind;
        if (IS_NODE(x) && (kind == LEAF || kind == DIVIDED))
            x = ((Node *)x)->value;
        x = IS_LEAF(x) ? ((Leaf *)x)->view : x;
        m->met[i] = Py_NewRef(kind == DIVIDED ? held_here(x) : x);
    }
    Py_INCREF(m->statement);
}

void
let_go(Match *m)
{
    for (int i = 0; i < m->at; i++)
        Py_DECREF(m->met[i]);
    Py_DECREF(m->statement);
}

/* The memory that an item of a launch lies in. */
static int
operand_at(Match *m, int number, Operand *a, Py_ssize_t *strides)
{
    Statement *s = m->statement;
    const Item *item = number < 0 ? NULL : &s->items[number];
    if (item == NULL) {
        *a = (Operand){m->nd, m->dims, m->strides, PyDataType_ELSIZE((PyArray_Descr *)s->dtype)};
        return 1;
    }
    if (item->kind == NODE) {
        *a = (Operand){m->nd, m->dims, strides, PyDataType_ELSIZE((PyArray_Descr *)item->dtype)};
        dense_strides(m->nd, m->dims, a->size, m->columns, strides);
        return 1;
    }
    *a = operand_of(m->views[number]);
    if (item->copied == 0)
        return 1;
    /* A vector, which is short beside what it is read for: side by side in other memory. */
    Py_ssize_t longest = 1;
    for (int d = 0; d < a->nd; d++) {
        longest = a->dims[d] > longest ? a->dims[d] : longest;
        strides[d] = a->size;
    }
    a->strides = strides;
    return longest == elements(m->views[number]) && longest <= m->rows / OFTEN;
}

/* Do operands lie as the kernel has it, whatever the sizes? Then its argument block says how far all of them reach. */
static int
match_layouts(Match *m)
{
    Statement *s = m->statement;
    Operand operands[2 * ITEMS];
    Py_ssize_t room[2 * ITEMS][DIMENSIONS], own[2 * ITEMS][DIMENSIONS / 4];
    char classes[2 * ITEMS + 1];
    Arrangement found = {.strides = room, .classes = classes};
    m->rows = 1;
    for (int d = 0; d < m->nd; d++)
        m->rows *= m->dims[d];
    m->columns = m->nd > 1 && Py_ABS(m->strides[0]) < Py_ABS(m->strides[m->nd - 1]);
    m->read = m->written = m->copies = 0;
    if (m->rows == 0)
        return 0;
    for (int j = 0; j < s->operands; j++) {
        int number = s->operand_items[j];
        Operand *a = &operands[j];
        if (!operand_at(m, number, a, own[j]) || a->nd > m->nd)
            return 0;
        if (number < 0 || s->items[number].kind == NODE)
            m->written += m->rows * a->size;
        else {
            Py_ssize_t size = elements(m->views[number]) * a->size;
            m->read += size;
            m->copies += s->items[number].copied ? ALIGNED(size) : 0;
        }
        if (j > 0 && !s->shared && s->results && number >= 0 && s->items[number].kind == OWN &&
            !surely_beside(&operands[0], a, PyArray_BYTES(m->views[number]) - m->target))
            return 0;
    }
    arrange(&found, m->nd, m->dims, operands, s->operands);
    if (found.rank != s->rank || found.tiled != s->tiled || memcmp(classes, s->classes, s->operands) != 0)
        return 0;
    memcpy(m->block, s->block, s->words * sizeof *m->block);
    int64_t *word = m->block;
    m->rows = 1;
    for (int d = 0; d < found.rank - 1; d++) {
        m->rows *= found.sizes[d];
        *word++ = found.sizes[d];
    }
    m->inner = found.sizes[found.rank - 1];
    for (int j = 0; j < s->operands; j++) {
        word++; /* (where it is) */
        for (int d = 0; d < found.rank; d++)
            *word++ = room[j][d];
    }
    return 1;
}

/* Do all operands run through memory in the order of their dimensions, forwards? */
static int
runs_in_rows(const Match *m)
{
    for (int i = 0; i < m->at; i++) {
        const Item *item = &m->statement->items[i];
        if (item->kind != LEAF && item->kind != OWN)
            continue;
        PyArrayObject *view = m->views[i];
        Py_ssize_t last = PY_SSIZE_T_MAX;
        for (int d = 0; d < PyArray_NDIM(view); d++) {
            Py_ssize_t step = PyArray_DIMS(view)[d] == 1 ? 0 : PyArray_STRIDES(view)[d];
            if (step < 0 || step > last)
                return 0;
            last = step > 0 ? step : last;
        }
    }
    return 1;
}

/* The dimensions of new memory: 1, or 0 if they are too many. */
static int
part_of_shape(PyObject *shape, Part *part)
{
    if (!PyTuple_CheckExact(shape) || PyTuple_GET_SIZE(shape) > DIMENSIONS / 4)
        return 0;
    part->data = NULL;
    part->nd = (int)PyTuple_GET_SIZE(shape);
    for (int d = 0; d < part->nd; d++)
        part->dims[d] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, d));
    return 1;
}

/* What every statement's launch reads; the elements of an item that is in memory. */
static int
leaves_at(Match *m, Operand *operands, int nd)
{
    Statement *s = m->statement;
    m->read = m->copies = 0;
    for (int j = 0; j < s->operands; j++) {
        operands[j] = operand_of(m->views[s->operand_items[j]]);
        m->read += elements(m->views[s->operand_items[j]]) * operands[j].size;
        if (operands[j].nd > nd)
            return 0;
    }
    return 1;
}

/* How far apart the results of a reduction are, which come out in the order of memory, along what is written. */
static int
say_distances(Match *m, const ReducedArrangement *found, const Py_ssize_t *dims)
{
    Statement *s = m->statement;
    Py_ssize_t size = PyBytes_GET_SIZE(s->neutral), along[DIMENSIONS] = {0};
    for (int i = found->ordered - 1; i >= 0; i--) {
        along[found->order[i]] = size;
        size *= dims[found->order[i]];
    }
    int at = 0;
    for (int d = 0; d < s->over; d++)
        if (m->nd == s->over || !s->reduces[d]) {
            if (at == m->nd || m->dims[at] != (s->reduces[d] ? 1 : dims[d]))
                return 0;
            m->apart[at++] = along[d];
        }
    return at == m->nd;
}

/* As `match_layouts`, of a reduction. */
static int
match_reduction(Match *m, PyObject *operand)
{
    Statement *s = m->statement;
    Operand operands[2 * ITEMS];
    Py_ssize_t room[2 * ITEMS][DIMENSIONS];
    char classes[2 * ITEMS + 1];
    ReducedArrangement found = {.strides = room, .classes = classes};
    Part whole;
    if (IS_NODE(operand) ? !part_of_shape(((Node *)operand)->shape, &whole)
                         : !resolve_index(Py_Ellipsis, m->views[0], &whole))
        return 0;
    int64_t n = 1, written = 1;
    for (int d = 0; d < whole.nd; d++)
        n *= whole.dims[d];
    for (int d = 0; d < m->nd; d++)
        written *= m->dims[d];
    if (whole.nd != s->over || n == 0 || n >= s->most || !leaves_at(m, operands, whole.nd))
        return 0;
    arrange_reduction(&found, whole.nd, whole.dims, s->reduces, operands, s->operands);
    if (found.rank != s->rank || found.reduced != s->reduce_rank || found.inner_kept != s->inner_kept ||
        memcmp(classes, s->classes, s->operands) != 0 || !say_distances(m, &found, whole.dims))
        return 0;
    Py_ssize_t size = PyBytes_GET_SIZE(s->neutral);
    m->written = written * size;
    m->columns = 0;
    m->rows = m->reduced = 1;
    for (int d = 0; d < found.kept; d++)
        m->rows *= found.sizes[d];
    for (int d = found.kept; d < found.kept + found.reduced; d++)
        m->reduced *= found.sizes[d];
    m->inner = found.sizes[found.rank - 1];
    int64_t blocks = (m->inner + PARTIAL - 1) / PARTIAL;
    m->partials = s->inner_kept ? 1 : m->reduced * blocks;
    /* (Many rows of few columns are added up in parts, by Python.) */
    if (s->inner_kept && m->rows * m->inner < 1 << 14 && m->reduced >= 2 * 4096)
        return 0;
    /* What is small is NumPy's to the last bit. */
    if (n <= 4 * state.few && !s->exactly &&
        !(found.natural && m->partials == 1 && (!s->inner_kept || m->reduced <= GROUP) && runs_in_rows(m)))
        return 0;
    memcpy(m->block, s->block, s->words * sizeof *m->block);
    int64_t *word = m->block;
    for (int d = 0; d < found.rank - 1; d++)
        *word++ = found.sizes[d];
    int64_t steps[] = {s->inner_kept ? m->rows * m->inner * size : blocks * size, s->inner_kept ? m->inner * size : 0};
    for (int d = -1; d < found.rank; d++)
        *word++ = d < 0 || d > 1 ? 0 : steps[d];
    for (int j = 0; j < s->operands; j++) {
        word++; /* (where it is) */
        for (int d = 0; d < found.rank; d++)
            *word++ = room[j][d];
    }
    return 1;
}

int
matches(Match *m, Statement *s, Leaf *leaf, const Part *target, PyObject *operand)
{
    m->statement = s;
    m->leaf = leaf;
    m->target = target == NULL ? NULL : target->data;
    m->nd = target == NULL ? 0 : target->nd;
    m->dims = target == NULL ? NULL : target->dims;
    m->strides = target == NULL ? NULL : target->strides;
    m->shape = IS_NODE(operand) ? ((Node *)operand)->shape : NULL;
    m->at = m->own = 0;
    if (s->generation == state.generation && (s->exact || m->nd <= DIMENSIONS / 4) &&
        (!s->exact || target == NULL ||
         (s->nd == m->nd && same_numbers(m->nd, s->dims, m->dims) && same_numbers(m->nd, s->strides, m->strides))) &&
        (IS_NODE(operand) ? match_node(m, (Node *)operand) : match_operand(m, operand)) && m->at == s->n &&
        m->own == s->own && s->generation == state.generation &&
        (s->exact || (s->reduction != NULL ? match_reduction(m, operand) : match_layouts(m)))) {
        if (s->exact) {
            memcpy(m->block, s->block, s->words * sizeof *m->block);
            m->rows = s->rows;
            m->inner = s->inner;
            m->read = s->read;
            m->written = s->written;
        }
        return 1;
    }
    PyErr_Clear();
    return 0;
}

static int
matches_reduction(Match *m, Statement *s, Leaf *leaf, const Part *target, Reduced *reduced)
{
    return s->reduction == reduced->reduction &&
           (reduced->axes == s->axes || PyObject_RichCompareBool(reduced->axes, s->axes, Py_EQ) == 1) &&
           matches(m, s, leaf, target, reduced->operand);
}

int
may_come_back(Reduced *reduced)
{
    PyObject *operand = reduced->operand;
    if (reduced->value != Py_None || operand == NULL)
        return 0;
    if (IS_NODE(operand)) {
        Node *node = (Node *)operand;
        if (node->args == NULL || node->args == Py_None || node->holders > 1)
            return 0;
    }
    else if (!IS_LEAF(operand))
        return 0;
    return waits_alone(reduced);
}

/* The argument block of what was compared: 1, or 0 where a number is none. */
static int
fill(Match *m, char *target)
{
    Statement *s = m->statement;
    int64_t *block = m->block;
    block[s->target] = (int64_t)(intptr_t)target;
    for (int i = 0; i < s->n; i++) {
        const Item *item = &s->items[i];
        if (item->word < 0)
            continue;
        if (item->kind == LEAF || item->kind == OWN)
            block[item->word] = (int64_t)(intptr_t)m->addresses[i];
        else if (item->kind == SCALAR && write_number(block + item->word, item, m->met[i]) < 0) {
            PyErr_Clear();
            return 0;
        }
    }
    return 1;
}

/* Vectors that are copied first, side by side in memory for all of them. */
static void
copy_vectors(Match *m, char *memory)
{
    for (int i = 0; i < m->statement->n && m->copies; i++) {
        const Item *item = &m->statement->items[i];
        if (item->copied == 0)
            continue;
        const char *from = m->addresses[i];
        Py_ssize_t length = 1, step = 0;
        for (int d = 0; d < PyArray_NDIM(m->views[i]); d++)
            if (PyArray_DIMS(m->views[i])[d] != 1) {
                length = PyArray_DIMS(m->views[i])[d];
                step = PyArray_STRIDES(m->views[i])[d];
            }
        m->block[item->word] = (int64_t)(intptr_t)memory;
        if (item->copied == 8)
            for (Py_ssize_t k = 0; k < length; k++)
                memcpy(memory + 8 * k, from + k * step, 8);
        else if (item->copied == 4)
            for (Py_ssize_t k = 0; k < length; k++)
                memcpy(memory + 4 * k, from + k * step, 4);
        else
            for (Py_ssize_t k = 0; k < length; k++)
                memcpy(memory + item->copied * k, from + k * step, item->copied);
        memory += ALIGNED(item->copied * length);
    }
}

/* Results of a reduction to where they belong. */
static void
deliver(const Match *m, int d, const char *from, char *to)
{
    Py_ssize_t size = PyBytes_GET_SIZE(m->statement->neutral);
    if (d == m->nd) {
        memcpy(to, from, size);
        return;
    }
    if (d == m->nd - 1 && size == 8)
        for (Py_ssize_t i = 0; i < m->dims[d]; i++)
            memcpy(to + i * m->strides[d], from + i * m->apart[d], 8);
    else if (d == m->nd - 1 && size == 4)
        for (Py_ssize_t i = 0; i < m->dims[d]; i++)
            memcpy(to + i * m->strides[d], from + i * m->apart[d], 4);
    else
        for (Py_ssize_t i = 0; i < m->dims[d]; i++)
            deliver(m, d + 1, from + i * m->apart[d], to + i * m->strides[d]);
}

/* May the kernel write results where they belong? */
static int
lie_alike(const Match *m)
{
    int alike = m->statement->own == 0 && m->partials == 1;
    for (int d = 0; d < m->nd; d++)
        alike = alike && (m->dims[d] == 1 || m->apart[d] == m->strides[d]);
    return alike;
}

/* Partial results of rows to one each: an array of NumPy's, or NULL. */
static PyObject *
combined(const Match *m, char *memory)
{
    npy_intp shape[] = {m->rows, m->partials};
    Py_INCREF(m->statement->dtype);
    PyObject *partials = PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)m->statement->dtype, 2, shape, NULL, memory,
                                              NPY_ARRAY_CARRAY, NULL);
    PyObject *made = partials == NULL ? NULL : PyObject_CallOneArg(m->statement->combine, partials);
    Py_XDECREF(partials);
    if (made != NULL && (!IS_ARRAY(made) || DTYPE((PyArrayObject *)made) != m->statement->dtype ||
                         !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)made) ||
                         elements((PyArrayObject *)made) != m->rows)) {
        Py_CLEAR(made);
        PyErr_SetString(PyExc_TypeError, "Partial results make one a row.");
    }
    return made;
}

/* As `run`, of a reduction. */
static int
run_reduction(Match *m, char *target)
{
    Statement *s = m->statement;
    _Alignas(64) char near[NEAR];
    Py_ssize_t size = PyBytes_GET_SIZE(s->neutral);
    int64_t n = s->inner_kept ? m->rows * m->inner : m->rows * m->partials;
    int straight = lie_alike(m);
    char *memory = straight ? target : n * size <= NEAR ? near : PyMem_Malloc(n * size);
    if (memory == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    int done = fill(m, memory);
    if (done) {
        /* (A reduction of rows adds each to what is there.) */
        for (int64_t i = 0; !s->inner_kept && i < n; i++)
            memcpy(memory + i * size, PyBytes_AS_STRING(s->neutral), size);
        for (int i = 0; i < s->n; i++)
            if (s->items[i].kind == NODE && s->items[i].held)
                ((Node *)m->met[i])->evaluations++;
        int64_t rows = s->inner_kept ? m->rows : m->rows * m->reduced, last = s->inner_kept ? m->reduced : 1;
        s->kernel(state.nowhere, state.nowhere, (int64_t)(intptr_t)m->block, 0, rows, 0, m->inner, 0, last, 0);
        PyObject *made = m->partials > 1 ? combined(m, memory) : NULL;
        if (made == NULL && m->partials > 1)
            done = -1;
        else if (!straight)
            deliver(m, 0, made != NULL ? PyArray_BYTES((PyArrayObject *)made) : memory, target);
        Py_XDECREF(made);
    }
    if (!straight && memory != near)
        PyMem_Free(memory);
    return done;
}

/* Run a statement whose tree was compared and is held, of which nothing has happened yet: 1 done, 0 left, -1 an
   error. */
static int
run(Match *m, char *target)
{
    Statement *s = m->statement;
    _Alignas(64) char near[NEAR];
    PyObject *made[ITEMS];
    int results = 0, done = 1, launched = 1;
    if (s->reduction != NULL)
        return run_reduction(m, target);
    if (!fill(m, target))
        return 0;
    /* (What several threads read is not on this one's stack, which an interrupt may have it leave.) */
    int here = m->copies == 0 || (m->copies <= NEAR && m->rows * m->inner < s->most);
    char *copies = here ? near : PyMem_Malloc(m->copies);
    if (copies == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    copy_vectors(m, copies);
    for (int i = 0; i < s->n && done > 0 && s->results; i++)
        if (s->items[i].kind == NODE && s->items[i].stored >= 0) {
            made[results] = allocated(((Node *)m->met[i])->shape, s->items[i].dtype, m->columns);
            if (made[results] == NULL) {
                done = -1;
                break;
            }
            m->block[s->items[i].word] = (int64_t)(intptr_t)PyArray_BYTES((PyArrayObject *)made[results++]);
        }
    /* What is stored, or may be the next time: before the launch, during which others may run. */
    Node *stored[ITEMS];
    for (int i = 0, k = 0; i < s->n && done > 0; i++)
        if (s->items[i].kind == NODE && s->items[i].held) {
            if (s->items[i].stored >= 0)
                stored[k++] = (Node *)Py_NewRef(m->met[i]);
            else
                ((Node *)m->met[i])->evaluations++;
        }
    if (done > 0) {
        launched = launch(s, m->block, m->rows, m->inner) == 0;
        done = launched ? 1 : -1;
        for (int k = 0; k < results; k++) {
            if (done > 0 && stored[k]->args != Py_None) {
                Leaf *value = new_leaf(made[k], stored[k]->shape, DTYPE((PyArrayObject *)made[k]));
                if (value == NULL)
                    done = -1;
                else
                    settle(stored[k], value);
            }
            Py_DECREF(stored[k]);
        }
    }
    for (int k = 0; k < results; k++)
        Py_DECREF(made[k]);
    if (copies != near && launched)
        PyMem_Free(copies);
    return done;
}

int
recorded(void)
{
    return PyList_GET_SIZE(state.recordings) > 0;
}

int
unobserved(void)
{
    return !PyList_GET_SIZE(state.recordings) && !PyList_GET_SIZE(state.watchers);
}

PyObject *
known_by(PyObject *known, PyObject *operand, long way)
{
    Py_ssize_t n = IS_NODE(operand) ? ((Node *)operand)->size : 0;
    PyObject *sig = IS_NODE(operand) ? ((Node *)operand)->sig : ((Leaf *)operand)->dtype;
    PyObject *key = PyTuple_New(3), *size = PyLong_FromSsize_t(n), *number = PyLong_FromLong(way);
    if (key == NULL || size == NULL || number == NULL) {
        Py_XDECREF(key);
        Py_XDECREF(size);
        Py_XDECREF(number);
        return NULL;
    }
    PyTuple_SET_ITEM(key, 0, Py_NewRef(sig));
    PyTuple_SET_ITEM(key, 1, size);
    PyTuple_SET_ITEM(key, 2, number);
    PyObject *list = PyDict_GetItemWithError(known, key);
    Py_DECREF(key);
    return list != NULL && PyList_CheckExact(list) ? Py_NewRef(list) : NULL;
}

/* Give a reduction its value (a reference to it), and let go of what it was computed from. */
void
settle_reduced(Reduced *reduced, Leaf *value)
{
    set_held(&reduced->value, (PyObject *)value);
    set_held(&reduced->operand, Py_NewRef(Py_None));
}

/* Does each index run faster than the one behind it? */
static int
rises(int nd, const npy_intp *dims, const npy_intp *strides)
{
    npy_intp last = 0;
    int steps = 0;
    for (int d = 0; d < nd; d++) {
        if (dims[d] <= 1)
            continue;
        if (strides[d] <= last)
            return 0;
        last = strides[d];
        steps++;
    }
    return steps > 1;
}

/* Does each index of the first operand of a tree's shape run faster than the one behind it? So does its result, as
   arraytypes/dense.py has it (`memory_order`). */
static int
runs_in_columns(Node *node)
{
    PyObject *shape = node->shape, *x = (PyObject *)node;
    if (!PyTuple_CheckExact(shape) || PyTuple_GET_SIZE(shape) < 2)
        return 0;
    for (int depth = 0; depth < 64 && IS_NODE(x) && !has_value((Node *)x); depth++) {
        PyObject *args = ((Node *)x)->args, *first = NULL;
        for (Py_ssize_t i = 0; args != NULL && PyTuple_CheckExact(args) && first == NULL && i < PyTuple_GET_SIZE(args);
             i++) {
            PyObject *a = PyTuple_GET_ITEM(args, i);
            if ((IS_NODE(a) && same_shape(((Node *)a)->shape, shape)) ||
                (IS_LEAF(a) && IS_ARRAY(((Leaf *)a)->view) && has_shape((PyArrayObject *)((Leaf *)a)->view, shape)))
                first = a;
        }
        if (first == NULL)
            return 0;
        x = first;
    }
    x = IS_NODE(x) && has_value((Node *)x) ? ((Node *)x)->value : x;
    if (!IS_LEAF(x) || !IS_ARRAY(((Leaf *)x)->view))
        return 0;
    PyArrayObject *view = (PyArrayObject *)((Leaf *)x)->view;
    return rises(PyArray_NDIM(view), PyArray_DIMS(view), PyArray_STRIDES(view));
}

/* Whoever holds the value of a statement would compute it of what was written: it gets what was computed. */
static int
settle_written(PyObject *tree, Leaf *leaf, PyObject *index)
{
    Node *node = IS_NODE(tree) ? (Node *)tree : NULL;
    PyObject *shape = node != NULL ? node->shape : ((Reduced *)tree)->shape;
    PyObject *how = whole_index(index);
    PyObject *memory = how == NULL ? NULL : PyObject_GetItem(leaf->view, how);
    if (memory != NULL && !IS_ARRAY(memory)) /* (a single element) */
        Py_SETREF(memory, NULL);
    Leaf *value = memory == NULL ? NULL : new_leaf(memory, shape, leaf->dtype);
    Py_XDECREF(how);
    Py_XDECREF(memory);
    if (value == NULL) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "An array of NumPy is expected.");
        return -1;
    }
    show_part(value, leaf);
    if (node != NULL ? node->args == Py_None : ((Reduced *)tree)->value != Py_None)
        Py_DECREF(value);
    else if (node != NULL)
        settle(node, value);
    else
        settle_reduced((Reduced *)tree, value);
    return 0;
}

int
again(PyObject *known, PyObject *x, PyObject *index, PyObject *value)
{
    PyObject *version = VERSION_OF(x), *tree = VERSION_OF(value);
    if (version == NULL || tree == NULL || !IS_LEAF(version))
        return 0;
    Leaf *leaf = (Leaf *)version;
    Reduced *reduced = IS_REDUCED(tree) ? (Reduced *)tree : NULL;
    Node *node = IS_NODE(tree) ? (Node *)tree : NULL;
    if (reduced != NULL ? !may_come_back(reduced)
                        : (node == NULL || node->args == NULL || node->args == Py_None))
        return 0;
    if (!adopted(leaf) || leaf->root != Py_None || !IS_ARRAY(leaf->view) || !unobserved())
        return 0;
    PyArrayObject *view = (PyArrayObject *)leaf->view;
    Part target;
    if (!resolve_index(index, view, &target) ||
        !is_shape(reduced != NULL ? reduced->shape : node->shape, target.nd, target.dims))
        return 0;
    PyObject *list = known_by(known, reduced != NULL ? reduced->operand : tree, reduced != NULL ? 2 : 0);
    if (list == NULL)
        return PyErr_Occurred() ? -1 : 0;
    int done = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        Statement *s = (Statement *)PyList_GET_ITEM(list, i);
        Match m;
        if (Py_TYPE(s) != statement_type || s->dtype != DTYPE(view) ||
            !(reduced != NULL ? matches_reduction(&m, s, leaf, &target, reduced)
                              : matches(&m, s, leaf, &target, tree)))
            continue;
        /* A small value that somebody holds is computed by itself: it need not follow what is written. */
        if (!s->rewritten && is_named(value, 1) && m.rows * m.inner <= 4 * state.few)
            break;
        /* What is held is read there from then on, if its own memory would run the same way: else it is computed again
           when somebody asks, or gets memory of its own where what it reads is written. */
        int turned = node != NULL && runs_in_columns(node) != rises(target.nd, target.dims, target.strides);
        if (turned && s->rewritten && is_named(value, 1))
            break;
        /* Who else reads what is written? */
        int alone = count_parts(leaf) == s->own ? may_write(leaf, 0, NULL, 0) : 0;
        if (alone == 0)
            continue;
        if (alone < 0) {
            done = -1;
            break;
        }
        hold(&m);
        Py_INCREF(leaf);
        Py_INCREF(view);
        Py_INCREF(tree);
        int began = begin_writing(leaf);
        done = run(&m, target.data);
        end_writing(leaf, began);
        if (done > 0) {
            leaf->writes++;
            Py_XSETREF(leaf->reducers, Py_NewRef(Py_None));
            /* A tree that read what was written must not be computed again, whoever holds it (references to an
               argument do not tell: it may be lent); of others, who holds it is spared computing it. */
            if ((s->rewritten || (!turned && is_named(value, 1))) && settle_written(tree, leaf, index) < 0)
                done = -1;
            count_launch(m.read, m.written);
        }
        let_go(&m);
        Py_DECREF(tree);
        Py_DECREF(view);
        Py_DECREF(leaf);
        break;
    }
    Py_DECREF(list);
    return done;
}

PyObject *
evaluated_again(PyObject *known, PyObject *tree, int usual)
{
    Node *node = IS_NODE(tree) ? (Node *)tree : NULL;
    Reduced *reduced = IS_REDUCED(tree) ? (Reduced *)tree : NULL;
    if (reduced != NULL ? !may_come_back(reduced)
                        : (node == NULL || node->args == NULL || node->args == Py_None))
        return NULL;
    if (!unobserved())
        return NULL;
    PyObject *list = known_by(known, reduced != NULL ? reduced->operand : tree, reduced != NULL ? 3 : 1);
    PyObject *shape = reduced != NULL ? reduced->shape : node->shape, *value = NULL;
    Part target;
    int columns = node != NULL && runs_in_columns(node);
    if (list != NULL && !part_of_shape(shape, &target))
        Py_CLEAR(list);
    for (Py_ssize_t i = 0; list != NULL && i < PyList_GET_SIZE(list); i++) {
        Statement *s = (Statement *)PyList_GET_ITEM(list, i);
        Match m;
        if (Py_TYPE(s) != statement_type)
            continue;
        dense_strides(target.nd, target.dims, PyDataType_ELSIZE((PyArray_Descr *)s->dtype), columns, target.strides);
        if (!(reduced != NULL ? matches_reduction(&m, s, NULL, &target, reduced)
                              : matches(&m, s, NULL, &target, tree)) ||
            (usual && (columns || !runs_in_rows(&m))))
            continue;
        hold(&m);
        Py_INCREF(tree);
        PyObject *memory = allocated(shape, s->dtype, columns);
        if (memory != NULL && run(&m, PyArray_BYTES((PyArrayObject *)memory)) > 0) {
            if (reduced != NULL ? reduced->value == Py_None : node->args != Py_None) {
                Leaf *found = new_leaf(memory, shape, s->dtype);
                if (found != NULL && reduced != NULL)
                    settle_reduced(reduced, found);
                else if (found != NULL)
                    settle(node, found);
            }
            value = Py_XNewRef(reduced != NULL ? reduced->value : node->value);
            if (!usual)
                count_launch(m.read, m.written);
        }
        if (PyErr_Occurred())
            Py_CLEAR(value);
        Py_XDECREF(memory);
        let_go(&m);
        Py_DECREF(tree);
        break;
    }
    Py_XDECREF(list);
    return value;
}

int
stored_again(PyObject *known, PyObject *tree, PyObject *array)
{
    if (!IS_NODE(tree) || !IS_ARRAY(array) || !unobserved())
        return 0;
    Node *node = (Node *)tree;
    PyArrayObject *target = (PyArrayObject *)array;
    if (node->args == NULL || node->args == Py_None || !has_shape(target, node->shape))
        return 0;
    Part part;
    if (!resolve_index(Py_Ellipsis, target, &part))
        return 0;
    PyObject *list = known_by(known, tree, 4);
    int done = list == NULL && PyErr_Occurred() ? -1 : 0;
    for (Py_ssize_t i = 0; list != NULL && i < PyList_GET_SIZE(list); i++) {
        Statement *s = (Statement *)PyList_GET_ITEM(list, i);
        Match m;
        if (Py_TYPE(s) != statement_type || s->dtype != DTYPE(target) || !matches(&m, s, NULL, &part, tree))
            continue;
        hold(&m);
        Py_INCREF(tree);
        Py_INCREF(array);
        done = run(&m, PyArray_BYTES(target));
        if (done > 0)
            count_launch(m.read, m.written);
        let_go(&m);
        Py_DECREF(array);
        Py_DECREF(tree);
        break;
    }
    Py_XDECREF(list);
    return done;
}

/* What stands in a tree: a list of (operand, how many hold it, was it met before?) in the order in which they are
   met. */

static Py_ssize_t
held_by(PyObject *x)
{
    return IS_LEAF(x) || IS_NODE(x) || IS_REDUCED(x) ? ((Version *)x)->holders : 0;
}

static int
inspect(PyObject *found, PyObject *places, Node *node)
{
    PyObject *args = node->args;
    /* (Of more than a statement can say it does not matter what they are.) */
    for (Py_ssize_t i = 0; args != NULL && PyTuple_CheckExact(args) && i < PyTuple_GET_SIZE(args) &&
                           PyList_GET_SIZE(found) <= ITEMS; i++) {
        PyObject *x = PyTuple_GET_ITEM(args, i), *key = PyLong_FromVoidPtr(x);
        int met = key == NULL ? -1 : PyDict_Contains(places, key);
        if (met < 0 || PyDict_SetItem(places, key, Py_None) < 0) {
            Py_XDECREF(key);
            return -1;
        }
        Py_DECREF(key);
        Py_ssize_t holders = held_by(x);
        PyObject *entry = Py_BuildValue("(OnO)", x, holders, met ? Py_True : Py_False);
        if (entry == NULL || PyList_Append(found, entry) < 0) {
            Py_XDECREF(entry);
            return -1;
        }
        Py_DECREF(entry);
        if (!met && IS_NODE(x) && !has_value((Node *)x) && inspect(found, places, (Node *)x) < 0)
            return -1;
    }
    return 0;
}

PyObject *
inspected(PyObject *tree)
{
    if (IS_LEAF(tree)) /* (the operand of a reduction) */
        return Py_BuildValue("[(OnO)]", tree, held_by(tree), Py_False);
    if (!IS_NODE(tree)) {
        PyErr_SetString(PyExc_TypeError, "A tree is expected.");
        return NULL;
    }
    PyObject *found = PyList_New(0), *places = PyDict_New();
    if (found == NULL || places == NULL || inspect(found, places, (Node *)tree) < 0)
        Py_CLEAR(found);
    Py_XDECREF(places);
    return found;
}

/* Statement(kernel, most, words, word of the destination, dtype, items, launch, keep, layouts[, reduction, axes,
             dimensions of the operand and those that are reduced when merged, neutral value, what combines partials])

   An item is (kind, what, uses, held, evaluated, stored, shape, strides, rewritten, word, same, how, dtype, size of an
   element of what is copied first). The layouts are (dimensions, classes, tiled, shared, the items of the operands, -1
   for the destination); of a reduction (dimensions, classes, is the innermost one kept?, is it NumPy's in any order?, the
   items of the operands); or, of an exact one, (rows, inner, shape, strides, bytes read, bytes written). */

static int
numbers_of(PyObject *tuple, Py_ssize_t *numbers)
{
    Py_ssize_t n = PyTuple_CheckExact(tuple) ? PyTuple_GET_SIZE(tuple) : DIMENSIONS;
    if (n > DIMENSIONS / 4) {
        PyErr_SetString(PyExc_ValueError, "A statement has fewer dimensions.");
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        numbers[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, i));
    return PyErr_Occurred() ? -1 : (int)n;
}

static int
item_of(Item *item, PyObject *tuple)
{
    PyObject *what, *shape, *strides, *dtype;
    const char *how;
    if (!PyArg_ParseTuple(tuple, "iOippiOOpiisOn", &item->kind, &what, &item->uses, &item->held, &item->evaluated,
                          &item->stored, &shape, &strides, &item->rewritten, &item->word, &item->same, &how, &dtype, &item->copied))
        return -1;
    item->how = how[0];
    if (item->stored >= 0 && !item->held) {
        PyErr_SetString(PyExc_ValueError, "Only what somebody holds is stored.");
        return -1;
    }
    item->nd = numbers_of(shape, item->dims);
    if (item->nd < 0 || numbers_of(strides, item->strides) < 0)
        return -1;
    item->what = Py_NewRef(what);
    item->dtype = Py_NewRef(dtype);
    return 0;
}

/* Which layouts of the operands a statement is of: 0, or -1. */
static int
layouts_of(Statement *s, PyObject *tuple)
{
    if (PyTuple_GET_SIZE(tuple) == 6) {
        PyObject *shape, *strides;
        long long rows, inner;
        if (!PyArg_ParseTuple(tuple, "LLOOnn", &rows, &inner, &shape, &strides, &s->read, &s->written))
            return -1;
        s->exact = 1;
        s->rows = rows;
        s->inner = inner;
        s->nd = numbers_of(shape, s->dims);
        return s->nd < 0 || numbers_of(strides, s->strides) < 0 ? -1 : 0;
    }
    PyObject *items;
    const char *classes;
    int reduces = s->reduction != NULL;
    if (!PyArg_ParseTuple(tuple, "isppO!", &s->rank, &classes, reduces ? &s->inner_kept : &s->tiled,
                          reduces ? &s->exactly : &s->shared, &PyList_Type, &items))
        return -1;
    Py_ssize_t n = PyList_GET_SIZE(items);
    if (n < 1 || n > 2 * ITEMS || (size_t)n != strlen(classes) || s->rank < 1 || s->rank > DIMENSIONS / 4 ||
        s->rank - 1 + (n + reduces) * (s->rank + 1) > s->words) {
        PyErr_SetString(PyExc_ValueError, "The operands of a statement are its destination, and items.");
        return -1;
    }
    s->classes = PyMem_Malloc(n + 1);
    s->operand_items = PyMem_Malloc(n * sizeof *s->operand_items);
    if (s->classes == NULL || s->operand_items == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(s->classes, classes, n + 1);
    for (Py_ssize_t i = 0; i < n; i++) {
        long number = PyLong_AsLong(PyList_GET_ITEM(items, i));
        int kind = number >= 0 && number < s->n ? s->items[number].kind : SCALAR;
        if ((number != -1 || reduces) && (kind != NODE || reduces) && kind != LEAF && kind != OWN) {
            PyErr_SetString(PyExc_ValueError, "The operands of a statement are its destination, and items.");
            return -1;
        }
        s->operand_items[s->operands++] = (int)number;
    }
    return 0;
}

static int
items_of(Statement *s, PyObject *items, int reduces)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items); i++) {
        Item *item = &s->items[s->n++];
        if (item_of(item, PyList_GET_ITEM(items, i)) < 0)
            return -1;
        s->own += item->kind == OWN;
        s->rewritten += item->kind == OWN && (item->rewritten || reduces);
        s->results += item->kind == NODE && item->stored >= 0;
        int written = item->copied || (item->kind == NODE && item->stored >= 0);
        if (item->word >= s->words || (written && item->word < 0) || item->same >= i ||
            (item->kind == REPEATED && item->same < 0)) {
            PyErr_SetString(PyExc_ValueError, "An item of a statement names what is not there.");
            return -1;
        }
    }
    return 0;
}

static PyObject *
statement_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    unsigned long long kernel;
    long long most;
    int target, over = 0, reduce_rank = 0;
    PyObject *words, *dtype, *items, *starts, *keep, *layouts;
    PyObject *reduction = NULL, *axes = NULL, *neutral = NULL, *combine = NULL;
    if (!PyArg_ParseTuple(args, "KLO!iO!O!OOO!|OO!iiSO", &kernel, &most, &PyList_Type, &words, &target,
                          &PyArrayDescr_Type, &dtype, &PyList_Type, &items, &starts, &keep, &PyTuple_Type, &layouts,
                          &reduction, &PyTuple_Type, &axes, &over, &reduce_rank, &neutral, &combine))
        return NULL;
    if (reduction != NULL && (combine == NULL || PyTuple_GET_SIZE(layouts) != 5 || over < 0 || over > DIMENSIONS / 4)) {
        PyErr_SetString(PyExc_TypeError, "A reduction says of what it is, and how partial results are combined.");
        return NULL;
    }
    if (PyList_GET_SIZE(words) > WORDS - 2 || PyList_GET_SIZE(items) > ITEMS) {
        PyErr_SetString(PyExc_ValueError, "The statement is too long.");
        return NULL;
    }
    Statement *s = (Statement *)type->tp_alloc(type, 0);
    if (s == NULL)
        return NULL;
    s->generation = state.generation;
    s->kernel = (Kernel)(uintptr_t)kernel;
    s->most = most;
    s->target = target;
    s->dtype = Py_NewRef(dtype);
    s->launch = Py_NewRef(starts);
    s->keep = Py_NewRef(keep);
    s->words = (int)PyList_GET_SIZE(words);
    s->block = PyMem_Calloc(s->words + 1, sizeof *s->block);
    s->items = PyMem_Calloc(PyList_GET_SIZE(items) + 1, sizeof *s->items);
    s->reduction = Py_XNewRef(reduction);
    s->axes = Py_XNewRef(axes);
    s->neutral = Py_XNewRef(neutral);
    s->combine = Py_XNewRef(combine);
    s->over = over;
    s->reduce_rank = reduce_rank;
    int fine = s->block != NULL && s->items != NULL;
    if (!fine)
        PyErr_NoMemory();
    for (int i = 0; fine && i < s->words; i++)
        s->block[i] = PyLong_AsLongLong(PyList_GET_ITEM(words, i));
    fine = fine && items_of(s, items, reduction != NULL) == 0 && layouts_of(s, layouts) == 0;
    for (Py_ssize_t i = 0; fine && reduction != NULL && i < PyTuple_GET_SIZE(axes); i++) {
        long axis = PyLong_AsLong(PyTuple_GET_ITEM(axes, i));
        fine = axis >= 0 && axis < over;
        if (fine)
            s->reduces[axis] = 1;
        else if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "What is reduced are axes of the operand.");
    }
    if (fine && (target < 0 || target >= s->words))
        PyErr_SetString(PyExc_ValueError, "A statement has a destination.");
    if (PyErr_Occurred()) {
        Py_DECREF(s);
        return NULL;
    }
    return (PyObject *)s;
}

static void
statement_dealloc(Statement *s)
{
    PyTypeObject *type = Py_TYPE(s);
    for (int i = 0; s->items != NULL && i < s->n; i++) {
        Py_CLEAR(s->items[i].what);
        Py_CLEAR(s->items[i].dtype);
    }
    PyMem_Free(s->items);
    PyMem_Free(s->block);
    PyMem_Free(s->classes);
    PyMem_Free(s->operand_items);
    Py_CLEAR(s->dtype);
    Py_CLEAR(s->reduction);
    Py_CLEAR(s->axes);
    Py_CLEAR(s->neutral);
    Py_CLEAR(s->combine);
    Py_CLEAR(s->launch);
    Py_CLEAR(s->keep);
    type->tp_free(s);
    Py_DECREF(type);
}

static PyType_Slot statement_slots[] = {
    {Py_tp_new, statement_new},
    {Py_tp_dealloc, statement_dealloc},
    {0, NULL},
};

PyType_Spec statement_spec = {
    "mirabelle.dispatch._native.Statement", sizeof(Statement), 0, Py_TPFLAGS_DEFAULT, statement_slots,
};
