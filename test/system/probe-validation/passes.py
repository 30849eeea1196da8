"""The passes of rings and trees of the given sizes, as JSON."""

import json
import sys

from faultline_probe.validation_plan import passes_rail, passes_ring, passes_tree

sizes = list(map(int, sys.argv[1:]))
rails = [{"size": n, "stride": s, "passes": passes_rail(n, s)} for n in sizes for s in (2, 3, 8) if n > s and n % s == 0]
print(json.dumps({"groups": [{"size": n, "ring": passes_ring(n), "tree": passes_tree(n)} for n in sizes], "rails": rails}))
