#!/bin/sh
# Collects, on one machine of a job that hangs, what `faultline diagnose` reads, while its processes still live:
#   collect-hang.sh FOLDER [SECONDS]   a folder that all machines share is best; files are named by rank and machine
#   collect-hang.sh - [SECONDS]        a .tar.gz on stdout, and nothing stays on the machine: how `faultline collect` runs it
# It needs no Faultline on the machine. Nothing it does ends a process; py-spy stops one for a fraction of a second.
# All ranks are asked at once, each step has a time limit, and all of it ends after SECONDS (120). Each file is written as
# soon as it is whole; what cannot be had is said and left out. Run it as the job's user, or as root.
# In the stream, one .tar.gz follows another: `tar -xzi` unpacks it, and `faultline diagnose` reads it as it is.
set -u
at_once=32
out=${1:?"usage: collect-hang.sh FOLDER|- [SECONDS]"}
limit=${2:-120}
host=$(hostname | cut -d. -f1)
begun=$(date +%s)
streams=
if [ "$out" = - ]; then
  streams=yes
  base=${TMPDIR:-/tmp}
else
  base=$out
  mkdir -p "$out" || exit 1
fi
# What an earlier run left that was killed with all its processes.
find "$base" -maxdepth 1 -name '.faultline-collect.*' -user "$(id -u)" -mmin +60 -exec rm -rf {} + 2>/dev/null
work=$(mktemp -d "$base/.faultline-collect.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT PIPE TERM
# Removes the folder even if this shell is killed. It keeps no stream open, so that ssh does not wait for it.
(
  trap '' HUP INT PIPE TERM
  while kill -0 $$; do sleep 1; done
  rm -rf "$work"
) </dev/null >/dev/null 2>&1 &
ready=$work/ready
mkdir "$ready" "$work/running" "$work/said" || exit 1
[ -n "$streams" ] || ready=$out

tell() { if [ -n "$streams" ]; then echo "$host: $*" >&2; else echo "$host: $*"; fi; }
seconds_left() { echo $((begun + limit - $(date +%s))); }
running() { ls "$work/running" | wc -l; }

# step WHAT FUNCTION WORDS…: in the background. What it prints are remarks, its files lie in $parts until they are whole. A
# process that cannot be killed (dead storage) holds none of our streams and keeps nobody waiting.
steps=0
step() {
  while [ "$(running)" -ge "$at_once" ] && [ "$(seconds_left)" -gt 0 ]; do hand_on; pause; done
  steps=$((steps + 1))
  number=$steps
  echo "$1" >"$work/running/$number"
  shift
  (
    parts=$work/parts.$number
    mkdir "$parts"
    "$@" >"$work/said/$number.part"
    mv "$work/said/$number.part" "$work/said/$number"
    rm -rf "$parts" "$work/running/$number"
  ) </dev/null >/dev/null 2>&1 &
}
pause() { sleep 0.2 2>/dev/null || sleep 1; }

# A file is whole, and goes to where it is taken from.
finish() { mv "$parts/$1" "$ready/$1"; }

# Passes on what is there: remarks, and in a stream the files.
hand_on() {
  for file in "$work"/said/*; do
    case $file in *.part | *'*') continue ;; esac
    while read -r line; do tell "$line"; done <"$file"
    rm -f "$file"
  done
  [ -n "$streams" ] || return 0
  set -- "$ready"/*
  [ -e "$1" ] || return 0
  mkdir "$work/batch"
  mv "$@" "$work/batch/"
  # Nobody reads any more: nothing is left to do.
  tar -czf - -C "$work/batch" . || exit 1
  rm -rf "$work/batch"
}

value() { tr '\0' '\n' 2>/dev/null <"/proc/$1/environ" | sed -n "s/^$2=//p" | head -n 1; }

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

find_ranks() {
  ranks_by RANK >"$work/ranks"
  # Under srun and torchrun together SLURM_PROCID is the launcher's; it counts only where nobody has a RANK.
  [ -s "$work/ranks" ] || ranks_by SLURM_PROCID >"$work/ranks"
}

# Stacks are gone as soon as the watchdog ends the process.
take_stack() {
  timeout -k 2 20 py-spy dump --pid "$2" >"$parts/stacks.rank$1.txt" 2>"$parts/error" ||
    echo "rank $1: no stack: $(head -n 1 "$parts/error")"
  [ ! -s "$parts/stacks.rank$1.txt" ] || finish "stacks.rank$1.txt"
}

# Rings of the probe are files already.
take_rings() {
  rings=$(value "$2" FAULTLINE_DIR)
  [ -n "$rings" ] || rings=/dev/shm/faultline-$(sed -n 's/^Uid:[[:space:]]*[0-9]*[[:space:]]*\([0-9]*\).*/\1/p' "/proc/$2/status")
  for ring in "/proc/$2/root$rings"/*."$2".*.ring "/proc/$2/root$rings"/*."$2".*.ring.stacks; do
    [ -s "$ring" ] || continue
    name=${ring##*/}
    if timeout -k 2 20 cp "$ring" "$parts/$name"; then finish "$name"; else echo "rank $1: $ring cannot be copied"; fi
  done
}

# The flight recorder, where the job has a pipe for it: it dumps without a timeout, and the job goes on. Otherwise the dump
# of a watchdog that fired. Only what is younger than its process.
take_dump() {
  stem=$(value "$2" TORCH_NCCL_DEBUG_INFO_PIPE_FILE)
  if [ -n "$stem" ] && [ -p "$stem$1.pipe" ]; then
    if timeout -k 1 2 sh -c 'echo 1 >"$1"' - "$stem$1.pipe"; then sleep 3; else echo "rank $1: nobody reads $stem$1.pipe"; fi
  fi
  stem=$(value "$2" TORCH_FR_DUMP_TEMP_FILE)
  [ -n "$stem" ] || stem=$(value "$2" TORCH_NCCL_DEBUG_INFO_TEMP_FILE)
  home=$(value "$2" HOME)
  minutes=$(($(ps -o etimes= -p "$2" 2>/dev/null || echo 0) / 60 + 1))
  for path in "${stem:+$stem$1}" "$home/.cache/torch/comm_lib_trace_rank_$1" \
    "$home/.cache/torch/nccl_trace_rank_$1" "/tmp/nccl_trace_rank_$1"; do
    [ -n "$path" ] && [ -f "$path" ] && [ -n "$(find "$path" -mmin "-$minutes" 2>/dev/null)" ] || continue
    still "$path"
    timeout -k 2 30 cp "$path" "$parts/nccl_trace_rank_$1" && finish "nccl_trace_rank_$1" && return
  done
  echo "rank $1: no flight-recorder dump yet; it comes when the watchdog fires (TORCH_NCCL_DUMP_ON_TIMEOUT=1)"
}

# A dump may still be written: until it no longer grows, but at most 15 seconds.
still() {
  before=
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    now=$(wc -c <"$1")
    [ "$now" != "$before" ] || return 0
    before=$now
    sleep 1
  done
}

# Where its output and its errors go, if that is a file.
take_logs() {
  copy_log "$1" "$2" 1 stdout "rank$1.log"
  [ "$(readlink "/proc/$2/fd/1" 2>/dev/null)" = "$(readlink "/proc/$2/fd/2" 2>/dev/null)" ] ||
    copy_log "$1" "$2" 2 stderr "rank$1.stderr.log"
}

# Through /proc, so that a file inside a container, or one that was deleted meanwhile, is read as well. 50 MB of its end
# are enough for a hang.
copy_log() {
  to=$(readlink "/proc/$2/fd/$3" 2>/dev/null)
  if [ -f "/proc/$2/fd/$3" ]; then
    if timeout -k 2 30 tail -c 50000000 "/proc/$2/fd/$3" >"$parts/$5" 2>/dev/null; then finish "$5"; else
      rm -f "$parts/$5"
      echo "rank $1: its $4, $to, may not be read"
    fi
    return
  fi
  case $to in
  '') echo "rank $1: where its $4 goes may not be seen" ;;
  pipe:* | socket:*) echo "rank $1: its $4 goes into a pipe, not a file: take it from the launcher or the container's log" ;;
  /dev/null) echo "rank $1: its $4 goes to /dev/null" ;;
  /dev/*) echo "rank $1: its $4 goes to a terminal ($to), not a file" ;;
  *) echo "rank $1: its $4 goes to $to, which is no file" ;;
  esac
}

# NCCL's own monitor knows the whole job: one machine is enough.
ask_ras() {
  if command -v ncclras >/dev/null; then
    timeout -k 2 30 ncclras -v >"$parts/ras.$host.txt" 2>&1 || echo "ncclras got no answer"
    finish "ras.$host.txt"
  else
    echo "no ncclras here (NCCL 2.24 and later; it comes with NCCL's packages): faultline agent dump --ras asks without it"
  fi
}

# What the kernel says: Xid, PCIe, network cards, the OOM killer.
take_kernel_log() {
  timeout -k 2 10 dmesg -T 2>/dev/null | tail -n 5000 >"$parts/dmesg.$host.log"
  if [ -s "$parts/dmesg.$host.log" ]; then finish "dmesg.$host.log"; else echo "dmesg may not be read (root only)"; fi
}

collect() {
  step "the kernel's log" take_kernel_log
  # Its own background step: /proc of a process that the kernel holds may not answer.
  step "the list of processes" find_ranks
  scan=$steps
  until [ ! -e "$work/running/$scan" ] || [ "$(seconds_left)" -le $((limit / 2)) ]; do hand_on; pause; done
  ranks=$(cat "$work/ranks" 2>/dev/null)
  [ -n "$ranks" ] || tell "no Python process with RANK or SLURM_PROCID in its environment that this user may see"
  has_stacks=
  if command -v py-spy >/dev/null; then has_stacks=yes; else tell "no py-spy (pip install py-spy): no stacks"; fi
  for one in $ranks; do
    rank=${one%%:*} pid=${one##*:}
    [ -z "$has_stacks" ] || step "rank $rank: its stack" take_stack "$rank" "$pid"
    step "rank $rank: its rings" take_rings "$rank" "$pid"
    step "rank $rank: its flight recorder" take_dump "$rank" "$pid"
  done
  case " $(echo $ranks)" in *" 0:"*) wants_ras=yes ;; *) wants_ras=${RAS:-} ;; esac
  [ -z "$wants_ras" ] || step "NCCL's RAS" ask_ras
  for one in $ranks; do
    rank=${one%%:*} pid=${one##*:}
    step "rank $rank: its logs" take_logs "$rank" "$pid"
  done
  while [ "$(running)" -gt 0 ] && [ "$(seconds_left)" -gt 0 ]; do hand_on; pause; done
  hand_on
  for late in "$work"/running/*; do
    [ ! -f "$late" ] || tell "$(cat "$late"): not done within $limit s, left out"
  done
  if [ -n "$streams" ]; then tell "done: $(echo $ranks | wc -w) ranks"; else tell "done: $(echo $ranks | wc -w) ranks, in $out"; fi
}
collect
