/* What an operator is: the types of its operands are looked up, and what they say is called. Where that is not
   written in C, neither is the call: the function in Python is on the stack then, where warnings look for it. */

#include "native.h"

#define ENTRIES 32
#define MOST 3

typedef struct {
    PyTypeObject *types[MOST];
    /* What is called, if it is written in C; else NULL. */
    PyObject *call;
    uint64_t generation;
} Entry;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    /* The table of a generic function (dispatch/generic.py), and the function written in Python; what is called instead
       where the second operand is a half: x ** 0.5. */
    PyObject *table, *function, *halves;
    /* A swapped one is what the second operand is asked: `__radd__`. */
    int arity, swapped;
    Entry entries[ENTRIES];
} Operator;


/* Fill an entry: 0, or -1. */
static int
look_up(Operator *self, Entry *entry, PyTypeObject *const *types)
{
    uint64_t before = state.generation;
    PyObject *key;
    if (self->arity == 1)
        key = Py_NewRef((PyObject *)types[0]);
    else {
        key = PyTuple_New(self->arity);
        if (key == NULL)
            return -1;
        for (int i = 0; i < self->arity; i++)
            PyTuple_SET_ITEM(key, i, Py_NewRef((PyObject *)types[i]));
    }
    PyObject *call = PyObject_GetItem(self->table, key);
    Py_DECREF(key);
    if (call == NULL)
        return -1;
    int in_c = Py_TYPE(call) == builder_type || Py_TYPE(call) == getter_type || Py_TYPE(call) == setter_type ||
               Py_TYPE(call) == product_type || Py_TYPE(call) == onmemory_type || Py_TYPE(call) == power_type;
    /* (To let go of what was there may let others run, who look at the entry: it is whole by then.) */
    Entry old = *entry;
    for (int i = 0; i < self->arity; i++)
        entry->types[i] = (PyTypeObject *)Py_NewRef((PyObject *)types[i]);
    entry->call = in_c ? Py_NewRef(call) : NULL;
    /* (A method may have appeared on the way: then the answer is not kept.) */
    entry->generation = state.generation == before ? before : 0;
    Py_DECREF(call);
    for (int i = 0; i < self->arity; i++)
        Py_XDECREF(old.types[i]);
    Py_XDECREF(old.call);
    return 0;
}

/* Does an entry hold for operands of these types? */
static int
is_of(Operator *self, const Entry *entry, PyTypeObject *const *types)
{
    int same = entry->generation == state.generation;
    for (int i = 0; same && i < self->arity; i++)
        same = entry->types[i] == types[i];
    return same;
}

/* The entry for operands of some types, if what they call is written in C; NULL, perhaps with an error. */
static inline Entry *
entry_of_types(Operator *self, PyTypeObject *const *types)
{
    size_t place = 0;
    for (int i = 0; i < self->arity; i++)
        place = place * 5 + ((size_t)types[i] >> 6);
    Entry *entry = &self->entries[(place ^ place >> 7) % ENTRIES];
    int same = is_of(self, entry, types);
    if (!same) {
        if (look_up(self, entry, types) < 0)
            return NULL;
        same = is_of(self, entry, types);
    }
    return same && entry->call != NULL ? entry : NULL;
}

static inline Entry *
entry_of(Operator *self, PyObject *const *operands)
{
    PyTypeObject *types[MOST];
    for (int i = 0; i < self->arity; i++)
        types[i] = Py_TYPE(operands[i]);
    return entry_of_types(self, types);
}

PyObject *
method_in_c(PyObject *operator, PyObject *const *operands)
{
    Entry *entry = entry_of((Operator *)operator, operands);
    return entry == NULL ? NULL : Py_NewRef(entry->call);
}

int
sets_in_c(PyObject *operator, PyTypeObject *x, PyTypeObject *value)
{
    PyTypeObject *types[MOST] = {x, value};
    Entry *entry = ((Operator *)operator)->arity == 2 ? entry_of_types((Operator *)operator, types) : NULL;
    return entry != NULL && Py_TYPE(entry->call) == setter_type;
}

/* x ** n of arrays of one type, n of Python's: where it is `**` and n is 2 a square, all else is Python's. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    /* The operator that squares, and what answers all else. */
    PyObject *square, *python;
} Power;

static int
is_two(PyObject *n)
{
    int overflow;
    return PyLong_CheckExact(n) && PyLong_AsLongAndOverflow(n, &overflow) == 2;
}

static PyObject *
operator_vectorcall(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    Operator *self = (Operator *)callable;
    PyObject *const *operands = args;
    PyObject *turned[2];
    if (names != NULL || PyVectorcall_NARGS(flags) != self->arity)
        return PyObject_Vectorcall(self->function, args, flags, names);
    if (self->swapped) {
        turned[0] = args[1];
        turned[1] = args[0];
        operands = turned;
    }
    if (self->halves != NULL && PyFloat_CheckExact(args[1]) && PyFloat_AS_DOUBLE(args[1]) == 0.5)
        return PyObject_Vectorcall(self->halves, args, flags, NULL);
    Entry *entry = entry_of(self, operands);
    if (entry == NULL)
        return PyErr_Occurred() ? NULL : PyObject_Vectorcall(self->function, args, flags, NULL);
    PyObject *call = Py_NewRef(entry->call);
    PyObject *result;
    int known = 1;
    if (Py_TYPE(call) == builder_type)
        result = built(call, operands, self->arity, 1);
    else if (Py_TYPE(call) == product_type || Py_TYPE(call) == onmemory_type) {
        result = Py_TYPE(call) == product_type ? multiplied(call, operands) : on_memory(call, operands, NULL);
        known = result != NULL || PyErr_Occurred();
    }
    else if (Py_TYPE(call) == power_type && self->halves != NULL) {
        known = is_two(operands[1]);
        result = known ? PyObject_Vectorcall(((Power *)call)->square, operands, 1, NULL) : NULL;
    }
    else
        result = PyObject_Vectorcall(call, operands, (size_t)self->arity, NULL);
    Py_DECREF(call);
    return known ? result : PyObject_Vectorcall(self->function, args, flags, NULL);
}

static PyObject *
operator_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *table, *function, *halves = NULL;
    int arity, swapped = 0;
    if (!PyArg_ParseTuple(args, "OOi|pO", &table, &function, &arity, &swapped, &halves))
        return NULL;
    if (arity < 1 || arity > MOST || ((swapped || halves != NULL) && arity != 2)) {
        PyErr_SetString(PyExc_ValueError, "An operator has one to three operands.");
        return NULL;
    }
    Operator *self = (Operator *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = operator_vectorcall;
    self->table = Py_NewRef(table);
    self->function = Py_NewRef(function);
    self->halves = Py_XNewRef(halves);
    self->arity = arity;
    self->swapped = swapped;
    return (PyObject *)self;
}

PyObject *
bound_method(PyObject *self, PyObject *object, PyObject *type)
{
    return object == NULL || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}

static void
operator_dealloc(Operator *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_CLEAR(self->table);
    Py_CLEAR(self->function);
    Py_CLEAR(self->halves);
    for (int e = 0; e < ENTRIES; e++) {
        for (int i = 0; i < MOST; i++)
            Py_CLEAR(self->entries[e].types[i]);
        Py_CLEAR(self->entries[e].call);
    }
    type->tp_free(self);
    Py_DECREF(type);
}

/* Name, signature and the like are those of the function. */
static PyObject *
operator_getattro(PyObject *self, PyObject *name)
{
    return PyObject_GetAttr(((Operator *)self)->function, name);
}

static PyObject *
operator_repr(PyObject *self)
{
    return PyObject_Repr(((Operator *)self)->function);
}

METHOD_TYPE(Operator, operator, {Py_tp_getattro, operator_getattro}, {Py_tp_repr, operator_repr},)

static PyObject *
power_vectorcall(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    return PyObject_Vectorcall(((Power *)callable)->python, args, flags, names);
}

/* Power(operator that squares, what answers all else) */
static PyObject *
power_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *square, *python;
    if (!PyArg_ParseTuple(args, "OO", &square, &python))
        return NULL;
    Power *self = (Power *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = power_vectorcall;
    self->square = Py_NewRef(square);
    self->python = Py_NewRef(python);
    return (PyObject *)self;
}

static void
power_dealloc(Power *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_CLEAR(self->square);
    Py_CLEAR(self->python);
    type->tp_free(self);
    Py_DECREF(type);
}

CALLABLE_TYPE(Power, power)

/* What NumPy asks of an array that a ufunc is called with, x.__array_ufunc__(ufunc, "__call__", *operands), or another
   of its functions: x.__array_function__(function, types, operands, options). */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    /* NumPy's functions and what answers them; functions that are no ufuncs, with the type that is asked, and what is
       called for them (of so many arguments one function, of others and of options another); what answers all else. */
    PyObject *operators, *functions, *python;
} Overrides;

/* Are all of these types arrays of ours, or NumPy's own? */
static int
are_known(PyObject *types)
{
    Py_ssize_t n = PyTuple_CheckExact(types) ? PyTuple_GET_SIZE(types) : -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyTypeObject *type = (PyTypeObject *)PyTuple_GET_ITEM(types, i);
        if (type != &PyArray_Type && !(PyType_Check(type) && (PyType_IsSubtype(type, state.dense) ||
                                                              PyType_IsSubtype(type, state.wrapper))))
            return 0;
    }
    return n > 0;
}

/* A function that is no ufunc. What an operator answers is of arrays of ours, numbers to choose from, and products with
   NumPy's. */
static PyObject *
answered(Overrides *self, PyObject *const *args)
{
    PyObject *operands = args[3], *found = NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(operands);
    if (!are_known(args[2]))
        return PyObject_Vectorcall(self->python, args, 5, NULL);
    if (PyDict_GET_SIZE(args[4]) == 0 && n > 0) {
        found = PyDict_GetItemWithError(self->operators, args[1]);
        if (found == NULL && PyErr_Occurred())
            return NULL;
    }
    int ours = found != NULL && Py_TYPE(found) == operator_type && ((Operator *)found)->arity == n;
    for (Py_ssize_t i = 0; ours && i < n; i++) {
        PyTypeObject *type = Py_TYPE(PyTuple_GET_ITEM(operands, i));
        ours = PyType_IsSubtype(type, state.dense) || PyType_IsSubtype(type, state.wrapper) ||
               (i > 0 && n == 3 && (type == &PyFloat_Type || type == &PyLong_Type)) || (n == 2 && type == &PyArray_Type);
    }
    PyObject *result;
    if (ours) {
        Py_INCREF(found);
        result = operator_vectorcall(found, &PyTuple_GET_ITEM(operands, 0), (size_t)n, NULL);
        Py_DECREF(found);
        return result;
    }
    PyObject *key = PyTuple_Pack(2, args[1], (PyObject *)Py_TYPE(args[0]));
    if (key == NULL)
        return NULL;
    found = Py_XNewRef(PyDict_GetItemWithError(self->functions, key));
    Py_DECREF(key);
    if (found == NULL)
        return PyErr_Occurred() ? NULL : PyObject_Vectorcall(self->python, args, 5, NULL);
    PyObject *call = found;
    if (PyTuple_CheckExact(found) && PyTuple_GET_SIZE(found) == 3)
        call = PyTuple_GET_ITEM(found, PyDict_GET_SIZE(args[4]) == 0 && n <= PyLong_AsLong(PyTuple_GET_ITEM(found, 0)) ? 1 : 2);
    result = PyObject_Call(call, operands, args[4]);
    Py_DECREF(found);
    return result;
}

/* `ufunc(x, y, out=z)` of few elements, where z is NumPy's, as `z += y` asks for it: NULL where Python is to say (with an
   error only if somebody interrupts). */
static PyObject *
written_to_numpys(Overrides *self, PyObject *const *args, PyObject *out)
{
    if (PyTuple_CheckExact(out) && PyTuple_GET_SIZE(out) == 1)
        out = PyTuple_GET_ITEM(out, 0);
    PyObject *found = IS_ARRAY(out) ? PyDict_GetItemWithError(self->operators, args[1]) : NULL, *result = NULL;
    if (found != NULL && Py_TYPE(found) == operator_type && ((Operator *)found)->arity == 2) {
        PyObject *call = method_in_c(found, args + 3);
        if (call != NULL && Py_TYPE(call) == onmemory_type)
            result = on_memory(call, args + 3, out);
        Py_XDECREF(call);
    }
    if (result == NULL)
        left_to_python();
    return result;
}

static PyObject *
overrides_vectorcall(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    Overrides *self = (Overrides *)callable;
    Py_ssize_t n = PyVectorcall_NARGS(flags);
    if (names != NULL && n == 5 && PyTuple_GET_SIZE(names) == 1 && PyUnicode_Check(args[2]) &&
        PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "out") == 0 &&
        PyUnicode_CompareWithASCIIString(args[2], "__call__") == 0) {
        PyObject *result = written_to_numpys(self, args, args[5]);
        if (result != NULL || PyErr_Occurred())
            return result;
    }
    if (names == NULL && n == 5 && PyDict_CheckExact(args[4]) && PyTuple_CheckExact(args[3]))
        return answered(self, args);
    int plain = names == NULL && (n == 4 || n == 5) && PyUnicode_Check(args[2]) &&
                PyUnicode_CompareWithASCIIString(args[2], "__call__") == 0;
    for (Py_ssize_t i = 3; plain && i < n; i++)
        plain = !PyList_CheckExact(args[i]) && !PyTuple_CheckExact(args[i]);
    PyObject *found = plain ? PyDict_GetItemWithError(self->operators, args[1]) : NULL;
    if (found == NULL || Py_TYPE(found) != operator_type || ((Operator *)found)->arity != n - 3) {
        if (PyErr_Occurred())
            return NULL;
        return PyObject_Vectorcall(self->python, args, flags, names);
    }
    Py_INCREF(found);
    PyObject *result = operator_vectorcall(found, args + 3, (size_t)(n - 3), NULL);
    Py_DECREF(found);
    if (result != Py_NotImplemented)
        return result;
    Py_DECREF(result); /* (an operand is another library's) */
    return PyObject_Vectorcall(self->python, args, flags, names);
}

/* Overrides(operators by NumPy's functions, what is called for functions and types, what answers all else) */
static PyObject *
overrides_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *operators, *functions, *python;
    if (!PyArg_ParseTuple(args, "O!O!O", &PyDict_Type, &operators, &PyDict_Type, &functions, &python))
        return NULL;
    Overrides *self = (Overrides *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = overrides_vectorcall;
    self->operators = Py_NewRef(operators);
    self->functions = Py_NewRef(functions);
    self->python = Py_NewRef(python);
    return (PyObject *)self;
}

static void
overrides_dealloc(Overrides *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_CLEAR(self->operators);
    Py_CLEAR(self->functions);
    Py_CLEAR(self->python);
    type->tp_free(self);
    Py_DECREF(type);
}

METHOD_TYPE(Overrides, overrides, )
