/* What NumPy computes of small arrays: trees, operation by operation, and their reductions, and products of
   matrices and vectors (backends/host/vectors.py). */

#include "native.h"

/* As many operations one after the other; as many operands. */
#define DEPTH 24
#define OPERANDS 3

/* A context of this thread in which floating-point numbers give no warnings: borrowed, or NULL. */
static PyObject *
quiet_context(void)
{
    PyObject *all = PyThreadState_GetDict();
    PyObject *context = all == NULL ? NULL : PyDict_GetItemWithError(all, state.quiet);
    if (context != NULL || all == NULL || PyErr_Occurred())
        return context;
    context = PyObject_CallNoArgs(state.quiet);
    if (context != NULL && PyDict_SetItem(all, state.quiet, context) < 0)
        Py_CLEAR(context);
    Py_XDECREF(context); /* (the thread keeps it) */
    return context;
}

PyObject *
hush(void)
{
    PyObject *context = quiet_context(), *blocks = NULL;
    if (state.counting && PyContextVar_Get(state.blocks, NULL, &blocks) < 0)
        PyErr_Clear();
    if (context == NULL || PyContext_Enter(context) < 0) {
        Py_XDECREF(blocks);
        PyErr_Clear();
        return NULL;
    }
    if (blocks != NULL) { /* (what is counted meanwhile is counted there) */
        Py_XDECREF(PyContextVar_Set(state.blocks, blocks));
        Py_DECREF(blocks);
        PyErr_Clear();
    }
    return Py_NewRef(context);
}

void
speak(PyObject *context)
{
    if (context == NULL)
        return;
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyContext_Exit(context);
    PyErr_Restore(type, error, traceback);
    Py_DECREF(context);
}

/* How many operations a tree has, whatever memory it reads. */
static Py_ssize_t
operations(Node *node)
{
    return node->size % foreign_size;
}

/* What is quiet from the first call of NumPy's on. */
typedef struct {
    int asked;
    PyObject *context;
    int reduces; /* (is it what a reduction of few elements reads?) */
} Quiet;

double
shape_size(PyObject *shape)
{
    double n = 1; /* (a product of lengths may be more than an integer holds) */
    for (Py_ssize_t d = 0; d < PyTuple_GET_SIZE(shape); d++)
        n *= (double)PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, d));
    return n;
}

static PyObject *value_of(Node *node, int depth, Quiet *quiet);
static Leaf *as_leaf(PyObject *value, PyObject *shape);

/* The value of a reduction that an operation reads: by its kernel, or by NumPy's functions. */
static PyObject *
reduction_value(PyObject *reduced)
{
    PyObject *value = state.known == NULL ? NULL : evaluated_again(state.known, reduced, 0);
    return value != NULL || PyErr_Occurred() ? value : computed_reduction(state.known, reduced);
}

/* The value of an operation that others hold, too: a new reference, or NULL. It keeps it where the rule of walking.c says
   so (which is asked before it is computed, which its parts remember). What a reduction of few elements reads it keeps in
   any case: it lies in memory, and the next turn of a loop would compute it again. */
static PyObject *
kept_value(Node *node, int depth, Quiet *quiet)
{
    int keep = quiet->reduces ? 1 : is_worth_storing((PyObject *)node, NULL);
    if (keep < 0)
        return NULL;
    Py_INCREF(node);
    PyObject *value = value_of(node, depth, quiet);
    Leaf *leaf = keep && value != NULL && !has_value(node) ? as_leaf(value, node->shape) : NULL; /* (others may have run) */
    if (leaf != NULL)
        settle(node, leaf);
    else if (!keep && value != NULL)
        node->evaluations++;
    Py_DECREF(node);
    return value;
}

/* An operand as NumPy takes it: a new reference, or NULL. */
static PyObject *
operand_value(PyObject *a, int depth, Quiet *quiet)
{
    if (IS_NODE(a) && !has_value((Node *)a))
        return ((Node *)a)->holders > 1 ? kept_value((Node *)a, depth + 1, quiet)
                                        : value_of((Node *)a, depth + 1, quiet);
    if (IS_NODE(a))
        a = ((Node *)a)->value;
    else if (IS_REDUCED(a)) {
        if (((Reduced *)a)->value == Py_None)
            Py_XDECREF(reduction_value(a)); /* (it keeps its value) */
        if (PyErr_Occurred())
            return NULL;
        a = ((Reduced *)a)->value;
    }
    if (a == NULL || a == Py_None)
        return NULL;
    if (!IS_LEAF(a))
        return Py_NewRef(a);
    PyObject *view = ((Leaf *)a)->view;
    return IS_ARRAY(view) ? Py_NewRef(view) : NULL;
}

/* What a function of NumPy's gives of operands: a new reference; NULL, perhaps with an error, where Python is to say. */
static PyObject *
applied(PyObject *function, PyObject *operands, PyObject *shape, int depth, Quiet *quiet)
{
    PyObject *values[OPERANDS] = {NULL}, *out = NULL;
    int n = (int)PyTuple_GET_SIZE(operands), known = 0, mine = 0;
    if (n < 1 || n > OPERANDS)
        return NULL;
    while (known < n && (values[known] = operand_value(PyTuple_GET_ITEM(operands, known), depth, quiet)) != NULL) {
        /* (What was computed on the way is nobody else's.) */
        PyObject *a = PyTuple_GET_ITEM(operands, known);
        if (IS_NODE(a) && !has_value((Node *)a) && is_unshared(values[known]))
            mine |= 1 << known;
        known++;
    }
    if (known == n)
        out = operated(function, values, n, shape, mine);
    if (known == n && out == NULL) {
        if (!quiet->asked) {
            quiet->asked = 1;
            quiet->context = hush();
        }
        out = PyObject_Vectorcall(function, values, n, NULL);
    }
    while (known--)
        Py_DECREF(values[known]);
    /* (A copy, or a cast, may be of a larger shape than what it is of.) */
    if (out != NULL && n == 1 && IS_ARRAY(out) && !has_shape((PyArrayObject *)out, shape))
        Py_CLEAR(out);
    return out;
}

/* The value of an operation: likewise. */
static PyObject *
value_of(Node *node, int depth, Quiet *quiet)
{
    PyObject *args = node->args;
    if (depth > DEPTH || args == NULL || !PyTuple_CheckExact(args))
        return NULL;
    PyObject *function = PyObject_GetAttr(node->sig, state.direct), *out = NULL;
    Py_INCREF(args);
    if (function != NULL && function != Py_None)
        out = applied(function, args, node->shape, depth, quiet);
    Py_DECREF(args);
    Py_XDECREF(function);
    return out;
}

/* What was computed, as a leaf: NULL, perhaps with an error, if it is no array of the shape. */
static Leaf *
as_leaf(PyObject *value, PyObject *shape)
{
    if (value == NULL)
        return NULL;
    Leaf *leaf = NULL;
    PyObject *array = IS_ARRAY(value) || PyTuple_GET_SIZE(shape) ? Py_NewRef(value)
                                                                 : PyObject_CallOneArg(state.asarray, value);
    if (array != NULL && IS_ARRAY(array) && has_shape((PyArrayObject *)array, shape))
        leaf = new_leaf(array, shape, DTYPE((PyArrayObject *)array));
    Py_XDECREF(array);
    return leaf;
}

/* Does a tree take so little work that NumPy does it sooner than a kernel is found? */
static int
is_little(Node *node)
{
    if (operations(node) > state.tree_limit || !PyTuple_CheckExact(node->shape))
        return 0;
    double n = shape_size(node->shape);
    return n <= state.few || n * operations(node) <= 32 * state.few;
}

static PyObject *
computed_of(PyObject *tree, int reduces)
{
    if (!IS_NODE(tree))
        return NULL;
    Node *node = (Node *)tree;
    /* (To ask Python whether methods changed lets others run, who may evaluate it.) */
    if (!unobserved() || !unchanged() || node->args == NULL || node->args == Py_None || !is_little(node))
        return NULL;
    Py_INCREF(node);
    Quiet quiet = {.reduces = reduces};
    begin_evaluation();
    PyObject *value = value_of(node, 0, &quiet), *found = NULL;
    end_evaluation();
    speak(quiet.context);
    if (node->args != Py_None) { /* (others may have run) */
        Leaf *leaf = as_leaf(value, node->shape);
        if (leaf != NULL)
            settle(node, leaf);
    }
    if (value != NULL && has_value(node))
        found = Py_NewRef(node->value);
    Py_XDECREF(value);
    Py_DECREF(node);
    if (!left_to_python())
        Py_CLEAR(found);
    return found;
}

PyObject *
computed(PyObject *tree)
{
    PyObject *evaluation = begin_count(tree, NULL), *value = computed_of(tree, 0);
    end_count(evaluation, value != NULL);
    return value;
}

Leaf *
computed_now(PyObject *function, PyObject *operands, PyObject *shape)
{
    if (shape_size(shape) > state.immediate || !unobserved() || !unchanged())
        return NULL;
    Quiet quiet = {0};
    PyObject *value = applied(function, operands, shape, 0, &quiet);
    speak(quiet.context);
    Leaf *leaf = as_leaf(value, shape);
    Py_XDECREF(value);
    if (!left_to_python())
        Py_CLEAR(leaf);
    if (leaf != NULL)
        count_operation(operands, leaf);
    return leaf;
}

/* Is it by a function of NumPy's that has a value which changes nothing? (Asked once.) */
static int
is_numpys(Reduced *reduced)
{
    if (reduced->plain == 0) {
        PyObject *scalar = PyObject_GetAttrString(reduced->reduction, "scalar"), *neutral = NULL;
        if (scalar == Py_None)
            neutral = PyObject_CallMethod(reduced->reduction, "neutral", "O", reduced->dtype);
        reduced->plain = neutral != NULL && neutral != Py_None ? 1 : -1;
        Py_XDECREF(scalar);
        Py_XDECREF(neutral);
    }
    return left_to_python() && reduced->plain > 0;
}

/* What a reduction that waits reads, if it is memory, or a tree: borrowed, or NULL. */
static PyObject *
still_read(Reduced *reduced)
{
    PyObject *operand = reduced->value == Py_None ? reduced->operand : NULL;
    if (operand != NULL && IS_NODE(operand)) {
        if (has_value((Node *)operand))
            return ((Node *)operand)->value;
        return ((Node *)operand)->args != Py_None ? operand : NULL;
    }
    return operand != NULL && IS_LEAF(operand) ? operand : NULL;
}

/* The reductions that somebody waits for, it among them, of the same operand along the same axes: a new list, or NULL. */
static PyObject *
waiting_together(Reduced *reduced)
{
    PyObject *known = *waiting_for(reduced->operand), *found = PyList_New(0);
    int fine = found != NULL && PyList_Append(found, (PyObject *)reduced) == 0;
    Py_XINCREF(known); /* (others may run) */
    for (Py_ssize_t i = 0; fine && known != NULL && PyList_CheckExact(known) && i < PyList_GET_SIZE(known); i++) {
        PyObject *reference = PyList_GET_ITEM(known, i);
        PyObject *x = PyWeakref_CheckRef(reference) ? Py_XNewRef(named_by(reference)) : NULL;
        if (x != NULL && x != (PyObject *)reduced && IS_REDUCED(x) && ((Reduced *)x)->value == Py_None &&
            PyObject_RichCompareBool(((Reduced *)x)->axes, reduced->axes, Py_EQ) == 1 && is_numpys((Reduced *)x))
            fine = PyList_Append(found, x) == 0;
        Py_XDECREF(x);
    }
    Py_XDECREF(known);
    if (!fine)
        Py_CLEAR(found);
    left_to_python();
    return found;
}

/* Give a reduction that waits its value: what NumPy's function makes of an array. */
static void
reduce_array(Reduced *reduced, PyObject *array)
{
    if (reduced->value != Py_None) /* (another thread has just computed it) */
        return;
    PyObject *ufunc = PyObject_GetAttrString(reduced->reduction, "ufunc"), *out = NULL;
    if (ufunc != NULL && PyTuple_GET_SIZE(reduced->axes) == PyArray_NDIM((PyArrayObject *)array))
        out = reduced_whole(ufunc, (PyArrayObject *)array, reduced->dtype, (int)PyTuple_GET_SIZE(reduced->shape));
    else if (ufunc != NULL)
        out = reduced_along(ufunc, (PyArrayObject *)array, reduced->dtype, reduced->axes, reduced->shape);
    if (ufunc != NULL && out == NULL) {
        PyObject *args[] = {ufunc, array, Py_NewRef(reduced->axes), Py_None, Py_None, Py_NewRef(reduced->keepdims)};
        PyObject *context = hush();
        out = PyObject_VectorcallMethod(state.reduce, args, 6, NULL);
        speak(context);
        Py_DECREF(args[2]);
        Py_DECREF(args[5]);
    }
    Py_XDECREF(ufunc);
    /* (NumPy adds small integers up in larger ones.) */
    if (out != NULL && (!IS_ARRAY(out) || DTYPE((PyArrayObject *)out) != reduced->dtype)) {
        PyObject *made = PyObject_CallFunctionObjArgs(state.asarray, out, reduced->dtype, NULL);
        Py_SETREF(out, made);
    }
    if (out != NULL && IS_ARRAY(out) && reduced->value == Py_None) {
        Leaf *made = new_leaf(out, reduced->shape, reduced->dtype);
        if (made != NULL)
            settle_reduced(reduced, made);
    }
    Py_XDECREF(out);
}

/* What reductions read, as NumPy takes it: a new reference, or NULL. Others may hold the tree, too (`shared`). */
static PyObject *
array_to_reduce(PyObject *known, PyObject *operand, int shared, int few)
{
    if (IS_NODE(operand) && shared) {
        Quiet quiet = {.reduces = few};
        PyObject *value = is_little((Node *)operand) ? kept_value((Node *)operand, 0, &quiet) : NULL;
        speak(quiet.context);
        return value;
    }
    PyObject *leaf = IS_LEAF(operand) ? Py_NewRef(operand) : known == NULL ? NULL : evaluated_again(known, operand, 1);
    if (leaf == NULL && !PyErr_Occurred())
        leaf = computed_of(operand, few);
    PyObject *view = leaf != NULL && IS_LEAF(leaf) ? Py_XNewRef(((Leaf *)leaf)->view) : NULL;
    Py_XDECREF(leaf);
    return view;
}

PyObject *
computed_reduction(PyObject *known, PyObject *x)
{
    if (!IS_REDUCED(x))
        return NULL;
    Reduced *reduced = (Reduced *)x;
    /* (To ask Python whether methods changed lets others run: what it waits for is looked at afterwards.) */
    if (!is_numpys(reduced) || !unobserved() || !unchanged())
        return NULL;
    PyObject *operand = still_read(reduced);
    if (operand == NULL)
        return NULL;
    double size = shape_size(IS_LEAF(operand) ? ((Leaf *)operand)->shape : ((Node *)operand)->shape);
    if (size > 4 * state.few || size < 1)
        return NULL;
    Py_INCREF(x);
    Py_INCREF(operand);
    PyObject *together = waits_alone(reduced) ? NULL : waiting_together(reduced), *found = NULL;
    Py_ssize_t n = together == NULL ? 1 : PyList_GET_SIZE(together);
    PyObject *evaluation = begin_count(x, together);
    begin_evaluation();
    PyObject *array = array_to_reduce(known, operand, IS_NODE(operand) && ((Node *)operand)->holders > n, size <= state.few);
    if (array != NULL && IS_ARRAY(array))
        for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); i++)
            reduce_array(together == NULL ? reduced : (Reduced *)PyList_GET_ITEM(together, i), array);
    if (reduced->value != Py_None)
        found = Py_NewRef(reduced->value);
    end_evaluation();
    end_count(evaluation, found != NULL);
    Py_XDECREF(array);
    Py_XDECREF(together);
    Py_DECREF(operand);
    Py_DECREF(x);
    if (!left_to_python())
        Py_CLEAR(found);
    return found;
}

/* a @ b of matrices and vectors of one dtype, of arrays and parts of arrays. */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *matmul, *python;
    /* The types of results, by their dimensions, and the dtype of all. */
    PyObject *results, *dtype;
    Py_ssize_t most;
    /* Are both matrices, whose trees are computed first? Are vectors that BLAS does not read copied, as `dot` does? */
    int forces, copies;
} Product;

PyObject *
whole_memory(PyObject *x, int forced)
{
    PyObject *whole = x;
    if (IS_ARRAY(x))
        return Py_NewRef(x);
    while (whole != NULL && PyType_IsSubtype(Py_TYPE(whole), state.wrapper))
        whole = SLOT(whole, state.view_parent);
    if (whole == NULL || !PyType_IsSubtype(Py_TYPE(whole), state.dense))
        return NULL;
    PyObject *node = VERSION_OF(whole);
    if (node != NULL && IS_NODE(node) && !has_value((Node *)node) && forced && state.known != NULL) {
        Py_INCREF(node); /* (others may run, and give the array another) */
        PyObject *value = evaluated_again(state.known, node, 0);
        Py_DECREF(node);
        Py_XDECREF(value); /* (the node keeps it) */
        if (!left_to_python())
            return NULL;
        node = VERSION_OF(whole);
    }
    if (node != NULL && IS_NODE(node))
        node = ((Node *)node)->value;
    else if (node != NULL && IS_REDUCED(node))
        node = ((Reduced *)node)->value;
    return node == NULL || !IS_LEAF(node) || !IS_ARRAY(((Leaf *)node)->view) ? NULL : Py_NewRef(((Leaf *)node)->view);
}

/* A kernel saves nothing of trees of so few operations, or of a single number. (Python counts how often it meets
   larger ones.) */
#define BARE 2

void
compute_few(PyObject *x)
{
    PyObject *version = PyType_IsSubtype(Py_TYPE(x), state.dense) ? VERSION_OF(x) : NULL;
    if (version == NULL || !unobserved())
        return;
    Py_INCREF(version); /* (others may run, and give the array another) */
    if (IS_REDUCED(version) && ((Reduced *)version)->value == Py_None)
        Py_XDECREF(computed_reduction(state.known, version));
    else if (IS_NODE(version) && !has_value((Node *)version)) {
        PyObject *value = state.known == NULL ? NULL : evaluated_again(state.known, version, 0);
        if (value == NULL && left_to_python() &&
            (operations((Node *)version) <= BARE || shape_size(((Node *)version)->shape) <= 1))
            value = computed(version);
        Py_XDECREF(value); /* (the node keeps it) */
    }
    Py_DECREF(version);
    left_to_python();
}

PyObject *
memory_shown(PyObject *x, PyObject *memory)
{
    if (memory == NULL || !PyType_IsSubtype(Py_TYPE(x), state.wrapper))
        return memory;
    PyObject *shown = memory_through(x, memory);
    Py_DECREF(memory);
    if (shown == NULL)
        left_to_python();
    else if (!IS_ARRAY(shown))
        Py_CLEAR(shown);
    return shown;
}

/* Is an operand a vector in some memory? Which part that is. */
static int
is_vector(PyObject *x, PyObject *memory, Part *part)
{
    PyObject *how = Py_Ellipsis, *whole = x;
    if (PyType_IsSubtype(Py_TYPE(x), state.view)) {
        how = SLOT(x, state.view_how);
        whole = SLOT(x, state.view_parent);
    }
    return how != NULL && whole != NULL && (IS_ARRAY(whole) || PyType_IsSubtype(Py_TYPE(whole), state.dense)) &&
           resolve_index(how, (PyArrayObject *)memory, part) && part->nd == 1;
}

/* As many multiplications let other threads run. */
#define LONG_LINE 8192
/* Vectors that BLAS does not read, of so many elements, are copied without a new array. */
#define BESIDE (1 << 14)

/* The sum of products of two vectors, by what NumPy does for `dot` and `@`: a new reference to an array without axes;
   NULL, without an error, where Python is to say. */
static PyObject *
inner_product(PyArrayObject *a, const Part *x, PyArrayObject *b, const Part *y, int copies)
{
    PyArray_Descr *dtype = PyArray_DESCR(a);
    if (dtype != PyArray_DESCR(b) || x->dims[0] != y->dims[0] || !PyArray_ISALIGNED(a) || !PyArray_ISALIGNED(b) ||
        PyArray_ISBOOL(a) || dtype->type_num == NPY_HALF || !PyArray_ISNUMBER(a) || !PyArray_ISNOTSWAPPED(a))
        return NULL;
    Py_ssize_t n = x->dims[0], size = PyDataType_ELSIZE(dtype), steps[] = {x->strides[0], y->strides[0]};
    char *beside[] = {NULL, NULL}, *at[] = {x->data, y->data};
    for (int i = 0; copies && i < 2; i++) {
        if (steps[i] > 0)
            continue;
        at[i] = beside[i] = size == sizeof(double) && n <= BESIDE ? PyMem_Malloc(n * size + 1) : NULL;
        if (at[i] == NULL) {
            PyMem_Free(beside[0]);
            return NULL;
        }
        copy_row(at[i], size, i ? y->data : x->data, steps[i], n);
        steps[i] = size;
    }
    Py_INCREF(dtype);
    PyArrayObject *out = (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, dtype, 0, NULL, NULL, NULL, 0, NULL);
    if (out == NULL)
        PyErr_Clear();
    else {
        PyThreadState *others = n < LONG_LINE ? NULL : PyEval_SaveThread();
        PyDataType_GetArrFuncs(dtype)->dotfunc(at[0], steps[0], at[1], steps[1], PyArray_BYTES(out), n, a);
        if (others != NULL)
            PyEval_RestoreThread(others);
    }
    PyMem_Free(beside[0]);
    PyMem_Free(beside[1]);
    return (PyObject *)out;
}

/* Does BLAS read it as it lies? */
static int
lies_well(PyArrayObject *a, Py_ssize_t size)
{
    if (PyArray_NDIM(a) == 1)
        return PyArray_DIMS(a)[0] > 0 && PyArray_STRIDES(a)[0] > 0 && PyArray_STRIDES(a)[0] % size == 0;
    if (PyArray_NDIM(a) != 2 || PyArray_DIMS(a)[0] < 1 || PyArray_DIMS(a)[1] < 1)
        return 0;
    for (int across = 0; across < 2; across++) {
        Py_ssize_t step = PyArray_STRIDES(a)[1 - across];
        if (PyArray_STRIDES(a)[across] == size && step >= PyArray_DIMS(a)[across] * size && step % size == 0)
            return 1;
    }
    return 0;
}

static PyObject *
numpys_product(Product *self, PyArrayObject *x, PyArrayObject *y)
{
    PyObject *operands[] = {(PyObject *)x, (PyObject *)y}, *context = hush();
    PyObject *out = PyObject_Vectorcall(self->matmul, operands, 2, NULL);
    speak(context);
    if (out != NULL && !IS_ARRAY(out))
        Py_SETREF(out, PyObject_CallOneArg(state.asarray, out));
    return out;
}

/* The product of two arrays of NumPy's as BLAS reads them; NULL likewise. */
static PyObject *
matrix_product(Product *self, PyArrayObject *x, PyArrayObject *y)
{
    Py_ssize_t itemsize = PyArray_ITEMSIZE(x);
    if (itemsize < 1 || PyArray_NDIM(x) + PyArray_NDIM(y) < 3 || DTYPE(x) != DTYPE(y) || !lies_well(x, itemsize) ||
        !lies_well(y, itemsize) || PyArray_DIMS(x)[PyArray_NDIM(x) - 1] != PyArray_DIMS(y)[0] ||
        (PyArray_NDIM(x) + PyArray_NDIM(y) == 4 && PyArray_DIMS(x)[0] * PyArray_DIMS(y)[1] > self->most))
        return NULL;
    PyObject *out = times_vector(x, y);
    if (out == NULL)
        out = times_matrix(self->matmul, x, y);
    return out == NULL ? numpys_product(self, x, y) : out;
}

PyObject *
multiplied(PyObject *callable, PyObject *const *args)
{
    Product *self = (Product *)callable;
    PyObject *out = NULL, *b = NULL;
    Part first, second;
    Py_ssize_t read = 0;
    if (!unobserved())
        return NULL;
    /* (A large tree that meets a vector joins the kernel of the product.) */
    for (int i = 0; i < 2; i++) {
        PyObject *tree = PyType_IsSubtype(Py_TYPE(args[i]), state.dense) ? VERSION_OF(args[i]) : NULL;
        if (tree != NULL && IS_NODE(tree) && shape_size(((Node *)tree)->shape) <= 4 * (double)state.few)
            compute_few(args[i]);
        if (PyErr_Occurred())
            return NULL;
    }
    PyObject *a = whole_memory(args[0], self->forces);
    b = a == NULL ? NULL : whole_memory(args[1], self->forces);
    int lines = b != NULL && is_vector(args[0], a, &first) && is_vector(args[1], b, &second);
    if (lines) {
        out = inner_product((PyArrayObject *)a, &first, (PyArrayObject *)b, &second, self->copies);
        read = 2 * first.dims[0] * PyArray_ITEMSIZE((PyArrayObject *)a);
    }
    if (b != NULL && out == NULL) {
        a = memory_shown(args[0], a);
        b = memory_shown(args[1], b);
        if (a != NULL && b != NULL) {
            out = lines ? numpys_product(self, (PyArrayObject *)a, (PyArrayObject *)b)
                        : matrix_product(self, (PyArrayObject *)a, (PyArrayObject *)b);
            read = PyArray_NBYTES((PyArrayObject *)a) + PyArray_NBYTES((PyArrayObject *)b);
        }
    }
    Py_XDECREF(a);
    Py_XDECREF(b);
    PyObject *made = NULL;
    if (out != NULL && IS_ARRAY(out) && DTYPE((PyArrayObject *)out) == self->dtype &&
        PyArray_NDIM((PyArrayObject *)out) < PyTuple_GET_SIZE(self->results)) {
        PyArrayObject *array = (PyArrayObject *)out;
        PyTypeObject *type = (PyTypeObject *)PyTuple_GET_ITEM(self->results, PyArray_NDIM(array));
        PyObject *shape = PyTuple_New(PyArray_NDIM(array));
        for (int i = 0; shape != NULL && i < PyArray_NDIM(array); i++)
            PyTuple_SET_ITEM(shape, i, PyLong_FromSsize_t(PyArray_DIMS(array)[i]));
        Leaf *leaf = shape == NULL || PyErr_Occurred() ? NULL : new_leaf(out, shape, DTYPE(array));
        made = leaf == NULL ? NULL : new_handle(type, (PyObject *)leaf);
        if (made != NULL)
            count_launch(read, PyArray_NBYTES(array));
        Py_XDECREF(shape);
    }
    Py_XDECREF(out);
    if (made == NULL)
        left_to_python();
    return made;
}

static PyObject *
product_vectorcall(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    if (names == NULL && PyVectorcall_NARGS(flags) == 2) {
        PyObject *made = multiplied(callable, args);
        if (made != NULL || PyErr_Occurred())
            return made;
    }
    return PyObject_Vectorcall(((Product *)callable)->python, args, flags, names);
}

/* Product(NumPy's function, the types of results by their dimensions, their dtype, elements of a product of matrices at
           most, are both matrices?, does the function copy vectors?, what answers all else) */
static PyObject *
product_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *matmul, *results, *dtype, *python;
    Py_ssize_t most;
    int forces, copies;
    if (!PyArg_ParseTuple(args, "OO!OnppO", &matmul, &PyTuple_Type, &results, &dtype, &most, &forces, &copies, &python))
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(results); i++)
        if (!PyType_Check(PyTuple_GET_ITEM(results, i))) {
            PyErr_SetString(PyExc_TypeError, "Results are of types.");
            return NULL;
        }
    Product *self = (Product *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = product_vectorcall;
    self->matmul = Py_NewRef(matmul);
    self->results = Py_NewRef(results);
    self->dtype = Py_NewRef(dtype);
    self->python = Py_NewRef(python);
    self->most = most;
    self->forces = forces;
    self->copies = copies;
    return (PyObject *)self;
}

static void
product_dealloc(Product *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_CLEAR(self->matmul);
    Py_CLEAR(self->results);
    Py_CLEAR(self->dtype);
    Py_CLEAR(self->python);
    type->tp_free(self);
    Py_DECREF(type);
}

CALLABLE_TYPE(Product, product)
