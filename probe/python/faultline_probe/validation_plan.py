"""Which transfers test the links of a group in a few passes, whatever its size (Greyhound, section 4.3 and figure 10).

A pass is a list of (sender, receiver), places in the group; transfers of a pass run at the same time and share no member.
"""

import math


def passes_ring(size):
    """Every link of the ring once: two passes where the size is even, three where it is odd, none for one member."""
    if size < 2:
        return []
    from_even = [(i, i + 1) for i in range(0, size - 1, 2)]
    from_odd = [(i, (i + 1) % size) for i in range(1, size if size % 2 == 0 else size - 1, 2)]
    # In an odd ring the last member sends to the first, and both have had their turn with other neighbours.
    return [from_even, from_odd] if size % 2 == 0 else [from_even, from_odd, [(size - 1, 0)]]


def passes_tree(size):
    """Every edge of the binary tree once, from child to parent, in four passes: left then right children of even levels,
    the same of odd levels. Member i has the children 2i + 1 and 2i + 2. Small trees leave passes empty."""
    passes = [[], [], [], []]
    for child in range(1, size):
        level = (child + 1).bit_length() - 1
        is_right = child % 2 == 0
        passes[(level % 2) * 2 + is_right].append((child, (child - 1) // 2))
    return passes


def passes_rail(size, stride):
    """Every link of the rings that lead from each member to the one `stride` places on: members of the same place in their
    machines, where `stride` of them sit on each. What goes between machines in the order of the group goes through two NICs
    of each machine, here through all."""
    cycles = math.gcd(size, stride)
    passes = passes_ring(size // cycles)
    at = lambda start, place: (start + place * stride) % size
    return [[(at(start, a), at(start, b)) for start in range(cycles) for a, b in transfers] for transfers in passes]


def rounds(size, topologies, megabytes, stride=1):
    """What is done one after the other: (topology, pass, transfers, bytes). Small transfers first, so that a link that is
    too slow for the time limit costs the large ones and not the other links."""
    passes = {"ring": passes_ring, "tree": passes_tree, "rail": lambda members: passes_rail(members, stride)}
    return [
        (topology, number, transfers, int(mb * (1 << 20)))
        for mb in sorted(megabytes)
        for topology in topologies
        for number, transfers in enumerate(passes[topology](size))
        if transfers
    ]
