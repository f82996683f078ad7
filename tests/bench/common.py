"""What all parts of the bench share: programs, time, and the table."""

import os
import random
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

os.environ["LC_ALL"] = "C"
os.environ["PATH"] += os.pathsep + "/usr/sbin"

NULL = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
# What is random is so in the same way each time.
chance = random.Random(1)


def program(name):
    """The path of a program, or None where it is not installed."""
    return shutil.which(name)


def python(code, *words):
    """A call of this same Python. Not the one on PATH, which may be a script that looks for it."""
    return [sys.executable, "-c", code, *map(str, words)]


def psutil(code, *words):
    """A call of a Python that has psutil, or None."""
    for path in dict.fromkeys([sys.executable, "/usr/bin/python3"]):
        try:
            has = subprocess.run([path, "-c", "import psutil"], stderr=subprocess.DEVNULL)
        except FileNotFoundError:
            continue
        if has.returncode == 0:
            return [path, "-c", "import psutil, sys\n" + code, *map(str, words)]
    return None


def spawn(argv, stdin=None, stdout=None):
    """Starts a program with nothing to read and nobody to read it, and gives its pid."""
    actions = [(os.POSIX_SPAWN_DUP2, NULL if fd is None else fd, at)
               for at, fd in ((0, stdin), (1, stdout), (2, None))]
    path = program(argv[0])
    if path is None:
        raise FileNotFoundError(argv[0])
    default = [signal.SIGPIPE, signal.SIGINT]
    return os.posix_spawn(path, argv, os.environ, file_actions=actions, setsigdef=default)


class Failed(Exception):
    """A contestant did not do the job."""


def finish(pid, argv, statuses=(0,)):
    """Waits for a program, and gives what it has used."""
    _, status, used = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if statuses is not None and code not in statuses:
        raise Failed(f"{' '.join(argv)[:200]}: exit status {code}")
    return used


def cpu(argv, stdin=None, stdout=None, statuses=(0,)):
    """The CPU time of a program, from its start to its end."""
    used = finish(spawn(argv, at_start(stdin), stdout), argv, statuses)
    return used.ru_utime + used.ru_stime


def wall(argv, stdin=None, stdout=None, statuses=(0,)):
    """The time from the start of a program to its end."""
    stdin = at_start(stdin)
    began = time.monotonic()
    finish(spawn(argv, stdin, stdout), argv, statuses)
    return time.monotonic() - began


def at_start(fd):
    if fd is not None:
        os.lseek(fd, 0, os.SEEK_SET)
    return fd


def least(values):
    return min(values)


def median(values):
    return sorted(values)[len(values) // 2]


def contest(contestants, rounds, pick=least):
    """Lets each have its turn in each round, so that what disturbs, disturbs all alike, and in another
    order each time, since a program leaves the caches to the next as it has used them. Takes a
    function without arguments for each name, gives a number for each, or a word where there is
    none. None stands for a program that is not installed."""
    found = {name: [] for name, measure in contestants.items() if measure}
    result = {name: "not installed" for name in contestants if name not in found}
    for _ in range(rounds):
        for name in chance.sample(list(found), len(found)):
            if name in result:
                continue
            try:
                found[name].append(contestants[name]())
            except Failed as why:
                print(f"  {why}", file=sys.stderr)
                result[name] = "failed"
    return result | {name: pick(all) for name, all in found.items() if name not in result}


class Table:
    """What came out: ratios, and the limits that they are to keep."""

    def __init__(self):
        self.rows = []
        self.missed = []

    def add(self, what, command, ours, theirs, limits=None, scale=1e3, unit="ms"):
        """A row: what one of ours costs beside others. `limits` has, by the name of another, the
        most that the ratio may be."""
        limits = limits or {}
        cells = []
        print(f"  {what}: {command} {amount(ours, scale, unit)}", file=sys.stderr)
        for name, cost in theirs.items():
            print(f"  {'':8}{name} {amount(cost, scale, unit)}", file=sys.stderr)
            limit = limits.get(name)
            if isinstance(cost, str) or isinstance(ours, str):
                exact = shown = ours if isinstance(ours, str) else cost
                kept = False
            else:
                exact, shown = f"{ours / cost:.3f}", number(ours / cost)
                kept = limit is None or ours / cost <= limit
            bound = f" (limit {limit})" if limit is not None else ""
            cells.append((shown, name, bound))
            if limit is not None and not kept:
                said = f"{what}: {command.strip()}: {exact} of {name.strip()}, not {limit}"
                self.missed.append(said)
        self.rows.append((what, command, cells))

    def markdown(self):
        lines = ["| what is measured | with | beside |", "|---|---|---|"]
        last = None
        for what, command, cells in self.rows:
            beside = []
            for ratio, name, bound in cells:
                beside.append(f"{code(name)} **{ratio}**{bound}")
            first = "" if what == last else what
            lines.append(f"| {first} | {code(command)} | {', '.join(beside)} |")
            last = what
        return "\n".join(lines)


def code(text):
    """A command as one; words that begin with a blank are no command."""
    return text[1:] if text.startswith(" ") else f"`{text}`".replace("|", "\\|")


def amount(cost, scale, unit):
    return cost if isinstance(cost, str) else f"{cost * scale:.2f} {unit}"


def number(ratio):
    """A ratio in two digits or more."""
    if ratio >= 10:
        return f"{ratio:.0f}"
    if ratio >= 1:
        return f"{ratio:.1f}" if ratio >= 2 else f"{ratio:.2f}"
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}" if ratio >= 0.0001 else "0"


class Sleepers:
    """Many processes that do nothing. The directory is theirs."""

    def __init__(self, count, folder):
        self.count, self.folder, self.pids = count, folder, []

    def __enter__(self):
        here = os.getcwd()
        os.chdir(self.folder)
        try:
            while len(self.pids) < self.count:
                self.pids.append(spawn(["sleep", "900"]))
        finally:
            os.chdir(here)
        return self

    def __exit__(self, *_):
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
        for pid in self.pids:
            os.waitpid(pid, 0)


class Handle:
    """A process's end, and when it was."""

    def __init__(self, pid):
        self.pid, self.fd, self.ended = pid, os.pidfd_open(pid), None

    def close(self):
        os.close(self.fd)


def ends(handles, others=(), of=()):
    """Waits until all of these have ended, and notes when each did. `others` are descriptors that
    are to become readable as well; gives when each did. Children are waited for at once: a zombie
    passes the tests that are made on pids."""
    poll = select.poll()
    left = {handle.fd: handle for handle in handles} | {fd: None for fd in others}
    for fd in left:
        poll.register(fd, select.POLLIN)
    came, statuses = {}, {}
    end = time.monotonic() + 60
    while left:
        if time.monotonic() > end:
            raise Failed(f"{' '.join(of)[:200]}: no end within a minute: {statuses} {left}")
        for fd, _ in poll.poll(1000):
            now = time.monotonic()
            poll.unregister(fd)
            handle = left.pop(fd)
            if handle is None:
                came[fd] = now
                continue
            handle.ended = now
            try:
                statuses[handle.pid] = os.waitstatus_to_exitcode(os.waitpid(handle.pid, 0)[1])
            except ChildProcessError:
                pass  # Not ours to wait for.
    return came, statuses


def stat(pid):
    """The parent and the state of a process, or None."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    words = text[text.rindex(")") + 2:].split()
    return int(words[1]), words[0]


def descendants(root):
    """A process and all that came from it."""
    parents = {int(name): stat(name) for name in os.listdir("/proc") if name.isdigit()}
    tree = [root]
    for pid in tree:
        tree += [child for child, of in parents.items() if of and of[0] == pid]
    return tree


def ran(pid):
    """How long a process has been running, with all that came from it."""
    total = 0
    for one in descendants(pid):
        try:
            total += int(Path(f"/proc/{one}/schedstat").read_text().split()[0])
        except (OSError, IndexError):
            pass
    return total


def settle(pid, quiet=0.06, most=2):
    """Waits until a process does nothing."""
    end = time.monotonic() + most
    before, since = ran(pid), time.monotonic()
    while time.monotonic() < end and time.monotonic() - since < quiet:
        time.sleep(0.01)
        now = ran(pid)
        if now != before:
            before, since = now, time.monotonic()


def memory(pid):
    """The most memory that a process has had, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise Failed("no memory")


def stop(pid):
    """Ends a process of ours, with all that came from it."""
    for one in descendants(pid):
        try:
            os.kill(one, signal.SIGKILL)
        except ProcessLookupError:
            pass
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass
