"""What a look at all processes costs: CPU time, among few and among many of them."""

import os
import uuid

from common import Sleepers, contest, cpu, program, psutil, spawn, stop

ROUNDS = 7
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
        # One that holds both the id and the file.
        holder = spawn(["bash", "-c", f"exec 9<'{held}'; read -r _ <>'{never}'", "agent",
                        "--session-id", id])
        try:
            while not os.path.exists(f"/proc/{holder}/fd/9"):
                pass
            questions(table, count, id, str(held))
        finally:
            stop(holder)


def questions(table, count, id, held):
    others = [str(uuid.uuid4()) for _ in range(MANY_IDS - 1)]
    scan = ["holder-scan", "-e"]
    one = [*scan, "--session-id", id]
    many = scan + [word for each in [id, *others] for word in ("--session-id", each)]
    asked = {
        "id": one,
        "file": [*scan, "--file", held],
        "ids": many,
        "pgrep -f ID": ["pgrep", "-f", id],
        " psutil, the arguments of each": psutil(FIND_ARGUMENT, id),
        "lsof -t FILE": ["lsof", "-t", held],
        "fuser FILE": ["fuser", held],
        " psutil, the open files of each": psutil(FIND_FILE, held),
    }
    costs = contest({name: (lambda argv=argv: cpu(argv)) if argv and program(argv[0]) else None
                     for name, argv in asked.items()}, ROUNDS)

    def of(*names):
        return {name: costs[name] for name in names}

    # A thousand options take two milliseconds to read, which is much of a short scan.
    bound = "limits" if count >= 3000 else "aims"
    among = f"CPU time among {count:,} processes"
    table.add(among, "holder-scan --session-id ID", costs["id"],
              of("pgrep -f ID", " psutil, the arguments of each"), limits={"pgrep -f ID": 0.4})
    table.add(among, "holder-scan --file FILE", costs["file"],
              of("lsof -t FILE", "fuser FILE", " psutil, the open files of each"))
    table.add(among, f" the same, {MANY_IDS:,} ids in one scan", costs["ids"],
              {" one id": costs["id"]}, **{bound: {" one id": 1.2}})
