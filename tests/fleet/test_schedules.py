# SPDX-License-Identifier: MIT
"""Jobs with VFs while hosts, links, programs and the operator act at random (schedules.py); rules.py judges.

    VGPU_FLEET_SCHEDULES=100 tests/fleet/run test_schedules.Schedules      so many (default 3)
    VGPU_FLEET_SEED=17 VGPU_FLEET_SCHEDULES=1 tests/fleet/run test_schedules.Schedules      one of them alone

build/fleet/schedules keeps NAME.history, and the logs of the hosts of a schedule that failed.
"""
import os
import random
import shutil
import time
import unittest

import schedules
from fleet import ROOT
from rules import ENDED_S, STARTED_S, Checker
from schedules import Act
from observer import History, Observer
from world import World

KEEP = os.path.join(ROOT, 'build', 'fleet', 'schedules')
SEED = int(os.environ.get('VGPU_FLEET_SEED') or random.SystemRandom().getrandbits(31))
COUNT = int(os.environ.get('VGPU_FLEET_SCHEDULES', 3))
NOTHING = '#!/bin/sh\n'


def perform(world, history, acts):
    begin = time.monotonic()
    for act in acts:
        time.sleep(max(0.0, begin + act.at_s - time.monotonic()))
        # a resume is recorded before it is done, so that no look sees its effect first
        t = history.now()
        if act.name == 'resume':
            history.add('act', t, name=act.name, words=act.words, is_done=True)
        is_done = world.act(act.name, act.words)
        if act.name != 'resume':
            history.add('act', t, name=act.name, words=act.words, is_done=is_done)


def play(name, acts, has_calm=True, **options):
    """Plays one schedule on a new fleet, with or without the calm after it; returns the
    violations."""
    os.makedirs(KEEP, exist_ok=True)
    directory, checker = os.path.join(KEEP, name), Checker()
    with World(directory, **options) as world:
        history = History(directory + '.history', checker)
        observer = Observer(world, history)
        try:
            perform(world, history, acts)
            if has_calm:
                history.add('calm', left=world.calm())
                world.conclude(history)
        finally:
            observer.close()
            history.close()
    if not checker.violations:
        shutil.rmtree(directory)
    return checker.violations


class Schedules(unittest.TestCase):
    def test_vfs_follow_the_jobs_whatever_happens(self):
        failed = 0
        for seed in range(SEED, SEED + COUNT):
            acts = schedules.schedule(seed)
            begin = time.monotonic()
            violations = play(str(seed), acts)
            print(f'seed {seed}: {len(acts)} acts, {time.monotonic() - begin:.0f} s, {len(violations)} violations', flush=True)
            if violations:
                failed += 1
                print(*acts, *violations, f'repeat: VGPU_FLEET_SEED={seed} VGPU_FLEET_SCHEDULES=1 tests/fleet/run '
                      'test_schedules.Schedules', sep='\n  ', flush=True)
        self.assertEqual(failed, 0, f'{failed} of {COUNT} schedules')


class Negative(unittest.TestCase):
    """The checker finds the violations that scripts which do nothing cause."""

    def rules_of(self, name, acts, scripts):
        return {rule for rule, _ in play(name, acts, has_calm=False, hosts=1, scripts=dict.fromkeys(scripts, NOTHING))}

    def test_jobs_without_claims_are_found(self):
        acts = [Act(0, 'submit', ({'small': 1}, 0)), Act(STARTED_S + 8, 'cancel', (0,))]
        self.assertIn('running_jobs_have_their_vfs', self.rules_of('no-claims', acts, ('prolog', 'taskprolog')))

    def test_claims_without_jobs_are_found(self):
        acts = [Act(0, 'submit', ({'small': 1}, 2)), Act(ENDED_S + 15, 'cancel', (0,))]
        self.assertIn('claims_end_with_their_jobs', self.rules_of('no-end', acts, ('epilog', 'health')))
