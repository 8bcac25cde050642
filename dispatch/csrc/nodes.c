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
        n += Py_REFCNT(part) > 0;
    return n;
}

static PyObject *
leaf_living_parts(Leaf *self, PyObject *ignored)
{
    PyObject *found = PyList_New(0);
    if (found == NULL)
        return NULL;
    for (Leaf *part = self->parts; part != NULL; part = part->after)
        if (Py_REFCNT(part) > 0 && PyList_Append(found, (PyObject *)part) < 0) {
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
    NUMBER(Leaf, size), NUMBER(Leaf, writes),
    {"root", T_OBJECT_EX, offsetof(Leaf, root), READONLY, NULL},
    {NULL},
};

static PyMethodDef leaf_methods[] = {
    {"shows", (PyCFunction)leaf_shows, METH_O, "Note that this leaf shows a part of another's memory."},
    {"living_parts", (PyCFunction)leaf_living_parts, METH_NOARGS,
     "The leaves that show parts of this one's memory."},
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
            if (PyObject_TypeCheck(a, state.leaf))
                n += ((Leaf *)a)->size;
            else if (PyObject_TypeCheck(a, state.node))
                n += ((Node *)a)->size;
        }
    self->size = n;
    Py_XSETREF(self->sig, Py_NewRef(sig));
    Py_XSETREF(self->args, Py_NewRef(operands));
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
    Py_CLEAR(self->args);
    Py_CLEAR(self->shape);
    Py_CLEAR(self->value);
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
    FIELD(Node, sig), FIELD(Node, args), FIELD(Node, shape), FIELD(Node, value), FIELD(Node, reducers),
    FIELD(Node, layout), NUMBER(Node, size), NUMBER(Node, evaluations),
    {NULL},
};

static PyGetSetDef node_getset[] = {{"dtype", (getter)node_dtype, NULL, NULL, NULL}, {NULL}};

static PyType_Slot node_slots[] = {
    {Py_tp_new, node_new},           {Py_tp_init, node_init},   {Py_tp_dealloc, node_dealloc},
    {Py_tp_traverse, node_traverse}, {Py_tp_clear, node_clear}, {Py_tp_members, node_members},
    {Py_tp_getset, node_getset},     {0, NULL},
};

PyType_Spec node_spec = {
    "mirabelle.dispatch._native.Node", sizeof(Node), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, node_slots,
};

/* What a chain of wrappers shows of the memory at its bottom: a new reference. */
static PyObject *
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
        node = SLOT(root, state.handle_node);
    if (node == NULL || shape == NULL)
        return PyObject_CallOneArg(state.capture, x);
    if (!IS_LEAF(node)) {
        PyObject *value = IS_NODE(node) ? ((Node *)node)->value : NULL;
        if (value == NULL || !IS_LEAF(value))
            return PyObject_CallOneArg(state.capture, x);
        SLOT(root, state.handle_node) = Py_NewRef(value);
        Py_DECREF(node);
        node = value;
    }
    Leaf *whole = (Leaf *)Py_NewRef(node);
    PyObject *memory = memory_through(x, whole->view);
    Leaf *leaf = memory == NULL ? NULL : new_leaf(memory, shape, whole->dtype);
    Py_XDECREF(memory);
    if (leaf != NULL) {
        show_part(leaf, whole);
        if (whole->foreign == Py_True) {
            Py_SETREF(leaf->foreign, Py_NewRef(Py_True));
            leaf->size = foreign_size;
        }
    }
    Py_DECREF(whole);
    return (PyObject *)leaf;
}
