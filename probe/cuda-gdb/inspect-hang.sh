#!/bin/sh
# What a process that hangs does on its GPU, through cuda-gdb, for jobs that run without Faultline's NCCL plug-in.
#
#   probe/cuda-gdb/inspect-hang.sh PID [FILE]
#
# The process is stopped while it is looked at, seconds to a minute, and goes on afterwards whatever happens here: the
# debugger is told to end after SECONDS, ends by detaching, and a process that it left stopped is continued.
#
#   CUDA_GDB   the debugger (default: cuda-gdb)        SECONDS_EACH  limit of one look (default 60)
#   SAMPLES    looks, 2 s apart (default 2): a block whose place is the same twice waits there
#   KERNELS, BLOCKS   how many kernels and blocks of each are looked at in detail (default 8 and 4)
set -u
pid=${1-}
case $pid in
'' | *[!0-9]*)
  echo "usage: $0 PID [FILE]" >&2
  exit 2
  ;;
esac
debugger=${CUDA_GDB:-cuda-gdb}
limit=${SECONDS_EACH:-60}
samples=${SAMPLES:-2}
kernels=${KERNELS:-8}
blocks=${BLOCKS:-4}
script=$(dirname -- "$0")/inspect-hang.gdb

if ! command -v "$debugger" >/dev/null; then
  echo "$0: there is no $debugger; it comes with the CUDA toolkit, or set CUDA_GDB" >&2
  exit 1
fi
if [ ! -d "/proc/$pid" ]; then
  echo "$0: there is no process $pid" >&2
  exit 3
fi
if [ ! -r "/proc/$pid/maps" ] || [ ! -r "/proc/$pid/environ" ]; then
  echo "$0: process $pid is another user's; run as its user or as root" >&2
  exit 3
fi
if [ $# -ge 2 ]; then exec >"$2" || exit 1; fi

# The third field of /proc/PID/stat; the second may hold blanks and brackets.
state() { sed 's/.*) //; s/ .*//' "/proc/$pid/stat" 2>/dev/null; }
variable() { tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | sed -n "s/^$1=//p" | head -n 1; }

before=$(state)
set -- -ex "source $script" -ex "attach $pid" -ex faultline_kernels
k=0
while [ "$k" -lt "$kernels" ]; do
  set -- "$@" -ex "faultline_kernel $k"
  k=$((k + 1))
done
k=0
while [ "$k" -lt "$kernels" ]; do
  b=0
  while [ "$b" -lt "$blocks" ]; do
    set -- "$@" -ex "faultline_block $k $b"
    b=$((b + 1))
  done
  k=$((k + 1))
done
set -- "$@" -ex faultline_host -ex detach

put_back() {
  # The debugger is gone by now. What it stopped and did not let go is let go; what was stopped before stays so.
  case $before in T | t) return ;; esac
  case $(state) in T | t) kill -CONT "$pid" 2>/dev/null ;; esac
}
trap put_back EXIT
trap 'exit 130' INT TERM HUP

echo "faultline cuda-gdb 1"
echo "process: $pid"
echo "rank: $(variable RANK)"
echo "host: $(hostname)"
sample=1
while [ "$sample" -le "$samples" ]; do
  [ "$sample" -eq 1 ] || sleep 2
  echo "== sample $sample, $(date -u +%Y-%m-%dT%H:%M:%SZ)"
  # INT first: the debugger gives up its command and detaches. KILL only where it does not listen.
  timeout --signal=INT --kill-after=20 "$limit" "$debugger" -q -nx -batch "$@" </dev/null 2>&1
  ended=$?
  [ "$ended" -ne 124 ] && [ "$ended" -ne 137 ] || echo "== not done within $limit s"
  put_back
  sample=$((sample + 1))
done
