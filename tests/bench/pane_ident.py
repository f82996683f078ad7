"""What it costs to ask whether records still hold, with one and with many; and to bind a pane."""

import os
import subprocess

from common import Sleepers, contest, program, psutil, wall

ROUNDS = 25
MANY = 1000
STARTED = """
for pid in map(int, sys.argv[1].split(",")):
    psutil.Process(pid).create_time()
"""


def run(table, folder, _target):
    with Sleepers(MANY, folder) as sleepers:
        listed = subprocess.run(["holder-scan", "--cwd", str(folder)], check=True,
                                capture_output=True).stdout.splitlines(keepends=True)
        records = [line for line in listed if b'"type":"holder"' in line][:MANY]
        first = None
        for count in (1, MANY):
            pids = ",".join(map(str, sleepers.pids[:count]))
            bound = folder / f"bound.{count}"
            bound.write_bytes(b"".join(records[:count]))
            stdin = os.open(bound, os.O_RDONLY)
            ways = {
                "pane-ident": ["pane-ident", "verify", "-q"],
                "ps -o lstart= -p PIDS": ["ps", "-o", "lstart=", "-p", pids],
                " psutil, the start of each": psutil(STARTED, pids),
                "true": ["/usr/bin/true"],
            }
            costs = contest({name: (lambda argv=argv: wall(argv, stdin))
                             if argv and program(argv[0]) else None
                             for name, argv in ways.items()}, ROUNDS)
            os.close(stdin)
            ours = costs.pop("pane-ident")
            if first is not None:
                costs[" one record"] = first
            first = first or ours
            many = "1 record" if count == 1 else f"{count:,} records"
            table.add(f"start to end, {many}", "pane-ident verify", ours, costs)
    pane(table, folder)


def pane(table, folder):
    if not program("tmux"):
        return
    server = str(folder / "tmux")
    tmux = ["tmux", "-S", server]
    os.environ.pop("TMUX", None)
    subprocess.run([*tmux, "-f", os.devnull, "new-session", "-d", "sleep 900"], check=True)
    try:
        asks = {
            "pane-ident": ["pane-ident", "capture", "--tmux", "%0", "--tmux-socket", server],
            "tmux display -p -t PANE": [*tmux, "display", "-p", "-t", "%0", "#{pane_pid}"],
        }
        costs = contest({name: lambda argv=argv: wall(argv) for name, argv in asks.items()}, ROUNDS)
    finally:
        subprocess.run([*tmux, "kill-server"], check=True)
    ours = costs.pop("pane-ident")
    table.add("start to end, a pane", "pane-ident capture --tmux PANE", ours, costs)
