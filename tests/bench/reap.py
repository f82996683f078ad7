"""How soon after a death the waiting is over, and how soon a tree is dead."""

import os
import time

from common import Failed, Handle, chance, contest, descendants, ends, median, program, python
from common import spawn, stop

ROUNDS = 11
# It takes its time to die, as a server does.
TARGET = """import os, signal, sys, time
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
os.write(1, b".")
signal.sigwait({signal.SIGTERM})
time.sleep(float(sys.argv[1]))
os._exit(0)
"""
# Sixteen processes in three rows.
TREE = "for _ in 1 2 3 4 5; do sh -c 'sleep 900 & sleep 900 & wait' & done; wait"
TREE_SIZE = 16


def after_death(words):
    """How long after the death of a process its ender is back."""
    ready, wrote = os.pipe()
    argv = python(TARGET, f"{chance.uniform(0.05, 0.25):.3f}")
    target = Handle(spawn(argv, stdout=wrote))
    try:
        os.close(wrote)
        os.read(ready, 1)
        argv = [word.replace("PID", str(target.pid)) for word in words]
        ender = Handle(spawn(argv))
        _, statuses = ends([target, ender], of=argv)
        if statuses[ender.pid] != 0:
            raise Failed(f"{argv[0]}: exit status {statuses[ender.pid]}")
        ender.close()
        return max(ender.ended - target.ended, 0)
    finally:
        os.close(ready)
        target.close()
        if target.ended is None:
            stop(target.pid)


def tree(words):
    """How long it takes from the call until a whole tree is dead and the ender is back."""
    root = spawn(["sh", "-c", TREE])
    while len(pids := descendants(root)) < TREE_SIZE:
        time.sleep(0.002)
    handles = [Handle(pid) for pid in pids]
    try:
        argv = [word.replace("PID", str(root)) for word in words]
        began = time.monotonic()
        ender = Handle(spawn(argv))
        _, statuses = ends([*handles, ender], of=argv)
        if statuses[ender.pid] != 0:
            raise Failed(f"{argv[0]}: exit status {statuses[ender.pid]}")
        return max(handle.ended for handle in [*handles, ender]) - began
    finally:
        for handle in handles:
            if handle.ended is None:
                stop(handle.pid)
            handle.close()


def run(table, folder, target):
    loop = "kill PID; while kill -0 PID; do sleep {}; done"
    enders = {
        "reap": ["reap", "-q", "PID"],
        "kill; while kill -0; do sleep 0.1; done": ["sh", "-c", loop.format("0.1")],
        "… sleep 1 …": ["sh", "-c", loop.format("1")],
        "start-stop-daemon -K --retry": ["start-stop-daemon", "--stop", "--quiet", "--pid", "PID",
                                         "--retry", "TERM/5/KILL/2"],
    }
    costs = contest({name: (lambda argv=argv: after_death(argv)) if program(argv[0]) else None
                     for name, argv in enders.items()}, ROUNDS, median)
    ours = costs.pop("reap")
    table.add("from the death to the return", "reap PID", ours, costs)

    tree_kill = target / "node_modules/tree-kill/cli.js"
    there = tree_kill.exists() and program("node")
    enders = {
        "reap": ["reap", "-q", "--scope", "tree", "PID"],
        "tree-kill": ["node", str(tree_kill), "PID"] if there else None,
    }
    costs = contest({name: (lambda argv=argv: tree(argv)) if argv else None
                     for name, argv in enders.items()}, ROUNDS, median)
    ours = costs.pop("reap")
    table.add(f"until a tree of {TREE_SIZE} is dead", "reap --scope tree PID", ours, costs)
