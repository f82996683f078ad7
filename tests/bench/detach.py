"""How soon a launcher is back, and how soon the command runs."""

import os
import time

from common import Failed, Handle, contest, ends, least, program, python, spawn

POPEN = """import subprocess, sys
null = subprocess.DEVNULL
subprocess.Popen(sys.argv[1:], start_new_session=True, stdin=null, stdout=null, stderr=null)
"""
ROUNDS = 25


def launch(fifo, pidfile, argv):
    """Starts a launcher, and gives when it was back and when its command opened the fifo."""
    os.mkfifo(fifo)
    pidfile.unlink(missing_ok=True)
    heard = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        began = time.monotonic()
        launcher = Handle(spawn(argv))
        came, statuses = ends([launcher], [heard], of=argv)
        if statuses[launcher.pid] != 0:
            raise Failed(f"{argv[0]}: exit status {statuses[launcher.pid]}")
        launcher.close()
        return launcher.ended - began, came[heard] - began
    finally:
        os.close(heard)
        os.unlink(fifo)


def run(table, folder, _target):
    fifo = folder / "fifo"
    command = ["/bin/sh", "-c", f": >'{fifo}'"]
    pidfile = folder / "started.pid"
    daemon = ["start-stop-daemon", "--start", "--quiet", "--background", "--make-pidfile",
              "--pidfile", str(pidfile), "--startas", command[0], "--", *command[1:]]
    launchers = {
        "detach": ["detach", "--", *command],
        "setsid -f": ["setsid", "-f", *command],
        "daemonize": ["daemonize", *command],
        "start-stop-daemon -b": daemon,
        "python3 -c '… Popen(…)'": python(POPEN, *command),
    }
    both = {name: [] for name in launchers}

    def one(name):
        both[name].append(launch(fifo, pidfile, launchers[name]))
        return 0

    there = {name: (lambda name=name: one(name)) if program(argv[0]) else None
             for name, argv in launchers.items()}
    words = contest(there, ROUNDS)
    for index, what in enumerate(("until the launcher is back", "until the command runs")):
        costs = {name: least(pair[index] for pair in both[name]) if both[name] else words[name]
                 for name in launchers}
        ours = costs.pop("detach")
        table.add(what, "detach -- COMMAND", ours, costs)
