"""The native code that runs a task list: claims work, waits where it must, calls kernels.

It is written in LLVM's own language, so that it costs a few milliseconds once a process and does
not import Numba. Lists are laid out by `tasks.py`; the words of a list's block are named here.

Work is counted in *tickets*, numbered on and on over all repetitions and all runs of a list, so
that no counter is ever set back: a thread that comes late, or slept while others went on, can
only find that the ticket it had in mind is gone. Tickets belong to *stages*. Those of a stage
may run at once; a stage opens when every ticket before it is done. A ticket is claimed only when
its stage is open, so that nobody ever waits for a thread that holds work without doing it.
Who has claimed one takes the next that is free of its own share of the stage, and of others' when
that is done: a thread comes back to the memory it worked on the statement before.
A stage that is one ticket is left to the caller, in whose cache its data most likely are.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from functools import cache
from typing import Any

from mirabelle.backends.host import compiler, threads
from mirabelle.dispatch.forks import ForkLock

# The words of a list's block. Those that threads write lie in cache lines of their own.
NEXT, DONE, LIMIT, ERROR = 0, 8, 16, 24
STAGES, TICKETS, CALLS, TICKETS_EACH, PATCHES, N_PATCHES, THREADS = 32, 33, 34, 35, 36, 37, 38
POSTS, N_POSTS, HELPERS, PROCESSOR = 39, 40, 41, 42
BLOCK_WORDS = 48
# A ticket: its first call, the end of its calls, and which stage (by the number of the ticket that
# opened it) last had it taken. It has a cache line to itself.
TICKET_WORDS, FIRST, END, TAKEN = 8, 0, 1, 2
# A call: kernel, args, lo, hi, first, last, rlo, rhi, part, number of its statement.
CALL_WORDS = 10

# The item sizes that can be filled with a value.
FILLS = (1, 2, 4, 8, 16)
# Spins before a waiting thread offers its core to others.
_SPINS = 300
# How often a helper that has finished a list looks for another before it goes: that takes about as long as
# it takes to wake it up again, a few hundred microseconds at most.
_PATIENCE = 1000
# A post is where a helper stands by: nobody is there, somebody is, or the block that somebody shall work on
# (plus one once they do).
_ABSENT, _STANDING = 0, 1

_RUN = """
define i64 @run(ptr %block, i64 %times, i64 %thread, ptr %addresses) {
entry:
  ; What kernels return through, which nobody reads.
  %nowhere = alloca [32 x i64], align 16
  ; The posts where this list was left.
  %mask.p = alloca i64
  %next.p = getelementptr i64, ptr %block, i64 {NEXT}
  %done.p = getelementptr i64, ptr %block, i64 {DONE}
  %limit.p = getelementptr i64, ptr %block, i64 {LIMIT}
  %error.p = getelementptr i64, ptr %block, i64 {ERROR}
  %stages.p = getelementptr i64, ptr %block, i64 {STAGES}
  %stages = load ptr, ptr %stages.p
  %tickets.p = getelementptr i64, ptr %block, i64 {TICKETS}
  %tickets = load ptr, ptr %tickets.p
  %calls.p = getelementptr i64, ptr %block, i64 {CALLS}
  %calls = load ptr, ptr %calls.p
  %each.p = getelementptr i64, ptr %block, i64 {TICKETS_EACH}
  %each = load i64, ptr %each.p
  %threads.p = getelementptr i64, ptr %block, i64 {THREADS}
  %threads = load i64, ptr %threads.p
  %caller = icmp eq i64 %thread, 0
  br i1 %caller, label %open, label %look

open:
  %start = load i64, ptr %limit.p
  %done.was = load atomic i64, ptr %done.p monotonic, align 8
  %whole = icmp eq i64 %done.was, %start
  br i1 %whole, label %addressed, label %mend

mend:
  ; A forked child, whose parent was in the middle of a run: there are no other threads.
  store atomic i64 %start, ptr %next.p monotonic, align 8
  store atomic i64 %start, ptr %done.p monotonic, align 8
  br label %addressed

addressed:
  %same = icmp eq ptr %addresses, null
  br i1 %same, label %publish, label %patches

patches:
  %n.p = getelementptr i64, ptr %block, i64 {N_PATCHES}
  %n = load i64, ptr %n.p
  %table.p = getelementptr i64, ptr %block, i64 {PATCHES}
  %table = load ptr, ptr %table.p
  %none = icmp eq i64 %n, 0
  br i1 %none, label %publish, label %patch

patch:
  ; (address of a word, slot, offset): the word becomes the address of the slot and the offset.
  %i = phi i64 [ 0, %patches ], [ %i.next, %patch ]
  %i3 = mul i64 %i, 3
  %word.pp = getelementptr i64, ptr %table, i64 %i3
  %word.p = load ptr, ptr %word.pp
  %slot.p = getelementptr i64, ptr %word.pp, i64 1
  %slot = load i64, ptr %slot.p
  %offset.p = getelementptr i64, ptr %word.pp, i64 2
  %offset = load i64, ptr %offset.p
  %from.p = getelementptr i64, ptr %addresses, i64 %slot
  %from = load i64, ptr %from.p
  %word = add i64 %from, %offset
  store i64 %word, ptr %word.p
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %n
  br i1 %more, label %patch, label %publish

publish:
  store atomic i64 0, ptr %error.p monotonic, align 8
  %processor.p = getelementptr i64, ptr %block, i64 {PROCESSOR}
  %processor = {CALLERS}
  store i32 %processor, ptr %processor.p
  %added = mul i64 %each, %times
  %limit.new = add i64 %start, %added
  store atomic i64 %limit.new, ptr %limit.p release, align 8
  %helpers.p = getelementptr i64, ptr %block, i64 {HELPERS}
  %helpers = load i64, ptr %helpers.p
  %posts.p = getelementptr i64, ptr %block, i64 {POSTS}
  %posts = load ptr, ptr %posts.p
  %n.posts.p = getelementptr i64, ptr %block, i64 {N_POSTS}
  %n.posts = load i64, ptr %n.posts.p
  %self = ptrtoint ptr %block to i64
  br label %post

post:
  ; Those who stand by are called.
  %p = phi i64 [ 0, %publish ], [ %p.next, %passed ]
  %mask = phi i64 [ 0, %publish ], [ %mask.next, %passed ]
  %wanted = phi i64 [ %helpers, %publish ], [ %wanted.next, %passed ]
  %p.left = icmp ult i64 %p, %n.posts
  %w.left = icmp sgt i64 %wanted, 0
  %p.more = and i1 %p.left, %w.left
  br i1 %p.more, label %ring, label %posted

ring:
  %p.at = mul i64 %p, {POST_WORDS}
  %state.p = getelementptr i64, ptr %posts, i64 %p.at
  %state = load atomic i64, ptr %state.p monotonic, align 8
  %stands = icmp eq i64 %state, {STANDING}
  br i1 %stands, label %call.out, label %passed

call.out:
  %called = cmpxchg ptr %state.p, i64 {STANDING}, i64 %self acq_rel monotonic
  %heard = extractvalue { i64, i1 } %called, 1
  %one = zext i1 %heard to i64
  %bit = shl i64 %one, %p
  br label %passed

passed:
  %bit.now = phi i64 [ 0, %ring ], [ %bit, %call.out ]
  %one.now = phi i64 [ 0, %ring ], [ %one, %call.out ]
  %mask.next = or i64 %mask, %bit.now
  %wanted.next = sub i64 %wanted, %one.now
  %p.next = add i64 %p, 1
  br label %post

posted:
  store i64 %mask, ptr %mask.p
  br label %look

look:
  ; The stage this thread was at last, and how long it has waited.
  %stage = phi i64 [ 0, %entry ], [ 0, %posted ], [ %stage.now, %again ],
      [ %stage.now, %paused ], [ %stage.now, %finished ]
  %spins = phi i64 [ 0, %entry ], [ 0, %posted ], [ 0, %again ], [ %spins.now, %paused ], [ 0, %finished ]
  %ticket = load atomic i64, ptr %next.p acquire, align 8
  %limit = load atomic i64, ptr %limit.p acquire, align 8
  %left = icmp slt i64 %ticket, %limit
  br i1 %left, label %place, label %end

place:
  %k = urem i64 %ticket, %each
  %first.p = getelementptr i64, ptr %stages, i64 %stage
  %first = load i64, ptr %first.p
  %before = icmp ult i64 %k, %first
  %stage.from = select i1 %before, i64 0, i64 %stage
  br label %seek

seek:
  %stage.now = phi i64 [ %stage.from, %place ], [ %stage.next, %seek ]
  %stage.next = add i64 %stage.now, 1
  %following.p = getelementptr i64, ptr %stages, i64 %stage.next
  %following = load i64, ptr %following.p
  %beyond = icmp uge i64 %k, %following
  br i1 %beyond, label %seek, label %found

found:
  %here.p = getelementptr i64, ptr %stages, i64 %stage.now
  %here = load i64, ptr %here.p
  %tickets.here = sub i64 %following, %here
  %several = icmp ugt i64 %tickets.here, 1
  %mine = or i1 %several, %caller
  br i1 %mine, label %ask, label %wait

ask:
  %into = sub i64 %k, %here
  %opens = sub i64 %ticket, %into
  %done = load atomic i64, ptr %done.p acquire, align 8
  %is.open = icmp sge i64 %done, %opens
  br i1 %is.open, label %claim, label %wait

claim:
  %ticket.next = add i64 %ticket, 1
  %pair = cmpxchg ptr %next.p, i64 %ticket, i64 %ticket.next acq_rel monotonic
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %work, label %again

again:
  br label %look

work:
  br i1 %several, label %choose, label %chosen

choose:
  ; As many threads claim as there are tickets, so there is one for each.
  %share = mul i64 %thread, %tickets.here
  %share.first = udiv i64 %share, %threads
  br label %try

try:
  %at = phi i64 [ %share.first, %choose ], [ %at.next, %taken ]
  %candidate = add i64 %here, %at
  %taken.at = mul i64 %candidate, {TICKET_WORDS}
  %ticket.p = getelementptr i64, ptr %tickets, i64 %taken.at
  %taken.p = getelementptr i64, ptr %ticket.p, i64 {TAKEN}
  %taken.by = load atomic i64, ptr %taken.p monotonic, align 8
  %is.taken = icmp eq i64 %taken.by, %opens
  br i1 %is.taken, label %taken, label %take

take:
  %took = cmpxchg ptr %taken.p, i64 %taken.by, i64 %opens acq_rel monotonic
  %got = extractvalue { i64, i1 } %took, 1
  br i1 %got, label %chosen, label %taken

taken:
  %at.up = add i64 %at, 1
  %at.end = icmp eq i64 %at.up, %tickets.here
  %at.next = select i1 %at.end, i64 0, i64 %at.up
  br label %try

chosen:
  %mine.now = phi i64 [ %k, %work ], [ %candidate, %take ]
  ; After an error the remaining tickets are counted, and not run.
  %error.now = load atomic i64, ptr %error.p monotonic, align 8
  %fine = icmp eq i64 %error.now, 0
  %c.at.p = mul i64 %mine.now, {TICKET_WORDS}
  %c.p = getelementptr i64, ptr %tickets, i64 %c.at.p
  %c.first.p = getelementptr i64, ptr %c.p, i64 {FIRST}
  %c.first = load i64, ptr %c.first.p
  %c.end.p = getelementptr i64, ptr %c.p, i64 {END}
  %c.end = load i64, ptr %c.end.p
  br i1 %fine, label %call, label %finished

call:
  %c = phi i64 [ %c.first, %chosen ], [ %c.next, %returned ]
  %c.at = mul i64 %c, {CALL_WORDS}
  %call.p = getelementptr i64, ptr %calls, i64 %c.at
  %kernel = load ptr, ptr %call.p
{LOADS}
  %status = call i32 %kernel(ptr %nowhere, ptr %nowhere, {PASSED})
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %fail, label %returned

returned:
  %c.next = add i64 %c, 1
  %c.more = icmp ult i64 %c.next, %c.end
  br i1 %c.more, label %call, label %finished

fail:
  %number.p = getelementptr i64, ptr %call.p, i64 9
  %number = load i64, ptr %number.p
  %code = add i64 %number, 1
  %recorded = cmpxchg ptr %error.p, i64 0, i64 %code acq_rel monotonic
  br label %finished

finished:
  %counted = atomicrmw add ptr %done.p, i64 1 release
  br label %look

wait:
  %spins.now = add i64 %spins, 1
  %patient = icmp ult i64 %spins.now, {SPINS}
  br i1 %patient, label %pause, label %yield

pause:
  {PAUSE}
  br label %paused

yield:
  {YIELD}
  br label %paused

paused:
  br label %look

end:
  br i1 %caller, label %last, label %leave

leave:
  ret i64 0

last:
  ; What others still work on.
  %last.spins = phi i64 [ 0, %end ], [ %last.spins.next, %last.paused ]
  %last.done = load atomic i64, ptr %done.p acquire, align 8
  %all = icmp sge i64 %last.done, %limit
  br i1 %all, label %over, label %last.wait

last.wait:
  %last.spins.next = add i64 %last.spins, 1
  %last.patient = icmp ult i64 %last.spins.next, {SPINS}
  br i1 %last.patient, label %last.pause, label %last.yield

last.pause:
  {PAUSE}
  br label %last.paused

last.yield:
  {YIELD}
  br label %last.paused

last.paused:
  br label %last

over:
  ; Nobody may look at the list when this returns.
  %result = load atomic i64, ptr %error.p monotonic, align 8
  %mask.left = load i64, ptr %mask.p
  %posts.end.p = getelementptr i64, ptr %block, i64 {POSTS}
  %posts.end = load ptr, ptr %posts.end.p
  %self.end = ptrtoint ptr %block to i64
  %busy = or i64 %self.end, 1
  br label %retract

retract:
  %r = phi i64 [ 0, %over ], [ %r.next, %retracted ]
  %rest = phi i64 [ %mask.left, %over ], [ %rest.next, %retracted ]
  %some = icmp ne i64 %rest, 0
  br i1 %some, label %recall, label %done.all

recall:
  %rest.odd = and i64 %rest, 1
  %rung = icmp ne i64 %rest.odd, 0
  %r.at = mul i64 %r, {POST_WORDS}
  %post.p = getelementptr i64, ptr %posts.end, i64 %r.at
  br i1 %rung, label %withdraw, label %retracted

withdraw:
  %r.spins = phi i64 [ 0, %recall ], [ %r.spins.next, %r.paused ]
  %back = cmpxchg ptr %post.p, i64 %self.end, i64 {STANDING} acq_rel monotonic
  %was = extractvalue { i64, i1 } %back, 0
  %works = icmp eq i64 %was, %busy
  br i1 %works, label %r.wait, label %retracted

r.wait:
  %r.spins.next = add i64 %r.spins, 1
  %r.patient = icmp ult i64 %r.spins.next, {SPINS}
  br i1 %r.patient, label %r.pause, label %r.yield

r.pause:
  {PAUSE}
  br label %r.paused

r.yield:
  {YIELD}
  br label %r.paused

r.paused:
  br label %withdraw

retracted:
  %r.next = add i64 %r, 1
  %rest.next = lshr i64 %rest, 1
  br label %retract

done.all:
  ret i64 %result
}

; Stand by at a post, and work on the lists that are left there. 1 if the caller of one turns out to be on the
; same processor: then only one of the two gets on.
define i64 @stand(ptr %post, i64 %number) {
entry:
  store atomic i64 {STANDING}, ptr %post release, align 8
  br label %listen

listen:
  %n = phi i64 [ 0, %entry ], [ %n.next, %rested ], [ 0, %served ], [ %n, %missed ], [ %n.next, %called.back ]
  %state = load atomic i64, ptr %post acquire, align 8
  switch i64 %state, label %called [ i64 {ABSENT}, label %leave
                                     i64 {STANDING}, label %idle ]

idle:
  %n.next = add i64 %n, 1
  %patient = icmp ult i64 %n.next, {PATIENCE}
  br i1 %patient, label %rest, label %quit

rest:
  %awake = icmp ult i64 %n.next, {SPINS}
  br i1 %awake, label %pause, label %yield

pause:
  {PAUSE}
  br label %rested

yield:
  {YIELD}
  br label %rested

rested:
  br label %listen

quit:
  %left = cmpxchg ptr %post, i64 {STANDING}, i64 {ABSENT} acq_rel monotonic
  %gone = extractvalue { i64, i1 } %left, 1
  br i1 %gone, label %leave, label %called.back

called.back:
  br label %listen

called:
  %taken = or i64 %state, 1
  %pair = cmpxchg ptr %post, i64 %state, i64 %taken acq_rel monotonic
  %mine = extractvalue { i64, i1 } %pair, 1
  br i1 %mine, label %serve, label %missed

missed:
  br label %listen

serve:
  %block = inttoptr i64 %state to ptr
  %threads.p = getelementptr i64, ptr %block, i64 {THREADS}
  %threads = load i64, ptr %threads.p
  %others = sub i64 %threads, 1
  %which = urem i64 %number, %others
  %thread = add i64 %which, 1
  %ran = call i64 @run(ptr %block, i64 0, i64 %thread, ptr null)
  %theirs.p = getelementptr i64, ptr %block, i64 {PROCESSOR}
  %theirs = load i32, ptr %theirs.p
  %here = {HELPERS_OWN}
  %together = icmp eq i32 %theirs, %here
  br i1 %together, label %move, label %stay

stay:
  store atomic i64 {STANDING}, ptr %post release, align 8
  br label %served

move:
  store atomic i64 {ABSENT}, ptr %post release, align 8
  ret i64 1

served:
  br label %listen

leave:
  ret i64 0
}

; Let those who stand by go.
define i64 @dismiss(ptr %posts, i64 %n) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i.next, %body ]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %body, label %end
body:
  %at = mul i64 %i, {POST_WORDS}
  %post = getelementptr i64, ptr %posts, i64 %at
  %pair = cmpxchg ptr %post, i64 {STANDING}, i64 {ABSENT} acq_rel monotonic
  %i.next = add i64 %i, 1
  br label %head
end:
  ret i64 0
}
"""

# Functions with the signature of kernels, for what is no kernel's work.
_SIGNATURE = (
    "ptr %ret, ptr %exc, ptr %args, i64 %lo, i64 %hi, i64 %first, i64 %last, i64 %rlo, i64 %rhi, i64 %part"
)

# args: destination, value. Elements from `lo` to `hi` become the value.
_FILL = """
define i32 @fill_{SIZE}({SIGNATURE}) {
entry:
  %to = load ptr, ptr %args
  %value.p = getelementptr i64, ptr %args, i64 1
  %value = load {TYPE}, ptr %value.p, align 8
  br label %head
head:
  %i = phi i64 [ %lo, %entry ], [ %i.next, %body ]
  %more = icmp slt i64 %i, %hi
  br i1 %more, label %body, label %end
body:
  %p = getelementptr {TYPE}, ptr %to, i64 %i
  store {TYPE} %value, ptr %p, align {ALIGN}
  %i.next = add i64 %i, 1
  br label %head
end:
  ret i32 0
}
"""

# args: destination, source. Bytes from `lo` to `hi` are copied.
_COPY = """
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)

define i32 @copy({SIGNATURE}) {
  %to = load ptr, ptr %args
  %from.p = getelementptr i64, ptr %args, i64 1
  %from = load ptr, ptr %from.p
  %a = getelementptr i8, ptr %to, i64 %lo
  %b = getelementptr i8, ptr %from, i64 %lo
  %n = sub i64 %hi, %lo
  call void @llvm.memmove.p0.p0.i64(ptr %a, ptr %b, i64 %n, i1 false)
  ret i32 0
}
"""

# args: code and data of a NumPy loop, result, source, what they advance by from one call to the
# next, count of a call, the steps of result and source within it. Calls `lo` to `hi`:
# result = loop(result, source).
_FOLD = """
define i32 @fold({SIGNATURE}) {
entry:
  %pointers = alloca [3 x ptr], align 16
  %steps = alloca [3 x i64], align 16
  %count = alloca i64, align 16
  %code = load ptr, ptr %args
  %data.p = getelementptr i64, ptr %args, i64 1
  %data = load ptr, ptr %data.p
  %result.p = getelementptr i64, ptr %args, i64 2
  %result = load ptr, ptr %result.p
  %source.p = getelementptr i64, ptr %args, i64 3
  %source = load ptr, ptr %source.p
  %result.by.p = getelementptr i64, ptr %args, i64 4
  %result.by = load i64, ptr %result.by.p
  %source.by.p = getelementptr i64, ptr %args, i64 5
  %source.by = load i64, ptr %source.by.p
  %m.p = getelementptr i64, ptr %args, i64 6
  %m = load i64, ptr %m.p
  %result.step.p = getelementptr i64, ptr %args, i64 7
  %result.step = load i64, ptr %result.step.p
  %source.step.p = getelementptr i64, ptr %args, i64 8
  %source.step = load i64, ptr %source.step.p
  %pointer1 = getelementptr ptr, ptr %pointers, i64 1
  %pointer2 = getelementptr ptr, ptr %pointers, i64 2
  %step1 = getelementptr i64, ptr %steps, i64 1
  %step2 = getelementptr i64, ptr %steps, i64 2
  br label %head
head:
  %i = phi i64 [ %lo, %entry ], [ %i.next, %body ]
  %more = icmp slt i64 %i, %hi
  br i1 %more, label %body, label %end
body:
  %result.at = mul i64 %i, %result.by
  %r = getelementptr i8, ptr %result, i64 %result.at
  %source.at = mul i64 %i, %source.by
  %s = getelementptr i8, ptr %source, i64 %source.at
  store ptr %r, ptr %pointers
  store ptr %s, ptr %pointer1
  store ptr %r, ptr %pointer2
  store i64 %result.step, ptr %steps
  store i64 %source.step, ptr %step1
  store i64 %result.step, ptr %step2
  store i64 %m, ptr %count
  call void %code(ptr %pointers, ptr %count, ptr %steps, ptr %data)
  %i.next = add i64 %i, 1
  br label %head
end:
  ret i32 0
}
"""


def _pause() -> tuple[str, str]:
    """What tells the core that a thread only waits, and its declaration."""
    machine = platform.machine().lower()
    if machine in ("x86_64", "amd64", "i686"):
        return "call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"
    if machine in ("aarch64", "arm64"):
        return "call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"
    return "fence seq_cst", ""


def _yielding() -> int:
    """The address of the function that offers the core to other threads; 0 if there is none."""
    function: Any
    try:
        if sys.platform == "win32":
            function = ctypes.WinDLL("kernel32").SwitchToThread
        else:
            function = ctypes.CDLL(None).sched_yield
    except (OSError, AttributeError):
        return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _processors() -> tuple[str, str]:
    """What tells the number of the processor that a caller is on, and a helper; they differ where nobody
    knows."""
    if threads.processor is None:
        return "add i32 0, -1", "add i32 0, -2"
    found = f"call i32 inttoptr (i64 {ctypes.cast(threads.processor, ctypes.c_void_p).value} to ptr)()"
    return found, found


def assembly() -> str:
    """The whole module."""
    pause, declaration = _pause()
    address = _yielding()
    callers, helpers_own = _processors()
    loads = [
        f"  %a{i}.p = getelementptr i64, ptr %call.p, i64 {i}\n  %a{i} = load i64, ptr %a{i}.p"
        for i in range(1, 9)
    ]
    words = {
        "NEXT": NEXT, "DONE": DONE, "LIMIT": LIMIT, "ERROR": ERROR, "STAGES": STAGES, "TICKETS": TICKETS,
        "CALLS": CALLS, "TICKETS_EACH": TICKETS_EACH, "PATCHES": PATCHES, "N_PATCHES": N_PATCHES,
        "THREADS": THREADS, "TICKET_WORDS": TICKET_WORDS, "FIRST": FIRST, "END": END, "TAKEN": TAKEN,
        "POSTS": POSTS, "N_POSTS": N_POSTS, "HELPERS": HELPERS, "POST_WORDS": threads.POST_WORDS,
        "PROCESSOR": PROCESSOR, "CALLERS": callers, "HELPERS_OWN": helpers_own,
        "ABSENT": _ABSENT, "STANDING": _STANDING, "PATIENCE": _PATIENCE,
        "CALL_WORDS": CALL_WORDS, "SPINS": _SPINS, "SIGNATURE": _SIGNATURE,
        "LOADS": "\n".join(loads), "PASSED": ", ".join(f"i64 %a{i}" for i in range(1, 9)),
        "PAUSE": pause, "YIELD": f"call i32 inttoptr (i64 {address} to ptr)()" if address else pause,
    }  # fmt: skip
    text = _filled(_RUN + _COPY + _FOLD, words)
    for size in FILLS:
        text += _filled(_FILL, {**words, "SIZE": size, "TYPE": f"i{8 * size}", "ALIGN": min(size, 8)})
    return text + declaration + "\n"


def _filled(text: str, words: dict[str, Any]) -> str:
    for name, value in words.items():
        text = text.replace("{" + name + "}", str(value))
    return text


class Native:
    """The module's functions: `run`, and the addresses of those that are called as kernels are."""

    def __init__(self) -> None:
        self.engine = compiler.assemble(assembly())
        prototype = ctypes.CFUNCTYPE(
            ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
        )
        # `thread` is below the block's number of threads; 0 is the caller.
        # run(block, times, thread, addresses): the number of the statement that failed, plus one, or 0.
        self.run: Any = prototype(self.engine.get_function_address("run"))
        two = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
        threads.natively(
            two(self.engine.get_function_address("stand")), two(self.engine.get_function_address("dismiss"))
        )
        self.copy: int = self.engine.get_function_address("copy")
        self.fold: int = self.engine.get_function_address("fold")
        self.fill: dict[int, int] = {n: self.engine.get_function_address(f"fill_{n}") for n in FILLS}


_lock = ForkLock()


@cache
def _made() -> Native:
    return Native()


def native() -> Native:
    """The module, made when it is first needed."""
    with _lock:
        return _made()
