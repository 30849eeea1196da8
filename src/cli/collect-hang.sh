#!/bin/sh
# Collects, on one machine of a job that hangs, what `faultline diagnose` reads, while its processes still live:
#   collect-hang.sh FOLDER        a folder that all machines share is best; files are named by rank and machine
#   collect-hang.sh -             a .tar.gz on stdout, and nothing stays on the machine: how `faultline collect` runs it
# It needs no Faultline on the machine. Nothing it does ends a process; py-spy stops one for a fraction of a second.
# Each step has a time limit, and what cannot be had is said and left out. Run it as the job's user, or as root.
set -u
out=${1:?"usage: collect-hang.sh FOLDER|-"}
host=$(hostname | cut -d. -f1)
streams=
if [ "$out" = - ]; then
  streams=yes
  out=$(mktemp -d) || exit 1
  trap 'rm -rf "$out"' EXIT
  trap 'exit 1' HUP INT PIPE TERM
fi
mkdir -p "$out" || exit 1
say() { if [ -n "$streams" ]; then echo "$host: $*" >&2; else echo "$host: $*"; fi; }
value() { tr '\0' '\n' 2>/dev/null <"/proc/$1/environ" | sed -n "s/^$2=//p" | head -n 1; }

# Through /proc, so that a file inside a container, or one that was deleted meanwhile, is read as well.
copy_log() {
  to=$(readlink "/proc/$2/fd/$3" 2>/dev/null)
  if [ -f "/proc/$2/fd/$3" ]; then
    tail -c 50000000 "/proc/$2/fd/$3" >"$5" 2>/dev/null || { rm -f "$5"; say "rank $1: its $4, $to, may not be read"; }
    return
  fi
  case $to in
  '') say "rank $1: where its $4 goes may not be seen" ;;
  pipe:* | socket:*) say "rank $1: its $4 goes into a pipe, not a file: take it from the launcher or the container's log" ;;
  /dev/null) say "rank $1: its $4 goes to /dev/null" ;;
  /dev/*) say "rank $1: its $4 goes to a terminal ($to), not a file" ;;
  *) say "rank $1: its $4 goes to $to, which is no file" ;;
  esac
}

# A loader worker inherits its trainer's RANK, and its stack is no evidence: a rank is who has one that its parent lacks.
ranks_by() {
  for at in /proc/[0-9]*; do
    pid=${at#/proc/}
    [ -r "$at/environ" ] || continue
    case $(cat "$at/comm" 2>/dev/null) in python* | pt_main*) ;; *) continue ;; esac
    rank=$(value "$pid" "$1")
    case $rank in '' | *[!0-9]*) continue ;; esac
    parent=$(sed -n 's/^PPid:[[:space:]]*//p' "$at/status" 2>/dev/null)
    case $(cat "/proc/${parent:-0}/comm" 2>/dev/null) in
    python* | pt_main*) [ "$rank" != "$(value "$parent" "$1")" ] || continue ;;
    esac
    echo "$rank:$pid"
  done
}
# Under srun and torchrun together SLURM_PROCID is the launcher's; it counts only where nobody has a RANK.
ranks=$(ranks_by RANK)
[ -n "$ranks" ] || ranks=$(ranks_by SLURM_PROCID)
ranks=" $(echo $ranks)"
[ "$ranks" != " " ] || say "no Python process with RANK or SLURM_PROCID in its environment that this user may see"

for one in $ranks; do
  rank=${one%%:*} pid=${one##*:}
  # 1. Stacks first: they are gone as soon as the watchdog ends the process.
  if command -v py-spy >/dev/null; then
    timeout 20 py-spy dump --pid "$pid" >"$out/stacks.rank$rank.txt" 2>"$out/.error.$host" ||
      say "rank $rank: no stack: $(head -n 1 "$out/.error.$host")"
  fi
  # Rings of the probe are files already.
  rings=$(value "$pid" FAULTLINE_DIR)
  [ -n "$rings" ] || rings=/dev/shm/faultline-$(sed -n 's/^Uid:[[:space:]]*[0-9]*[[:space:]]*\([0-9]*\).*/\1/p' "/proc/$pid/status")
  for ring in "/proc/$pid/root$rings"/*."$pid".*.ring "/proc/$pid/root$rings"/*."$pid".*.ring.stacks; do
    [ ! -s "$ring" ] || cp "$ring" "$out/" || say "rank $rank: $ring cannot be copied"
  done
  # 2. The flight recorder, where the job has a pipe for it: it dumps without a timeout, and the job goes on.
  stem=$(value "$pid" TORCH_NCCL_DEBUG_INFO_PIPE_FILE)
  if [ -n "$stem" ] && [ -p "$stem$rank.pipe" ]; then
    timeout 2 sh -c 'echo 1 >"$1"' - "$stem$rank.pipe" || say "rank $rank: nobody reads $stem$rank.pipe"
  fi
done
rm -f "$out/.error.$host"
command -v py-spy >/dev/null || say "no py-spy (pip install py-spy): no stacks"

# 3. NCCL's own monitor knows the whole job: one machine is enough.
case "$ranks" in *" 0:"*) wants_ras=yes ;; *) wants_ras=${RAS:-} ;; esac
if [ -n "$wants_ras" ]; then
  if command -v ncclras >/dev/null; then
    timeout 60 ncclras -v >"$out/ras.$host.txt" 2>&1 || say "ncclras got no answer"
  else
    say "no ncclras here (NCCL 2.24 and later; it comes with NCCL's packages): faultline agent dump --ras asks without it"
  fi
fi

# 4. Dumps that are there now: of this pipe, or of a watchdog that fired. Only what is younger than its process.
[ "$ranks" = " " ] || sleep 3
for one in $ranks; do
  rank=${one%%:*} pid=${one##*:}
  stem=$(value "$pid" TORCH_FR_DUMP_TEMP_FILE)
  [ -n "$stem" ] || stem=$(value "$pid" TORCH_NCCL_DEBUG_INFO_TEMP_FILE)
  home=$(value "$pid" HOME)
  minutes=$(($(ps -o etimes= -p "$pid" 2>/dev/null || echo 0) / 60 + 1))
  found=
  for path in "${stem:+$stem$rank}" "$home/.cache/torch/comm_lib_trace_rank_$rank" \
    "$home/.cache/torch/nccl_trace_rank_$rank" "/tmp/nccl_trace_rank_$rank"; do
    [ -n "$path" ] && [ -f "$path" ] && [ -n "$(find "$path" -mmin "-$minutes" 2>/dev/null)" ] || continue
    cp "$path" "$out/nccl_trace_rank_$rank" && found=yes && break
  done
  [ -n "$found" ] || say "rank $rank: no flight-recorder dump yet; it comes when the watchdog fires (TORCH_NCCL_DUMP_ON_TIMEOUT=1)"
  # 5. Where its output and its errors go, if that is a file. 50 MB of its end are enough for a hang.
  copy_log "$rank" "$pid" 1 stdout "$out/rank$rank.log"
  [ "$(readlink "/proc/$pid/fd/1" 2>/dev/null)" = "$(readlink "/proc/$pid/fd/2" 2>/dev/null)" ] ||
    copy_log "$rank" "$pid" 2 stderr "$out/rank$rank.stderr.log"
done

# 6. What the kernel says: Xid, PCIe, network cards, the OOM killer.
dmesg -T 2>/dev/null | tail -n 5000 >"$out/dmesg.$host.log"
[ -s "$out/dmesg.$host.log" ] || { rm -f "$out/dmesg.$host.log"; say "dmesg may not be read (root only)"; }
if [ -n "$streams" ]; then
  say "done: $(echo "$ranks" | wc -w) ranks"
  tar -czf - -C "$out" .
else
  say "done: $(echo "$ranks" | wc -w) ranks, in $out"
fi
