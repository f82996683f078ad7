#!/usr/bin/env python3
"""What the tools cost beside what they stand in for: ratios, all in one run.

Usage: bench.py BIN DIR [PART]...

BIN is the folder of the tools, DIR one with what is installed for the bench alone. With all parts,
the table in README.md is written again. Fails where a limit is missed, at the end. It runs on Linux
only.
"""

import datetime
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True

import common  # noqa: E402
import detach  # noqa: E402
import eventwait  # noqa: E402
import holder_scan  # noqa: E402
import pane_ident  # noqa: E402
import reap  # noqa: E402
import resume_id  # noqa: E402
import start  # noqa: E402

PARTS = {"start": start, "detach": detach, "holder-scan": holder_scan, "reap": reap,
         "eventwait": eventwait, "resume-id": resume_id, "pane-ident": pane_ident}
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"


def machine():
    """The machine and the day, in one sentence."""
    def line(path, key):
        for text in Path(path).read_text().splitlines():
            if text.startswith(key):
                return text.partition(":")[2].strip()
        return "unknown"
    memory = int(line("/proc/meminfo", "MemTotal").split()[0]) / 2**20
    return (f"Measured on {datetime.date.today()}: {line('/proc/cpuinfo', 'model name')}, "
            f"{os.cpu_count()} cores, {memory:.0f} GiB, Linux {platform.release()}.")


def main(bin, target, *parts):
    os.environ["PATH"] = os.path.abspath(bin) + os.pathsep + os.environ["PATH"]
    os.environ["PYTHONPATH"] = os.path.abspath(Path(target) / "python")
    table = common.Table()
    for name in parts or PARTS:
        print(name, file=sys.stderr)
        # It is the home too, so that nobody's own files have a part in it.
        folder = Path(tempfile.mkdtemp(prefix="bench."))
        os.environ["HOME"] = str(folder)
        try:
            PARTS[name].run(table, folder, Path(target).absolute())
        finally:
            shutil.rmtree(folder)
    text = f"{machine()}\n\n{table.markdown()}"
    print(text)
    if not parts:
        write(text)
    for missed in table.missed:
        print(f"limit missed: {missed}", file=sys.stderr)
    return 1 if table.missed else 0


def write(text):
    """Puts the table into the README, between its two marks."""
    readme = Path(__file__).parents[2] / "README.md"
    before, _, rest = readme.read_text().partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        sys.exit("README.md has no place for the table")
    readme.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


if __name__ == "__main__":
    if len(sys.argv) < 3 or any(part not in PARTS for part in sys.argv[3:]):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
