/* The pending operations of a tree, each once: what is asked of a tree as a whole is asked here. */

#include "native.h"

/* What was found, in the order in which it was: borrowed. Few are looked through, of many there is a table. */
#define FEW_NODES 48
typedef struct {
    PyObject **nodes, **stack, **table;
    Py_ssize_t n, height, room, places;
    PyObject *here[2 * FEW_NODES];
} Walk;

static void
end_walk(Walk *w)
{
    if (w->nodes != w->here) {
        PyMem_Free(w->nodes);
        PyMem_Free(w->table);
    }
}

static Py_ssize_t
place_of(const Walk *w, PyObject *x)
{
    Py_ssize_t at = (Py_ssize_t)((uintptr_t)x >> 4) * 31 & (w->places - 1);
    while (w->table[at] != NULL && w->table[at] != x)
        at = (at + 1) & (w->places - 1);
    return at;
}

/* Room for twice as many nodes. */
static int
grow(Walk *w)
{
    Py_ssize_t room = 2 * w->room, places = 8 * w->room;
    PyObject **nodes = PyMem_Malloc(2 * room * sizeof(PyObject *)), **table = PyMem_Calloc(places, sizeof(PyObject *));
    if (nodes == NULL || table == NULL) {
        PyMem_Free(nodes);
        PyMem_Free(table);
        PyErr_NoMemory();
        return -1;
    }
    memcpy(nodes, w->nodes, w->n * sizeof(PyObject *));
    memcpy(nodes + room, w->stack, w->height * sizeof(PyObject *));
    end_walk(w);
    w->nodes = nodes, w->stack = nodes + room, w->table = table, w->room = room, w->places = places;
    for (Py_ssize_t i = 0; i < w->n; i++)
        table[place_of(w, nodes[i])] = nodes[i];
    return 0;
}

static int
is_new(Walk *w, PyObject *x)
{
    if (w->table != NULL) {
        Py_ssize_t at = place_of(w, x);
        int new = w->table[at] == NULL;
        w->table[at] = x;
        return new;
    }
    for (Py_ssize_t i = 0; i < w->n; i++)
        if (w->nodes[i] == x)
            return 0;
    return 1;
}

/* The next operation of a tree: borrowed; NULL at the end, or with an error. */
static Node *
next_operation(Walk *w)
{
    while (w->height) {
        PyObject *x = w->stack[--w->height];
        if (!is_new(w, x))
            continue;
        PyObject *args = ((Node *)x)->args;
        Py_ssize_t n = args != NULL && PyTuple_CheckExact(args) ? PyTuple_GET_SIZE(args) : 0;
        while (w->n + 1 > w->room || w->height + n > w->room)
            if (grow(w) < 0)
                return NULL;
        w->nodes[w->n++] = x;
        if (w->table != NULL)
            w->table[place_of(w, x)] = x;
        for (Py_ssize_t i = 0; i < n; i++) {
            PyObject *a = PyTuple_GET_ITEM(args, i);
            if (IS_NODE(a) && !has_value((Node *)a))
                w->stack[w->height++] = a;
        }
        return (Node *)x;
    }
    return NULL;
}

static int
begin_walk(Walk *w, PyObject *root)
{
    w->nodes = w->here, w->stack = w->here + FEW_NODES, w->table = NULL;
    w->n = 0, w->height = 0, w->room = FEW_NODES, w->places = 0;
    if (!IS_NODE(root)) {
        PyErr_Format(PyExc_TypeError, "%s is no operation.", Py_TYPE(root)->tp_name);
        return -1;
    }
    w->stack[w->height++] = root;
    return 0;
}

/* operations(root): the pending operations of a tree, those that several read once. */
PyObject *
tree_operations(PyObject *module, PyObject *root)
{
    Walk w;
    PyObject *found = begin_walk(&w, root) < 0 ? NULL : PyList_New(0);
    for (Node *node; found != NULL && (node = next_operation(&w)) != NULL;)
        if (PyList_Append(found, (PyObject *)node) < 0)
            Py_CLEAR(found);
    if (PyErr_Occurred())
        Py_CLEAR(found);
    end_walk(&w);
    return found;
}

/* waiting_reductions(root): the pending reductions that a tree reads. */
PyObject *
waiting_reductions(PyObject *module, PyObject *root)
{
    Walk w;
    PyObject *found = begin_walk(&w, root) < 0 ? NULL : PyList_New(0);
    for (Node *node; found != NULL && (node = next_operation(&w)) != NULL;) {
        Py_ssize_t n = node->args != NULL && PyTuple_CheckExact(node->args) ? PyTuple_GET_SIZE(node->args) : 0;
        for (Py_ssize_t i = 0; i < n && found != NULL; i++) {
            PyObject *a = PyTuple_GET_ITEM(node->args, i);
            if (IS_REDUCED(a) && ((Reduced *)a)->value == Py_None && PyList_Append(found, a) < 0)
                Py_CLEAR(found);
        }
    }
    if (PyErr_Occurred())
        Py_CLEAR(found);
    end_walk(&w);
    return found;
}

/* What an operation costs where it is more than memory traffic hides: additions an element; -1 with an error. */
static long
cost_of(Node *node)
{
    static PyObject *name;
    if (name == NULL && (name = PyUnicode_InternFromString("cost")) == NULL)
        return -1;
    PyObject *said = PyObject_GetAttr(node->sig, name);
    long cost = said == NULL ? -1 : PyLong_AsLong(said);
    Py_XDECREF(said);
    return cost < 0 ? -1 : cost > 2 ? cost : 0;
}

/* dag_cost(root): what evaluating a tree again would cost. Additions and the like are nearly free beside memory
   traffic: only what is costlier counts. */
PyObject *
tree_cost(PyObject *module, PyObject *root)
{
    Walk w;
    long total = begin_walk(&w, root);
    for (Node *node; total >= 0 && (node = next_operation(&w)) != NULL;) {
        long cost = cost_of(node);
        total = cost < 0 ? -1 : total + cost;
    }
    end_walk(&w);
    return PyErr_Occurred() ? NULL : PyLong_FromLong(total);
}

/* Is a tree that somebody holds stored when it is evaluated, rather than computed again? It is if it is costly
   (STORE_COST additions an element), or has been evaluated before; or a part of it has that is not `stored` now: then it
   is a step of a recurrence (`y = a - b * y`), which would grow by what all steps before it computed. */
#define STORE_COST 16
int
is_worth_storing(PyObject *root, PyObject *stored)
{
    Walk w;
    int worth = begin_walk(&w, root);
    long total = 0;
    for (Node *node; worth == 0 && (node = next_operation(&w)) != NULL;) {
        if (node->evaluations) {
            worth = 1;
            for (Py_ssize_t i = 0; stored != NULL && worth && i < PyList_GET_SIZE(stored); i++)
                worth = PyList_GET_ITEM(stored, i) != (PyObject *)node;
            if (worth)
                break;
        }
        long cost = cost_of(node);
        worth = cost < 0 ? -1 : 0;
        total += cost;
    }
    end_walk(&w);
    return PyErr_Occurred() ? -1 : worth || total >= STORE_COST;
}

/* worth_storing(root, stored=[]) */
PyObject *
ask_worth_storing(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n < 1 || n > 2 || (n == 2 && !PyList_CheckExact(args[1]))) {
        PyErr_SetString(PyExc_TypeError, "worth_storing(root, stored=[])");
        return NULL;
    }
    int worth = is_worth_storing(args[0], n == 2 ? args[1] : NULL);
    return worth < 0 ? NULL : PyBool_FromLong(worth);
}
