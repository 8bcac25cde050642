/* The nodes of trees (dispatch/tree.py): leaves and operations, with their fields where C finds them. */

#include "native.h"

Py_ssize_t foreign_size = (Py_ssize_t)1 << 30;

#define NONE_TO(field) (Py_INCREF(Py_None), (field) = Py_None)
#define FALSE_TO(field) (Py_INCREF(Py_False), (field) = Py_False)

static PyObject *
leaf_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Leaf *self = (Leaf *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    NONE_TO(self->root);
    NONE_TO(self->known);
    NONE_TO(self->reducers);
    FALSE_TO(self->foreign);
    FALSE_TO(self->table);
    FALSE_TO(self->element);
    FALSE_TO(self->checked);
    return (PyObject *)self;
}

Leaf *
new_leaf(PyObject *view, PyObject *shape, PyObject *dtype)
{
    Leaf *self = (Leaf *)leaf_new(state.leaf, NULL, NULL);
    if (self == NULL)
        return NULL;
    self->view = Py_NewRef(view);
    self->shape = Py_NewRef(shape);
    self->dtype = Py_NewRef(dtype);
    return self;
}

/* The type of the host's arrays of a dtype and a number of dimensions: borrowed, or NULL with an error. */
static PyTypeObject *
host_type(PyObject *dtype, int type, int nd)
{
    static PyTypeObject *found[NPY_NTYPES_LEGACY][6];
    int kept = type < NPY_NTYPES_LEGACY && nd < 6;
    if (kept && found[type][nd] != NULL)
        return found[type][nd];
    PyObject *made = PyObject_CallFunction(state.host_type, "Oi", dtype, nd);
    if (made != NULL && !PyType_Check(made)) {
        PyErr_SetString(PyExc_TypeError, "A type of arrays is expected.");
        Py_CLEAR(made);
    }
    if (kept)
        found[type][nd] = (PyTypeObject *)made; /* (types live for ever) */
    else
        Py_XDECREF(made);
    return (PyTypeObject *)made;
}

/* wrapped(array): an array of ours on memory of NumPy's that is new; None where Python is to look at its dtype. */
PyObject *
wrapped(PyObject *module, PyObject *x)
{
    PyArrayObject *a = (PyArrayObject *)x;
    if (!IS_ARRAY(x) || state.host_type == NULL)
        Py_RETURN_NONE;
    int type = PyArray_TYPE(a);
    if (!(PyTypeNum_ISNUMBER(type) || type == NPY_BOOL) || type == NPY_LONGDOUBLE || type == NPY_CLONGDOUBLE ||
        !PyArray_ISNOTSWAPPED(a) || !PyArray_ISALIGNED(a))
        Py_RETURN_NONE;
    PyTypeObject *made = host_type(DTYPE(a), type, PyArray_NDIM(a));
    PyObject *shape = made == NULL ? NULL : PyArray_IntTupleFromIntp(PyArray_NDIM(a), PyArray_DIMS(a));
    Leaf *leaf = shape == NULL ? NULL : new_leaf(x, shape, DTYPE(a));
    Py_XDECREF(shape);
    return leaf == NULL ? NULL : new_handle(made, (PyObject *)leaf);
}

/* Parts know their neighbours, so that one that goes takes itself out of the row. */

void
show_part(Leaf *part, Leaf *root)
{
    if (root->root != Py_None && root->root != NULL)
        root = (Leaf *)root->root;
    Py_XSETREF(part->root, Py_NewRef(root));
    part->before = NULL;
    part->after = root->parts;
    if (root->parts != NULL)
        root->parts->before = part;
    root->parts = part;
}

static void
leave_root(Leaf *part)
{
    if (part->root == NULL || part->root == Py_None)
        return;
    if (part->before != NULL)
        part->before->after = part->after;
    else
        ((Leaf *)part->root)->parts = part->after;
    if (part->after != NULL)
        part->after->before = part->before;
    part->before = part->after = NULL;
}

Py_ssize_t
count_parts(Leaf *root)
{
    Py_ssize_t n = 0;
    for (Leaf *part = root->parts; part != NULL; part = part->after)
        n += part->holders > 0;
    return n;
}

static PyObject *
leaf_held_parts(Leaf *self, PyObject *ignored)
{
    PyObject *found = PyList_New(0);
    if (found == NULL)
        return NULL;
    for (Leaf *part = self->parts; part != NULL; part = part->after)
        if (part->holders > 0 && PyList_Append(found, (PyObject *)part) < 0) {
            Py_DECREF(found);
            return NULL;
        }
    return found;
}

static PyObject *
leaf_shows(Leaf *self, PyObject *root)
{
    if (!PyObject_TypeCheck(root, Py_TYPE(self))) {
        PyErr_SetString(PyExc_TypeError, "A leaf shows a part of a leaf's memory.");
        return NULL;
    }
    Py_INCREF(root); /* (what is left may hold it) */
    leave_root(self);
    show_part(self, (Leaf *)root);
    Py_DECREF(root);
    Py_RETURN_NONE;
}

static int
leaf_init(Leaf *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"view", "foreign", "root", "table", NULL};
    PyObject *view, *foreign = Py_False, *root = Py_None, *table = Py_False;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOO", names, &view, &foreign, &root, &table))
        return -1;
    PyObject *shape = PyObject_GetAttrString(view, "shape");
    if (shape == NULL)
        return -1;
    Py_XSETREF(self->shape, shape);
    PyObject *dtype = PyObject_GetAttrString(view, "dtype");
    if (dtype == NULL)
        return -1;
    Py_XSETREF(self->dtype, dtype);
    Py_XSETREF(self->view, Py_NewRef(view));
    int yes = PyObject_IsTrue(foreign);
    if (yes < 0)
        return -1;
    if (yes) {
        Py_XSETREF(self->foreign, Py_NewRef(Py_True));
        self->size = foreign_size;
    }
    yes = PyObject_IsTrue(table);
    if (yes < 0)
        return -1;
    if (yes)
        Py_XSETREF(self->table, Py_NewRef(Py_True));
    if (root != Py_None) {
        PyObject *shown = leaf_shows(self, root);
        if (shown == NULL)
            return -1;
        Py_DECREF(shown);
    }
    return 0;
}

static int
leaf_traverse(Leaf *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->view);
    Py_VISIT(self->shape);
    Py_VISIT(self->dtype);
    Py_VISIT(self->root);
    Py_VISIT(self->known);
    Py_VISIT(self->reducers);
    return 0;
}

static int
leaf_clear(Leaf *self)
{
    leave_root(self);
    Py_CLEAR(self->view);
    Py_CLEAR(self->shape);
    Py_CLEAR(self->dtype);
    Py_CLEAR(self->root);
    Py_CLEAR(self->known);
    Py_CLEAR(self->reducers);
    Py_CLEAR(self->foreign);
    Py_CLEAR(self->table);
    Py_CLEAR(self->element);
    Py_CLEAR(self->checked);
    Py_CLEAR(self->address);
    return 0;
}

static void
leaf_dealloc(Leaf *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    leaf_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

#define FIELD(type, name) {#name, T_OBJECT_EX, offsetof(type, name), 0, NULL}
#define NUMBER(type, name) {#name, T_PYSSIZET, offsetof(type, name), 0, NULL}
/* What holds versions: set by assignment, which counts (owners.c). */
#define HELD(type, name) {#name, T_OBJECT_EX, offsetof(type, name), READONLY, NULL}
#define HOLDERS(type) {"holders", T_PYSSIZET, offsetof(type, holders), READONLY, "How many keep it."}

/* Does any leaf show a part of this one's memory? */
static PyObject *
leaf_parts(Leaf *self, void *closure)
{
    return PyBool_FromLong(self->parts != NULL);
}

static PyGetSetDef leaf_getset[] = {{"parts", (getter)leaf_parts, NULL, NULL, NULL}, {NULL}};

static PyMemberDef leaf_members[] = {
    FIELD(Leaf, view), FIELD(Leaf, shape), FIELD(Leaf, dtype), FIELD(Leaf, known), FIELD(Leaf, reducers),
    FIELD(Leaf, foreign), FIELD(Leaf, table), FIELD(Leaf, element), FIELD(Leaf, checked),
    FIELD(Leaf, address),
    NUMBER(Leaf, size), NUMBER(Leaf, writes), NUMBER(Leaf, writer), HOLDERS(Leaf),
    {"root", T_OBJECT_EX, offsetof(Leaf, root), READONLY, NULL},
    {NULL},
};

static PyObject *
leaf_keep(Leaf *self, PyObject *ignored)
{
    self->holders++;
    Py_RETURN_NONE;
}

static PyMethodDef leaf_methods[] = {
    {"keep", (PyCFunction)leaf_keep, METH_NOARGS, "Something keeps it that is no array, as long as it lives."},
    {"shows", (PyCFunction)leaf_shows, METH_O, "Note that this leaf shows a part of another's memory."},
    {"held_parts", (PyCFunction)leaf_held_parts, METH_NOARGS,
     "The leaves that show parts of this one's memory, and are held."},
    {NULL},
};

static PyType_Slot leaf_slots[] = {
    {Py_tp_new, leaf_new},           {Py_tp_init, leaf_init},       {Py_tp_dealloc, leaf_dealloc},
    {Py_tp_traverse, leaf_traverse}, {Py_tp_clear, leaf_clear},     {Py_tp_members, leaf_members},
    {Py_tp_methods, leaf_methods},   {Py_tp_getset, leaf_getset},   {0, NULL},
};

PyType_Spec leaf_spec = {
    "mirabelle.dispatch._native.Leaf", sizeof(Leaf), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, leaf_slots,
};

/* Operations */

static PyObject *
node_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Node *self = (Node *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    NONE_TO(self->args);
    NONE_TO(self->value);
    NONE_TO(self->reducers);
    NONE_TO(self->layout);
    return (PyObject *)self;
}

static int
node_init(Node *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"sig", "args", "shape", "size", NULL};
    PyObject *sig, *operands, *shape, *size = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!O|O", names, &sig, &PyTuple_Type, &operands, &shape, &size))
        return -1;
    Py_ssize_t n = 1;
    if (size != Py_None) {
        n = PyLong_AsSsize_t(size);
        if (n == -1 && PyErr_Occurred())
            return -1;
    }
    else
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(operands); i++) {
            PyObject *a = PyTuple_GET_ITEM(operands, i);
            if (PyObject_TypeCheck(a, state.leaf)) {
                adopted((Leaf *)a);
                n += ((Leaf *)a)->size;
            }
            else if (PyObject_TypeCheck(a, state.node))
                n += ((Node *)a)->size;
        }
    self->size = n;
    Py_XSETREF(self->sig, Py_NewRef(sig));
    set_held(&self->args, Py_NewRef(operands));
    Py_XSETREF(self->shape, Py_NewRef(shape));
    return 0;
}

static int
node_traverse(Node *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->sig);
    Py_VISIT(self->args);
    Py_VISIT(self->shape);
    Py_VISIT(self->value);
    Py_VISIT(self->reducers);
    Py_VISIT(self->layout);
    return 0;
}

static int
node_clear(Node *self)
{
    Py_CLEAR(self->sig);
    set_held(&self->args, NULL);
    Py_CLEAR(self->shape);
    set_held(&self->value, NULL);
    Py_CLEAR(self->reducers);
    Py_CLEAR(self->layout);
    return 0;
}

static void
node_dealloc(Node *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    node_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *
node_dtype(Node *self, void *closure)
{
    if (self->sig == NULL) {
        PyErr_SetString(PyExc_AttributeError, "sig");
        return NULL;
    }
    return PyObject_GetAttrString(self->sig, "out");
}

static PyMemberDef node_members[] = {
    FIELD(Node, sig), HELD(Node, args), FIELD(Node, shape), HELD(Node, value), FIELD(Node, reducers),
    FIELD(Node, layout), NUMBER(Node, size), NUMBER(Node, evaluations), NUMBER(Node, names), HOLDERS(Node),
    {NULL},
};

static int
node_setattro(PyObject *self, PyObject *name, PyObject *value)
{
    static const Counted fields[] = {
        {&state.args_name, offsetof(Node, args)}, {&state.value_name, offsetof(Node, value)}, {NULL}};
    return set_counted(self, name, value, fields);
}

static PyGetSetDef node_getset[] = {{"dtype", (getter)node_dtype, NULL, NULL, NULL}, {NULL}};

static PyType_Slot node_slots[] = {
    {Py_tp_new, node_new},           {Py_tp_init, node_init},   {Py_tp_dealloc, node_dealloc},
    {Py_tp_traverse, node_traverse}, {Py_tp_clear, node_clear}, {Py_tp_members, node_members},
    {Py_tp_getset, node_getset},     {Py_tp_setattro, node_setattro}, {0, NULL},
};

PyType_Spec node_spec = {
    "mirabelle.dispatch._native.Node", sizeof(Node), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, node_slots,
};

int
has_value(Node *node)
{
    return node->value != NULL && IS_LEAF(node->value);
}

/* Reductions */

static PyObject *
reduced_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Reduced *self = (Reduced *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    NONE_TO(self->operand);
    NONE_TO(self->value);
    NONE_TO(self->reducers);
    NONE_TO(self->term);
    return (PyObject *)self;
}

PyObject *
named_by(PyObject *reference)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *x = NULL;
    if (PyWeakref_GetRef(reference, &x) > 0)
        Py_DECREF(x); /* (others hold it as long as nothing else runs) */
    return x;
#else
    PyObject *x = PyWeakref_GetObject(reference);
    return x == Py_None ? NULL : x;
#endif
}

PyObject **
waiting_for(PyObject *operand)
{
    if (PyObject_TypeCheck(operand, state.leaf))
        return &((Leaf *)operand)->reducers;
    if (PyObject_TypeCheck(operand, state.node))
        return &((Node *)operand)->reducers;
    return NULL;
}

static int
still_waits(PyObject *reference)
{
    PyObject *x = PyWeakref_CheckRef(reference) ? named_by(reference) : NULL;
    return x != NULL && (!PyObject_TypeCheck(x, state.reduced) || ((Reduced *)x)->value == Py_None);
}

/* Reductions of one operand find each other by it, and are computed in one pass: 0, or -1. */
static int
wait_for(PyObject *self, PyObject *operand)
{
    PyObject **place = waiting_for(operand);
    if (place == NULL) {
        PyErr_SetString(PyExc_TypeError, "A leaf or an operation is reduced.");
        return -1;
    }
    PyObject *found = PyList_New(0), *mine = PyWeakref_NewRef(self, NULL);
    int fine = found != NULL && mine != NULL;
    for (Py_ssize_t i = 0; fine && *place != NULL && PyList_CheckExact(*place) && i < PyList_GET_SIZE(*place); i++)
        if (still_waits(PyList_GET_ITEM(*place, i)))
            fine = PyList_Append(found, PyList_GET_ITEM(*place, i)) == 0;
    fine = fine && PyList_Append(found, mine) == 0;
    Py_XDECREF(mine);
    if (!fine) {
        Py_XDECREF(found);
        return -1;
    }
    Py_XSETREF(*place, found);
    return 0;
}

int
waits_alone(Reduced *reduced)
{
    PyObject **place = waiting_for(reduced->operand);
    if (place == NULL || *place == NULL || !PyList_CheckExact(*place))
        return 0;
    Py_ssize_t n = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(*place); i++)
        n += still_waits(PyList_GET_ITEM(*place, i));
    return n == 1;
}

static int
set_reduced(Reduced *self, PyObject *reduction, PyObject *operand, PyObject *axes, PyObject *keepdims,
            PyObject *shape, PyObject *dtype)
{
    Py_XSETREF(self->reduction, Py_NewRef(reduction));
    set_held(&self->operand, Py_NewRef(operand));
    Py_XSETREF(self->axes, Py_NewRef(axes));
    Py_XSETREF(self->keepdims, Py_NewRef(keepdims));
    Py_XSETREF(self->shape, Py_NewRef(shape));
    Py_XSETREF(self->dtype, Py_NewRef(dtype));
    return wait_for((PyObject *)self, operand);
}

static int
reduced_init(Reduced *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"reduction", "operand", "axes", "keepdims", "shape", "dtype", NULL};
    PyObject *reduction, *operand, *axes, *keepdims, *shape, *dtype;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOO", names, &reduction, &operand, &axes, &keepdims, &shape,
                                     &dtype))
        return -1;
    return set_reduced(self, reduction, operand, axes, keepdims, shape, dtype);
}

PyObject *
new_reduced(PyObject *reduction, PyObject *operand, PyObject *axes, int keepdims, PyObject *shape, PyObject *dtype)
{
    PyObject *self = reduced_new(state.reduced, NULL, NULL);
    if (self != NULL && set_reduced((Reduced *)self, reduction, operand, axes, keepdims ? Py_True : Py_False, shape,
                                    dtype) < 0)
        Py_CLEAR(self);
    return self;
}

static int
reduced_traverse(Reduced *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->reduction);
    Py_VISIT(self->operand);
    Py_VISIT(self->axes);
    Py_VISIT(self->keepdims);
    Py_VISIT(self->shape);
    Py_VISIT(self->dtype);
    Py_VISIT(self->value);
    Py_VISIT(self->reducers);
    Py_VISIT(self->term);
    return 0;
}

static int
reduced_clear(Reduced *self)
{
    Py_CLEAR(self->reduction);
    set_held(&self->operand, NULL);
    Py_CLEAR(self->axes);
    Py_CLEAR(self->keepdims);
    Py_CLEAR(self->shape);
    Py_CLEAR(self->dtype);
    set_held(&self->value, NULL);
    Py_CLEAR(self->reducers);
    Py_CLEAR(self->term);
    return 0;
}

static void
reduced_dealloc(Reduced *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    reduced_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef reduced_members[] = {
    FIELD(Reduced, reduction), HELD(Reduced, operand), FIELD(Reduced, axes), FIELD(Reduced, keepdims),
    FIELD(Reduced, shape), FIELD(Reduced, dtype), HELD(Reduced, value), FIELD(Reduced, reducers),
    FIELD(Reduced, term), NUMBER(Reduced, depth), HOLDERS(Reduced),
    {NULL},
};

static int
reduced_setattro(PyObject *self, PyObject *name, PyObject *value)
{
    static const Counted fields[] = {
        {&state.value_name, offsetof(Reduced, value)}, {&state.operand_name, offsetof(Reduced, operand)}, {NULL}};
    return set_counted(self, name, value, fields);
}

static PyType_Slot reduced_slots[] = {
    {Py_tp_new, reduced_new},           {Py_tp_init, reduced_init},   {Py_tp_dealloc, reduced_dealloc},
    {Py_tp_traverse, reduced_traverse}, {Py_tp_clear, reduced_clear}, {Py_tp_members, reduced_members},
    {Py_tp_setattro, reduced_setattro}, {0, NULL},
};

PyType_Spec reduced_spec = {
    "mirabelle.dispatch._native.Reduced", sizeof(Reduced), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, reduced_slots,
};

/* What a chain of wrappers shows of the memory at its bottom: a new reference. */
PyObject *
memory_through(PyObject *x, PyObject *memory)
{
    if (!PyType_IsSubtype(Py_TYPE(x), state.wrapper))
        return Py_NewRef(memory);
    PyObject *parent = SLOT(x, state.view_parent), *how = SLOT(x, state.view_how);
    PyObject *below = parent == NULL || how == NULL ? NULL : memory_through(parent, memory);
    PyObject *shown = NULL;
    if (below == NULL) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_AttributeError, "_parent");
        return NULL;
    }
    if (PyType_IsSubtype(Py_TYPE(x), state.view))
        shown = PyObject_GetItem(below, how);
    else
        shown = PyObject_CallMethodOneArg(x, state.show, below);
    Py_DECREF(below);
    return shown;
}

/* The leaf of what wrappers show of a dense array (arraytypes/wrappers.shown_part): those of whose rules `_show`
   says all. */
PyObject *
shown_part(PyObject *x)
{
    PyObject *root = x;
    while (root != NULL && PyType_IsSubtype(Py_TYPE(root), state.wrapper))
        root = SLOT(root, state.view_parent);
    PyObject *node = NULL, *shape = SLOT(x, state.view_shape);
    if (root != NULL && PyType_IsSubtype(Py_TYPE(root), state.dense))
        node = VERSION_OF(root);
    if (node == NULL || shape == NULL)
        return PyObject_CallOneArg(state.capture, x);
    PyObject *value = IS_LEAF(node) ? node : IS_NODE(node) ? ((Node *)node)->value : NULL;
    if (value == NULL || !IS_LEAF(value))
        return PyObject_CallOneArg(state.capture, x);
    Leaf *whole = (Leaf *)Py_NewRef(value);
    if (value != node)
        set_held(&VERSION_OF(root), Py_NewRef(value));
    int ours = adopted(whole);
    PyObject *memory = memory_through(x, whole->view);
    Leaf *leaf = memory == NULL ? NULL : new_leaf(memory, shape, whole->dtype);
    Py_XDECREF(memory);
    if (leaf != NULL) {
        show_part(leaf, whole);
        if (!ours) {
            Py_SETREF(leaf->foreign, Py_NewRef(Py_True));
            leaf->size = foreign_size;
        }
    }
    Py_DECREF(whole);
    return (PyObject *)leaf;
}
