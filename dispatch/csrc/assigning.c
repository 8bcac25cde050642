/* x[index] = value of host arrays of one type (backends/host/direct.py): a tree that was met before, or a small
   value; all else is Python's. */

#include "native.h"

enum { TREE, PLAIN_NUMBER, VIEW, NUMPYS };
enum { INDEXED, PART, WHOLE };

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *known, *python;
    int kind;
    /* Is it of what a view shows (PART), or of all of an array (WHOLE): `assign(x, value)`? */
    int part;
    unsigned unknown, idle;
} Setter;

/* After so many unknown statements, one after the other, few are looked at. */
#define IDLE 2048u

int
unchanged(void)
{
    if (state.asked != state.generation) {
        uint64_t generation = state.generation;
        PyObject *said = PyObject_CallNoArgs(state.unchanged);
        int answer = said == NULL ? -1 : PyObject_IsTrue(said);
        Py_XDECREF(said);
        if (answer < 0) {
            left_to_python();
            return 0;
        }
        state.answer = answer;
        state.asked = generation;
    }
    return state.answer;
}

/* Is it a copy that stands for a view, which Python says is not written to? */
static inline int
is_read_only(PyObject *x)
{
    return PyType_IsSubtype(Py_TYPE(x), state.dense) && SLOT(x, state.copy_of) != NULL;
}

/* The memory of an array, or of the one that a view shows a part of: borrowed; NULL if it is not computed. */
static PyObject *
memory_behind(int kind, PyObject *value)
{
    if (kind == NUMPYS)
        return IS_ARRAY(value) ? value : NULL;
    PyObject *whole = kind == VIEW ? SLOT(value, state.view_parent) : value;
    PyObject *node = whole == NULL ? NULL : VERSION_OF(whole);
    if (node != NULL && IS_NODE(node))
        node = ((Node *)node)->value;
    else if (node != NULL && IS_REDUCED(node))
        node = ((Reduced *)node)->value;
    return node == NULL || !IS_LEAF(node) || !IS_ARRAY(((Leaf *)node)->view) ? NULL : ((Leaf *)node)->view;
}

/* What wrappers show (a transpose, another shape), as an array of NumPy over the memory: a new reference, or NULL. */
static PyObject *
shown(PyObject *value)
{
    Part part;
    PyArrayObject *memory = part_of(value, &part);
    if (memory == NULL)
        return NULL;
    PyArray_Descr *descr = (PyArray_Descr *)Py_NewRef(DTYPE(memory));
    PyObject *array =
        PyArray_NewFromDescr(&PyArray_Type, descr, part.nd, part.dims, part.strides, part.data, 0, NULL);
    if (array != NULL && PyArray_SetBaseObject((PyArrayObject *)array, Py_NewRef(memory)) < 0)
        Py_CLEAR(array);
    return array;
}

/* A value that needs no computing, as NumPy takes it: a new reference; NULL if there is none. */
static PyObject *
readable(int kind, PyObject *value)
{
    if (kind == PLAIN_NUMBER)
        return Py_NewRef(value);
    if (kind == VIEW && !PyType_IsSubtype(Py_TYPE(value), state.view))
        return shown(value);
    PyObject *memory = memory_behind(kind, value);
    if (memory == NULL)
        return NULL;
    Py_INCREF(memory);
    PyObject *shown = kind == VIEW ? PyObject_GetItem(memory, SLOT(value, state.view_how)) : Py_NewRef(memory);
    Py_DECREF(memory);
    return shown;
}

/* Write doubles, or a number, to a part without NumPy: 1 done, 0 left. */
static int
put_doubles(int kind, PyObject *value, const Part *target)
{
    if (kind == PLAIN_NUMBER)
        return filled(target, value);
    Part source;
    PyArrayObject *memory = kind == VIEW ? part_of(value, &source) : (PyArrayObject *)memory_behind(kind, value);
    return memory != NULL && DTYPE(memory) == state.float64 &&
           (kind == VIEW || resolve_index(Py_Ellipsis, memory, &source)) && copied(target, &source);
}

/* What is to be written to a part, as a copy where NumPy's own assignment would read what it has written: vectors of
   one memory, one step longer than the other (`x[::2] = x[:5]`, NumPy 2.4). A new reference; the given one is taken. */
static PyObject *
as_it_was(PyObject *memory, const Part *target)
{
    if (!IS_ARRAY(memory) || target->nd != 1 || target->dims[0] < 1 || PyArray_NDIM((PyArrayObject *)memory) < 1)
        return memory;
    PyArrayObject *source = (PyArrayObject *)memory;
    Part from = {.data = PyArray_BYTES(source), .nd = PyArray_NDIM(source)};
    if (from.nd > DIMENSIONS)
        return memory;
    for (int d = 0; d < from.nd; d++) {
        if (!(from.dims[d] = PyArray_DIM(source, d)))
            return memory;
        from.strides[d] = PyArray_STRIDE(source, d);
    }
    if (from.strides[from.nd - 1] == target->strides[0] || !meet(target, &from, PyArray_ITEMSIZE(source)))
        return memory;
    PyObject *copy = PyArray_NewCopy(source, NPY_CORDER);
    Py_DECREF(memory);
    return copy;
}

int
may_put(Leaf *leaf)
{
    int ours = adopted(leaf);
    if (!IS_ARRAY(leaf->view) || (ours ? count_parts(leaf) > 0 : leaf->root != Py_None))
        return 0;
    return ours ? may_write(leaf, 0, NULL, 0) : 1;
}

/* Write a small value into evaluated memory that nobody else reads, or that is shared with others, as `write_small`
   of direct.py does: 1 done, 0 left to Python, -1 somebody interrupts. */
static int
put(Setter *self, PyObject *x, PyObject *index, PyObject *value)
{
    PyObject *version = VERSION_OF(x);
    if (version == NULL || !IS_LEAF(version) || !unobserved())
        return 0;
    if (!unchanged() || version != VERSION_OF(x))
        return PyErr_Occurred() ? -1 : 0;
    Leaf *leaf = (Leaf *)version;
    int done = may_put(leaf);
    if (done < 1)
        return done;
    PyArrayObject *view = (PyArrayObject *)leaf->view;
    Part target;
    done = 0;
    if (!resolve_index(index, view, &target))
        return 0;
    Py_ssize_t size = 1;
    for (int i = 0; i < target.nd; i++)
        size *= target.dims[i];
    if (size > state.moved)
        return 0;
    Py_ssize_t read = self->kind == PLAIN_NUMBER ? 0 : size * PyArray_ITEMSIZE(view);
    if (DTYPE(view) == state.float64 && PyArray_ISWRITEABLE(view))
        done = put_doubles(self->kind, value, &target);
    PyObject *memory = done ? NULL : readable(self->kind, value);
    if (memory != NULL)
        memory = as_it_was(memory, &target);
    /* (Others may have run, and written to another part: then they are asked again.) */
    if (memory != NULL && version == VERSION_OF(x) && (PyObject *)view == leaf->view && !written_by_others(leaf)) {
        Py_INCREF(leaf);
        Py_INCREF(view);
        read = IS_ARRAY(memory) ? PyArray_NBYTES((PyArrayObject *)memory) : 0;
        int began = begin_writing(leaf);
        done = PyObject_SetItem((PyObject *)view, index, memory) == 0;
        end_writing(leaf, began);
        Py_DECREF(view);
        Py_DECREF(leaf);
    }
    Py_XDECREF(memory);
    if (done) {
        leaf->writes++;
        Py_XSETREF(leaf->reducers, Py_NewRef(Py_None));
        count_launch(read, size * PyArray_ITEMSIZE(view));
        if (target.nd == 0)
            count_element();
    }
    return left_to_python() ? done : -1; /* (what does not fit: Python says so) */
}

/* Is it `x[i] = x[i]`, in which `x[i] += v` ends? */
static int
of_itself(PyObject *x, PyObject *index, PyObject *value)
{
    PyObject *version = VERSION_OF(x);
    if (SLOT(value, state.view_parent) != x || version == NULL || !IS_LEAF(version) ||
        !IS_ARRAY(((Leaf *)version)->view))
        return 0;
    /* (Entries that are equal need not be alike: True is 1.) */
    PyArrayObject *view = (PyArrayObject *)((Leaf *)version)->view;
    Part part;
    if (!resolve_index(index, view, &part))
        return 0;
    PyObject *how = whole_index(index);
    int same = how == NULL ? -1 : PyObject_RichCompareBool(how, SLOT(value, state.view_how), Py_EQ);
    Py_XDECREF(how);
    if (same < 0)
        PyErr_Clear();
    return same > 0;
}

/* Does a version wait to be computed? */
static int
waits(PyObject *version)
{
    return IS_NODE(version) ? !has_value((Node *)version)
                            : IS_REDUCED(version) && ((Reduced *)version)->value == Py_None;
}

/* Compute a small tree or reduction that no statement is of, but now and then have Python look at it, and write it down: 1 done,
   0 left, -1 somebody interrupts. */
static int
compute(Setter *self, PyObject *value)
{
    static const unsigned every[] = {7, 8, 9}, seldom[] = {63, 64, 65};
    PyObject *tree = VERSION_OF(value);
    if (tree == NULL || !waits(tree))
        return tree != NULL;
    int held = is_named(value, 1);
    unsigned met = self->unknown++;
    /* (Where none has come back for long, as in loops over parts that shrink, it is in vain.) */
    self->idle += self->idle < IDLE;
    if (met % (self->idle < IDLE ? every[met / 72 % 3] : seldom[met / 576 % 3]) == 0)
        return 0;
    PyObject *leaf = NULL;
    Py_INCREF(tree); /* (others may run, and give the array another) */
    if (held && IS_NODE(tree))
        leaf = evaluated_again(self->known, tree, 0);
    if (leaf == NULL && !PyErr_Occurred())
        leaf = IS_NODE(tree) ? computed(tree) : computed_reduction(self->known, tree);
    int done = !left_to_python() ? -1 : leaf != NULL;
    if (leaf != NULL && VERSION_OF(value) == tree)
        set_held(&VERSION_OF(value), Py_NewRef(leaf));
    Py_XDECREF(leaf);
    Py_DECREF(tree);
    return done;
}

/* The statement: 1 done, 0 left to Python, -1 an error. */
static inline Py_ALWAYS_INLINE int
set(Setter *self, PyObject *x, PyObject *index, PyObject *value)
{
    int done = 0;
    if (is_read_only(x) || VERSION_OF(x) == NULL)
        return 0;
    if (compute_readers(VERSION_OF(x)) < 0)
        return -1;
    if (self->kind == PLAIN_NUMBER || (self->kind == TREE && VERSION_OF(value) != NULL && IS_LEAF(VERSION_OF(value))))
        return put(self, x, index, value);
    if (self->kind == TREE) {
        done = again(self->known, x, index, value);
        if (done > 0)
            self->idle = 0;
    }
    else if (self->kind == VIEW)
        done = PyType_IsSubtype(Py_TYPE(value), state.view) && of_itself(x, index, value);
    else if (!IS_ARRAY(value) || !IS_LEAF(VERSION_OF(x)) ||
             DTYPE((PyArrayObject *)value) != ((Leaf *)VERSION_OF(x))->dtype)
        return 0; /* (what NumPy converts is for Python to look at) */
    int ready = done ? 0 : self->kind != TREE ? 1 : compute(self, value);
    if (ready)
        done = ready < 0 ? -1 : put(self, x, index, value);
    return done;
}

/* Results of so many bytes are better written where they belong than to memory of their own (as direct.py has it), and
   where that cannot be, of so many Python is asked how. */
#define IN_PLACE (1 << 14)
#define LARGE (1 << 16)

/* Have a tree that was met before computed, if it is small: 0, or -1 if somebody interrupts. */
static int
compute_known(Setter *self, PyObject *value)
{
    PyObject *tree = VERSION_OF(value);
    if (tree == NULL || !IS_NODE(tree) || has_value((Node *)tree) || shape_size(((Node *)tree)->shape) * 8 >= LARGE)
        return 0;
    Py_INCREF(tree); /* (others may run, and give the array another) */
    PyObject *leaf = evaluated_again(self->known, tree, 0);
    if (leaf != NULL && VERSION_OF(value) == tree)
        set_held(&VERSION_OF(value), Py_NewRef(leaf));
    Py_XDECREF(leaf);
    Py_DECREF(tree);
    return left_to_python() ? 0 : -1;
}

/* One operation on doubles, where the contents lie that it reads: 1 done, 0 left, perhaps with an error. */
static int
operated_over(Leaf *leaf, Node *node)
{
    PyArrayObject *memory = (PyArrayObject *)leaf->view;
    Py_ssize_t n = PyTuple_GET_SIZE(node->args);
    PyObject *values[2];
    int mine = IN_PLACE_ONLY;
    if (n > 2 || DTYPE(memory) != state.float64 || !PyArray_ISCARRAY(memory) || PyArray_NDIM(memory) == 0 ||
        !has_shape(memory, node->shape))
        return 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *a = PyTuple_GET_ITEM(node->args, i);
        if (!IS_LEAF(a) && !PyFloat_CheckExact(a) && !PyLong_CheckExact(a))
            return 0;
        values[i] = IS_LEAF(a) ? ((Leaf *)a)->view : a;
        if (a == (PyObject *)leaf)
            mine |= 1 << i;
        else if (IS_LEAF(a) && !IS_ARRAY(values[i]))
            return 0;
    }
    PyObject *function = PyObject_GetAttr(node->sig, state.direct);
    PyObject *out = function == NULL ? NULL : operated(function, values, (int)n, node->shape, mine);
    Py_XDECREF(function);
    Py_XDECREF(out);
    if (out == leaf->view)
        count_operation(node->args, leaf);
    return out == leaf->view;
}

/* Compute a tree that was met before where the contents lie that its last operation reads, if nobody else has them:
   1 done, 2 nothing knows the tree, 0 it may not be, -1 somebody interrupts. */
int
written_over(PyObject *known, Leaf *leaf, Node *node)
{
    PyObject *args = node->args;
    if (has_value(node) || args == NULL || !PyTuple_CheckExact(args) || !IS_ARRAY(leaf->view) || leaf->root != Py_None ||
        leaf->parts != NULL || shape_size(node->shape) * 8 < IN_PLACE || !adopted(leaf) || !unobserved() || !unchanged())
        return 0;
    Py_ssize_t uses = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++)
        uses += PyTuple_GET_ITEM(args, i) == (PyObject *)leaf;
    int may = uses == 0 ? 0 : may_write(leaf, uses, NULL, 0);
    if (may <= 0)
        return may;
    PyObject *dtype = PyObject_GetAttrString((PyObject *)node, "dtype");
    may = dtype != NULL && dtype == leaf->dtype;
    Py_XDECREF(dtype);
    if (!may)
        return left_to_python() ? 0 : -1;
    Py_INCREF(leaf); /* (others may run) */
    Py_INCREF(node);
    int done = operated_over(leaf, node);
    if (!done && !PyErr_Occurred())
        done = stored_again(known, (PyObject *)node, leaf->view) > 0;
    if (done) {
        leaf->writes++;
        Py_XSETREF(leaf->reducers, Py_NewRef(Py_None));
        settle(node, (Leaf *)Py_NewRef(leaf));
    }
    Py_DECREF(node);
    Py_DECREF(leaf);
    return !left_to_python() ? -1 : done ? 1 : 2;
}

/* Give an array the version that was just computed for it: the next write parts them, and who reads the old one keeps
   it. 1 done, 0 left, -1 somebody interrupts. */
static int
share_version(Setter *self, PyObject *x, PyObject *value)
{
    if (is_read_only(x) || VERSION_OF(x) == NULL)
        return 0;
    if (compute_readers(VERSION_OF(x)) < 0)
        return -1;
    if (VERSION_OF(value) != NULL && IS_NODE(VERSION_OF(value)) && IS_LEAF(VERSION_OF(x))) {
        int done = written_over(self->known, (Leaf *)VERSION_OF(x), (Node *)VERSION_OF(value));
        if (done < 0 || done == 1)
            return done;
    }
    if (compute_known(self, value) < 0)
        return -1;
    PyObject *before = VERSION_OF(x), *after = VERSION_OF(value);
    if (before == NULL || after == NULL || !IS_LEAF(before) || !IS_LEAF(after) || !unobserved() || !unchanged() ||
        before != VERSION_OF(x) || after != VERSION_OF(value))
        return 0;
    Leaf *old = (Leaf *)before, *new = (Leaf *)after;
    if (!IS_ARRAY(old->view) || !IS_ARRAY(new->view) || !adopted(old) || new->root != Py_None ||
        new->foreign != Py_False)
        return 0;
    PyArrayObject *a = (PyArrayObject *)old->view, *b = (PyArrayObject *)new->view;
    int nd = PyArray_NDIM(a);
    if (DTYPE(a) != DTYPE(b) || nd != PyArray_NDIM(b) || !same_lengths(PyArray_DIMS(a), PyArray_DIMS(b), nd) ||
        !same_lengths(PyArray_STRIDES(a), PyArray_STRIDES(b), nd))
        return 0;
    set_held(&VERSION_OF(x), Py_NewRef(after));
    return 1;
}

int
put_in_part(PyObject *setter, PyObject *view, PyObject *value)
{
    Setter *self = (Setter *)setter;
    if (Py_TYPE(setter) != setter_type || self->part == INDEXED)
        return 0;
    if (self->part == WHOLE)
        return share_version(self, view, value);
    PyObject *x = Py_XNewRef(SLOT(view, state.view_parent)), *index = Py_XNewRef(SLOT(view, state.view_how));
    int done = x == NULL || index == NULL ? 0 : set(self, x, index, value);
    Py_XDECREF(x);
    Py_XDECREF(index);
    return done;
}

static PyObject *
setter_vectorcall(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    Setter *self = (Setter *)callable;
    /* (What Python assigns to a view has names on the way there.) */
    if (names == NULL && PyVectorcall_NARGS(flags) == 3 && !self->part) {
        int done = set(self, args[0], args[1], args[2]);
        if (done < 0)
            return NULL;
        if (done)
            Py_RETURN_NONE;
    }
    return PyObject_Vectorcall(self->python, args, flags, names);
}

/* Setter(the statements that are known, what does all else, what the value is, where it goes) */
static PyObject *
setter_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *known, *python;
    int kind, part = 0;
    if (!PyArg_ParseTuple(args, "O!Oi|i", &PyDict_Type, &known, &python, &kind, &part))
        return NULL;
    Setter *self = (Setter *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = setter_vectorcall;
    self->known = Py_NewRef(known);
    self->python = Py_NewRef(python);
    self->kind = kind;
    self->part = part;
    return (PyObject *)self;
}

static void
setter_dealloc(Setter *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_CLEAR(self->known);
    Py_CLEAR(self->python);
    type->tp_free(self);
    Py_DECREF(type);
}

CALLABLE_TYPE(Setter, setter)
