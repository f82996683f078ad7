#!/usr/bin/env bash
# How fast eventwait is, beside what people use in its place: lines a second through a filter, and
# how long a wake-up takes. Usage: bench.sh [EVENTWAIT [LINES]]
# What is timed is called by its name.
# shellcheck disable=SC2317
set -euo pipefail

eventwait=${1:-eventwait}
lines=${2:-1000000}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

has() {
  command -v "$1" >/dev/null || { printf '%-44s not installed\n' "$1"; return 1; }
}

# Runs a command over the lines and says how many it took a second.
rate() {
  local what=$1 began ended
  shift
  began=$(date +%s%N)
  "$@" <lines >out || true
  ended=$(date +%s%N)
  printf '%-44s %6d ms  %9d lines/s\n' "$what" $(((ended - began) / 1000000)) \
    $((lines * 1000000000 / (ended - began)))
}

# The middle one of nine times from an event to the end of the wait for it, in microseconds.
# The command `arm` waits and `fire` makes the event.
wake() {
  local what=$1 arm=$2 fire=$3 began all=()
  for _ in 1 2 3 4 5 6 7 8 9; do
    rm -f p
    "$arm" &
    local waiting=$!
    sleep 0.2
    began=$(date +%s%N)
    "$fire"
    wait "$waiting" 2>/dev/null || true
    all+=($((($(date +%s%N) - began) / 1000)))
  done
  printf '%-44s %9d us\n' "$what" "$(printf '%s\n' "${all[@]}" | sort -n | sed -n 5p)"
}

for ((n = 0; n < 1000; n++)); do
  printf '{"event":"pane.output","data":{"pane_id":"w1:p%d","n":%d,"text":"some words"}}\n' \
    $((n % 9)) "$n"
done >block
for ((n = 0; n < lines / 1000; n++)); do cat block; done >lines

cat >reader.py <<'PY'
import json, socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect("s")
    for line in s.makefile("rb"):
        if json.loads(line).get("event") == sys.argv[1]:
            sys.stdout.buffer.write(line)
            sys.stdout.flush()
PY
cat >server.py <<'PY'
import os, socket
with socket.socket(socket.AF_UNIX) as s:
    if os.path.exists("s"):
        os.unlink("s")
    s.bind("s")
    s.listen(1)
    print("up", flush=True)
    c, _ = s.accept()
    with c, open("lines", "rb") as f:
        c.sendfile(f)
PY

# The same over a socket: a server that sends all lines to one client.
served() {
  python3 server.py >up &
  until [ -s up ]; do sleep 0.01; done
  rate "$@"
  wait
  : >up
}

echo "all of $lines lines match"
rate 'eventwait --stdin --match event=' "$eventwait" --stdin --all -t 300 --match event=pane.output
rate 'eventwait --stdin --line' "$eventwait" --stdin --all -t 300 --line pane.output
served 'eventwait --socket --match event=' "$eventwait" --socket s --all -t 300 --match event=pane.output
has python3 && served 'python3, a socket reader' python3 reader.py pane.output
has jq && rate 'jq --unbuffered select' jq -c --unbuffered 'select(.event == "pane.output")'
has grep && rate 'grep --line-buffered' grep --line-buffered pane.output

echo 'none matches'
rate 'eventwait --stdin --match event=' "$eventwait" --stdin --all -t 300 --match event=never
rate 'eventwait --stdin --line' "$eventwait" --stdin --all -t 300 --line never
served 'eventwait --socket --match event=' "$eventwait" --socket s --all -t 300 --match event=never
has python3 && served 'python3, a socket reader' python3 reader.py never
has jq && rate 'jq --unbuffered select' jq -c --unbuffered 'select(.event == "never")'
has grep && rate 'grep --line-buffered' grep --line-buffered never

echo 'from the event to the end of the wait'
appear() { touch p; }
leave() { kill "$(cat pid)"; }
sleeper() { sleep 60 & echo $! >pid; }
ours_path() { "$eventwait" -q --path p -t 9; }
theirs_path() { inotifywait -qq -e create .; }
ours_exit() { sleeper; "$eventwait" -q --exit "$(cat pid)" -t 9; }
theirs_exit() { sleeper; tail -f /dev/null --pid "$(cat pid)"; }
wake 'eventwait --path' ours_path appear
has inotifywait && wake 'inotifywait -e create' theirs_path appear
wake 'eventwait --exit' ours_exit leave
has tail && wake 'tail --pid' theirs_exit leave
exit 0
