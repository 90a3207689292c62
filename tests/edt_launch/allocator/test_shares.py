"""Real shares."""

from edt_launch.allocator.decide import decide
from edt_launch.allocator.model import Cluster, Host, Job, Owner, Policy
from pools import NOW


def test_owners_of_any_depth_are_served_in_their_order():
    chain = [
        Owner(f"o{level}", f"o{level - 1}" if level else "", policy=Policy.FIFO) for level in range(1100)
    ]
    owners = (Owner("", None, policy=Policy.FIFO), *chain)
    jobs = (Job("late", "ann", 1, 4, 1.0), Job("early", "o1099", 1, 4, 0.0))
    plan, _ = decide(NOW, Cluster((Host("h", tuple("0123")),), owners), jobs)
    assert plan.targets == {"late": 1, "early": 3}
