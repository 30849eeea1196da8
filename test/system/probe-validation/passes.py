"""The passes of rings and trees of the given sizes, as JSON."""

import json
import sys

from faultline_probe.validation_plan import passes_ring, passes_tree

print(json.dumps([{"size": n, "ring": passes_ring(n), "tree": passes_tree(n)} for n in map(int, sys.argv[1:])]))
