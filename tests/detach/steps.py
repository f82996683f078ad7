"""Runs a command and kills it, or the process that it forks first, at its Nth system call.

    steps.py guard N COMMAND...    the first fork, counted from its birth
    steps.py death N COMMAND...    the first fork, counted from the command's own end;
                                   the file `go` is made then
    steps.py self N COMMAND...     the command itself

Entry and exit of a system call are one step each. Prints `killed` or, where the command ended
with fewer steps, or in the first two cases nothing more had happened for a while, `through`; then
the number of steps, and the process that the first fork has forked, or 0.
"""

import ctypes
import os
import signal
import sys
import time

TRACEME, CONT, SYSCALL, DETACH, SETOPTIONS = 0, 7, 24, 17, 0x4200
SYSGOOD, FORKS = 0x1, 0x2 | 0x4 | 0x8
WALL = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, pid, data=0):
    return libc.ptrace(request, pid, None, ctypes.c_void_p(data))


def let_go(known):
    """Detaches from whoever has stopped by now, and gives the one that was not known."""
    new = 0
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        try:
            pid, status = os.waitpid(-1, WALL | os.WNOHANG)
        except ChildProcessError:
            break
        if pid and os.WIFSTOPPED(status):
            new = new or (pid if pid not in known else 0)
            ptrace(DETACH, pid)
        elif not pid:
            time.sleep(0.001)
    return new


def main():
    mode, last, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    caller = os.fork()
    if caller == 0:
        ptrace(TRACEME, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.execv(command[0], command)
    os.waitpid(caller, WALL)
    ptrace(SETOPTIONS, caller, SYSGOOD | FORKS)
    # The stop of execv comes first; a process that is awaited may stop before its parent says so.
    counted = caller if mode == "self" else None
    counting = mode != "death"
    steps = 0
    known = {caller}
    child = 0
    ptrace(SYSCALL if counted else CONT, caller)
    quiet = None
    while True:
        pid, status = os.waitpid(-1, WALL | os.WNOHANG)
        if pid == 0:
            # Nobody has moved: after the caller's end that is the guard, waiting.
            if quiet is not None and time.monotonic() - quiet > 1.5:
                return "through", steps, child
            time.sleep(0.0005)
            continue
        if quiet is not None:
            quiet = time.monotonic()
        if not os.WIFSTOPPED(status):
            if pid == counted:
                return "through", steps, child
            if pid == caller:
                if mode == "death":
                    counting = True
                    open("go", "w").close()
                quiet = time.monotonic()
            continue
        stopped = os.WSTOPSIG(status)
        if pid not in known:
            known.add(pid)
            if counted is None:
                counted = pid
                ptrace(SYSCALL, pid)
            else:
                child = child or pid
                ptrace(DETACH, pid)
            continue
        passed_on = 0
        if stopped == signal.SIGTRAP | 0x80:
            steps += counting
            if counting and steps == last:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, WALL)
                # What it has just forked may not have been seen yet.
                new = let_go(known)
                return "killed", steps, child or new
        elif stopped not in (signal.SIGTRAP, signal.SIGSTOP):
            passed_on = stopped
        ptrace(SYSCALL if pid == counted else CONT, pid, passed_on)


print(*main())
