/* How an operation on arrays builds a node (arraytypes/elementwise.py), for one combination of types. */

#include "native.h"

#define MOST 3

/* How an operand is read: a handle's version, what wrappers show, by a function, or it is a number. */
enum { VERSION, SHOWN, READ, NUMBER };

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *sig, *name, *careful;
    /* What computes it of memory: a function of NumPy's, or None. */
    PyObject *function;
    /* Which of the operations of loops.c it is, -1: none of them; and what NumPy computes it with. */
    int operation;
    Loop loop;
    PyTypeObject *result;
    /* Do trees of what fits a cache reach over a few names only? */
    int arity;
    /* Of up to so many elements trees are brief; 0: never; -1: what the settings say. */
    Py_ssize_t brief;
    int kinds[MOST];
    PyObject *readers[MOST];
    /* What Python's integers must lie between; others are for `careful`. */
    long long low[MOST], high[MOST];
} Builder;

/* Of values of up to `state.brief` elements that somebody had named, at most so many read each other in a tree. */
#define NAMES 1

/* Small trees that nothing knew, and that Python was not asked about since it was asked last: it counts which come
   back. (A loop of some trees has not the same one looked at each time.) */
static Py_ssize_t unasked;

PyObject *
count_unasked(PyObject *module, PyObject *unused)
{
    Py_ssize_t n = unasked;
    unasked = 0;
    return PyLong_FromSsize_t(n);
}

/* Have what a handle stands for computed: a new reference to its leaf, or NULL. */
static PyObject *
computed_first(PyObject *x)
{
    static const unsigned every[] = {7, 8, 9};
    static unsigned met;
    PyObject *version = Py_NewRef(VERSION_OF(x));
    PyObject *value = state.known == NULL ? NULL : evaluated_again(state.known, version, 0);
    int asks = value == NULL && met % every[met / 72 % 3] == 0;
    met += value == NULL;
    if (value == NULL && left_to_python() && !asks) {
        value = computed(version);
        unasked += value != NULL;
    }
    if (value == NULL && left_to_python())
        value = PyObject_CallOneArg(state.evaluated, x);
    Py_DECREF(version);
    return value;
}

/* An operand's version: a new reference, or NULL. `references`: how many there are to one that has no name. */
static PyObject *
version_of(Builder *self, PyObject *x, Py_ssize_t references, Py_ssize_t *names)
{
    PyObject *version = VERSION_OF(x);
    if (version == NULL) {
        PyErr_SetString(PyExc_AttributeError, "_node");
        return NULL;
    }
    if (!IS_NODE(version) || has_value((Node *)version))
        return Py_NewRef(version);
    PyObject *shape = ((Node *)version)->shape;
    if (PyTuple_CheckExact(shape) && PyTuple_GET_SIZE(shape) == 0)
        return Py_NewRef(version); /* (a number is computed in whatever kernel reads it) */
    Py_ssize_t named = ((Node *)version)->names + is_named(x, references);
    if (named > NAMES && self->brief && !recorded()) {
        double n = shape_size(((Node *)version)->shape);
        if (self->brief < 0 ? state.immediate < n && n <= state.brief : state.brief && n <= self->brief)
            return computed_first(x);
    }
    if (named > *names)
        *names = named;
    return Py_NewRef(version);
}

static PyObject *
operand(Builder *self, int i, PyObject *x, Py_ssize_t references, Py_ssize_t *names)
{
    switch (self->kinds[i]) {
    case VERSION:
        return version_of(self, x, references, names);
    case SHOWN:
        return shown_part(x);
    case READ:
        return PyObject_CallOneArg(self->readers[i], x);
    }
    return Py_NewRef(x);
}

/* The shape of a version and its number of operations: 0, or -1. */
static int
measure(PyObject *version, PyObject **shape, Py_ssize_t *size)
{
    if (IS_LEAF(version)) {
        adopted((Leaf *)version);
        *shape = Py_NewRef(((Leaf *)version)->shape);
        *size += ((Leaf *)version)->size;
        return 0;
    }
    if (IS_NODE(version)) {
        *shape = Py_NewRef(((Node *)version)->shape);
        *size += ((Node *)version)->size;
        return 0;
    }
    if (IS_REDUCED(version)) {
        *shape = Py_NewRef(((Reduced *)version)->shape);
        *size += ((Reduced *)version)->value == Py_None;
        return 0;
    }
    *shape = PyObject_GetAttrString(version, "shape");
    PyObject *n = *shape == NULL ? NULL : PyObject_GetAttrString(version, "size");
    if (n == NULL) {
        Py_CLEAR(*shape);
        return -1;
    }
    *size += PyLong_AsSsize_t(n);
    Py_DECREF(n);
    if (PyErr_Occurred()) {
        Py_CLEAR(*shape);
        return -1;
    }
    return 0;
}

/* The shape to which both are stretched: a new reference; NULL, without an error, where Python is to say. */
static PyObject *
stretched(PyObject *a, PyObject *b)
{
    Py_ssize_t n = PyTuple_GET_SIZE(a), m = PyTuple_GET_SIZE(b), nd = n > m ? n : m;
    PyObject *both = PyTuple_New(nd);
    for (Py_ssize_t d = 1; both != NULL && d <= nd; d++) {
        PyObject *x = d > n ? NULL : PyTuple_GET_ITEM(a, n - d), *y = d > m ? NULL : PyTuple_GET_ITEM(b, m - d);
        Py_ssize_t i = x == NULL ? 1 : PyLong_AsSsize_t(x), k = y == NULL ? 1 : PyLong_AsSsize_t(y);
        if (i != k && i != 1 && k != 1)
            Py_CLEAR(both);
        else
            PyTuple_SET_ITEM(both, nd - d, Py_NewRef(x == NULL || (i == 1 && y != NULL) ? y : x));
    }
    PyErr_Clear();
    return both;
}

/* The common shape of two (`a` is taken over). */
static PyObject *
joined(Builder *self, PyObject *a, PyObject *b)
{
    if (a == b)
        return a;
    int same = PyObject_RichCompareBool(a, b, Py_EQ);
    if (same)
        return same < 0 ? (Py_DECREF(a), NULL) : a;
    PyObject *both = PyTuple_CheckExact(a) && PyTuple_CheckExact(b) ? stretched(a, b) : NULL;
    if (both == NULL) {
        PyObject *shapes = PyList_New(2);
        if (shapes != NULL) {
            PyList_SET_ITEM(shapes, 0, Py_NewRef(a));
            PyList_SET_ITEM(shapes, 1, Py_NewRef(b));
            both = PyObject_CallFunctionObjArgs(state.broadcast_shapes, shapes, self->name, NULL);
            Py_DECREF(shapes);
        }
    }
    Py_DECREF(a);
    return both;
}

/* The memory of a handle, if it is there, as a part: borrowed, or NULL. Its shape, too. */
static inline PyArrayObject *
whole_in_memory(PyObject *x, Part *part, PyObject **shape)
{
    PyObject *version = VERSION_OF(x);
    if (version == NULL || !IS_LEAF(version) || !IS_ARRAY(((Leaf *)version)->view))
        return NULL;
    PyArrayObject *memory = (PyArrayObject *)((Leaf *)version)->view;
    *shape = ((Leaf *)version)->shape;
    part->data = PyArray_BYTES(memory);
    part->nd = PyArray_NDIM(memory);
    for (int d = 0; d < part->nd; d++) {
        part->dims[d] = PyArray_DIMS(memory)[d];
        part->strides[d] = PyArray_STRIDES(memory)[d];
    }
    return memory;
}

/* Elements that lie side by side, in another shape: 1, or 0. */
static int
in_another_shape(const Part *of, PyObject *shape, Py_ssize_t step, Part *part)
{
    if (!PyTuple_CheckExact(shape) || PyTuple_GET_SIZE(shape) > DIMENSIONS || !lies_together(of, step))
        return 0;
    part->data = of->data;
    part->nd = (int)PyTuple_GET_SIZE(shape);
    for (int d = part->nd - 1; d >= 0; d--) {
        part->dims[d] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, d));
        part->strides[d] = step;
        step *= part->dims[d];
    }
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return part_size(part) == part_size(of);
}

/* The memory that is shown of a handle or by wrappers, if it is there, and which part of it that is: borrowed, or NULL. Its
   shape, too. */
static PyArrayObject *
part_in_memory(PyObject *x, Part *part, PyObject **shape)
{
    if (PyType_IsSubtype(Py_TYPE(x), state.wrapper)) {
        PyObject *how = SLOT(x, state.view_how), *parent = SLOT(x, state.view_parent), *of;
        int is_view = PyType_IsSubtype(Py_TYPE(x), state.view);
        *shape = SLOT(x, state.view_shape);
        if (how == NULL || parent == NULL || *shape == NULL)
            return NULL;
        if (is_view && PyType_IsSubtype(Py_TYPE(parent), state.dense)) {
            PyObject *version = VERSION_OF(parent);
            int there = version != NULL && IS_LEAF(version) && IS_ARRAY(((Leaf *)version)->view);
            PyArrayObject *memory = there ? (PyArrayObject *)((Leaf *)version)->view : NULL;
            return there && resolve_index(how, memory, part) ? memory : NULL;
        }
        Part below;
        PyArrayObject *memory = part_in_memory(parent, &below, &of);
        if (memory == NULL)
            return NULL;
        if (is_view)
            return resolve_part(how, below.nd, below.dims, below.strides, below.data, part) ? memory : NULL;
        if (PyType_IsSubtype(Py_TYPE(x), state.reshaped))
            return in_another_shape(&below, *shape, PyArray_ITEMSIZE(memory), part) ? memory : NULL;
        if (!PyType_IsSubtype(Py_TYPE(x), state.permuted) || !PyTuple_CheckExact(how) || PyTuple_GET_SIZE(how) != below.nd)
            return NULL;
        part->data = below.data;
        part->nd = below.nd;
        for (int d = 0; d < below.nd; d++) {
            Py_ssize_t from = PyLong_AsSsize_t(PyTuple_GET_ITEM(how, d));
            if (from < 0 || from >= below.nd) {
                PyErr_Clear();
                return NULL;
            }
            part->dims[d] = below.dims[from];
            part->strides[d] = below.strides[from];
        }
        return memory;
    }
    return PyType_IsSubtype(Py_TYPE(x), state.dense) ? whole_in_memory(x, part, shape) : NULL;
}

static int
are_alike(const Part *a, const Part *b)
{
    return a->data == b->data && a->nd == b->nd && same_lengths(a->dims, b->dims, a->nd) &&
           same_lengths(a->strides, b->strides, a->nd);
}

Py_ssize_t
part_size(const Part *part)
{
    Py_ssize_t n = 1;
    for (int d = 0; d < part->nd; d++)
        n *= part->dims[d];
    return n;
}

PyArrayObject *
part_of(PyObject *x, Part *part)
{
    PyObject *shape;
    if (!IS_ARRAY(x))
        return part_in_memory(x, part, &shape);
    return resolve_index(Py_Ellipsis, (PyArrayObject *)x, part) ? (PyArrayObject *)x : NULL;
}

int
common_lengths(const Part *parts, int n, npy_intp *dims)
{
    int nd = parts[0].nd;
    for (int i = 1; i < n; i++)
        nd = parts[i].nd > nd ? parts[i].nd : nd;
    for (int d = 0; d < nd; d++) {
        dims[d] = 1;
        for (int i = 0; i < n; i++) {
            int k = d - (nd - parts[i].nd);
            if (k < 0 || parts[i].dims[k] == 1)
                continue;
            if (dims[d] != 1 && dims[d] != parts[i].dims[k])
                return -1;
            dims[d] = parts[i].dims[k];
        }
    }
    return nd;
}

/* The operands of an operation as parts of memory of few elements, each of the dtype that its loop takes: how many dimensions
   they have together, or -1 where one is none. How many bytes they are is added up. */
static inline int
few_in_memory(Builder *self, PyObject *const *args, Part *parts, char (*numbers)[NUMBER_SIZE], PyObject **shapes,
              Py_ssize_t *read)
{
    int axes = 0;
    for (int i = 0; i < self->arity; i++) {
        Part *part = &parts[i];
        if (self->kinds[i] == NUMBER) {
            part->nd = 0;
            part->data = numbers[i];
            if (!as_number(args[i], self->loop.ins[i], numbers[i]))
                return -1;
            continue;
        }
        PyArrayObject *memory = self->kinds[i] == VERSION ? whole_in_memory(args[i], part, &shapes[i])
                                : self->kinds[i] == SHOWN ? part_in_memory(args[i], part, &shapes[i])
                                                          : NULL;
        if (memory == NULL || !PyArray_ISALIGNED(memory))
            return -1;
        int other = PyArray_DESCR(memory) != self->loop.ins[i];
        if (part->nd == 0) {
            *read += i && parts[0].data == part->data ? 0 : PyArray_ITEMSIZE(memory);
            if (other && !convert_number(part->data, PyArray_DESCR(memory), numbers[i], self->loop.ins[i]))
                return -1;
            part->data = other ? numbers[i] : part->data;
            continue;
        }
        if (other)
            return -1;
        axes += part->nd;
        Py_ssize_t size = part_size(part);
        if (size > state.immediate)
            return -1;
        int again = 0;
        for (int k = 0; k < i; k++)
            again |= shapes[k] != NULL && are_alike(&parts[k], part);
        *read += again ? 0 : size * PyArray_ITEMSIZE(memory);
    }
    return axes;
}

/* What an operation gives of single numbers, or of few elements, in memory: NULL where it is not of such (with an error
   only if somebody interrupts). */
static PyObject *
of_few(Builder *self, PyObject *const *args)
{
    PyObject *shapes[MOST] = {NULL}, *shape = NULL;
    Part parts[MOST];
    char numbers[MOST][NUMBER_SIZE];
    const Loop *loop = &self->loop;
    Py_ssize_t read = 0;
    int n = self->arity;
    /* (To ask whether methods changed lets others run.) */
    if (loop->call == NULL || state.immediate < 1 || !unobserved() || !unchanged())
        return NULL;
    int axes = few_in_memory(self, args, parts, numbers, shapes, &read);
    if (axes < 0)
        return NULL;
    if (axes == 0) {
        char number[NUMBER_SIZE], *from[MOST] = {parts[0].data, parts[n - 1].data, parts[n - 1].data};
        if (!calculate(self->operation, loop->ins[0], from[0], from[1], number)) {
            npy_intp none[MOST] = {0};
            from[1] = parts[n > 1].data;
            run_loop(loop, n, from, none, number, PyDataType_ELSIZE(loop->out), 1);
            if (PyErr_Occurred())
                return left_to_python(), NULL;
        }
        PyObject *made = new_element(self->result, loop->out, number, 0);
        if (made != NULL)
            count_launch(read, PyDataType_ELSIZE(loop->out));
        return made;
    }
    npy_intp dims[DIMENSIONS];
    int nd = common_lengths(parts, n, dims);
    PyObject *out = nd < 0 ? NULL : looped(loop, n, parts, nd, dims);
    if (out == NULL || PyErr_Occurred()) {
        Py_XDECREF(out);
        left_to_python();
        return NULL;
    }
    for (int i = 0; i < n && shape == NULL; i++)
        if (shapes[i] != NULL && parts[i].nd == nd && same_lengths(parts[i].dims, dims, nd))
            shape = Py_NewRef(shapes[i]);
    if (shape == NULL)
        shape = PyArray_IntTupleFromIntp(nd, dims);
    Leaf *leaf = shape == NULL ? NULL : new_leaf(out, shape, (PyObject *)loop->out);
    if (leaf != NULL)
        count_launch(read, PyArray_NBYTES((PyArrayObject *)out));
    Py_XDECREF(shape);
    Py_DECREF(out);
    return leaf == NULL ? NULL : new_handle(self->result, (PyObject *)leaf);
}

int
built_over(PyObject *callable, PyObject *const *args, Leaf *leaf, PyObject *assign)
{
    Builder *self = (Builder *)callable;
    PyObject *shapes[2] = {NULL, NULL};
    Part parts[2];
    char numbers[2][NUMBER_SIZE];
    Py_ssize_t read = 0;
    if (Py_TYPE(callable) != builder_type || self->loop.call == NULL || self->arity != 2 || state.immediate < 1 ||
        self->loop.out != self->loop.ins[0] || (PyObject *)self->loop.out != leaf->dtype || !unobserved())
        return 0;
    /* (To ask whether methods changed lets others run, who may give arrays other versions.) */
    PyObject *whole = PyType_IsSubtype(Py_TYPE(args[0]), state.view) ? SLOT(args[0], state.view_parent) : args[0];
    if (!unchanged() || !sets_in_c(assign, Py_TYPE(args[0]), self->result) || VERSION_OF(whole) != (PyObject *)leaf)
        return left_to_python() ? 0 : -1;
    int axes = few_in_memory(self, args, parts, numbers, shapes, &read);
    PyArrayObject *memory = (PyArrayObject *)leaf->view;
    if (axes < 1 || !IS_ARRAY(memory) || !PyArray_ISWRITEABLE(memory))
        return 0;
    int may = may_put(leaf);
    if (may < 1 || !looped_into(&self->loop, 2, parts, &parts[0]))
        return may < 0 ? -1 : 0;
    leaf->writes++;
    Py_XSETREF(leaf->reducers, Py_NewRef(Py_None));
    count_launch(read, part_size(&parts[0]) * PyArray_ITEMSIZE(memory));
    return 1;
}

PyObject *
built(PyObject *callable, PyObject *const *args, Py_ssize_t n, Py_ssize_t references)
{
    Builder *self = (Builder *)callable;
    if (n != self->arity)
        return PyObject_Vectorcall(self->careful, args, (size_t)n, NULL);
    PyObject *made = of_few(self, args);
    if (made != NULL || PyErr_Occurred())
        return made;
    for (int i = 0; i < self->arity; i++)
        if (self->kinds[i] == NUMBER && PyLong_CheckExact(args[i])) {
            int overflow;
            long long n = PyLong_AsLongLongAndOverflow(args[i], &overflow);
            if (overflow || n < self->low[i] || n > self->high[i])
                return PyObject_Vectorcall(self->careful, args, (size_t)self->arity, NULL);
        }
    PyObject *shape = NULL, *handle = NULL;
    Py_ssize_t size = 1, names = 0;
    PyObject *operands = PyTuple_New(self->arity);
    Node *node = NULL;
    if (operands == NULL)
        return NULL;
    for (int i = 0; i < self->arity; i++) {
        PyObject *version = operand(self, i, args[i], references, &names);
        if (version == NULL)
            goto failed;
        PyTuple_SET_ITEM(operands, i, version);
        if (self->kinds[i] == NUMBER)
            continue;
        PyObject *other;
        if (measure(version, &other, &size) < 0)
            goto failed;
        if (shape == NULL)
            shape = other;
        else {
            shape = joined(self, shape, other);
            Py_DECREF(other);
            if (shape == NULL)
                goto failed;
        }
    }
    if (size % foreign_size == 1 && self->function != Py_None) {
        Leaf *value = computed_now(self->function, operands, shape);
        if (value != NULL) {
            Py_DECREF(operands);
            Py_DECREF(shape);
            return new_handle(self->result, (PyObject *)value);
        }
        if (PyErr_Occurred()) /* (somebody interrupts) */
            goto failed;
    }
    node = (Node *)state.node->tp_new(state.node, NULL, NULL);
    if (node == NULL)
        goto failed;
    node->sig = Py_NewRef(self->sig);
    set_held(&node->args, operands);
    operands = NULL;
    node->shape = shape;
    shape = NULL;
    node->size = size;
    node->names = names;
    handle = new_handle(self->result, (PyObject *)node);
    if (handle == NULL)
        return NULL;
    if (size > state.node_limit) {
        PyObject *result = PyObject_CallOneArg(state.at_once, handle);
        Py_DECREF(handle);
        return result;
    }
    return handle;

failed:
    Py_XDECREF(operands);
    Py_XDECREF(shape);
    Py_XDECREF(node);
    return NULL;
}

/* As a function of Python calls it: that holds its arguments, too. */
static PyObject *
builder_vectorcall(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    Builder *self = (Builder *)callable;
    if (names != NULL)
        return PyObject_Vectorcall(self->careful, args, flags, names);
    return built(callable, args, PyVectorcall_NARGS(flags), 2);
}

/* Builder(sig, type of the result, name, careful, ((kind, reader, low, high), ...), brief) */
static PyObject *
builder_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *sig, *result, *name, *careful, *operands;
    Py_ssize_t brief;
    if (!PyArg_ParseTuple(args, "OO!OOO!n", &sig, &PyType_Type, &result, &name, &careful, &PyTuple_Type, &operands,
                          &brief))
        return NULL;
    if (PyTuple_GET_SIZE(operands) < 1 || PyTuple_GET_SIZE(operands) > MOST) {
        PyErr_SetString(PyExc_ValueError, "An operation has one to three operands.");
        return NULL;
    }
    Builder *self = (Builder *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = builder_vectorcall;
    self->sig = Py_NewRef(sig);
    self->function = PyObject_GetAttr(sig, state.direct);
    if (self->function == NULL) {
        Py_DECREF(self);
        return NULL;
    }
    self->operation = operation_of(self->function);
    self->name = Py_NewRef(name);
    self->careful = Py_NewRef(careful);
    self->result = (PyTypeObject *)Py_NewRef(result);
    self->brief = brief;
    self->arity = (int)PyTuple_GET_SIZE(operands);
    if (self->operation >= 0 && self->arity != (is_of_one(self->operation) ? 1 : 2))
        self->operation = -1;
    PyObject *ins = PyObject_GetAttrString(sig, "ins"), *out = PyObject_GetAttrString(sig, "out");
    if (ins != NULL && out != NULL && PyTuple_CheckExact(ins) && PyTuple_GET_SIZE(ins) == self->arity)
        (self->arity == MOST && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "where") == 0)
            ? find_choice(&PyTuple_GET_ITEM(ins, 0), out, &self->loop)
            : find_loop(self->function, &PyTuple_GET_ITEM(ins, 0), self->arity, out, &self->loop);
    Py_XDECREF(ins); /* (the sig keeps them) */
    Py_XDECREF(out);
    if (PyErr_Occurred()) {
        Py_DECREF(self);
        return NULL;
    }
    for (int i = 0; i < self->arity; i++) {
        PyObject *reader;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(operands, i), "iOLL", &self->kinds[i], &reader, &self->low[i],
                              &self->high[i])) {
            Py_DECREF(self);
            return NULL;
        }
        self->readers[i] = Py_NewRef(reader);
    }
    return (PyObject *)self;
}

static void
builder_dealloc(Builder *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_CLEAR(self->sig);
    Py_CLEAR(self->function);
    Py_CLEAR(self->name);
    Py_CLEAR(self->careful);
    Py_CLEAR(self->result);
    for (int i = 0; i < MOST; i++)
        Py_CLEAR(self->readers[i]);
    type->tp_free(self);
    Py_DECREF(type);
}

CALLABLE_TYPE(Builder, builder)
