"""What a look at all processes costs: CPU time, among few and among many of them."""

import os
import signal
import uuid
from pathlib import Path

from common import Sleepers, contest, cpu, median, program, psutil, spawn, stop

ROUNDS = 15
MANY_ROUNDS = 101
MANY_IDS = 1000

FIND_ARGUMENT = """
found = [p for p in psutil.process_iter(["cmdline"]) if sys.argv[1] in (p.info["cmdline"] or ())]
sys.exit(not found)
"""
FIND_FILE = """
def holds(p):
    try:
        return any(f.path == sys.argv[1] for f in p.open_files())
    except psutil.Error:
        return False
found = [p.pid for p in psutil.process_iter() if holds(p)]
sys.exit(not found)
"""


def run(table, folder, _target):
    sessions(folder)
    for count in (300, 3000):
        among(table, folder, count)


def sessions(home):
    """An agent's earlier sessions, as every home with an agent has them."""
    for project in range(20):
        project = home / f".claude/projects/-srv-app-{project}"
        project.mkdir(parents=True)
        for _ in range(5):
            (project / f"{uuid.uuid4()}.jsonl").write_text("{}\n")


def among(table, folder, count):
    id = str(uuid.uuid4())
    held = folder / "held"
    held.touch()
    never = folder / "never"
    if not never.exists():
        os.mkfifo(never)
    with Sleepers(count, folder):
        # One that holds both the id and the file, and one that has a child.
        holder = spawn(["bash", "-c", f"exec 9<'{held}'; read -r _ <>'{never}'", "agent",
                        "--session-id", id])
        tree_id = str(uuid.uuid4())
        tree = spawn(["bash", "-c", f"(read -r _ <>'{never}') & read -r _ <>'{never}'", "wrapper",
                      "--session-id", tree_id])
        try:
            while not (os.path.exists(f"/proc/{holder}/fd/9") and children(tree)):
                pass
            questions(table, count, id, tree_id, str(held))
        finally:
            for child in children(tree):
                os.kill(child, signal.SIGKILL)
            stop(holder)
            stop(tree)


def children(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def questions(table, count, id, tree_id, held):
    others = [str(uuid.uuid4()) for _ in range(MANY_IDS - 1)]
    scan = ["holder-scan", "-e"]
    one = [*scan, "--session-id", id]
    many = scan + [word for each in [id, *others] for word in ("--session-id", each)]
    asked = {
        "id": one,
        "tree": [*scan, "--session-id", tree_id],
        "file": [*scan, "--file", held],
        "pgrep -f ID": ["pgrep", "-f", id],
        " psutil, the arguments of each": psutil(FIND_ARGUMENT, id),
        "lsof -t FILE": ["lsof", "-t", held],
        "fuser FILE": ["fuser", held],
        " psutil, the open files of each": psutil(FIND_FILE, held),
    }
    measures = {name: (lambda argv=argv: cpu(argv)) if argv and program(argv[0]) else None
                for name, argv in asked.items()}
    # All of the sleepers are siblings of the scan, any of which could be of its pipeline.
    reader, pipe = os.pipe2(os.O_CLOEXEC)
    measures["piped"] = lambda: cpu(one, stdout=pipe) + drained(reader)
    costs = contest(measures, ROUNDS)
    os.close(reader)
    os.close(pipe)
    # So small a difference is less than what the least of them differ by from run to run.
    ids = contest({"one": lambda: cpu(one), "many": lambda: cpu(many)}, MANY_ROUNDS, median)

    def of(*names):
        return {name: costs[name] for name in names}

    among = f"CPU time among {count:,} processes"
    pgrep = {"pgrep -f ID": 0.4}
    table.add(among, "holder-scan --session-id ID", costs["id"],
              of("pgrep -f ID", " psutil, the arguments of each"), limits=pgrep)
    table.add(among, " the same, of a holder with a child", costs["tree"], of("pgrep -f ID"),
              limits=pgrep)
    table.add(among, " the same, into a pipe", costs["piped"], of("pgrep -f ID"), limits=pgrep)
    table.add(among, f" the same, {MANY_IDS:,} ids in one scan", ids["many"],
              {" one id": ids["one"]}, limits={" one id": 1.2})
    table.add(among, "holder-scan --file FILE", costs["file"],
              of("lsof -t FILE", "fuser FILE", " psutil, the open files of each"))


def drained(reader):
    """Takes what is in a pipe, at no cost."""
    os.read(reader, 1 << 16)
    return 0
