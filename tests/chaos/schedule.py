# SPDX-License-Identifier: MIT
"""Schedules: the actions of an episode. Only the seed and the episode's number determine them."""
import random
import signal
from typing import NamedTuple

from stack import PROGRAMS

WORKERS = ('one', 'two')


class Action(NamedTuple):
    pause_s: float  # pause before the action
    name: str       # a method of World
    words: tuple

    def __str__(self):
        return f'after {self.pause_s:.2f} s {self.name}{self.words}'


def seconds(rng, most):
    return round(rng.uniform(0.1, most), 2)


# method of World: (relative frequency, its arguments)
ACTIONS = {
    'kill': (6, lambda rng: (rng.choice(('vgpud', 'vgpud', 'vgpu-pf', 'vgpu-pf', 'bus', 'softgpu')), signal.SIGKILL)),
    'stop': (5, lambda rng: (rng.choice(PROGRAMS), seconds(rng, 1.5))),
    'full_disk': (3, lambda rng: (rng.choice(('state', 'run')), seconds(rng, 2))),
    'slow_disk': (2, lambda rng: (rng.randint(50, 500), seconds(rng, 2))),
    'clock': (2, lambda rng: (rng.choice((-86400 * 365, -3600, 3600, 86400 * 3650)),)),
    'weigh': (5, lambda rng: (rng.choice(WORKERS), rng.choice((50, 100, 200, 400)))),
    'apply': (4, lambda rng: (tuple(rng.choice((50, 100, 200)) for _ in range(4)),)),
    'replace_tenant': (4, lambda rng: ()),
    'reboot': (3, lambda rng: (rng.choice(WORKERS),)),
    'reset': (3, lambda rng: (rng.choice(WORKERS),)),
    'pause': (2, lambda rng: (rng.choice(WORKERS), seconds(rng, 1))),
    'save_and_restore': (4, lambda rng: (rng.choice(WORKERS),)),
    'attack_bus': (3, lambda rng: (rng.choice(('flood', 'hang_up', 'garbage')), rng.getrandbits(32))),
    'attack_socket': (3, lambda rng: (rng.choice(('vf1', 'vf4', 'pf', 'uapi', 'control', 'vf2.agent')),
                                      rng.getrandbits(32))),
    'attack_device': (6, lambda rng: (rng.choice(('registers', 'doorbells', 'resets', 'beyond', 'endless')),
                                      rng.getrandbits(32))),
}


def device(seed):
    """Random options of the run's softgpu."""
    rng = random.Random(f'{seed}/device')
    return {'true_copy': rng.random() < 0.5, 'doorbell_mode': rng.choice(('trap', 'poll'))}


def episode(seed, number):
    """The actions of one episode, always the same for a seed and number."""
    rng = random.Random(f'{seed}/{number}')
    names, weights = list(ACTIONS), [often for often, _ in ACTIONS.values()]
    return [Action(seconds(rng, 0.8), name, ACTIONS[name][1](rng))
            for name in rng.choices(names, weights, k=rng.randint(4, 12))]


def shrink(actions, fails, tries):
    """Returns the numbers of the `actions`, [(number, action)], with which `fails` is still true.

    Drops halves, then quarters and so on down to single actions while the rest still fails. Calls
    `fails` at most `tries` times.
    """
    size = max(1, len(actions) // 2)
    while actions and tries > 0:
        for begin in range(0, len(actions), size):
            rest = actions[:begin] + actions[begin + size:]
            tries -= 1
            if fails(rest):
                actions = rest
                break
            if tries == 0:
                break
        else:
            if size == 1:
                break
            size = size // 2
            continue
        size = min(size, max(1, len(actions) // 2))
    return [number for number, _ in actions]
