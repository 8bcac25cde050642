/* Statements of distributed arrays that come back (backends/host/halos.py): what others need of this process's part
   is put together and sent, the inner part of the result is computed meanwhile, and then its edges, from what came.

   The messages are those that Python sends, in their order: whether another process knows its statement again makes
   no difference to it. */

#include "statements.h"

/* A box of the result: its kernel, where it lies in what is written, and where words of the argument block come
   from: how far from where an operand begins, or which number. */
typedef struct {
    Statement *statement;
    Py_ssize_t target;
    int sources, numbers;
    struct {
        int word, item;
        Py_ssize_t offset;
    } source[ITEMS], number[ITEMS];
} Box;

/* What is sent of an operand: where it lies, and where it is put together. */
typedef struct {
    int item, nd;
    Py_ssize_t offset, size, dims[DIMENSIONS / 4], strides[DIMENSIONS / 4];
    char *to;
} Sent;

typedef struct {
    PyObject_HEAD
    /* What stands in the tree, and how what is written lies. */
    Statement *pattern;
    PyObject *comm, *partition;
    /* The boxes that are computed while messages are on their way, the others, and what is sent. */
    int inner, boxes, sends, busy;
    /* How many messages, of how many bytes together. */
    Py_ssize_t messages, bytes;
    Box *box;
    Sent *sent;
    /* Start the messages; give them a chance to move on (None: they need none); wait for them. */
    PyObject *start, *hurry, *wait, *keep;
} Halo;

static char *
gather(char *to, const char *from, int nd, const Py_ssize_t *dims, const Py_ssize_t *strides, Py_ssize_t size)
{
    if (nd == 0) {
        memcpy(to, from, size);
        return to + size;
    }
    if (nd == 1 && strides[0] == size) {
        memcpy(to, from, dims[0] * size);
        return to + dims[0] * size;
    }
    if (nd == 1 && size == 8) {
        for (Py_ssize_t i = 0; i < dims[0]; i++)
            memcpy(to + 8 * i, from + i * strides[0], 8);
        return to + dims[0] * 8;
    }
    for (Py_ssize_t i = 0; i < dims[0]; i++)
        to = gather(to, from + i * strides[0], nd - 1, dims + 1, strides + 1, size);
    return to;
}

static int
call(PyObject *function)
{
    PyObject *done = PyObject_CallNoArgs(function);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static int
compute_box(Match *m, const Box *box, char *target)
{
    Statement *s = box->statement;
    int64_t block[WORDS];
    memcpy(block, s->block, s->words * sizeof *block);
    block[s->target] = (int64_t)(intptr_t)(target + box->target);
    for (int i = 0; i < box->sources; i++)
        block[box->source[i].word] = (int64_t)(intptr_t)(m->addresses[box->source[i].item] + box->source[i].offset);
    for (int i = 0; i < box->numbers; i++) {
        int item = box->number[i].item;
        if (write_number(block + box->number[i].word, &m->statement->items[item], m->met[item]) < 0)
            return -1;
    }
    if (launch(s, block, s->rows, s->inner) < 0)
        return -1;
    count_launch(s->read, s->written);
    return 0;
}

/* Do all of it: 0, or -1. */
static int
run(Halo *h, Match *m, char *target)
{
    for (int i = 0; i < h->sends; i++) {
        const Sent *sent = &h->sent[i];
        gather(sent->to, m->addresses[sent->item] + sent->offset, sent->nd, sent->dims, sent->strides, sent->size);
    }
    if (call(h->start) < 0)
        return -1;
    count_messages(h->messages, h->bytes);
    for (int i = 0; i < h->inner; i++)
        if (compute_box(m, &h->box[i], target) < 0 || (h->hurry != Py_None && call(h->hurry) < 0))
            return -1;
    if (call(h->wait) < 0)
        return -1;
    for (int i = h->inner; i < h->boxes; i++)
        if (compute_box(m, &h->box[i], target) < 0)
            return -1;
    return 0;
}

int
halo_again(PyObject *known, PyObject *tree, PyObject *comm, PyObject *partition, PyObject *array)
{
    if (!IS_NODE(tree) || !IS_ARRAY(array) || !unobserved() || !unchanged())
        return PyErr_Occurred() ? -1 : 0;
    Node *node = (Node *)tree;
    const PyArrayObject *target = (PyArrayObject *)array;
    if (node->args == NULL || node->args == Py_None)
        return 0;
    Part part;
    if (!resolve_index(Py_Ellipsis, (PyArrayObject *)array, &part))
        return 0;
    PyObject *list = known_by(known, tree, 5);
    int done = list == NULL && PyErr_Occurred() ? -1 : 0;
    for (Py_ssize_t i = 0; list != NULL && i < PyList_GET_SIZE(list); i++) {
        Halo *h = (Halo *)PyList_GET_ITEM(list, i);
        Match m;
        if (Py_TYPE(h) != halo_type || h->busy || h->comm != comm || h->partition != partition)
            continue;
        if (h->pattern->dtype != DTYPE(target) || !matches(&m, h->pattern, NULL, &part, tree))
            continue;
        hold(&m);
        Py_INCREF(h);
        Py_INCREF(tree);
        Py_INCREF(array);
        /* (What went wrong on the way may have left messages behind: then it is used no more.) */
        h->busy = 1;
        done = run(h, &m, PyArray_BYTES(target)) < 0 ? -1 : 1;
        h->busy = done < 0;
        let_go(&m);
        Py_DECREF(array);
        Py_DECREF(tree);
        Py_DECREF(h);
        break;
    }
    Py_XDECREF(list);
    return done;
}

/* Halo(pattern, communicator, partition, boxes, how many are inner, what is sent, start, hurry, wait, keep,
         messages, bytes of them)

   A box is (statement, offset in what is written, [(word, item, offset)], [(word, item)]); what is sent (item, offset,
   shape, strides, size of an element, address to). */

static int
box_of(Halo *h, Box *box, PyObject *tuple)
{
    PyObject *statement, *sources, *numbers;
    if (!PyArg_ParseTuple(tuple, "O!nO!O!", statement_type, &statement, &box->target, &PyList_Type, &sources,
                          &PyList_Type, &numbers))
        return -1;
    box->statement = (Statement *)Py_NewRef(statement);
    if (PyList_GET_SIZE(sources) > ITEMS || PyList_GET_SIZE(numbers) > ITEMS) {
        PyErr_SetString(PyExc_ValueError, "The statement is too long.");
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(sources); i++, box->sources++)
        if (!PyArg_ParseTuple(PyList_GET_ITEM(sources, i), "iin", &box->source[i].word, &box->source[i].item,
                              &box->source[i].offset))
            return -1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(numbers); i++, box->numbers++)
        if (!PyArg_ParseTuple(PyList_GET_ITEM(numbers, i), "ii", &box->number[i].word, &box->number[i].item))
            return -1;
    int fine = 1;
    for (int i = 0; i < box->sources; i++) {
        int item = box->source[i].item, word = box->source[i].word;
        fine = fine && item >= 0 && item < h->pattern->n && h->pattern->items[item].kind == DIVIDED && word >= 0 &&
               word < box->statement->words;
    }
    for (int i = 0; i < box->numbers; i++) {
        int item = box->number[i].item, word = box->number[i].word;
        fine = fine && item >= 0 && item < h->pattern->n && h->pattern->items[item].kind == SCALAR && word >= 0 &&
               word + 1 < box->statement->words;
    }
    if (!fine)
        PyErr_SetString(PyExc_ValueError, "A box names what is not there.");
    return fine ? 0 : -1;
}

static int
sent_of(Halo *h, Sent *sent, PyObject *tuple)
{
    PyObject *shape, *strides;
    unsigned long long to;
    if (!PyArg_ParseTuple(tuple, "inO!O!nK", &sent->item, &sent->offset, &PyTuple_Type, &shape, &PyTuple_Type, &strides,
                          &sent->size, &to))
        return -1;
    sent->to = (char *)(uintptr_t)to;
    sent->nd = (int)PyTuple_GET_SIZE(shape);
    if (sent->item < 0 || sent->item >= h->pattern->n || h->pattern->items[sent->item].kind != DIVIDED ||
        sent->nd > DIMENSIONS / 4 || PyTuple_GET_SIZE(strides) != sent->nd) {
        PyErr_SetString(PyExc_ValueError, "What is sent is not there.");
        return -1;
    }
    for (int d = 0; d < sent->nd; d++) {
        sent->dims[d] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, d));
        sent->strides[d] = PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, d));
    }
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *
halo_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *pattern, *comm, *partition, *boxes, *sends, *start, *hurry, *wait, *keep;
    int inner;
    Py_ssize_t messages, bytes;
    if (!PyArg_ParseTuple(args, "O!OOO!iO!OOOOnn", statement_type, &pattern, &comm, &partition, &PyList_Type, &boxes, &inner,
                          &PyList_Type, &sends, &start, &hurry, &wait, &keep, &messages, &bytes))
        return NULL;
    Halo *h = (Halo *)type->tp_alloc(type, 0);
    if (h == NULL)
        return NULL;
    h->pattern = (Statement *)Py_NewRef(pattern);
    h->comm = Py_NewRef(comm);
    h->partition = Py_NewRef(partition);
    h->start = Py_NewRef(start);
    h->hurry = Py_NewRef(hurry);
    h->wait = Py_NewRef(wait);
    h->keep = Py_NewRef(keep);
    h->inner = inner;
    h->messages = messages;
    h->bytes = bytes;
    h->box = PyMem_Calloc(PyList_GET_SIZE(boxes) + 1, sizeof *h->box);
    h->sent = PyMem_Calloc(PyList_GET_SIZE(sends) + 1, sizeof *h->sent);
    if (h->box == NULL || h->sent == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; !PyErr_Occurred() && i < PyList_GET_SIZE(boxes); i++)
        box_of(h, &h->box[h->boxes++], PyList_GET_ITEM(boxes, i));
    for (Py_ssize_t i = 0; !PyErr_Occurred() && i < PyList_GET_SIZE(sends); i++)
        sent_of(h, &h->sent[h->sends++], PyList_GET_ITEM(sends, i));
    if (!PyErr_Occurred() && (inner < 0 || inner > h->boxes))
        PyErr_SetString(PyExc_ValueError, "So many boxes there are not.");
    if (PyErr_Occurred()) {
        Py_DECREF(h);
        return NULL;
    }
    return (PyObject *)h;
}

static void
halo_dealloc(Halo *h)
{
    PyTypeObject *type = Py_TYPE(h);
    for (int i = 0; h->box != NULL && i < h->boxes; i++)
        Py_CLEAR(h->box[i].statement);
    PyMem_Free(h->box);
    PyMem_Free(h->sent);
    Py_CLEAR(h->pattern);
    Py_CLEAR(h->comm);
    Py_CLEAR(h->partition);
    Py_CLEAR(h->start);
    Py_CLEAR(h->hurry);
    Py_CLEAR(h->wait);
    Py_CLEAR(h->keep);
    type->tp_free(h);
    Py_DECREF(type);
}

static PyType_Slot halo_slots[] = {
    {Py_tp_new, halo_new},
    {Py_tp_dealloc, halo_dealloc},
    {0, NULL},
};

PyType_Spec halo_spec = {
    "mirabelle.dispatch._native.Halo", sizeof(Halo), 0, Py_TPFLAGS_DEFAULT, halo_slots,
};
