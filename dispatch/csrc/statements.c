/* Statements that come back (backends/host/shortcuts.py): what knows one again, and runs its kernel. */

#include "native.h"

#define ITEMS 64
#define WORDS 400

/* What stands in a tree, in the order in which it is met, each node before its operands. */
enum { NODE, REPEATED, LEAF, OWN, SCALAR };

typedef struct {
    int kind;
    /* The sig of a node, the dtype of a leaf, the type of a number. */
    PyObject *what;
    /* Of a node: how many operands of this tree it is; is it held by others, was it evaluated before, and
       then: is it one of the results (-1: it is not)? */
    int uses, held, evaluated, stored;
    /* Of a leaf: its layout; and how far from where the statement writes, if it is of that memory. */
    int nd;
    Py_ssize_t dims[DIMENSIONS / 4], strides[DIMENSIONS / 4];
    Py_ssize_t offset;
    /* The word of the argument block that it becomes (-1: none); the earlier item that it must equal (-1: none). */
    int word, same;
    /* How a number becomes a word: d, f, or ? for Python; and the dtype it is of. */
    char how;
    PyObject *dtype;
} Item;

typedef int (*Kernel)(void *, void *, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);

typedef struct {
    PyObject_HEAD
    uint64_t generation;
    /* The layout of what is written. */
    int nd;
    Py_ssize_t dims[DIMENSIONS / 4], strides[DIMENSIONS / 4];
    PyObject *dtype, *order;
    /* How many items are parts of the destination's memory, and of what is written; how many are stored. */
    int n, own, rewritten, results;
    Item *items;
    int words, target;
    int64_t *block;
    Kernel kernel;
    int64_t rows, inner, most;
    /* Launches it over threads; what lives as long as this. */
    PyObject *launch, *keep;
} Statement;

/* What was found of a tree while it is compared. */
typedef struct {
    Statement *statement;
    /* Whose memory is written, and where; NULL for a value of its own. */
    Leaf *leaf;
    char *target;
    PyObject *shape;
    int at, own;
    PyObject *met[ITEMS];
    char *addresses[ITEMS];
} Match;

static int
same_numbers(int n, const Py_ssize_t *a, const Py_ssize_t *b)
{
    for (int i = 0; i < n; i++)
        if (a[i] != b[i])
            return 0;
    return 1;
}

static int
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

static int
has_value(Node *node)
{
    return node->value != NULL && IS_LEAF(node->value);
}

static int match_node(Match *m, Node *node);

static int
match_leaf(Match *m, const Item *item, int at, PyObject *x)
{
    int alone = Py_REFCNT(x) == 1;
    if (IS_NODE(x) && has_value((Node *)x) && item->kind == LEAF)
        x = ((Node *)x)->value;
    Leaf *leaf = (Leaf *)x;
    if (!IS_LEAF(x) || leaf->foreign != Py_False || leaf == m->leaf || !IS_ARRAY(leaf->view))
        return 0;
    Array *view = (Array *)leaf->view;
    if (view->descr != item->what || view->nd != item->nd || !same_numbers(item->nd, view->dims, item->dims) ||
        !same_numbers(item->nd, view->strides, item->strides))
        return 0;
    if (item->kind == OWN) {
        if (leaf->root != (PyObject *)m->leaf || view->data - m->target != item->offset || !alone)
            return 0;
        m->own++;
    }
    else if (m->leaf != NULL && leaf->root == (PyObject *)m->leaf)
        return 0;
    /* What were the same elements must be so again. */
    if (item->same >= 0 && m->addresses[item->same] != view->data)
        return 0;
    m->addresses[at] = view->data;
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
    case REPEATED:
        return x == m->met[item->same];
    }
    /* What is stored beside the result follows from who is held by others, and what was evaluated before. */
    Node *node = (Node *)x;
    return IS_NODE(x) && node->sig == item->what && same_shape(node->shape, m->shape) &&
           (Py_REFCNT(node) > item->uses) == item->held && (node->evaluations > 0) == item->evaluated &&
           match_node(m, node);
}

static int
match_node(Match *m, Node *node)
{
    PyObject *args = node->args;
    if (args == NULL || !PyTuple_CheckExact(args))
        return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++)
        if (!match_operand(m, PyTuple_GET_ITEM(args, i)))
            return 0;
    return 1;
}

/* A number as two words of an argument block: 0, or -1. */
static int
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

static int
launch(Statement *s, int64_t *block)
{
    if (s->rows * s->inner < s->most) {
        s->kernel(state.nowhere, state.nowhere, (int64_t)(intptr_t)block, 0, s->rows, 0, s->inner, 0, 1, 0);
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
    PyObject *done = PyObject_CallOneArg(s->launch, words);
    Py_DECREF(words);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* New memory for a result, as an array of NumPy. */
static PyObject *
allocated(PyObject *shape, PyObject *dtype, PyObject *order)
{
    PyObject *array = PyObject_CallFunctionObjArgs(state.empty, shape, dtype, order, NULL);
    if (array != NULL && !IS_ARRAY(array)) {
        Py_CLEAR(array);
        PyErr_SetString(PyExc_TypeError, "An array of NumPy is expected.");
    }
    return array;
}

/* Give a node its value (a reference to it), and let go of what it was computed from. */
static void
settle(Node *node, Leaf *value)
{
    Py_XSETREF(node->value, (PyObject *)value);
    node->size = 0;
    Py_XSETREF(node->args, Py_NewRef(Py_None));
}

/* Hold what was compared, while others may run who evaluate the tree, and with it let go of what it reads. */
static void
hold(Match *m)
{
    for (int i = 0; i < m->at; i++) {
        PyObject *x = m->met[i];
        if (IS_NODE(x) && m->statement->items[i].kind == LEAF)
            x = ((Node *)x)->value;
        m->met[i] = Py_NewRef(IS_LEAF(x) ? ((Leaf *)x)->view : x);
    }
    Py_INCREF(m->statement);
}

static void
let_go(Match *m)
{
    for (int i = 0; i < m->at; i++)
        Py_DECREF(m->met[i]);
    Py_DECREF(m->statement);
}

/* Is this the tree of a statement? */
static int
matches(Match *m, Statement *s, Leaf *leaf, char *target, Node *node)
{
    m->statement = s;
    m->leaf = leaf;
    m->target = target;
    m->shape = node->shape;
    m->at = m->own = 0;
    if (s->generation == state.generation && match_node(m, node) && m->at == s->n && m->own == s->own)
        return 1;
    PyErr_Clear();
    return 0;
}

/* Run a statement whose tree was compared and is held, of which nothing has happened yet: 1 done, 0 left, -1 an
   error. */
static int
run(Match *m, char *target)
{
    Statement *s = m->statement;
    int64_t block[WORDS];
    PyObject *made[ITEMS], *order = s->order;
    int results = 0, done = 1;
    memcpy(block, s->block, s->words * sizeof *block);
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
    for (int i = 0; i < s->n && done > 0 && s->results; i++)
        if (s->items[i].kind == NODE && s->items[i].stored >= 0) {
            made[results] = allocated(((Node *)m->met[i])->shape, s->items[i].dtype, order);
            if (made[results] == NULL) {
                done = -1;
                break;
            }
            block[s->items[i].word] = (int64_t)(intptr_t)((Array *)made[results++])->data;
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
        done = launch(s, block) < 0 ? -1 : 1;
        for (int k = 0; k < results; k++) {
            if (done > 0 && stored[k]->args != Py_None) {
                Leaf *value = new_leaf(made[k], stored[k]->shape, ((Array *)made[k])->descr);
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
    return done;
}

/* Is nothing going on that wants to know of statements? */
static int
unobserved(void)
{
    PyObject *counting = PyDict_GetItemWithError(state.counters, state.active);
    return counting != NULL && !PyObject_IsTrue(counting) && !PyList_GET_SIZE(state.recordings) &&
           !PyList_GET_SIZE(state.watchers);
}

/* The statements known by (sig, size, way): borrowed, or NULL (with an error, perhaps). */
static PyObject *
known_by(PyObject *known, Node *node, long way)
{
    PyObject *key = PyTuple_New(3), *size = PyLong_FromSsize_t(node->size), *number = PyLong_FromLong(way);
    if (key == NULL || size == NULL || number == NULL) {
        Py_XDECREF(key);
        Py_XDECREF(size);
        Py_XDECREF(number);
        return NULL;
    }
    PyTuple_SET_ITEM(key, 0, Py_NewRef(node->sig));
    PyTuple_SET_ITEM(key, 1, size);
    PyTuple_SET_ITEM(key, 2, number);
    PyObject *list = PyDict_GetItemWithError(known, key);
    Py_DECREF(key);
    return list != NULL && PyList_CheckExact(list) ? list : NULL;
}

/* Whoever holds the value of a statement would compute it of what was written: it gets what was computed. */
static int
settle_written(Node *node, Leaf *leaf, PyObject *index)
{
    PyObject *how = whole_index(index);
    PyObject *memory = how == NULL ? NULL : PyObject_GetItem(leaf->view, how);
    Leaf *value = memory == NULL ? NULL : new_leaf(memory, node->shape, leaf->dtype);
    Py_XDECREF(how);
    Py_XDECREF(memory);
    if (value == NULL)
        return -1;
    show_part(value, leaf);
    if (node->args == Py_None)
        Py_DECREF(value);
    else
        settle(node, value);
    return 0;
}

int
again(PyObject *known, PyObject *x, PyObject *index, PyObject *value)
{
    PyObject *version = SLOT(x, state.handle_node), *tree = SLOT(value, state.handle_node);
    if (version == NULL || tree == NULL || !IS_LEAF(version) || !IS_NODE(tree))
        return 0;
    Leaf *leaf = (Leaf *)version;
    Node *node = (Node *)tree;
    if (node->args == NULL || node->args == Py_None || leaf->foreign != Py_False || leaf->root != Py_None ||
        !IS_ARRAY(leaf->view) || Py_REFCNT(node) > 1 || !unobserved())
        return 0;
    Array *view = (Array *)leaf->view;
    if (view->base != NULL && PyObject_TypeCheck(view->base, state.array))
        return 0;
    Part target;
    if (!resolve_index(index, view->nd, view->dims, view->strides, view->data, &target) ||
        !is_shape(node->shape, target.nd, target.dims))
        return 0;
    PyObject *list = known_by(known, node, 0);
    if (list == NULL)
        return PyErr_Occurred() ? -1 : 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        Statement *s = (Statement *)PyList_GET_ITEM(list, i);
        Match m;
        if (Py_TYPE(s) != statement_type || s->nd != target.nd || !same_numbers(s->nd, s->strides, target.strides) ||
            !same_numbers(s->nd, s->dims, target.dims) || !matches(&m, s, leaf, target.data, node))
            continue;
        /* Who else reads what is written? (Each part of its memory holds the leaf, and shows its array.) */
        if (count_parts(leaf) != s->own || Py_REFCNT(leaf) > 1 + s->own || Py_REFCNT(view) > 1 + s->own)
            continue;
        hold(&m);
        Py_INCREF(leaf);
        Py_INCREF(view);
        Py_INCREF(node);
        int done = run(&m, target.data);
        if (done > 0) {
            leaf->writes++;
            Py_XSETREF(leaf->reducers, Py_NewRef(Py_None));
            /* A tree that read what was written must not be computed again, whoever holds it (references to an
               argument do not tell: it may be lent); of others, who holds it is spared computing it. */
            if ((s->rewritten || Py_REFCNT(value) > 1) && settle_written(node, leaf, index) < 0)
                done = -1;
        }
        let_go(&m);
        Py_DECREF(node);
        Py_DECREF(view);
        Py_DECREF(leaf);
        return done; /* (the list may have changed) */
    }
    return 0;
}

PyObject *
evaluated_again(PyObject *known, PyObject *tree)
{
    if (!IS_NODE(tree))
        return NULL;
    Node *node = (Node *)tree;
    if (node->args == NULL || node->args == Py_None || !unobserved())
        return NULL;
    PyObject *list = known_by(known, node, 1);
    for (Py_ssize_t i = 0; list != NULL && i < PyList_GET_SIZE(list); i++) {
        Statement *s = (Statement *)PyList_GET_ITEM(list, i);
        Match m;
        if (Py_TYPE(s) != statement_type || !is_shape(node->shape, s->nd, s->dims) ||
            !matches(&m, s, NULL, NULL, node))
            continue;
        hold(&m);
        Py_INCREF(node);
        PyObject *memory = allocated(node->shape, s->dtype, s->order), *value = NULL;
        if (memory != NULL && run(&m, ((Array *)memory)->data) > 0) {
            if (node->args != Py_None) {
                Leaf *found = new_leaf(memory, node->shape, s->dtype);
                if (found != NULL)
                    settle(node, found);
            }
            value = Py_XNewRef(node->value);
        }
        if (PyErr_Occurred())
            Py_CLEAR(value);
        Py_XDECREF(memory);
        let_go(&m);
        Py_DECREF(node);
        return value; /* (the list may have changed) */
    }
    return NULL;
}

/* What stands in a tree: a list of (operand, the references to it, was it met before?) in the order in which they
   are met. */

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
        Py_ssize_t references = Py_REFCNT(x); /* (of one that was met before the list has some) */
        PyObject *entry = Py_BuildValue("(OnO)", x, references, met ? Py_True : Py_False);
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

/* Statement(kernel, rows, inner, most, words, word of the destination, shape, strides, dtype, order, items,
             launch, keep)

   An item is (kind, what, uses, held, evaluated, stored, shape, strides, offset, word, same, how, dtype). */

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
    if (!PyArg_ParseTuple(tuple, "iOippiOOniisO", &item->kind, &what, &item->uses, &item->held, &item->evaluated,
                          &item->stored, &shape, &strides, &item->offset, &item->word, &item->same, &how, &dtype))
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

static PyObject *
statement_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    unsigned long long kernel;
    long long rows, inner, most;
    int target;
    PyObject *words, *shape, *strides, *dtype, *order, *items, *starts, *keep;
    if (!PyArg_ParseTuple(args, "KLLLO!iOOOOO!OO", &kernel, &rows, &inner, &most, &PyList_Type, &words, &target,
                          &shape, &strides, &dtype, &order, &PyList_Type, &items, &starts, &keep))
        return NULL;
    if (PyList_GET_SIZE(words) > WORDS - 2 || PyList_GET_SIZE(items) > ITEMS) {
        PyErr_SetString(PyExc_ValueError, "The statement is too long.");
        return NULL;
    }
    Statement *s = (Statement *)type->tp_alloc(type, 0);
    if (s == NULL)
        return NULL;
    s->generation = state.generation;
    s->kernel = (Kernel)(uintptr_t)kernel;
    s->rows = rows;
    s->inner = inner;
    s->most = most;
    s->target = target;
    s->dtype = Py_NewRef(dtype);
    s->order = Py_NewRef(order);
    s->launch = Py_NewRef(starts);
    s->keep = Py_NewRef(keep);
    s->words = (int)PyList_GET_SIZE(words);
    s->block = PyMem_Calloc(s->words + 1, sizeof *s->block);
    s->items = PyMem_Calloc(PyList_GET_SIZE(items) + 1, sizeof *s->items);
    if (s->block == NULL || s->items == NULL) {
        Py_DECREF(s);
        return PyErr_NoMemory();
    }
    s->nd = numbers_of(shape, s->dims);
    if (s->nd < 0 || numbers_of(strides, s->strides) < 0) {
        Py_DECREF(s);
        return NULL;
    }
    for (int i = 0; i < s->words; i++)
        s->block[i] = PyLong_AsLongLong(PyList_GET_ITEM(words, i));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items); i++) {
        Item *item = &s->items[s->n++];
        if (item_of(item, PyList_GET_ITEM(items, i)) < 0)
            break;
        s->own += item->kind == OWN;
        s->rewritten += item->kind == OWN && item->offset == 0 && item->nd == s->nd &&
                        same_numbers(s->nd, item->dims, s->dims) && same_numbers(s->nd, item->strides, s->strides);
        s->results += item->kind == NODE && item->stored >= 0;
        if (item->word >= s->words || item->same >= i) {
            PyErr_SetString(PyExc_ValueError, "An item of a statement names what is not there.");
            break;
        }
    }
    if (PyErr_Occurred() || target < 0 || target >= s->words) {
        Py_DECREF(s);
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "A statement has a destination.");
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
    Py_CLEAR(s->dtype);
    Py_CLEAR(s->order);
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

/* x[index] = value of host arrays of one type: a tree that was met before, or a small value; all else is Python's. */

enum { TREE, PLAIN_NUMBER, VIEW };

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *known, *python;
    int kind;
} Setter;

/* Is `copyto` what it is by default? */
static int
unchanged(void)
{
    if (state.asked != state.generation) {
        uint64_t generation = state.generation;
        PyObject *said = PyObject_CallNoArgs(state.unchanged);
        int answer = said == NULL ? -1 : PyObject_IsTrue(said);
        Py_XDECREF(said);
        if (answer < 0) {
            PyErr_Clear();
            return 0;
        }
        state.answer = answer;
        state.asked = generation;
    }
    return state.answer;
}

/* The memory of a value that needs no computing, as NumPy takes it: a new reference; NULL if there is none. */
static PyObject *
readable(int kind, PyObject *value)
{
    if (kind == PLAIN_NUMBER)
        return Py_NewRef(value);
    PyObject *node = SLOT(value, kind == VIEW ? state.view_parent : state.handle_node);
    if (kind == VIEW && node != NULL)
        node = SLOT(node, state.handle_node);
    if (node != NULL && IS_NODE(node))
        node = ((Node *)node)->value;
    if (node == NULL || !IS_LEAF(node) || !IS_ARRAY(((Leaf *)node)->view))
        return NULL;
    PyObject *memory = ((Leaf *)node)->view;
    return kind == VIEW ? PyObject_GetItem(memory, SLOT(value, state.view_how)) : Py_NewRef(memory);
}

/* Write a small value into evaluated memory that nobody else reads, as `write_small` of direct.py does: 1 done,
   0 left to Python. */
static int
put(Setter *self, PyObject *x, PyObject *index, PyObject *value)
{
    PyObject *version = SLOT(x, state.handle_node);
    if (version == NULL || !IS_LEAF(version) || !unobserved())
        return 0;
    if (!unchanged() || version != SLOT(x, state.handle_node))
        return 0;
    Leaf *leaf = (Leaf *)version;
    if (leaf->foreign != Py_False || !IS_ARRAY(leaf->view) || Py_REFCNT(leaf) > 1)
        return 0;
    Array *view = (Array *)leaf->view;
    Part target;
    if ((view->base != NULL && PyObject_TypeCheck(view->base, state.array)) ||
        !resolve_index(index, view->nd, view->dims, view->strides, view->data, &target))
        return 0;
    Py_ssize_t size = 1;
    for (int i = 0; i < target.nd; i++)
        size *= target.dims[i];
    if (size > 4 * state.few)
        return 0;
    PyObject *memory = readable(self->kind, value);
    int done = 0;
    if (memory != NULL) {
        int shown = IS_ARRAY(memory) && ((Array *)memory)->base == (PyObject *)view;
        if (Py_REFCNT(view) <= 1 + shown && (PyObject *)view == leaf->view) {
            Py_INCREF(leaf);
            Py_INCREF(view);
            done = PyObject_SetItem((PyObject *)view, index, memory) == 0;
            if (done) {
                leaf->writes++;
                Py_XSETREF(leaf->reducers, Py_NewRef(Py_None));
            }
            Py_DECREF(view);
            Py_DECREF(leaf);
        }
        Py_DECREF(memory);
    }
    PyErr_Clear(); /* (what does not fit: Python says so) */
    return done;
}

/* Is it `x[i] = x[i]`, in which `x[i] += v` ends? */
static int
of_itself(PyObject *x, PyObject *index, PyObject *value)
{
    PyObject *version = SLOT(x, state.handle_node);
    if (SLOT(value, state.view_parent) != x || version == NULL || !IS_LEAF(version) ||
        !IS_ARRAY(((Leaf *)version)->view))
        return 0;
    /* (Entries that are equal need not be alike: True is 1.) */
    Array *view = (Array *)((Leaf *)version)->view;
    Part part;
    if (!resolve_index(index, view->nd, view->dims, view->strides, view->data, &part))
        return 0;
    PyObject *how = whole_index(index);
    int same = how == NULL ? -1 : PyObject_RichCompareBool(how, SLOT(value, state.view_how), Py_EQ);
    Py_XDECREF(how);
    if (same < 0)
        PyErr_Clear();
    return same > 0;
}

static PyObject *
setter_vectorcall(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    Setter *self = (Setter *)callable;
    if (names == NULL && PyVectorcall_NARGS(flags) == 3) {
        int done = 0;
        if (self->kind == TREE)
            done = again(self->known, args[0], args[1], args[2]);
        else if (self->kind == VIEW)
            done = of_itself(args[0], args[1], args[2]);
        if (!done)
            done = put(self, args[0], args[1], args[2]);
        if (done < 0)
            return NULL;
        if (done)
            Py_RETURN_NONE;
    }
    return PyObject_Vectorcall(self->python, args, flags, names);
}

/* Setter(the statements that are known, what does all else, what the value is) */
static PyObject *
setter_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *known, *python;
    int kind;
    if (!PyArg_ParseTuple(args, "O!Oi", &PyDict_Type, &known, &python, &kind))
        return NULL;
    Setter *self = (Setter *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = setter_vectorcall;
    self->known = Py_NewRef(known);
    self->python = Py_NewRef(python);
    self->kind = kind;
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

static PyMemberDef setter_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Setter, vectorcall), READONLY, NULL},
    {NULL},
};

static PyType_Slot setter_slots[] = {
    {Py_tp_new, setter_new},
    {Py_tp_dealloc, setter_dealloc},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, setter_members},
    {0, NULL},
};

PyType_Spec setter_spec = {
    "mirabelle.dispatch._native.Setter", sizeof(Setter), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, setter_slots,
};
