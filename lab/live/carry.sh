#!/bin/sh
# The program for a machine without Node.js and without a network: carry.sh FOLDER puts Node.js (24 MB as xz) and the npm package of
# this checkout, newly built, into FOLDER; there, carry.sh FOLDER --unpack INTO makes INTO/faultline of them.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
folder=$1
if [ "${2:-}" = --unpack ]; then
  mkdir -p "$3"
  into=$(CDPATH= cd -- "$3" && pwd)
  xz -dc "$folder/node.xz" >"$into/node"
  tar xzf "$folder/faultline.tgz" -C "$into"
  chmod +x "$into/node"
  printf '#!/bin/sh\nexec "%s/node" "%s/package/dist/cli/main.js" "$@"\n' "$into" "$into" >"$into/faultline"
  chmod +x "$into/faultline"
  exec "$into/faultline" --version
fi
mkdir -p "$folder"
"$here/faultline" --prepare
packed=$(mktemp -d)
(cd "$here" && npm pack --silent --ignore-scripts --pack-destination "$packed") >/dev/null
mv "$packed"/*.tgz "$folder/faultline.tgz"
rmdir "$packed"
[ -f "$folder/node.xz" ] || xz -6 -T2 -c "$(readlink -f "$(command -v node)")" >"$folder/node.xz"
ls -l "$folder"
