"""What the probe does with a request for tests while iterations end: argv is the request, the first iteration, the last, and
the iteration whose tests end with a remark. Prints when it tested, when it answered, and its report, as JSON."""

import json
import os
import sys
import tempfile
import types

from faultline_probe import ring as ring_file
from faultline_probe.requests import Requests

text, first, last, remarked = sys.argv[1], *map(int, sys.argv[2:])
tested, answered = [], None
REQUEST = 3


def run(request):
    number = request["atIteration"]
    tested.append(number)
    remark = {"remark": "a member did not come"} if number == remarked else {}
    return {"iteration": number, "tookMs": 2.5, "transfers": [{"from": 1, "to": 0, "ms": [1]}], **remark}


class Ring:
    def __init__(self, path):
        self.path, self.words = path, {ring_file.VALIDATION_WANTED: REQUEST, ring_file.VALIDATION_ANSWERED: REQUEST - 1}

    def get(self, at):
        return self.words.get(at, 0)

    def put(self, at, number):
        self.words[at] = number

    def text(self, _at, _bytes):
        return text


sys.modules["faultline_probe.validation"] = types.SimpleNamespace(run=run)
with tempfile.TemporaryDirectory() as folder:
    ring, requests = Ring(os.path.join(folder, "one.ring")), Requests(None)
    for number in range(first, last + 1):
        requests.at_iteration(ring, number)
        if answered is None and ring.get(ring_file.VALIDATION_ANSWERED) == REQUEST:
            answered = number
    path, report = ring.path + ".validation.json", None
    if os.path.exists(path):
        with open(path) as file:
            report = json.load(file)
print(json.dumps({"tested": tested, "answered": answered, "report": report}))
