#!/bin/sh
# ns of a call against the stubs: bare, recorded, recorded and timed. The stubs' own cost (a clock and a lock for each piece
# of work and each event) is in all of them; a real driver's events cost more.   sh bench.sh <folder with everything built>
set -e
folder=$(cd "$1" && pwd)
export LD_LIBRARY_PATH="$folder" FAULTLINE_DIR="$folder/bench-rings"
bench() {
  printf '%-52s' "$1"
  shift
  env "$@" "$folder/program" bench
}
shim="LD_PRELOAD=$folder/libfaultline.so"
bench "bare" FAULTLINE=0
bench "shim there, records nothing (FAULTLINE_SHIM=0)" "$shim" FAULTLINE_SHIM=0
bench "operators and products, no events" "$shim" FAULTLINE_EVENTS=0 FAULTLINE_KERNELS=1
bench "operators with events (the default)" "$shim"
bench "operators and products with events" "$shim" FAULTLINE_KERNELS=1
rm -rf "$folder/bench-rings"
