/* Which line of a user's program runs, by the interpreter's events (dispatch/linecounts.py): the clock and the counters
   are read between lines. What this takes itself, and what counting takes, is no line's time.

   Before Python 3.12 an interpreter that is followed runs each instruction several times as slowly, ours included.
   So events are switched off while a function of ours runs that calls no code of the user, and on when its frame
   is let go. From then on events are switched off by place (`sys.monitoring`): after its first one, code that is not
   the user's has none. */

#include "native.h"
#include <time.h>

/* What code is (as linecounts.py says). */
enum { USERS, FOLLOWED, LET_ALONE, HIDES };
/* A function of ours is followed so often before it is let alone. */
#define TRIED 10

typedef struct {
    double seconds, again;
    Py_ssize_t visits, events, making;
    Py_ssize_t counts[COUNTED];
} Line;

typedef struct {
    PyObject *code;
    int kind, calls, calls_users, first, n;
    Line *lines;
} Known;

typedef struct Follower {
    PyObject_HEAD
    PyObject *kind, *counters, *codes;
    PyThreadState *thread;
    struct Follower *before;
    Known *known;
    Py_ssize_t n, at;
    int line, active, hidden;
    double clock, began, ended, spent;
    uint64_t seen;
    Py_ssize_t values[COUNTED];
} Follower;

/* Those that are active, the last one first. */
static Follower *followers;

double
seconds_now(void)
{
    struct timespec t;
#ifdef CLOCK_MONOTONIC
    clock_gettime(CLOCK_MONOTONIC, &t);
#else
    timespec_get(&t, TIME_UTC);
#endif
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The one that follows this thread. */
static Follower *
follower_here(void)
{
    Follower *found = followers;
    while (found != NULL && found->thread != PyThreadState_Get())
        found = found->before;
    return found;
}

/* An event took this long: no line's time. (Within what counts, all of it is none.) */
static void
leave_out(Follower *self, double began)
{
    if (!state.adding)
        self->clock += seconds_now() - began;
}

/* Which code it is, -1 for an error. */
static Py_ssize_t
known_code(Follower *self, PyObject *code)
{
    if (self->at >= 0 && self->known[self->at].code == code)
        return self->at;
    PyObject *address = PyLong_FromVoidPtr(code);
    if (address == NULL)
        return -1;
    PyObject *found = PyDict_GetItemWithError(self->codes, address);
    Py_ssize_t at = found != NULL ? PyLong_AsSsize_t(found) : -1;
    if (found != NULL || PyErr_Occurred()) {
        Py_DECREF(address);
        return at;
    }
    PyObject *kind = PyObject_CallOneArg(self->kind, code), *index = PyLong_FromSsize_t(self->n);
    long what = kind == NULL ? -1 : PyLong_AsLong(kind);
    if (what >= 0 && index != NULL) {
        if (self->n % 64 == 0) {
            Known *more = PyMem_Realloc(self->known, (self->n + 64) * sizeof(Known));
            if (more == NULL)
                PyErr_NoMemory();
            else
                self->known = more;
        }
        if (!PyErr_Occurred() && PyDict_SetItem(self->codes, address, index) == 0) {
            at = self->n++;
            self->known[at] = (Known){.code = Py_NewRef(code), .kind = (int)what};
            self->known[at].first = ((PyCodeObject *)code)->co_firstlineno;
        }
    }
    Py_XDECREF(kind);
    Py_XDECREF(index);
    Py_DECREF(address);
    return at;
}

static Py_ssize_t
code_of_frame(Follower *self, PyFrameObject *frame)
{
    PyObject *code = (PyObject *)PyFrame_GetCode(frame);
    Py_DECREF(code); /* (the frame has it) */
    return known_code(self, code);
}

static int
waits(Known *known)
{
    return ((PyCodeObject *)known->code)->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR);
}

static Line *
line_of(Follower *self, Py_ssize_t at, int line)
{
    Known *known = self->known + at;
    if (line < known->first || line >= known->first + known->n) {
        /* (What is written over several lines may begin before its function does, in what decorates it.) */
        int first = line < known->first ? line : known->first, end = known->first + known->n;
        int n = (line >= end ? line + 16 : end) - first, before = known->first - first;
        Line *more = PyMem_Calloc(n, sizeof(Line));
        if (more == NULL)
            return NULL;
        if (known->n)
            memcpy(more + before, known->lines, known->n * sizeof(Line));
        PyMem_Free(known->lines);
        known->lines = more, known->first = first, known->n = n;
    }
    return known->lines + (line - known->first);
}

/* The values of the counters, if something was counted since they were read: 1, else 0; -1 for an error. */
static int
read_counters(Follower *self, Py_ssize_t *values)
{
    if (self->seen == state.counted)
        return 0;
    for (int i = 0; i < COUNTED; i++) {
        PyObject *value = PyObject_GetAttr(self->counters, PyTuple_GET_ITEM(state.counted_names, i));
        values[i] = value == NULL ? -1 : PyLong_AsSsize_t(value);
        Py_XDECREF(value);
        if (PyErr_Occurred())
            return -1;
    }
    self->seen = state.counted;
    return 1;
}

/* What happened until now was the last line's. Then it is another one's (at -1: nobody's), which is visited anew, or
   gone on with. */
static int
account(Follower *self, double now, Py_ssize_t at, int line, int anew)
{
    Py_ssize_t values[COUNTED];
    int changed = read_counters(self, values);
    if (changed < 0)
        return -1;
    if (self->at >= 0) {
        Line *last = line_of(self, self->at, self->line);
        if (last == NULL)
            return -1;
        double passed = now - self->clock - (state.adding_seconds - self->spent);
        last->seconds += passed;
        last->events++;
        if (changed) {
            int made = 0;
            for (int i = 0; i < COUNTED; i++) {
                last->counts[i] += values[i] - self->values[i];
                made |= values[i] != self->values[i] && (i == COMPILATIONS || i == CAPTURES);
            }
            if (made && last->making++)
                last->again += passed;
        }
    }
    if (changed)
        memcpy(self->values, values, sizeof(values));
    if (at >= 0 && anew) {
        Line *next = line_of(self, at, line);
        if (next == NULL)
            return -1;
        next->visits++;
    }
    self->at = at;
    self->line = line;
    self->spent = state.adding_seconds;
    return 0;
}

/* The user's line that a frame is in, or was called by; who is between is noted to call the user's code. */
static int
place_of(Follower *self, PyFrameObject *frame, int note, Py_ssize_t *at, int *line)
{
    *at = -1;
    Py_XINCREF(frame);
    while (frame != NULL) {
        Py_ssize_t found = code_of_frame(self, frame);
        if (found < 0 || self->known[found].kind == USERS) {
            *at = found;
            *line = PyFrame_GetLineNumber(frame);
            Py_DECREF(frame);
            return found < 0 ? -1 : 0;
        }
        if (note)
            self->known[found].calls_users = 1;
        Py_SETREF(frame, PyFrame_GetBack(frame));
    }
    return 0;
}

/* A function of the user's begins, or goes on, after a call from who is noted to call the user's code. */
static int
begins(Follower *self, double now, Py_ssize_t code, int line, PyFrameObject *frame)
{
    Py_ssize_t at;
    PyFrameObject *back = PyFrame_GetBack(frame);
    int failed = account(self, now, code, line, 0) < 0 || place_of(self, back, 1, &at, &line) < 0;
    Py_XDECREF(back);
    return failed;
}

/* It ends, or waits: what follows is the caller's. */
static int
ends(Follower *self, double now, PyFrameObject *frame)
{
    Py_ssize_t at;
    int line = 0;
    PyFrameObject *back = PyFrame_GetBack(frame);
    int failed = place_of(self, back, 0, &at, &line) < 0 || account(self, now, at, line, 0) < 0;
    Py_XDECREF(back);
    return failed;
}

#if PY_VERSION_HEX < 0x030C0000

static int follow(PyObject *follower, PyFrameObject *frame, int event, PyObject *arg);
static PyTypeObject *waker_type;

typedef struct {
    PyObject_HEAD
    Follower *follower;
} Waker;

static void
waker_dealloc(PyObject *waker)
{
    Follower *self = ((Waker *)waker)->follower;
    PyThreadState *thread = PyThreadState_Get();
    if (self->active && self->thread == thread && thread->c_tracefunc == NULL) {
        double now = seconds_now();
        PyObject *type, *error, *traceback;
        PyErr_Fetch(&type, &error, &traceback);
        PyEval_SetTrace(follow, (PyObject *)self);
        PyErr_Restore(type, error, traceback);
        leave_out(self, now);
    }
    Py_DECREF(self);
    PyTypeObject *kind = Py_TYPE(waker);
    kind->tp_free(waker);
    Py_DECREF(kind);
}

static PyType_Slot waker_slots[] = {{Py_tp_dealloc, waker_dealloc}, {0}};
static PyType_Spec waker_spec = {"mirabelle.dispatch._native.Waker", sizeof(Waker), 0, Py_TPFLAGS_DEFAULT, waker_slots};

/* No events until the frame is let go. */
static int
let_alone(Follower *self, PyFrameObject *frame)
{
    Waker *waker = PyObject_New(Waker, waker_type);
    if (waker == NULL)
        return -1;
    waker->follower = (Follower *)Py_NewRef(self);
    int failed = PyObject_SetAttrString((PyObject *)frame, "f_trace", (PyObject *)waker);
    PyEval_SetTrace(NULL, NULL); /* (and waking, where that failed, has it again) */
    Py_DECREF(waker);
    return failed;
}

/* Something is counted. If it is the user's line that does it, and there are no events, somebody keeps a frame that was
   let alone (with an error, say). */
void
look_again(void)
{
    Follower *self = follower_here();
    PyThreadState *thread = PyThreadState_Get();
    if (self == NULL || thread->c_tracefunc != NULL || thread->tracing)
        return;
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyFrameObject *frame = PyEval_GetFrame();
    Py_ssize_t code = frame == NULL ? -1 : code_of_frame(self, frame);
    if (code >= 0 && self->known[code].kind == USERS)
        PyEval_SetTrace(follow, (PyObject *)self);
    PyErr_Clear();
    PyErr_Restore(type, error, traceback);
}

static int
followed_call(Follower *self, PyFrameObject *frame, Known *known)
{
    if (known->kind == FOLLOWED || waits(known))
        return 0;
    if (known->kind == LET_ALONE && (known->calls_users || known->calls++ < TRIED))
        return 0;
    return let_alone(self, frame);
}

static int
follow(PyObject *follower, PyFrameObject *frame, int event, PyObject *arg)
{
    Follower *self = (Follower *)follower;
    double now = seconds_now();
    Py_ssize_t code = code_of_frame(self, frame);
    int failed = code < 0;
    if (!failed && self->known[code].kind != USERS) {
        Line *last = self->at >= 0 ? line_of(self, self->at, self->line) : NULL;
        if (last != NULL)
            last->events++;
        if (event == PyTrace_CALL)
            failed = followed_call(self, frame, self->known + code) < 0;
        leave_out(self, now);
        return failed ? -1 : 0;
    }
    if (!failed) {
        if (event == PyTrace_RETURN)
            failed = ends(self, now, frame);
        else if (event == PyTrace_CALL)
            failed = begins(self, now, code, PyFrame_GetLineNumber(frame), frame);
        else if (event == PyTrace_LINE)
            failed = account(self, now, code, PyFrame_GetLineNumber(frame), 1) < 0;
        else {
            leave_out(self, now);
            return 0;
        }
    }
    self->clock = seconds_now();
    return failed ? -1 : 0;
}

/* Events of this thread, of who follows it now. */
static int
listen(void)
{
    Follower *here = follower_here();
    if (waker_type == NULL && (waker_type = (PyTypeObject *)PyType_FromSpec(&waker_spec)) == NULL)
        return -1;
    PyEval_SetTrace(here == NULL ? NULL : follow, (PyObject *)here);
    return 0;
}

#else

void
look_again(void)
{
}

/* The events of `sys.monitoring`, what they say, and whether they come whatever is answered. */
enum { BEGINS, VISITS, JUMPS, ENDS };
static const struct {
    const char *name;
    int what, always;
} events[] = {
    {"PY_START", BEGINS, 0}, {"PY_RESUME", BEGINS, 0}, {"PY_THROW", BEGINS, 1}, {"LINE", VISITS, 0},
    {"JUMP", JUMPS, 0},      {"PY_RETURN", ENDS, 0},   {"PY_YIELD", ENDS, 0},   {"PY_UNWIND", ENDS, 1},
};
#define EVENTS (int)(sizeof(events) / sizeof(*events))

/* By which number we are known to the interpreter, and what it is answered where there shall be no more events. */
static int tool = -1;
static PyObject *no_more;

/* An event, at a place in code. */
static PyObject *
lines_event(PyObject *index, PyObject *const *args, Py_ssize_t n)
{
    double now = seconds_now();
    Follower *self = follower_here();
    Py_ssize_t code = self == NULL ? -1 : known_code(self, args[0]);
    if (code < 0)
        return self == NULL ? Py_NewRef(Py_None) : NULL;
    long i = PyLong_AsLong(index), place = PyLong_AsLong(args[1]);
    int what = events[i].what, line = (int)place, failed = 0;
    PyObject *answer = events[i].always ? Py_None : no_more;
    Known *known = self->known + code;
    if (known->kind != USERS) {
        Line *last = self->at >= 0 ? line_of(self, self->at, self->line) : NULL;
        if (last != NULL)
            last->events++;
        if (known->kind == HIDES && !waits(known) && (what == BEGINS || what == ENDS)) {
            self->hidden += what == BEGINS ? 1 : -(self->hidden > 0);
            answer = Py_None;
        }
        leave_out(self, now);
        return Py_NewRef(answer);
    }
    if (self->hidden)
        Py_RETURN_NONE;
    if (what == BEGINS || what == JUMPS)
        line = PyCode_Addr2Line((PyCodeObject *)args[0], line);
    if (what == JUMPS) { /* (Back to the line where it is: no other event says that it is visited anew.) */
        long to = PyLong_AsLong(args[2]);
        if (to > place || PyCode_Addr2Line((PyCodeObject *)args[0], (int)to) != line) {
            leave_out(self, now);
            return Py_NewRef(answer);
        }
    }
    if (what == BEGINS)
        failed = begins(self, now, code, line, PyEval_GetFrame());
    else if (what == ENDS)
        failed = ends(self, now, PyEval_GetFrame());
    else
        failed = account(self, now, code, line, 1) < 0;
    self->clock = seconds_now();
    return failed ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef event_method = {"lines_event", (PyCFunction)(void (*)(void))lines_event, METH_FASTCALL, NULL};

/* A number that no other tool has. */
static int
take_tool(PyObject *monitoring)
{
    static const int tried[] = {3, 4, 5, 2, 1, 0};
    for (int i = 0; i < 6; i++) {
        PyObject *done = PyObject_CallMethod(monitoring, "use_tool_id", "is", tried[i], "mirabelle");
        if (done != NULL) {
            Py_DECREF(done);
            tool = tried[i];
            return 0;
        }
        if (!PyErr_ExceptionMatches(PyExc_ValueError))
            return -1;
        PyErr_Clear();
    }
    PyErr_SetString(PyExc_RuntimeError, "Lines cannot be followed: six debuggers and profilers have all numbers of "
                                        "`sys.monitoring`. Run the program without them.");
    return -1;
}

/* Events while somebody follows, and none else. */
static int
listen(void)
{
    PyObject *monitoring = PySys_GetObject("monitoring"), *done = NULL;
    int on = followers != NULL;
    if (on == (tool >= 0))
        return 0;
    if (monitoring == NULL || (on && take_tool(monitoring) < 0))
        return -1;
    if (no_more == NULL && (no_more = PyObject_GetAttrString(monitoring, "DISABLE")) == NULL)
        return -1;
    PyObject *numbers = PyObject_GetAttrString(monitoring, "events");
    long all = 0;
    for (int i = 0; numbers != NULL && i < EVENTS; i++) {
        PyObject *number = PyObject_GetAttrString(numbers, events[i].name), *index = PyLong_FromLong(i);
        PyObject *called = on && index != NULL ? PyCFunction_New(&event_method, index) : Py_NewRef(Py_None);
        all |= number == NULL ? 0 : PyLong_AsLong(number);
        if (number != NULL && called != NULL)
            Py_XSETREF(done, PyObject_CallMethod(monitoring, "register_callback", "iOO", tool, number, called));
        Py_XDECREF(number);
        Py_XDECREF(index);
        Py_XDECREF(called);
        if (PyErr_Occurred())
            break;
    }
    Py_XDECREF(numbers);
    if (!PyErr_Occurred())
        Py_XSETREF(done, PyObject_CallMethod(monitoring, "set_events", "il", tool, on ? all : 0L));
    if (!PyErr_Occurred()) /* (What was answered before is forgotten.) */
        Py_XSETREF(done, PyObject_CallMethod(monitoring, "restart_events", NULL));
    if (!PyErr_Occurred() && !on) {
        Py_XSETREF(done, PyObject_CallMethod(monitoring, "free_tool_id", "i", tool));
        tool = -1;
    }
    Py_XDECREF(done);
    return PyErr_Occurred() ? -1 : 0;
}

#endif

/* Follower(what code is): a function of Python that gives a number for a code object. */
static PyObject *
follower_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *kind;
    if (!PyArg_ParseTuple(args, "O", &kind))
        return NULL;
    Follower *self = (Follower *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->kind = Py_NewRef(kind);
    self->at = -1;
    self->codes = PyDict_New();
    if (self->codes == NULL)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void
be_done(Follower *self)
{
    for (Follower **at = &followers; *at != NULL; at = &(*at)->before)
        if (*at == self) {
            *at = self->before;
            break;
        }
    state.following -= self->active;
    self->active = 0;
}

static void
follower_dealloc(PyObject *follower)
{
    Follower *self = (Follower *)follower;
    if (self->active) {
        PyObject *type, *error, *traceback;
        PyErr_Fetch(&type, &error, &traceback);
        be_done(self);
#if PY_VERSION_HEX >= 0x030C0000
        if (listen() < 0)
            PyErr_Clear();
#endif
        PyErr_Restore(type, error, traceback);
    }
    for (Py_ssize_t i = 0; i < self->n; i++) {
        Py_DECREF(self->known[i].code);
        PyMem_Free(self->known[i].lines);
    }
    PyMem_Free(self->known);
    Py_XDECREF(self->kind);
    Py_XDECREF(self->counters);
    Py_XDECREF(self->codes);
    PyTypeObject *kind = Py_TYPE(self);
    kind->tp_free(self);
    Py_DECREF(kind);
}

/* start(counters): follow this thread from the user's line on that is running. */
static PyObject *
follower_start(PyObject *follower, PyObject *counters)
{
    Follower *self = (Follower *)follower;
    if (self->active) {
        PyErr_SetString(PyExc_RuntimeError, "It follows already.");
        return NULL;
    }
    Py_XSETREF(self->counters, Py_NewRef(counters));
    self->thread = PyThreadState_Get();
    self->seen = state.counted - 1;
    if (read_counters(self, self->values) < 0 || place_of(self, PyEval_GetFrame(), 0, &self->at, &self->line) < 0)
        return NULL;
    self->active = 1;
    state.following++;
    self->before = followers;
    followers = self;
    if (listen() < 0) {
        be_done(self);
        return NULL;
    }
    self->spent = state.adding_seconds;
    self->began = self->clock = seconds_now();
    Py_RETURN_NONE;
}

static PyObject *
follower_stop(PyObject *follower, PyObject *ignored)
{
    Follower *self = (Follower *)follower;
    if (!self->active)
        Py_RETURN_NONE;
    self->ended = seconds_now();
    be_done(self);
    int failed = account(self, self->ended, -1, 0, 0) < 0;
    return failed || listen() < 0 ? NULL : Py_NewRef(Py_None);
}

#if PY_VERSION_HEX < 0x030C0000
/* Where a tracer is set that was there before: events come here again. */
static PyObject *
follower_call(PyObject *follower, PyObject *args, PyObject *kwargs)
{
    if (((Follower *)follower)->active)
        PyEval_SetTrace(follow, follower);
    return Py_NewRef(follower);
}

#endif

/* place(): the file and the line that is running, or None. */
static PyObject *
follower_place(PyObject *follower, PyObject *ignored)
{
    Follower *self = (Follower *)follower;
    if (self->at < 0)
        Py_RETURN_NONE;
    return Py_BuildValue("(Oi)", ((PyCodeObject *)self->known[self->at].code)->co_filename, self->line);
}

/* lines(): of each line that was met the code, the number, seconds, visits, events, in how many visits something was
   made ready, the seconds of those but the first, and the counters. */
static PyObject *
follower_lines(PyObject *follower, PyObject *ignored)
{
    Follower *self = (Follower *)follower;
    PyObject *all = PyList_New(0);
    for (Py_ssize_t i = 0; all != NULL && i < self->n; i++)
        for (int j = 0; all != NULL && j < self->known[i].n; j++) {
            Line *line = self->known[i].lines + j;
            if (!line->events && !line->visits)
                continue;
            PyObject *counts = PyTuple_New(COUNTED);
            for (int k = 0; counts != NULL && k < COUNTED; k++)
                PyTuple_SET_ITEM(counts, k, PyLong_FromSsize_t(line->counts[k]));
            PyObject *item = counts == NULL ? NULL
                                            : Py_BuildValue("(OidnnndN)", self->known[i].code,
                                                            self->known[i].first + j, line->seconds, line->visits,
                                                            line->events, line->making, line->again, counts);
            if (item == NULL || PyList_Append(all, item) < 0)
                Py_CLEAR(all);
            Py_XDECREF(item);
        }
    return all;
}

static PyObject *
follower_seconds(PyObject *follower, void *ignored)
{
    Follower *self = (Follower *)follower;
    return PyFloat_FromDouble((self->active ? seconds_now() : self->ended) - self->began);
}

static PyMethodDef follower_methods[] = {
    {"start", follower_start, METH_O, "Follow this thread."},
    {"stop", follower_stop, METH_NOARGS, "Follow it no longer."},
    {"place", follower_place, METH_NOARGS, "The file and the line that is running."},
    {"lines", follower_lines, METH_NOARGS, "What happened, by line."},
    {NULL},
};

static PyGetSetDef follower_getset[] = {{"seconds", follower_seconds, NULL, "From start to stop."}, {NULL}};

static PyType_Slot follower_slots[] = {
    {Py_tp_new, follower_new},         {Py_tp_dealloc, follower_dealloc},
#if PY_VERSION_HEX < 0x030C0000
    {Py_tp_call, follower_call},
#endif
    {Py_tp_methods, follower_methods}, {Py_tp_getset, follower_getset},   {0},
};

PyType_Spec follower_spec = {"mirabelle.dispatch._native.Follower", sizeof(Follower), 0, Py_TPFLAGS_DEFAULT,
                             follower_slots};
