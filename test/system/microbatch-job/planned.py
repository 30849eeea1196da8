"""A controller in the process, whose answers come at once: the counts of each iteration are those of a list."""

import faultline_microbatches


def follow(plan):
    """`plan`: [iteration, counts] from which on they are asked for."""

    class Client:
        trouble = None
        plan = None

        def __init__(self, *_args, **_kwargs):
            pass

        def send(self, *_args, **_kwargs):
            pass

        def ask(self, iteration):
            self.plan = [counts for first, counts in follow.plan if first <= iteration][-1]

    follow.plan = plan
    faultline_microbatches._Client = Client
