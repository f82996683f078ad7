#!/usr/bin/env bash
# The main job on real processes, without any agent installed: a wrapper whose agent is gone, a
# stranger that holds the same session, somebody who only names it; found, told apart, ended or
# left alone. Each step prints the command, its record, and one sentence; the exit status says
# whether every step held.
#
#   demo.sh [DIR]      the folder of the tools; without it they are looked for on PATH
# shellcheck disable=SC2317 # functions are called by the trap, and by name
set -uo pipefail

if [ $# -gt 0 ]; then
  PATH=$(cd "$1" && pwd):$PATH
fi
work=$(mktemp -d)
cd "$work" || exit 125
# An id of its own, so that two demos on one machine are two sessions.
id=$(printf '6f1c1d2e-3b4a-4c5d-8e6f-%06x%06x' "$$" "$RANDOM")
failed=0

# Whatever happens, what was started here is ended, by identity, and nothing is left.
finish() {
  cat ./*.record 2>/dev/null | reap -q --grace 1s
  cd / && rm -rf "$work"
}
trap finish EXIT

step() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() {
  printf '  $ %s\n' "$*"
  eval "$*" >out 2>err
  status=$?
  sed 's/^/    /' out err
}
# holds SENTENCE TEST...: the sentence, and whether it is true.
holds() {
  local sentence=$1
  shift
  if "$@"; then
    printf '  ok: %s\n' "$sentence"
  else
    printf '  NOT SO: %s\n' "$sentence"
    failed=1
  fi
}
# The state of a process; a zombie is dead.
lives() { case $(cut -d' ' -f3 "/proc/$1/stat" 2>/dev/null) in '' | Z | X) return 1 ;; esac; }
dead() { ! lives "$1"; }
is() { [ "$1" = "$2" ]; }

# The wrapper: its session id stands only in the JSON of its argument, and what it has started
# has left its session.
cat >wrapper.sh <<'SCRIPT'
setsid sleep 1000 &
echo $! >child
touch ready
wait
SCRIPT
config="{\"command\":\"claude\",\"args\":[\"--session-id\",\"$id\"],\"cwd\":\"$work\"}"
# The stranger: by its name an agent, resumed with the same id.
printf '#!/bin/sh\nsleep 1000\n' >claude && chmod +x claude
: >"$id.jsonl"

step '1. Start a wrapper from a launcher, and end the launcher with its whole process group'
set -m
(
  detach --ready-file ready --record own.record -- bash wrapper.sh "$config" >started
  exec sleep 1000
) &
launcher=$!
set +m
for _ in $(seq 300); do [ -s started ] && break; sleep 0.1; done
# shellcheck disable=SC2016 # shown as it is typed
printf '  $ detach --ready-file ready --record own.record -- bash wrapper.sh "$config"\n'
sed 's/^/    /' started
run "kill -TERM -- -$launcher"
wait "$launcher" 2>/dev/null
own=$(sed 's/.*"pid":\([0-9]*\).*/\1/' own.record)
child=$(cat child)
holds "the launcher is gone, the wrapper $own lives" lives "$own"

step '2. A stranger holds the same session, and somebody only names it'
run "detach --record foreign.record -- ./claude --resume $id"
holds 'it was started' is "$status" 0
run "detach --record mention.record -- tail -f $id.jsonl"
foreign=$(sed 's/.*"pid":\([0-9]*\).*/\1/' foreign.record)
mention=$(sed 's/.*"pid":\([0-9]*\).*/\1/' mention.record)

step '3. Who holds the session?'
scan="holder-scan --session-id $id --own-arg wrapper.sh --own-cwd $work"
run "$scan --mentions"
class() { sed -n "s/.*\"pid\":$1,.*\"class\":\"\([a-z]*\)\".*/\1/p" out | head -1; }
holds 'the wrapper is our own' is "$(class "$own")" own
holds 'the agent of somebody else is foreign' is "$(class "$foreign")" foreign
holds 'the one that names it is a mention' is "$(class "$mention")" mention
run "$scan -q"
holds 'as with grep -q, the status says that somebody does' is "$status" 0

step '4. End our own, and nobody else'
run "$scan | reap"
holds 'the status says that not all were ended' is "$status" 1
holds 'our wrapper is dead' dead "$own"
holds 'so is what it had started in a session of its own' dead "$child"
holds 'the stranger lives' lives "$foreign"
holds 'the one that names it lives' lives "$mention"

step '5. A number that has changed hands is not what it was'
stale=$(sed -n 's/.*"ident":"\([^"]*\):[0-9]*:[0-9]*".*/\1:1:1/p' foreign.record)
run "reap $stale"
holds 'the identity is refused' is "$status" 1
holds 'whoever has the number now lives' lives "$foreign"

step '6. Clean up, by the records of the start'
run 'cat foreign.record mention.record | reap -o pid,reap.outcome'
holds 'both are dead' is "$status" 0
run "holder-scan --session-id $id -q"
holds 'nobody holds the session any more' is "$status" 1

printf '\n'
if [ "$failed" -eq 0 ]; then
  echo 'Every step held.'
else
  echo 'A step did not hold.'
fi
exit "$failed"
