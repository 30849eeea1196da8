#!/usr/bin/env bash
# Agents of another version with this service, and this version's agents with a service of the other one:
#   scripts/version-skew.sh COMMIT
# Each pair rehearses a job of 16 GPUs: a slow GPU must be named, and nothing may be refused for what it says.
set -euo pipefail
commit=${1:?give the commit of the other version}
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir "$work/other"
git -C "$here" archive "$commit" | tar -x -C "$work/other"
ln -s "$here/node_modules" "$work/other/node_modules"

faultline() { # FOLDER WORDS...; in the background only
  cd "$1"
  shift
  exec node --import tsx src/cli/main.ts "$@"
}

pair() { # NAME SERVICE AGENTS PORT
  local data="$work/$1" url="http://127.0.0.1:$4"
  faultline "$2" serve --port "$4" --data "$data" >"$work/$1.service" 2>&1 &
  pids+=($!)
  for _ in $(seq 100); do curl -sf "$url/healthz" >/dev/null && break; sleep 0.3; done
  # The fault begins with iteration 40.
  faultline "$3" simulate --live "$url" --gpus 16 --every 500ms \
    --fault gpu-slow:rank=5:severity=3:from=40 >"$work/$1.agents" 2>&1 < <(sleep 120) &
  pids+=($!)
  local found=""
  for _ in $(seq 100); do
    found=$(curl -sf "$url/api/v1/incidents" | grep -o '"cause": *"gpu-slow"' | head -1 || true)
    [ -n "$found" ] && break
    sleep 1
  done
  kill "${pids[@]}" 2>/dev/null || true
  pids=()
  if [ -z "$found" ]; then
    echo "$1: rank 5 was not named"
    tail -n 5 "$work/$1.service"; tail -n 5 "$work/$1.agents"
    return 1
  fi
  echo "$1: named; refused: $(grep -ci "refused\|not a valid\|cannot be read" "$work/$1.service" || true)"
}

pair "their-agents" "$here" "$work/other" 7391
pair "their-service" "$work/other" "$here" 7392
