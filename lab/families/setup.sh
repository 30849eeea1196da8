#!/bin/bash
# Unpacks the projects whose own programs are recorded (ARCHIVES/*.tgz) into TREES, once. setup.sh ARCHIVES TREES
set -e
from=$1 trees=$2
[ -d "$trees" ] && exit 0
mkdir -p "$trees"
for project in megatron-lm deepspeed nanogpt; do
  [ -f "$from/$project.tgz" ] || continue
  mkdir -p "$trees/$project"
  tar xzf "$from/$project.tgz" -C "$trees/$project"
done
if [ -d "$trees/megatron-lm" ]; then   # its index helpers, with the headers that PyTorch brings along
  cd "$trees/megatron-lm/megatron/core/datasets"
  torch=$(python3 -c "import importlib.util as u, os; print(os.path.dirname(u.find_spec('torch').origin))")
  python=$(python3 -c "import sysconfig; print(sysconfig.get_path('include'), sysconfig.get_config_var('EXT_SUFFIX'))")
  g++ -O2 -shared -fPIC -std=c++17 -I"$torch/include" -I"${python% *}" helpers.cpp -o "helpers_cpp${python#* }"
fi
if [ -d "$trees/nanogpt" ]; then
  mkdir -p "$trees/nanogpt/data/random"
  head -c 2000000 /dev/urandom | python3 -c "
import sys
raw = sys.stdin.buffer.read()
out = bytes(b if i % 2 == 0 else b & 3 for i, b in enumerate(raw))   # 16-bit tokens below 1024
for name in ('train', 'val'): open('$trees/nanogpt/data/random/' + name + '.bin', 'wb').write(out)"
fi
