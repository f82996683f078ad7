#!/usr/bin/env bash
# agents.sh BIN [DIR]: the released agents take the command lines that resume-id prints.
#
# BIN is the folder of the tools. The agents come from the npm registry in the versions below, into
# DIR (kept for the next time) or a temporary folder. They run in a home of their own, without a
# login and with nobody at the other end: what is looked at is that a command line is neither
# refused nor answered with a question, which they decide before they need either.
set -euo pipefail

packages=(
  @anthropic-ai/claude-code@2.1.332
  @openai/codex@0.171.0
  opencode-ai@1.18.33
  @google/gemini-cli@0.61.0
)

bin=$(realpath "$1")
work=$(mktemp -d "${TMPDIR:-/tmp}/agents.XXXXXX")
dir=${2:-$work/npm}
mkdir -p "$dir" "$work/home/w"
export HOME=$work/home PATH=$dir/node_modules/.bin:$bin:$PATH
tmux=(tmux -S "$work/tmux" -f /dev/null)
failures=0

# Ends all that has this home, tmux and the shared daemons that outlive their clients too: they are
# named one by one, since as holders they are nobody's to end.
end_all() {
  holder-scan --env "HOME=$HOME" -o ident | xargs -r reap --signal KILL >/dev/null || true
}

clean_up() {
  end_all
  rm -rf "$work"
}
trap clean_up EXIT

say() { printf '%s\n' "$*"; }
bad() { say "FAILED: $*"; failures=$((failures + 1)); }

say "installing: ${packages[*]}"
[ -e "$dir/package.json" ] || echo '{}' >"$dir/package.json"
npm install --prefix "$dir" --no-audit --no-fund --loglevel=error "${packages[@]}" >/dev/null

cd "$HOME/w"
export ANTHROPIC_API_KEY=none ANTHROPIC_BASE_URL=http://127.0.0.1:9 CLAUDE_CODE_MAX_RETRIES=0
export OPENAI_API_KEY=none GEMINI_API_KEY=none GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:9
export DISABLE_AUTOUPDATER=1 OPENCODE_DISABLE_AUTOUPDATE=1
mkdir -p "$HOME/.gemini"
cat >"$HOME/.gemini/settings.json" <<'END'
{"security":{"auth":{"selectedType":"gemini-api-key"},"folderTrust":{"enabled":false}}}
END

refusals='unknown option|unexpected argument|[Uu]sage:|[Uu]nknown argument|already in use|already exists|Invalid session|No conversation found|no rollout found|Session not found|No previous sessions|current dir|y/N|ENDED'

# decide ACTION ARG...: what resume-id says of these, which must be this action.
decide() {
  local want=$1 got
  shift
  got=$(resume-id --cwd . -o action "$@") || true
  [ "$got" = "$want" ] || bad "resume-id $*: $got, not $want"
}

# judge NAME TEXT: fails if TEXT shows that the command line was refused.
judge() {
  if grep -qE "$refusals" <<<"$2"; then
    bad "$1: $(grep -E "$refusals" <<<"$2" | head -n 1)"
  else
    say "ok: $1"
  fi
}

# on_screen NAME ARG...: runs what resume-id decides about these in a terminal, and judges what is
# to be seen there: some seconds after the first sign, or after 40 s without any. An agent that has
# ended by then has refused.
on_screen() {
  local name=$1 screen argv seen=0
  shift
  argv=$(resume-id --cwd . -o argv "$@")
  "${tmux[@]}" new-session -d -s it -x 120 -y 40 \
    "$(printf '%q ' resume-id --cwd . "$@") | resume-id --exec --decision -; echo ENDED; sleep 600"
  for _ in $(seq 160); do
    sleep 0.25
    screen=$("${tmux[@]}" capture-pane -p -t it)
    ! grep -qE "$refusals" <<<"$screen" || break
    [ -z "${screen//[[:space:]]/}" ] || seen=$((seen + 1))
    [ "$seen" -lt 24 ] || break
  done
  end_all
  judge "$name: $argv" "$screen"
}

# print_mode NAME ARG...: the same for an agent that can do without a terminal.
print_mode() {
  local name=$1 said
  shift
  said=$(resume-id --cwd . "$@" | timeout 60 resume-id --exec --decision - 2>&1) || true
  judge "$name: $(resume-id --cwd . -o argv "$@")" "$said"
}

# discovered AGENT: the id of its newest session here.
discovered() {
  resume-id --discover --agent "$1" --cwd . -o session_id | head -n 1
}

id=00000000-0000-4000-8000-0000000000a1

claude=(--agent claude --session-id "$id")
decide assign "${claude[@]}"
said=$(timeout 60 claude --session-id "$id" -p hi </dev/null 2>&1) || true
judge "claude, assign" "$said"
decide resume "${claude[@]}"
print_mode "claude, resume" "${claude[@]}" -- -p hi

decide spawn --agent codex
on_screen "codex, spawn" --agent codex
timeout 20 codex exec --skip-git-repo-check hi </dev/null >/dev/null 2>&1 || true
codex=(--agent codex --session-id "$(discovered codex)")
decide resume "${codex[@]}"
on_screen "codex, resume" "${codex[@]}"

decide spawn --agent opencode
on_screen "opencode, spawn" --agent opencode
timeout 60 opencode run hi </dev/null >/dev/null 2>&1 || true
opencode=(--agent opencode --session-id "$(discovered opencode)")
decide resume "${opencode[@]}"
on_screen "opencode, resume" "${opencode[@]}"

gemini=(--agent gemini --session-id "$id")
decide assign "${gemini[@]}"
on_screen "gemini, assign" "${gemini[@]}"
# Killed at zero turns it leaves a transcript that it refuses itself.
decide mint "${gemini[@]}"
chat=$(find "$HOME/.gemini/tmp" -name 'session-*.jsonl' | head -n 1)
[ -n "$chat" ] && printf '%s\n' '{"id":"1","timestamp":"2026-11-29T10:00:00.000Z","type":"user","content":[{"text":"hi"}]}' >>"$chat"
decide resume "${gemini[@]}"
on_screen "gemini, resume" "${gemini[@]}"

[ "$failures" = 0 ] || { say "$failures failed"; exit 1; }
say "all of them took what they were given"
