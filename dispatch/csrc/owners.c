/* Who keeps a version, counted by us; and who refers to the memory of one, which only the memory's own object knows.

   A version counts its holders: handles (arrays that a user has), operations and reductions it is an operand of, and
   nodes whose value it is. All that keeps one beyond a call is one of these, or a handle of its own. The fields that
   hold versions change in this file only.

   CPython's counts are read in this file only: by `memory_alone` and `is_unshared`, of NumPy's array (or what stands for
   the memory of a card), since libraries that read it hold that and nothing of ours; by `is_named`, of a user's array,
   which decides what is worth storing and no value; of what a number leaves that goes (elements.c), which is used again if
   nobody at all refers to it; and by the check of all this. Nothing is compared with a number that
   was measured: what refers to it that is ours is counted on the spot. */

#include "native.h"

/* Versions */

static Py_ssize_t *
holders_of(PyObject *x)
{
    return IS_LEAF(x) || IS_NODE(x) || IS_REDUCED(x) ? &((Version *)x)->holders : NULL;
}

/* What an operation reads is a tuple of versions and numbers. */
static void
count(PyObject *x, Py_ssize_t more)
{
    if (x == NULL)
        return;
    Py_ssize_t *holders = holders_of(x);
    if (holders != NULL)
        *holders += more;
    else if (PyTuple_CheckExact(x))
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(x); i++)
            if ((holders = holders_of(PyTuple_GET_ITEM(x, i))) != NULL)
                *holders += more;
}

void
set_held(PyObject **place, PyObject *x)
{
    PyObject *before = *place;
    count(x, 1);
    count(before, -1);
    *place = x;
    Py_XDECREF(before);
}

int
set_counted(PyObject *self, PyObject *name, PyObject *value, const Counted *fields)
{
    for (; fields->name != NULL; fields++)
        if (*fields->name == name || PyUnicode_Compare(*fields->name, name) == 0) {
            set_held(&SLOT(self, fields->offset), Py_XNewRef(value));
            return 0;
        }
    return PyErr_Occurred() ? -1 : PyObject_GenericSetAttr(self, name, value);
}

/* Handles: what holds a version by being an array. (The class of dense arrays is made of it; one by itself keeps a
   version for whoever made it.) */

static int
handle_setattro(PyObject *self, PyObject *name, PyObject *value)
{
    static const Counted fields[] = {{&state.node_name, offsetof(Handle, version)}, {NULL}};
    return set_counted(self, name, value, fields);
}

static int
handle_traverse(Handle *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->version);
    return 0;
}

static int
handle_clear(Handle *self)
{
    set_held(&self->version, NULL);
    return 0;
}

static void
handle_dealloc(Handle *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (keep_element(self))
        return;
    handle_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef handle_members[] = {
    {"_node", T_OBJECT_EX, offsetof(Handle, version), READONLY, "The version (set by assignment, which counts)."},
    {NULL},
};

/* An array's lengths: a new reference to a tuple, or NULL with an error. */
static PyObject *
shape_of(PyObject *self)
{
    PyObject *version = VERSION_OF(self), *shape;
    if (version != NULL && IS_LEAF(version) && ((Leaf *)version)->shape != NULL)
        shape = Py_NewRef(((Leaf *)version)->shape);
    else
        shape = PyObject_GetAttrString(self, "shape");
    if (shape != NULL && !PyTuple_Check(shape)) {
        Py_CLEAR(shape);
        PyErr_SetString(PyExc_TypeError, "shape");
    }
    return shape;
}

static Py_ssize_t
handle_length(PyObject *self)
{
    PyObject *shape = shape_of(self);
    Py_ssize_t n = -1;
    if (shape != NULL && PyTuple_GET_SIZE(shape) == 0)
        Py_XDECREF(PyObject_CallMethod(self, "_refuse_length", NULL));
    else if (shape != NULL)
        n = PyNumber_AsSsize_t(PyTuple_GET_ITEM(shape, 0), PyExc_OverflowError);
    Py_XDECREF(shape);
    return n;
}

static PyObject *
handle_size(PyObject *self, void *unused)
{
    PyObject *shape = shape_of(self), *n = NULL;
    if (shape != NULL)
        n = PyTuple_GET_SIZE(shape) ? Py_NewRef(PyTuple_GET_ITEM(shape, 0)) : PyLong_FromLong(1);
    for (Py_ssize_t d = 1; n != NULL && d < PyTuple_GET_SIZE(shape); d++)
        Py_SETREF(n, PyNumber_Multiply(n, PyTuple_GET_ITEM(shape, d)));
    Py_XDECREF(shape);
    return n;
}

static PyGetSetDef handle_getset[] = {
    {"size", handle_size, NULL, "How many elements there are.", NULL},
    {NULL},
};

static PyType_Slot handle_slots[] = {
    {Py_tp_dealloc, handle_dealloc}, {Py_tp_traverse, handle_traverse}, {Py_tp_clear, handle_clear},
    {Py_tp_members, handle_members}, {Py_tp_setattro, handle_setattro}, {Py_sq_length, handle_length},
    {Py_tp_getset, handle_getset}, {0, NULL},
};

PyType_Spec handle_spec = {
    "mirabelle.dispatch._native.Handle", sizeof(Handle), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, handle_slots,
};

PyObject *
new_handle(PyTypeObject *type, PyObject *version)
{
    Handle *self = (Handle *)type->tp_alloc(type, 0);
    if (self == NULL)
        Py_DECREF(version);
    else
        set_held(&self->version, version);
    return (PyObject *)self;
}

/* Evaluations. One may be about to read what a tree reads that another thread has just evaluated, too, and that has
   let go of it: as long as another thread evaluates something, no memory is written in place. */

static Py_ssize_t evaluations;
static _Thread_local Py_ssize_t own_evaluations;

void
begin_evaluation(void)
{
    evaluations++;
    own_evaluations++;
}

void
end_evaluation(void)
{
    evaluations--;
    own_evaluations--;
}

PyObject *
evaluating(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n < 1) {
        PyErr_SetString(PyExc_TypeError, "evaluating(function, *arguments)");
        return NULL;
    }
    begin_evaluation();
    PyObject *value = PyObject_Vectorcall(args[0], args + 1, n - 1, NULL);
    end_evaluation();
    return value;
}

PyObject *
forget_other_threads(PyObject *module, PyObject *unused)
{
    evaluations = own_evaluations; /* (of a child: other threads stay behind) */
    Py_RETURN_NONE;
}

/* Memory */

/* How often an array keeps another: it is a part of it, or the same. */
static Py_ssize_t
keeps(PyObject *x, PyObject *memory)
{
    return x == memory || (x != NULL && PyArray_Check(x) && PyArray_BASE((PyArrayObject *)x) == memory);
}

/* Do only a leaf, the leaves that show parts of it, and `shown` (parts that the asker made) refer to its memory? The array counts who holds it: NumPy's arrays made from it, buffers, what other libraries keep. Debuggers may only
   add to that. */
static int
memory_alone(Leaf *leaf, PyObject *const *shown, Py_ssize_t n)
{
    PyObject *memory = leaf->view;
    if (memory == NULL || (IS_ARRAY(memory) && PyArray_BASE((PyArrayObject *)memory) != NULL &&
                           PyArray_Check(PyArray_BASE((PyArrayObject *)memory))))
        return 0;
    Py_ssize_t ours = 1;
    for (Py_ssize_t i = 0; i < n; i++)
        ours += keeps(shown[i], memory);
    for (Leaf *part = leaf->parts; part != NULL; part = part->after) {
        if (!keeps(part->view, memory))
            continue;
        if (Py_REFCNT(part->view) > 1) /* (somebody has the part's array, and by it the memory) */
            return 0;
        ours++;
    }
    return Py_REFCNT(memory) <= ours;
}

int
is_alone(PyObject *x)
{
    return Py_REFCNT(x) == 1;
}

int
is_unshared(PyObject *array)
{
    return IS_ARRAY(array) && is_alone(array) && PyArray_BASE((PyArrayObject *)array) == NULL &&
           PyArray_ISWRITEABLE((PyArrayObject *)array);
}

int
adopted(Leaf *leaf)
{
    if (leaf->foreign != Py_True)
        return 1;
    PyArrayObject *view = (PyArrayObject *)leaf->view;
    if (leaf->root != Py_None || view == NULL || !IS_ARRAY(view) || PyArray_BASE(view) != NULL ||
        !PyArray_CHKFLAGS(view, NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEABLE) || !memory_alone(leaf, NULL, 0))
        return 0;
    Py_ssize_t names = Py_TYPE(view)->tp_weaklistoffset;
    if (names <= 0 || SLOT(view, names) != NULL)
        return 0;
    Py_SETREF(leaf->foreign, Py_NewRef(Py_False));
    leaf->size = 0;
    return 1;
}

/* Have Python look for holders that are not counted (dispatch/ownercheck.py), where CPython counts more than we do: 1, or
   -1 with an error. */
static int
owners_checked(Leaf *leaf)
{
    Py_ssize_t known = leaf->holders;
    for (Leaf *part = leaf->parts; part != NULL; part = part->after)
        known++;
    if (Py_REFCNT(leaf) <= known)
        return 1;
    PyObject *said = PyObject_CallOneArg(state.check_owners, (PyObject *)leaf);
    Py_XDECREF(said);
    return said == NULL ? -1 : 1;
}

/* Writes to parts. Threads may write to other parts of one array at a time, and some may have to move it meanwhile:
   each is done alone (write_alone in assign.py). */

int
written_by_others(Leaf *leaf)
{
    return leaf->writer != 0 && leaf->writer != (Py_ssize_t)PyThread_get_thread_ident();
}

/* Say that this thread writes, while others may run: 1, or 0 if it is said already. */
int
begin_writing(Leaf *leaf)
{
    if (leaf->writer != 0)
        return 0;
    leaf->writer = (Py_ssize_t)PyThread_get_thread_ident();
    return 1;
}

void
end_writing(Leaf *leaf, int began)
{
    if (began)
        leaf->writer = 0;
}

int
may_write(Leaf *leaf, Py_ssize_t reads, PyObject *const *shown, Py_ssize_t n)
{
    /* (What a program is captured with no other thread reads, and programs are to be the same whatever those do.) */
    int captured = state.traced != NULL && leaf->view != NULL && PyType_IsSubtype(Py_TYPE(leaf->view), state.traced);
    if (leaf->root != Py_None || leaf->holders > 1 + reads || written_by_others(leaf) ||
        (evaluations != own_evaluations && !captured) || !memory_alone(leaf, shown, n))
        return 0;
    return state.check_owners == NULL || state.check_owners == Py_None ? 1 : owners_checked(leaf);
}

/* `unnamed`: how many references there are to an array that has no name: 1 of an operator's operand, 2 of what a function
   of ours was given and passes on. */
int
is_named(PyObject *array, Py_ssize_t unnamed)
{
#if PY_VERSION_HEX >= 0x030E0000
    /* (Names lend their references here, to operators and to functions. The value of an expression is what the
       interpreter's stack alone holds; of what a function of ours passes on nobody can tell, and a name is guessed.) */
    return !PyUnstable_Object_IsUniqueReferencedTemporary(array);
#else
    return Py_REFCNT(array) > unnamed;
#endif
}

/* may_write(leaf, how often the tree that is written reads it as a whole, arrays that show parts of it and nobody else
   has, ...) */
PyObject *
ask_may_write(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Py_ssize_t reads = n > 1 ? PyLong_AsSsize_t(args[1]) : 0;
    if (PyErr_Occurred())
        return NULL;
    if (n < 1 || !IS_LEAF(args[0])) {
        PyErr_SetString(PyExc_TypeError, "may_write(leaf, reads, *shown)");
        return NULL;
    }
    int may = may_write((Leaf *)args[0], reads, args + 2, n > 2 ? n - 2 : 0);
    return may < 0 ? NULL : PyBool_FromLong(may);
}

/* Does nobody outside have the object that stands for a leaf's memory? */
PyObject *
ask_memory_alone(PyObject *module, PyObject *leaf)
{
    if (!IS_LEAF(leaf))
        return PyErr_Format(PyExc_TypeError, "%s is no leaf.", Py_TYPE(leaf)->tp_name);
    return PyBool_FromLong(memory_alone((Leaf *)leaf, NULL, 0));
}
