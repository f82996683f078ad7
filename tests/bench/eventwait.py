"""How many lines a filter takes, how soon a wait is over, and what it has of memory."""

import os
import signal
import socket
import time

from common import Failed, Handle, chance, contest, ends, median, memory, program, python, settle
from common import spawn, stop, wall

LINES = 200_000
# What takes its lines as they are is too fast for so few.
MANY_LINES = 2_000_000
ROUNDS = 5
WAKES = 15

READER = """import json, socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    for line in s.makefile("rb"):
        if json.loads(line).get("event") == sys.argv[2]:
            sys.stdout.buffer.write(line)
            sys.stdout.flush()
"""
READ_ONE = READER + "            sys.exit()\n"


def run(table, folder, _target):
    lines = folder / "lines"
    block = "".join(f'{{"event":"pane.output","data":{{"pane_id":"w1:p{n % 9}","n":{n},'
                    f'"text":"some words"}}}}\n' for n in range(1000))
    lines.write_text(block * (LINES // 1000))
    many_lines = folder / "many-lines"
    many_lines.write_text(block * (MANY_LINES // 1000))
    throughput(table, folder, lines, many_lines)
    latency(table, folder)
    memories(table, folder, lines)


def throughput(table, folder, lines, many_lines):
    out = os.open(folder / "out", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    s = str(folder / "s")

    def emptied():
        os.ftruncate(out, 0)
        os.lseek(out, 0, os.SEEK_SET)

    def from_file(argv, path):
        emptied()
        with open(path, "rb") as file:
            return wall(argv, file.fileno(), out, (0, 1))

    def from_socket(argv, path):
        emptied()
        with Server(s, path):
            return wall(argv, None, out, (0, 1))

    everything = ["--all", "-t", "300"]
    for event, all_match in (("pane.output", True), ("never", False)):
        match = ["--match", f"event={event}"]
        select = f'select(.event == "{event}")'
        for way, path, count, ours, argv, theirs, other in (
            (from_file, many_lines, MANY_LINES,
             "eventwait --stdin --line", ["eventwait", "--stdin", *everything, "--line", event],
             "grep --line-buffered", ["grep", "--line-buffered", event]),
            (from_file, lines, LINES,
             "eventwait --stdin --match", ["eventwait", "--stdin", *everything, *match],
             "jq --unbuffered", ["jq", "-c", "--unbuffered", select]),
            (from_socket, lines, LINES,
             "eventwait --socket --match", ["eventwait", "--socket", s, *everything, *match],
             " a reader in Python", python(READER, s, event)),
        ):
            def took(argv, way=way, path=path, expected=count if all_match else 0):
                took = way(argv, path)
                with open(folder / "out", "rb") as file:
                    if (came := sum(1 for _ in file)) != expected:
                        raise Failed(f"{argv[0]}: {came} lines, not {expected}")
                return took

            costs = contest({name: (lambda argv=argv: took(argv)) if program(argv[0]) else None
                             for name, argv in ((ours, argv), (theirs, other))}, ROUNDS)
            what = f"time for {count:,} lines, {'all match' if all_match else 'none matches'}"
            table.add(what, ours, costs[ours], {theirs: costs[theirs]})
    os.close(out)


class Server:
    """Sends all lines to one client. A process of its own, so that it costs the client nothing;
    with `stay` it does not hang up then."""

    def __init__(self, path, lines, stay=False):
        self.path, self.lines, self.stay = str(path), lines, stay

    def __enter__(self):
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(self.path)
            listening.listen(1)
            self.pid = os.fork()
            if self.pid == 0:
                try:
                    client, _ = listening.accept()
                    with open(self.lines, "rb") as file:
                        client.sendfile(file)
                    while self.stay:
                        signal.pause()
                finally:
                    os._exit(0)
        return self

    def __exit__(self, *_):
        stop(self.pid)
        os.unlink(self.path)


def latency(table, folder):
    path, log = folder / "p", folder / "log"
    log.touch()

    def wake(argv, fire):
        return wake_up(Handle(spawn(argv)), fire, argv)

    def wake_up(waiter, fire, argv):
        """The time from an event to the end of the wait for it."""
        settle(waiter.pid)
        # At any moment of a loop that looks now and then.
        time.sleep(chance.uniform(0, 0.25))
        fire()
        began = time.monotonic()
        ends([waiter], of=argv)
        waiter.close()
        return max(waiter.ended - began, 0)

    def appears(argv):
        path.unlink(missing_ok=True)
        return wake(argv, path.touch)

    def dies(argv):
        sleeper = spawn(["sleep", "900"])

        def leave():
            os.kill(sleeper, signal.SIGKILL)
            os.waitpid(sleeper, 0)
        return wake([word.replace("PID", str(sleeper)) for word in argv], leave)

    def sends(argv):
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(folder / "s"))
            listening.listen(1)
            waiter = Handle(spawn(argv))
            client, _ = listening.accept()
        with client:
            os.unlink(folder / "s")
            took = wake_up(waiter, lambda: client.sendall(b'{"event":"ready"}\n'), argv)
        return took

    def says(argv):
        log.write_text("")

        def line():
            with open(log, "a") as file:
                file.write("it is ready\n")
        return wake(argv, line)

    def sh(line):
        return ["sh", "-c", line]

    short = ["-q", "-t", "9"]
    for what, event, ours, argv, theirs in (
        ("until it is told: a path", appears, "eventwait --path",
         ["eventwait", *short, "--path", str(path)],
         {"inotifywait -e create": ["inotifywait", "-qq", "-e", "create", str(folder)],
          "until [ -e p ]; do sleep .25; done": sh(f"until [ -e '{path}' ]; do sleep .25; done")}),
        ("until it is told: an end", dies, "eventwait --exit",
         ["eventwait", *short, "--exit", "PID"],
         {"tail --pid": ["tail", "-f", "/dev/null", "--pid", "PID"],
          "while kill -0; do sleep .25; done": sh("while kill -0 PID; do sleep .25; done")}),
        ("until it is told: a line on a socket", sends, "eventwait --socket --match",
         ["eventwait", *short, "--socket", str(folder / "s"), "--match", "event=ready"],
         {" a reader in Python": python(READ_ONE, folder / "s", "ready")}),
        ("until it is told: a line in a file", says, "eventwait --follow --line",
         ["eventwait", *short, "--follow", str(log), "--line", "ready"],
         {"tail -f | grep -m1": sh(f"tail -f '{log}' | grep -m1 ready"),
          "until grep -q; do sleep .25; done":
              sh(f"until grep -q ready '{log}'; do sleep .25; done")}),
    ):
        costs = contest({name: (lambda argv=argv: event(argv)) if program(argv[0]) else None
                         for name, argv in ({ours: argv} | theirs).items()}, WAKES, median)
        table.add(what, ours, costs.pop(ours), costs)


def memories(table, folder, lines):
    def waiting(argv, stdin=None):
        """The most that a wait has had, when it has nothing left to do."""
        pid = spawn(argv, stdin)
        try:
            settle(pid, 0.2, 60)
            return memory(pid)
        finally:
            stop(pid)

    def flooded(argv, connected=False):
        with Server(folder / "s", lines, stay=True):
            if not connected:
                return waiting(argv)
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(folder / "s"))
                return waiting(argv, client.fileno())

    s = str(folder / "s")
    one = {
        "eventwait --socket --match": lambda: flooded(
            ["eventwait", "--socket", s, "--all", "-t", "300", "--match", "event=never"]),
        "jq": lambda: flooded(["jq", "-c", 'select(.event == "never")'], True),
        " a reader in Python": lambda: flooded(python(READER, s, "never")),
    }
    never, this = str(folder / "never"), str(os.getpid())
    two = {
        "eventwait --path": lambda: waiting(["eventwait", "-t", "300", "--path", never]),
        "inotifywait -e create":
            lambda: waiting(["inotifywait", "-qq", "-e", "create", str(folder)]),
    }
    three = {
        "eventwait --exit": lambda: waiting(["eventwait", "-t", "300", "--exit", this]),
        "tail --pid": lambda: waiting(["tail", "-f", "/dev/null", "--pid", this]),
    }
    for what, ways in ((f"most memory, after {LINES:,} lines", one),
                       ("most memory of a wait", two), ("most memory of a wait", three)):
        costs = contest({name: way if name.startswith(" ") or program(name.split()[0]) else None
                         for name, way in ways.items()}, 2)
        ours = next(iter(ways))
        table.add(what, ours, costs.pop(ours), costs, scale=1 / 2**20, unit="MiB")
