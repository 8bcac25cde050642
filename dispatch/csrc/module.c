/* The module: its types, and what mirabelle's modules tell it of themselves. */

#define IMPORTS_NUMPY
#include "native.h"
#include "pool.h"

State state;
PyTypeObject *operator_type, *statement_type, *builder_type, *getter_type, *setter_type, *halo_type, *product_type,
    *onmemory_type, *power_type;

#define TYPES 18
static PyType_Spec *specs[TYPES] = {&leaf_spec,    &node_spec,   &operator_spec,  &statement_spec, &builder_spec,
                                   &getter_spec,  &setter_spec, &overrides_spec, &reduced_spec,   &reducer_spec,
                                   &product_spec, &halo_spec,   &converter_spec, &handle_spec, &inplace_spec,
                                   &onmemory_spec, &follower_spec, &power_spec};
static PyTypeObject *types[TYPES];

/* Where objects of a class keep what a slot of it holds: 0, or -1. */
static int
offset_of(PyObject *member, Py_ssize_t *offset)
{
    if (Py_TYPE(member) != &PyMemberDescr_Type || ((PyMemberDescrObject *)member)->d_member->type != T_OBJECT_EX) {
        PyErr_SetString(PyExc_TypeError, "A slot of a class is expected.");
        return -1;
    }
    *offset = ((PyMemberDescrObject *)member)->d_member->offset;
    return 0;
}

/* tell(name=value, ...): what is looked at, and functions of Python. */
static PyObject *
tell(PyObject *module, PyObject *args, PyObject *kwargs)
{
    struct {
        const char *name;
        PyObject **place;
    } objects[] = {
        {"leaf", (PyObject **)&state.leaf},
        {"node", (PyObject **)&state.node},
        {"reduced", (PyObject **)&state.reduced},
        {"dense", (PyObject **)&state.dense},
        {"wrapper", (PyObject **)&state.wrapper},
        {"view", (PyObject **)&state.view},
        {"permuted", (PyObject **)&state.permuted},
        {"reshaped", (PyObject **)&state.reshaped},
        {"divided", (PyObject **)&state.divided},
        {"traced", (PyObject **)&state.traced},
        {"capture", &state.capture},
        {"at_once", &state.at_once},
        {"evaluated", &state.evaluated},
        {"waited", &state.waited},
        {"quiet", &state.quiet},
        {"asarray", &state.asarray},
        {"host_type", &state.host_type},
        {"known", &state.known},
        {"broadcast_shapes", &state.broadcast_shapes},
        {"scalar_words", &state.scalar_words},
        {"empty", &state.empty},
        {"operations", &state.operations},
        {"unchanged", &state.unchanged},
        {"add", &state.add},
        {"blocks", &state.blocks},
        {"counted_names", &state.counted_names},
        {"evaluation", &state.evaluation},
        {"recordings", &state.recordings},
        {"watchers", &state.watchers},
        {"check_owners", &state.check_owners},
    };
    struct {
        const char *name;
        Py_ssize_t *place;
    } slots[] = {
        {"view_parent", &state.view_parent},
        {"view_how", &state.view_how},
        {"view_shape", &state.view_shape},
        {"constructed", &state.constructed},
        {"copy_of", &state.copy_of},
        {"divided_buffer", &state.divided_buffer},
        {"divided_whole", &state.divided_whole},
        {"divided_map", &state.divided_map},
        {"buffer_comm", &state.buffer_comm},
        {"buffer_partition", &state.buffer_partition},
        {"buffer_local", &state.buffer_local},
        {"buffer_leaf", &state.buffer_leaf},
        {"buffer_came", &state.buffer_came},
    };
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (kwargs != NULL && PyDict_Next(kwargs, &at, &name, &value)) {
        int found = 0;
        for (size_t i = 0; i < Py_ARRAY_LENGTH(objects); i++)
            if (PyUnicode_CompareWithASCIIString(name, objects[i].name) == 0) {
                Py_XSETREF(*objects[i].place, Py_NewRef(value));
                found = 1;
            }
        for (size_t i = 0; i < Py_ARRAY_LENGTH(slots); i++)
            if (PyUnicode_CompareWithASCIIString(name, slots[i].name) == 0) {
                if (offset_of(value, slots[i].place) < 0)
                    return NULL;
                found = 1;
            }
        for (int i = 0; i < 2; i++)
            if (PyUnicode_CompareWithASCIIString(name, i ? "gemv" : "nowhere") == 0) {
                void *address = PyLong_AsVoidPtr(value);
                if (address == NULL && PyErr_Occurred())
                    return NULL;
                *(i ? &state.gemv : &state.nowhere) = address;
                found = 1;
            }
        if (!found)
            return PyErr_Format(PyExc_TypeError, "Nobody looks at %R.", name);
    }
    Py_RETURN_NONE;
}

static PyObject *
forget(PyObject *module, PyObject *ignored)
{
    state.generation++;
    Py_RETURN_NONE;
}

/* limits(operations of a tree that need no looking at, elements that are few, operations of a small tree, elements of
   what is computed at once, elements of what is computed soon, elements that are moved at once) */
static PyObject *
limits(PyObject *module, PyObject *args)
{
    if (!PyArg_ParseTuple(args, "nnnnnn", &state.node_limit, &state.few, &state.tree_limit, &state.immediate,
                          &state.brief, &state.moved))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *
shown(PyObject *module, PyObject *x)
{
    if (!PyType_IsSubtype(Py_TYPE(x), state.wrapper)) {
        PyErr_SetString(PyExc_TypeError, "A wrapper is expected.");
        return NULL;
    }
    return shown_part(x);
}

/* again(known, x, index, value), evaluated_again(known, tree), stored_again(known, tree, array), inspected(tree): as
   statements.c says; halo_again(known, tree, communicator, partition, array): as halos.c does. */

static PyObject *
known_again(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 4 || !PyDict_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "again(known, x, index, value)");
        return NULL;
    }
    int done = again(args[0], args[1], args[2], args[3]);
    return done < 0 ? NULL : PyBool_FromLong(done);
}

static PyObject *
known_value(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 3 || !PyDict_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "evaluated_again(known, tree, in NumPy's order?)");
        return NULL;
    }
    PyObject *value = evaluated_again(args[0], args[1], args[2] == Py_True);
    return value != NULL || PyErr_Occurred() ? value : Py_NewRef(Py_None);
}

static PyObject *
known_stored(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 3 || !PyDict_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "stored_again(known, tree, array)");
        return NULL;
    }
    int done = stored_again(args[0], args[1], args[2]);
    return done < 0 ? NULL : PyBool_FromLong(done);
}

static PyObject *
known_over(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 3 || !PyDict_CheckExact(args[0]) || !IS_LEAF(args[1]) || !IS_NODE(args[2])) {
        PyErr_SetString(PyExc_TypeError, "written_over(known, leaf, tree)");
        return NULL;
    }
    int done = written_over(args[0], (Leaf *)args[1], (Node *)args[2]);
    return done < 0 ? NULL : done == 2 ? Py_NewRef(Py_None) : PyBool_FromLong(done);
}

static PyObject *
known_halo(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 5 || !PyDict_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "halo_again(known, tree, communicator, partition, array)");
        return NULL;
    }
    int done = halo_again(args[0], args[1], args[2], args[3], args[4]);
    return done < 0 ? NULL : PyBool_FromLong(done);
}

static PyObject *
small_reduction(PyObject *module, PyObject *reduced)
{
    PyObject *value = computed_reduction(state.known, reduced);
    return value != NULL || PyErr_Occurred() ? value : Py_NewRef(Py_None);
}

static PyObject *
few_computed(PyObject *module, PyObject *x)
{
    compute_few(x);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyObject *
small_value(PyObject *module, PyObject *tree)
{
    PyObject *value = computed(tree);
    return value != NULL || PyErr_Occurred() ? value : Py_NewRef(Py_None);
}

static PyObject *
what_stands(PyObject *module, PyObject *tree)
{
    return inspected(tree);
}

static PyObject *
is_ours(PyObject *module, PyObject *leaf)
{
    if (!IS_LEAF(leaf))
        return PyErr_Format(PyExc_TypeError, "%s is no leaf.", Py_TYPE(leaf)->tp_name);
    return PyBool_FromLong(adopted((Leaf *)leaf));
}

static PyMethodDef methods[] = {
    {"tell", (PyCFunction)(void (*)(void))tell, METH_VARARGS | METH_KEYWORDS, "What is looked at."},
    {"forget", forget, METH_NOARGS, "What dispatch said so far holds no longer."},
    {"limits", limits, METH_VARARGS, "What trees are looked at as they are made; what writes are small."},
    {"shown_part", shown, METH_O, "The leaf of what wrappers show of a dense array."},
    {"wrapped", wrapped, METH_O, "An array of ours on new memory of NumPy's; None where Python is to look at it."},
    {"again", (PyCFunction)(void (*)(void))known_again, METH_FASTCALL, "Do a statement that was met before."},
    {"evaluated_again", (PyCFunction)(void (*)(void))known_value, METH_FASTCALL,
     "The value of a tree that was met before, or None."},
    {"written_over", (PyCFunction)(void (*)(void))known_over, METH_FASTCALL,
     "Write a tree that was met before where the contents lie that its last operation reads, if nobody else has them;\n"
     "None where nothing knows it."},
    {"stored_again", (PyCFunction)(void (*)(void))known_stored, METH_FASTCALL,
     "Write a tree that was met before to memory of its own."},
    {"halo_again", (PyCFunction)(void (*)(void))known_halo, METH_FASTCALL,
     "Write a tree of distributed arrays that was met before to what this process holds of its result."},
    {"unasked", count_unasked, METH_NOARGS, "How many small trees that nothing knew were computed since the last call."},
    {"computed", small_value, METH_O, "The value of a small tree, by NumPy's functions, or None."},
    {"compute_few", few_computed, METH_O, "Have an array computed, if that was met before, or is little work."},
    {"computed_reduction", small_reduction, METH_O, "The value of a small reduction, by NumPy's functions, or None."},
    {"let_wait", has_to_wait, METH_O, "Have a reduction wait, and the one that has waited longest do so no longer."},
    {"compute_readers", ask_compute_readers, METH_O, "Compute the reductions that wait for memory about to be written."},
    {"adopted", is_ours, METH_O, "Can nobody else write to a leaf's memory, or not any more?"},
    {"arrange", (PyCFunction)(void (*)(void))arranged, METH_FASTCALL, "How the operands of a launch lie in memory."},
    {"inspected", what_stands, METH_O, "What stands in a tree: operands, holders, whether met before."},
    {"operations", tree_operations, METH_O, "The pending operations of a tree, those that several read once."},
    {"waiting_reductions", waiting_reductions, METH_O, "The pending reductions that a tree reads."},
    {"local_tree", (PyCFunction)(void (*)(void))local_tree, METH_FASTCALL,
     "What this process computes of a tree over distributed arrays, and a buffer that is divided as the result is."},
    {"history_number", (PyCFunction)(void (*)(void))history_number, METH_FASTCALL,
     "The number of what a tree over distributed arrays computes."},
    {"history_mixed", (PyCFunction)(void (*)(void))history_mixed, METH_FASTCALL,
     "That of an operation, by its mark and the numbers of its operands."},
    {"dag_cost", tree_cost, METH_O, "What evaluating a tree again would cost."},
    {"worth_storing", (PyCFunction)(void (*)(void))ask_worth_storing, METH_FASTCALL,
     "Is a tree that somebody holds stored when it is evaluated?"},
    {"may_write", (PyCFunction)(void (*)(void))ask_may_write, METH_FASTCALL, "May memory be written where it is?"},
    {"memory_alone", ask_memory_alone, METH_O, "Does nobody outside have the object that stands for its memory?"},
    {"evaluating", (PyCFunction)(void (*)(void))evaluating, METH_FASTCALL,
     "Call what reads versions, while other threads write no memory in place."},
    {"add_counts", (PyCFunction)(void (*)(void))add_counts, METH_VARARGS | METH_KEYWORDS,
     "Add to every open block of this context."},
    {"count_blocks", count_blocks, METH_O, "So many blocks that count are open."},
    {"forget_other_threads", forget_other_threads, METH_NOARGS, "Other threads stayed behind."},
    {"mask_count", (PyCFunction)(void (*)(void))mask_count, METH_FASTCALL, "For how many elements a mask holds."},
    {"mask_picked", (PyCFunction)(void (*)(void))mask_picked, METH_FASTCALL,
     "The elements that a mask picks, in new memory; None where NumPy is to say."},
    {"mask_pick", (PyCFunction)(void (*)(void))mask_pick, METH_FASTCALL, "Those of a part, to a part of some memory."},
    {"mask_put", (PyCFunction)(void (*)(void))mask_put, METH_FASTCALL,
     "Write values to elements that a mask picks, one after another; False where NumPy is to do it."},
    {"sort_lines", (PyCFunction)(void (*)(void))sort_lines, METH_FASTCALL,
     "sort_lines(x, kind, first, last): put the elements of each of some lines in order."},
    {"sort_part", (PyCFunction)(void (*)(void))sort_part, METH_FASTCALL,
     "sort_part(x, kind, beside, first, last): put the elements of a part of a line in order."},
    {"spread_part", (PyCFunction)(void (*)(void))spread_part, METH_FASTCALL,
     "spread_part(x, kind, edges, next, out, first, last): put the elements of a part of a line into ranges."},
    {"argsort_lines", (PyCFunction)(void (*)(void))argsort_lines, METH_FASTCALL,
     "Where the elements of each line are in their order."},
    {"argsort_ties", (PyCFunction)(void (*)(void))argsort_ties, METH_FASTCALL,
     "Of equal elements of each line, the places as they come."},
    {"argsort_part", (PyCFunction)(void (*)(void))argsort_part, METH_FASTCALL,
     "The elements of a part of a line in order, with their places."},
    {"argsort_merged", (PyCFunction)(void (*)(void))argsort_merged, METH_FASTCALL, "A part of two such parts, merged."},
    {"csr_dealt", (PyCFunction)(void (*)(void))csr_dealt, METH_FASTCALL, "Entries of a sparse matrix to their rows."},
    {"csr_ordered", (PyCFunction)(void (*)(void))csr_ordered, METH_FASTCALL, "The entries of rows by columns."},
    {"csr_merged", (PyCFunction)(void (*)(void))csr_merged, METH_FASTCALL, "Entries of one place are added up."},
    {"csr_taken", (PyCFunction)(void (*)(void))csr_taken, METH_FASTCALL, "Some rows and columns."},
    {"csr_pattern", (PyCFunction)(void (*)(void))csr_pattern, METH_FASTCALL, "Which entries cells add to."},
    {"csr_times", (PyCFunction)(void (*)(void))csr_times, METH_FASTCALL, "Rows of a sparse matrix times a vector."},
    {"task_functions", task_functions, METH_NOARGS, "Addresses: what copies, what folds, what fills by item size."},
    {"run_tasks", (PyCFunction)(void (*)(void))run_tasks, METH_FASTCALL, "Run a task list, on all its threads."},
    {"helpers_standing", helpers_standing, METH_NOARGS, "How many threads stand by for the next list."},
    {"helpers_started", helpers_started, METH_NOARGS, "How many threads there are."},
    {"helpers_dismiss", helpers_dismiss, METH_NOARGS, "Let those sleep who stand by."},
    {NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "mirabelle.dispatch._native",
                                        "The pieces in C: dispatch/native.py says what they are.", -1, methods};

PyMODINIT_FUNC
PyInit__native(void)
{
    static const char *names[TYPES] = {"Leaf",   "Node",   "Operator",  "Statement", "Builder",
                                       "Getter", "Setter", "Overrides", "Reduced",   "Reducer",
                                       "Product", "Halo", "Converter", "Handle", "Inplace", "OnMemory", "Follower", "Power"};
    import_array(); /* (an error where this was built for another NumPy) */
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL)
        return NULL;
    state.float64 = (PyObject *)PyArray_DescrFromType(NPY_DOUBLE);
    state.boolean = (PyObject *)PyArray_DescrFromType(NPY_BOOL);
    state.generation = 1;
    state.node_name = PyUnicode_InternFromString("_node");
    state.args_name = PyUnicode_InternFromString("args");
    state.value_name = PyUnicode_InternFromString("value");
    state.operand_name = PyUnicode_InternFromString("operand");
    state.show = PyUnicode_InternFromString("_show");
    state.axis = PyUnicode_InternFromString("axis");
    state.dtype = PyUnicode_InternFromString("dtype");
    state.direct = PyUnicode_InternFromString("direct");
    state.reduce = PyUnicode_InternFromString("reduce");
    state.keepdims = PyUnicode_InternFromString("keepdims");
    for (int i = 0; i < TYPES; i++) {
        types[i] = (PyTypeObject *)PyType_FromSpec(specs[i]);
        if (types[i] == NULL || PyModule_AddObjectRef(module, names[i], (PyObject *)types[i]) < 0) {
            Py_DECREF(module);
            return NULL;
        }
    }
    PyObject *buffered = PyType_FromSpec(&buffered_spec);
    if (PyModule_AddObjectRef(module, "Buffered", buffered) < 0) {
        Py_XDECREF(buffered);
        Py_DECREF(module);
        return NULL;
    }
    Py_DECREF(buffered);
    operator_type = types[2];
    statement_type = types[3];
    builder_type = types[4];
    getter_type = types[5];
    setter_type = types[6];
    product_type = types[10];
    onmemory_type = types[15];
    halo_type = types[11];
    power_type = types[17];
    if (PyModule_AddIntConstant(module, "VERSION", 24) < 0 || PyModule_AddFunctions(module, address_methods) < 0 ||
        pool_begin() != 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
