"""What a decision costs, from start to end, with one and with many records to read."""

import json
import uuid

from common import contest, program, python, wall

ROUNDS = 25
READ = """import json, sys
[json.loads(line) for line in open(sys.argv[1])]
"""


def run(table, folder, _target):
    work = folder / "work"
    work.mkdir()
    id = str(uuid.uuid4())
    first = None
    for count in (1, 1000):
        history = folder / f"history.{count}"
        rows = ({"session_id": id, "code": n % 2, "uptime_ms": 90_000, "at": 1_700_000_000 + n}
                for n in range(count))
        history.write_text("".join(json.dumps(row) + "\n" for row in rows))
        ways = {
            "resume-id": ["resume-id", "-q", "--agent", "claude", "--cwd", str(work),
                          "--session-id", id, "--history", str(history)],
            "jq": ["jq", "-s", "length", str(history)],
            "python3 -c '… json.loads(…)'": python(READ, history),
            "true": ["/usr/bin/true"],
        }
        costs = contest({name: (lambda argv=argv: wall(argv)) if program(argv[0]) else None
                         for name, argv in ways.items()}, ROUNDS)
        ours = costs.pop("resume-id")
        if first is not None:
            costs[" one record"] = first
        first = first or ours
        many = "1 record" if count == 1 else f"{count:,} records"
        table.add(f"start to end, {many}", "resume-id --history", ours, costs)
