# SPDX-License-Identifier: MIT
"""Tests of the checker: the right rule must report each kind of fault in a clean history."""
import copy
import random
import unittest

import checker
import schedule

EPISODES = 9
DEFINED = {'one': [32 << 20, 100], 'two': [32 << 20, 300]}


def clean_history():
    events = []
    for episode in range(EPISODES):
        for kind, members in (
                ('computed', {'vf': 'one', 'rounds': 20, 'wrong': 0}),
                ('attack', {'vf': 'hostile', 'order': 'attack', 'stopped': 3}),
                ('canary', {'vf': 'one', 'seed': 17, 'pages': 64, 'kept': 64, 'blank': 0, 'may_be_blank': False}),
                ('canary', {'vf': 'tenant', 'seed': 0, 'pages': 64, 'kept': 0, 'blank': 64, 'may_be_blank': False}),
                ('stuck', {'vf': 'one', 'before': [7, 'u', 0], 'now': [7, 'u', 1]}),
                ('shares', {'services': {'one': 60e6, 'two': 180e6}, 'weights': {'one': 100, 'two': 300},
                            'quantum_ns': 4e6}),
                ('state', {'where': 'the state file', 'defined': DEFINED, 'possible': [{}, DEFINED]}),
                ('answers', {'program': 'softgpu', 'is_answered': True, 'text': ''}),
                ('sample', {'program': 'softgpu', 'pid': 7, 'descriptors': 29, 'memory_kb': 45000}),
                ('logs', {'bytes': 1000 * episode}),
                ('stall', {'seconds': 0.3}),
                ('line', {'program': 'vgpud', 'text': '12:00:00.1 error gpu0/vf1: hang: does not give up the engine'}),
                ('line', {'program': 'vgpu-pf',
                          'text': 'vgpu-pf: error: VF1: world switch 1 -> 1 failed, command 4, status 0xff'}),
                ('action', {'text': "after 0.79 s full_disk('run', 1.61)"}),
                ('line', {'program': 'vgpu-pf', 'text': 'vgpu-pf: error: dev'}),
                ('line', {'program': 'vgpud', 'text': '12:00:00.1 error gpu0: pf-lost: Broken pipe'}),
                ('line', {'program': 'vgpud', 'text': '12:00:00.1 error gpu0: failed: vgpu-pf (pid 23) ended; see x'})):
            events.append({'kind': kind, 'episode': episode, 't': float(episode), **copy.deepcopy(members)})
    return events


def change(kind, number=0, **members):
    """Returns a function that changes `members` of event `number` of this kind."""
    return lambda events: checker.of(events, kind)[number].update(members)


def grow(kind, member, step):
    def plant(events):
        for count, event in enumerate(checker.of(events, kind)):
            event[member] += count * step
    return plant


PLANTS = {
    'a byte of a result': ('results_are_exact', change('computed', wrong=1)),
    'work that never ends': ('answers_come_unless_the_vf_was_reset', change('stuck', now=[7, 'u', 0])),
    'a read beyond the VF': ('attacks_are_stopped', change('attack', stopped=2)),
    'VRAM that was not scrubbed': ('vram_is_ones_own', change('canary', 1, blank=63)),
    'a neighbour\'s write': ('vram_is_ones_own', change('canary', kept=63)),
    'a page that was emptied': ('vram_is_ones_own', change('canary', kept=63, blank=1)),
    'a share too small': ('shares_follow_weights', change('shares', services={'one': 20e6, 'two': 220e6})),
    'a state that is neither old nor new': ('state_is_old_or_new', change('state', defined={'one': [32 << 20, 101]})),
    'a damaged state file': ('state_is_old_or_new', change('state', defined='damaged: checksum')),
    'a program that hangs': ('every_program_answers', change('answers', is_answered=False)),
    'a program that crashes': ('no_program_ends_by_itself', lambda events: events.append(
        {'kind': 'end', 'program': 'vgpud', 'status': -11})),
    'a descriptor an episode': ('nothing_grows', grow('sample', 'descriptors', 1)),
    'a leak of memory': ('nothing_grows', grow('sample', 'memory_kb', 9000)),
    'a flood of log lines': ('nothing_grows', grow('logs', 'bytes', 1 << 20)),
    'a report of a sanitizer': ('logs_hold_no_surprise', change(
        'line', text='==9==ERROR: AddressSanitizer: heap-use-after-free')),
    'undefined behaviour': ('logs_hold_no_surprise', change('line', text='a.cpp:1:2: runtime error: shift')),
    'a guest that holds the engine': ('logs_hold_no_surprise', lambda events: checker.of(events, 'stall')[0].update(
        episode=-1)),
    'a cut line without a full disk': ('logs_hold_no_surprise', lambda events: checker.of(events, 'action')[0].update(
        text='')),
    'an error that nothing explains': ('logs_hold_no_surprise', change('line', text='12:00:00.1 error gpu0: no')),
}


class Checker(unittest.TestCase):
    def test_nothing_is_found_in_a_clean_history(self):
        self.assertEqual(checker.check(clean_history()), [])

    def test_each_planted_fault_is_reported_by_its_own_rule(self):
        for name, (rule, plant) in PLANTS.items():
            with self.subTest(name):
                events = clean_history()
                plant(events)
                self.assertEqual(checker.rules_of(checker.check(events)), {rule})

    def test_each_rule_has_a_planted_fault(self):
        self.assertEqual({rule for rule, _ in PLANTS.values()}, {rule.__name__ for rule in checker.RULES})


class Schedule(unittest.TestCase):
    def test_seed_and_number_alone_decide_an_episode(self):
        self.assertEqual(schedule.episode(7, 3), schedule.episode(7, 3))
        self.assertNotEqual(schedule.episode(7, 3), schedule.episode(7, 4))

    def test_shrinking_leaves_the_actions_that_matter(self):
        numbered = list(enumerate('abcdefghijkl'))
        for wanted in ({0}, {11}, {2, 7}, {0, 5, 11}):
            kept = schedule.shrink(numbered, lambda rest, all_of=wanted: all_of <= {number for number, _ in rest}, 99)
            self.assertEqual(set(kept), wanted)

    def test_shrinking_ends_after_its_tries_with_a_schedule_that_fails(self):
        rng = random.Random(1)
        for _ in range(50):
            wanted, tries = set(rng.sample(range(12), 3)), rng.randint(1, 9)
            calls = []

            def fails(rest):
                calls.append(rest)
                return wanted <= {number for number, _ in rest}
            kept = schedule.shrink(list(enumerate('abcdefghijkl')), fails, tries)
            self.assertLessEqual(len(calls), tries)
            self.assertLessEqual(wanted, set(kept))


if __name__ == '__main__':
    unittest.main()
