#!/bin/bash
# All faults one after the other on a machine with a GPU, one pack each: lab/scenarios.sh OUT [NAME…]
# Needs python3 with torch, gcc and make; no network, no Node. Stops before BUDGET seconds (550) are over and says what
# is left. TRAIN holds further words for train.py, e.g. TRAIN="--backend gloo --hidden 64 --seq 16" without a GPU.
set -u
out=${1:?usage: lab/scenarios.sh OUT [NAME…]}
shift
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
budget=${BUDGET:-550}
each=${EACH:-100}
mkdir -p "$out"
${MAKE:-make} -C "$here/../probe/nccl" >"$out/make.log" 2>&1 || { tail -5 "$out/make.log"; exit 1; }
library=$here/../probe/nccl/build/libfaultline.so
plugin="--plugin $library --probe"

# name, when to copy, words for train.py. Ranks of 2 x 2 x 2: tp neighbours 4-5, dp 4-6, pp 0-4.
all=$(cat <<END
stop          standing  $plugin --recorder timing --fault stop:5@15
stuck         standing  $plugin --recorder timing --fault stuck:5@15
gpuhang       standing  $plugin --recorder timing --fault gpuhang:5@15
wire-dead     standing  $plugin --recorder timing --fault wire:4-6:dead@15
wire-dead-tp  standing  $plugin --recorder timing --fault wire:2-3:dead@15
slow          step=60   $plugin --recorder timing --fault slow:5:3@30
wire-slow     step=60   $plugin --recorder timing --fault wire:4-6:slow=100@30
none          end       $plugin --recorder timing --steps 60
none-shim     end       --shim $library --recorder timing --steps 60
none-both     end       $plugin --shim $library --shim-records always --kernels 1 --recorder timing --steps 60
stop-shim     standing  --shim $library --probe --fault stop:5@15
cpu           step=60   $plugin --shim $library --kernels 1 --fault cpu:5:4@30
gc            step=60   $plugin --fault gc:5@30
data          step=60   $plugin --fault data:1:200@30
raise         end       $plugin --fault raise:1@15
validate      end       $plugin --steps 12 --validate 10 --fault throttle:5:4 --fault wire:2-3:slow=50@5
END
)

while read -r name when words; do
  if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then continue; fi
  if ((SECONDS + each > budget)); then
    echo "no time left for $name"
    continue
  fi
  # A later --steps counts, so a scenario's own comes after.
  timeout -k 10 "$each" "$python" "$here/collect.py" "$out/$name.tar.gz" --when "$when" --recorder --wait 5 --limit $((each - 30)) \
    -- --name "$name" --steps 100000 ${TRAIN:-} $words </dev/null || echo "$name: status $?"
done <<<"$all"
echo "took $SECONDS s"
