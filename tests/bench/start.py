"""What a start costs: instructions, beside those of `true`."""

import getpass
import os
import subprocess
import sys
from pathlib import Path

from common import Failed, contest, program

TRUE = "/usr/bin/true"
# A limit on the start: twice what `true` costs. The job's own instructions come on top.
LIMIT = 2.0
MEBIBYTE = 1 << 20


def instructions(folder, argv, status=0):
    """The instructions of a program, and those of them before its `main`. Of a program that forks,
    those of all its processes up to their exec."""
    for old in folder.glob("callgrind.*"):
        old.unlink()
    line = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/callgrind.%p", *argv]
    run = subprocess.run(line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    if run.returncode != status:
        raise Failed(f"{' '.join(argv)}: exit status {run.returncode}")
    costs = [read(profile) for profile in folder.glob("callgrind.*")]
    total = sum(total for total, _ in costs)
    return total, total - sum(job for _, job in costs)


def read(profile):
    """All instructions in callgrind's notes, and those of the program's `main` and what it calls.
    A line behind `calls=` says what a callee costs with all that it calls. `main` is where another
    file than the program, the C library, calls into the program for the longest."""
    names, total, job = {}, 0, 0
    at = callee = program = None
    for line in profile.read_text(errors="replace").splitlines():
        if line.startswith("cmd: "):
            program = Path(line[5:].split()[0]).name
        elif line.startswith(("ob=", "cob=")):
            key, _, name = line.partition("=")[2].partition(" ")
            if name:
                names[key] = Path(name).name
            if line.startswith("ob="):
                at = names[key]
            else:
                callee = names[key]
        elif line.startswith("calls="):
            called = True
            continue
        elif line[:1] in set("0123456789+-*"):
            cost = int(line.split()[1])
            if not called:
                total += cost
            elif callee == program and at != program:
                job = max(job, cost)
            callee = None
        called = False
    return total, job


def run(table, folder, _target):
    ident = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    ident = f"linux:{ident}:1:2:3:4"
    here = folder / "here"
    here.touch()
    dump = subprocess.run(["holder-scan", "--dump"], capture_output=True, check=True).stdout
    lines = dump.splitlines(keepends=True)
    scan = [line for line in lines if b'"type":"process_entry"' not in line]
    row = folder / "row.jsonl"
    row.write_bytes(lines[0] + b"".join(scan))
    # The least that each has to do, as it is shown and as it is, and the status at its end.
    jobs = {
        "detach": ("-q -- true", ["-q", "--", TRUE], 0),
        "reap": ("</dev/null", [], 0),
        "holder-scan": ("--from ONE-ROW --cwd DIR", ["--from", str(row), "--cwd", "/nowhere"], 0),
        "pane-ident": ("verify -q IDENT", ["verify", "-q", ident], 3),
        "eventwait": ("-q --path THERE -t 0", ["-q", "--path", str(here), "-t", "0"], 0),
        "resume-id": ("-q --agent claude --cwd / --session-id ''",
                      ["-q", "--agent", "claude", "--cwd", "/", "--session-id", ""], 0),
    }
    for tool in jobs:
        table.add("bytes of the binary", f" {tool}", os.path.getsize(program(tool)),
                  {" a mebibyte": MEBIBYTE}, limits={" a mebibyte": 1.0}, scale=1, unit="B")
    if not program("valgrind"):
        table.add("instructions of a start", " all tools", "not installed", {"valgrind": 0},
                  limits={"valgrind": LIMIT})
        return
    true, _ = instructions(folder, [TRUE])
    empty = empty_program(folder)
    beside = {"true": true}
    versions = {}
    for tool in jobs:
        versions[tool], start = instructions(folder, [tool, "--version"])
        theirs = beside | ({" an empty Rust program": empty} if empty else {})
        table.add("instructions before the job", f" {tool}", start, theirs,
                  limits={"true": LIMIT}, scale=1e-3, unit="k")
    for tool, cost in versions.items():
        table.add("instructions of a version", f"{tool} --version", cost, beside,
                  scale=1e-3, unit="k")
    for tool, (shown, words, status) in jobs.items():
        cost = contest({tool: lambda: instructions(folder, [tool, *words], status)[0]}, 1)[tool]
        table.add("instructions of the least job", f"{tool} {shown}", cost,
                  beside | {f"{tool} --version": versions[tool]}, scale=1e-3, unit="k")


def empty_program(folder):
    """What a Rust program costs that does nothing, as the compiler links it unasked. None where
    there is no compiler."""
    if not program("rustc"):
        return None
    source, binary = folder / "empty.rs", folder / "empty"
    source.write_text("fn main() {}\n")
    flags = ["-C", "opt-level=3", "-C", "strip=symbols"]
    # With the home that it was installed in.
    home = os.environ | {"HOME": os.path.expanduser(f"~{getpass.getuser()}")}
    made = subprocess.run(["rustc", *flags, "-o", binary, source], env=home,
                          stderr=subprocess.DEVNULL)
    if made.returncode != 0:
        return None
    return instructions(folder, [str(binary)])[0]
