# SPDX-License-Identifier: MIT
"""Schedules of the fleet: what happens to jobs, hosts, links and programs; the same for the same seed."""
import random
from typing import NamedTuple

HOSTS = ('n1', 'n2', 'n3')
REQUESTS = ({'small': 1}, {'small': 1}, {'large': 1}, {'small': 2}, {'small': 1, 'large': 1}, {'small': 4}, {'large': 3})


class Act(NamedTuple):
    at_s: float     # earliest time after the beginning
    name: str       # a method of world.World
    words: tuple

    def __str__(self):
        return f'{self.at_s:.1f} s {self.name}{self.words}'


def host(rng):
    return (rng.choice(HOSTS),)


def job(rng):
    """A request, and how long the job lives (0: until it is cancelled)."""
    return rng.choice(REQUESTS), rng.choice((0, 0, rng.randint(1, 8), rng.randint(10, 40)))


def number(rng):
    """A random number, which chooses among the jobs of that moment."""
    return (rng.getrandbits(16),)


# act: (relative frequency, its arguments, the act that ends it, longest time until then)
ACTS = {
    'submit': (10, job, None, 0),
    'cancel': (3, number, None, 0),
    'requeue': (2, number, None, 0),
    'kill_slurmd': (3, host, 'start_slurmd', 15),
    'kill_vgpud': (3, host, 'start_vgpud', 15),
    'kill_softgpu': (2, host, None, 0),
    'kill_vgpu_pf': (2, host, None, 0),
    'stop_slurmctld': (1, lambda rng: (), 'start_slurmctld', 8),
    'cut': (2, host, 'heal', 35),
    'kill_host': (2, host, 'boot_host', 35),
    'drain': (2, host, 'resume', 15),
    'claim': (2, host, 'release', 15),
}


def schedule(seed):
    """Acts in the order of their times; the first four are jobs."""
    rng = random.Random(f'fleet/{seed}')
    names, weights = list(ACTS), [act[0] for act in ACTS.values()]
    acts, at_s = [], 0.0
    for name in ['submit'] * 4 + rng.choices(names, weights, k=rng.randint(14, 24)):
        _, words_of, end, longest_s = ACTS[name]
        at_s += round(rng.uniform(0.1, 3.5), 1)
        words = words_of(rng)
        acts.append(Act(at_s, name, words))
        if end:
            acts.append(Act(at_s + round(rng.uniform(0.5, longest_s), 1), end, words))
    return sorted(acts, key=lambda act: act.at_s)
