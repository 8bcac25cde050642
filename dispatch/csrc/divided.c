/* Trees over distributed arrays (arraytypes/distributed): that over what this process has of them, and the number of
   what a tree computes, on which all processes have to agree (histories.py). */

#include "native.h"

/* The buffer that a view of distributed memory shows: borrowed, or NULL where it shows other memory. */
static PyObject *
buffer_of(PyObject *leaf)
{
    PyObject *view = ((Leaf *)leaf)->view;
    if (view == NULL || state.divided == NULL || !PyType_IsSubtype(Py_TYPE(view), state.divided))
        return NULL;
    return SLOT(view, state.divided_buffer);
}

/* Numbers of what was computed: 0 says nothing. */

static uint64_t
mixed(uint64_t a, uint64_t b)
{
    a = (a ^ (b + 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu;
    a = (a ^ (a >> 32)) * 0xc4ceb9fe1a85ec53u;
    return a ^ (a >> 29);
}

/* Operations that several read, with their numbers. */
typedef struct {
    struct {
        PyObject *node;
        uint64_t number;
    } *seen, here[16];
    Py_ssize_t n, room;
    PyObject *of_reduction;
} Numbers;

static int
remember(Numbers *w, PyObject *node, uint64_t number)
{
    if (w->n == w->room) {
        void *more = PyMem_Malloc(2 * w->room * sizeof *w->seen);
        if (more == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        memcpy(more, w->seen, w->n * sizeof *w->seen);
        if (w->seen != w->here)
            PyMem_Free(w->seen);
        w->seen = more, w->room *= 2;
    }
    w->seen[w->n].node = node;
    w->seen[w->n++].number = number;
    return 0;
}

static int
as_uint64(PyObject *x, uint64_t *number)
{
    *number = PyLong_AsUnsignedLongLongMask(x);
    return PyErr_Occurred() ? -1 : 0;
}

/* That of a leaf is kept with its buffer, in a list that all share who show its memory. (Of a part it says nothing: see
   DView.history.) */
static int
number_of_leaf(PyObject *leaf, uint64_t *number)
{
    PyObject *buffer = buffer_of(leaf), *kept = buffer == NULL ? NULL : SLOT(buffer, state.buffer_came);
    *number = 0;
    if (kept == NULL || !PyList_CheckExact(kept) || PyList_GET_SIZE(kept) != 1 ||
        SLOT(((Leaf *)leaf)->view, state.divided_whole) != Py_True)
        return 0;
    PyObject *came = PyList_GET_ITEM(kept, 0);
    return PyLong_CheckExact(came) ? as_uint64(came, number) : 0;
}

static int
number_of(Numbers *w, PyObject *x, uint64_t *number)
{
    static PyObject *mark;
    if (mark == NULL && (mark = PyUnicode_InternFromString("mark")) == NULL)
        return -1;
    if (IS_NODE(x) && has_value((Node *)x))
        x = ((Node *)x)->value;
    if (IS_REDUCED(x) && ((Reduced *)x)->value != Py_None)
        x = ((Reduced *)x)->value;
    if (IS_LEAF(x))
        return number_of_leaf(x, number);
    if (IS_REDUCED(x)) {
        uint64_t operand;
        if (number_of(w, ((Reduced *)x)->operand, &operand) < 0)
            return -1;
        PyObject *found = PyObject_CallFunction(w->of_reduction, "OK", x, (unsigned long long)operand);
        int done = found == NULL ? -1 : as_uint64(found, number);
        Py_XDECREF(found);
        return done;
    }
    if (!IS_NODE(x)) { /* (to numbers that are no integers ranks may have come with other roundings) */
        *number = PyLong_Check(x) ? mixed(1, PyLong_AsUnsignedLongLongMask(x)) : 1;
        return PyErr_Occurred() ? -1 : 0;
    }
    Node *node = (Node *)x;
    for (Py_ssize_t i = 0; node->holders > 1 && i < w->n; i++)
        if (w->seen[i].node == x) {
            *number = w->seen[i].number;
            return 0;
        }
    PyObject *said = PyObject_GetAttr(node->sig, mark);
    if (said == NULL)
        return -1;
    int done = as_uint64(said, number);
    Py_DECREF(said);
    Py_ssize_t n = node->args != NULL && PyTuple_CheckExact(node->args) ? PyTuple_GET_SIZE(node->args) : 0;
    const uint64_t operation = *number;
    for (Py_ssize_t i = 0; done == 0 && i < n; i++) {
        uint64_t operand = 0;
        if (Py_EnterRecursiveCall(" in a tree of arrays"))
            return -1;
        done = number_of(w, PyTuple_GET_ITEM(node->args, i), &operand);
        Py_LeaveRecursiveCall();
        *number = operation == 0 ? operand : mixed(*number, operand); /* (a copy is what it is a copy of) */
    }
    if (operation != 0)
        *number >>= 2; /* (as it is kept with a buffer: a small number of Python's) */
    return done < 0 || node->holders < 2 ? done : remember(w, x, *number);
}

/* history_number(tree, of_reduction): the number of what a tree computes; a function says that of a reduction in it,
   from the number of its operand. */
PyObject *
history_number(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 2) {
        PyErr_SetString(PyExc_TypeError, "history_number(tree, of_reduction)");
        return NULL;
    }
    Numbers w = {.n = 0, .room = Py_ARRAY_LENGTH(w.here), .of_reduction = args[1]};
    w.seen = (void *)w.here;
    uint64_t number;
    int done = number_of(&w, args[0], &number);
    if (w.seen != (void *)w.here)
        PyMem_Free(w.seen);
    return done < 0 ? NULL : PyLong_FromUnsignedLongLong(number);
}

/* history_mixed(mark, number, ...): that of an operation of which the mark and its operands' numbers are known. */
PyObject *
history_mixed(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    uint64_t number = 0, operand;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (as_uint64(args[i], &operand) < 0)
            return NULL;
        number = i == 0 ? operand : mixed(number, operand);
    }
    return PyLong_FromUnsignedLongLong(number >> 2);
}

/* The local tree of a tree over whole arrays of one partition, whose parts nobody else holds. */

typedef struct {
    /* The shape of the tree, and the buffer of which all are divided as it is (borrowed). */
    PyObject *shape, *buffer;
    int depth;
} Local;

static int
same_shape(PyObject *a, PyObject *b)
{
    return a == b || PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

static int
is_true(PyObject *x, const char *name)
{
    PyObject *found = PyObject_GetAttrString(x, name);
    int so = found == NULL ? -1 : PyObject_IsTrue(found);
    Py_XDECREF(found);
    return so;
}

/* The local leaf of a leaf: a new reference; NULL, perhaps with an error, where it is not as simple. */
static PyObject *
local_leaf(Local *l, PyObject *leaf)
{
    PyObject *buffer = buffer_of(leaf);
    if (buffer == NULL || ((Leaf *)leaf)->table != Py_False ||
        SLOT(((Leaf *)leaf)->view, state.divided_whole) != Py_True)
        return NULL;
    PyObject *part = SLOT(buffer, state.buffer_partition), *comm = SLOT(buffer, state.buffer_comm);
    if (l->buffer != NULL && comm != SLOT(l->buffer, state.buffer_comm))
        return NULL;
    if (l->buffer == NULL || part != SLOT(l->buffer, state.buffer_partition)) {
        PyObject *shape = is_true(part, "partial") == 0 ? PyObject_GetAttrString(part, "shape") : NULL;
        if (shape == NULL)
            return NULL;
        int number = PyTuple_CheckExact(shape) && PyTuple_GET_SIZE(shape) == 0;
        int first = !number && l->buffer == NULL && same_shape(shape, l->shape);
        Py_DECREF(shape);
        if (first)
            l->buffer = buffer;
        else if (!number)
            return NULL;
    }
    PyObject *kept = SLOT(buffer, state.buffer_leaf);
    return kept != NULL && kept != Py_None ? Py_NewRef(kept) : PyObject_GetAttrString(buffer, "leaf");
}

/* That of a pending operation, whose shape is still to be said (NULL) if it is the tree's: likewise. */
static Node *
local_node(Local *l, Node *node)
{
    Py_ssize_t n = node->args != NULL && PyTuple_CheckExact(node->args) ? PyTuple_GET_SIZE(node->args) : -1;
    int whole = same_shape(node->shape, l->shape);
    if (n < 0 || node->layout != Py_None || l->depth > 200 || PyErr_Occurred() ||
        (!whole && !(PyTuple_CheckExact(node->shape) && PyTuple_GET_SIZE(node->shape) == 0)))
        return NULL;
    PyObject *args = PyTuple_New(n);
    Py_ssize_t size = 1;
    l->depth++;
    for (Py_ssize_t i = 0; args != NULL && i < n; i++) {
        PyObject *a = PyTuple_GET_ITEM(node->args, i), *mine;
        if (IS_NODE(a) && !has_value((Node *)a)) {
            mine = ((Node *)a)->holders > 1 ? NULL : (PyObject *)local_node(l, (Node *)a);
            size += mine == NULL ? 0 : ((Node *)mine)->size;
        }
        else if (IS_NODE(a) || IS_LEAF(a))
            mine = local_leaf(l, IS_LEAF(a) ? a : ((Node *)a)->value);
        else if (IS_REDUCED(a))
            mine = IS_LEAF(((Reduced *)a)->value) ? local_leaf(l, ((Reduced *)a)->value) : NULL;
        else
            mine = Py_NewRef(a);
        if (mine == NULL)
            Py_CLEAR(args);
        else
            PyTuple_SET_ITEM(args, i, mine);
    }
    l->depth--;
    Node *made = args == NULL ? NULL : (Node *)state.node->tp_new(state.node, NULL, NULL);
    if (made == NULL) {
        Py_XDECREF(args);
        return NULL;
    }
    made->sig = Py_NewRef(node->sig);
    made->shape = whole ? NULL : Py_NewRef(node->shape);
    made->size = size;
    set_held(&made->args, args);
    return made;
}

static void
say_shape(Node *made, PyObject *shape)
{
    if (made->shape == NULL)
        made->shape = Py_NewRef(shape);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(made->args); i++)
        if (IS_NODE(PyTuple_GET_ITEM(made->args, i)))
            say_shape((Node *)PyTuple_GET_ITEM(made->args, i), shape);
}

/* local_tree(tree, buffer or None): what a process has to compute of a tree (into a buffer), and a buffer that is divided as
   the result is; None where that is not as simple. */
PyObject *
local_tree(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 2) {
        PyErr_SetString(PyExc_TypeError, "local_tree(tree, buffer)");
        return NULL;
    }
    if (!IS_NODE(args[0]) || state.divided == NULL)
        Py_RETURN_NONE;
    Local l = {((Node *)args[0])->shape, args[1] == Py_None ? NULL : args[1], 0};
    int waits = l.buffer == NULL ? 0 : is_true(SLOT(l.buffer, state.buffer_partition), "partial");
    Node *made = waits ? NULL : local_node(&l, (Node *)args[0]);
    PyObject *found = NULL;
    if (made != NULL && l.buffer != NULL) {
        PyObject *shape = PyObject_GetAttrString(SLOT(l.buffer, state.buffer_local), "shape");
        if (shape != NULL) {
            say_shape(made, shape);
            found = PyTuple_Pack(2, made, l.buffer);
            Py_DECREF(shape);
        }
    }
    Py_XDECREF(made);
    if (found == NULL && !PyErr_Occurred())
        Py_RETURN_NONE;
    return found;
}
