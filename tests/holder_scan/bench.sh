#!/usr/bin/env bash
# What a scan costs beside what people use in its place, among many processes: the CPU time of each,
# the least of several runs, and its ratio to 'pgrep -f' on the same question. Fails where that is
# more than 0.4 for holder-scan. Usage: bench.sh [HOLDER-SCAN [PROCESSES]]
set -euo pipefail
export LC_ALL=C

scan=${1:-holder-scan}
count=${2:-3000}
runs=7
dir=$(mktemp -d)
sleepers=()
trap 'kill "${sleepers[@]}" 2>/dev/null; rm -rf "$dir"' EXIT
cd "$dir"

id=$(cat /proc/sys/kernel/random/uuid)
: >held
for ((n = 0; n < count; n++)); do
  sleep 900 &
  sleepers+=($!)
done
# One that holds both the id and the file.
mkfifo never
bash -c 'read -r _ <>never 9<held' agent --session-id "$id" &
sleepers+=($!)
until pgrep -f "$id" >/dev/null; do sleep 0.05; done

# The least CPU time of a command, in microseconds. It has to find something.
cost() {
  local TIMEFORMAT='%3U %3S' least='' took user system run
  "$@" >/dev/null 2>&1 || return
  for ((run = 0; run < runs; run++)); do
    took=$({ time "$@" >/dev/null 2>&1; } 2>&1)
    read -r user system <<<"${took//./}"
    took=$(((10#$user + 10#$system) * 1000))
    if [ -z "$least" ] || [ "$took" -lt "$least" ]; then least=$took; fi
  done
  echo "$least"
}

# Says what a command costs, as a ratio to $base.
base=0
line() {
  local what=$1 least ratio
  shift
  least=$(cost "$@") || { printf '%-40s failed\n' "$what"; return; }
  if [ "$base" = 0 ]; then base=$least; fi
  ratio=$((least * 100 / base))
  printf '%-40s %6d ms  %3d.%02d\n' "$what" $((least / 1000)) $((ratio / 100)) $((ratio % 100))
  case $what in *--session-id*) asked=$ratio ;; esac
}

has() {
  command -v "$1" >/dev/null || { printf '%-40s not installed\n' "$1"; return 1; }
}

echo "$count processes: CPU time, and its ratio to pgrep -f"
line 'pgrep -f ID' pgrep -f "$id"
line 'holder-scan --session-id ID' "$scan" -e --session-id "$id"
line 'holder-scan --file FILE' "$scan" -e --file held
has lsof && line 'lsof -t FILE' lsof -t held
has fuser && line 'fuser FILE' fuser held
if python3 -c 'import psutil' 2>/dev/null; then
  find_id='import psutil, sys
sys.exit(not any(sys.argv[1] in p.info["cmdline"] for p in psutil.process_iter(["cmdline"])))'
  line 'psutil, the arguments of each' python3 -c "$find_id" "$id"
else
  printf '%-40s not installed\n' psutil
fi
[ "${asked:-100}" -le 40 ]
