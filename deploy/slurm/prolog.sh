#!/bin/sh
# Slurm's Prolog (slurm.conf: Prolog=/opt/faultline/slurm/prolog.sh), as root on every node of a job: sees to it that the agent
# runs. It never fails a job: whatever goes wrong, the status is 0.
#   /etc/faultline/agent.env: FAULTLINE_AGENT_RUN_SERVER=wss://…, FAULTLINE_AGENT_RUN_TOKEN_FILE=/etc/faultline/token
set -u
unit=faultline-agent
(
  if command -v systemctl >/dev/null && systemctl cat "$unit" >/dev/null 2>&1; then
    systemctl is-active --quiet "$unit" || timeout 10 systemctl start "$unit"
    exit 0
  fi
  program=${FAULTLINE_PROGRAM:-$(command -v faultline || echo /opt/faultline/faultline)}
  settings=${FAULTLINE_SETTINGS:-/etc/faultline/agent.env}
  lock=${FAULTLINE_RUN:-/run}/faultline-agent.lock
  [ -x "$program" ] && [ -r "$settings" ] || exit 0
  set -a
  . "$settings"
  set +a
  # The lock is the agent's as long as it lives: a second job on the node starts no second agent.
  setsid flock --nonblock "$lock" "$program" agent run --quiet </dev/null >/dev/null 2>&1 &
) || true
exit 0
