# SPDX-License-Identifier: MIT
"""The rules find what they should: a history without a fault passes, and each planted fault is reported by its own rule."""
import copy
import unittest

import rules
import schedules
from rules import Checker
from observer import read_queue
from world import World

HOSTS = schedules.HOSTS
SECONDS = 60


def clean_history():
    """Job 7 with two VFs runs on n1; job 8 has ended; the operator drains and resumes n3."""
    records = []
    for t in range(SECONDS):
        jobs = {'7': {'state': 'RUNNING', 'life': 1, 'host': 'n1', 'wants': {'small': 1, 'large': 1}},
                '8': {'state': 'COMPLETED', 'life': 0, 'host': 'n2', 'wants': {'small': 1}}}
        nodes = {name: {'state': 'drained' if name == 'n3' and 10 < t < 30 else 'mixed', 'gres': '', 'reason': ''} for name in HOSTS}
        if t == 5:
            records.append({'kind': 'act', 't': t, 'name': 'kill_softgpu', 'words': ['n2'], 'is_done': True})
        if t == 10:
            records.append({'kind': 'act', 't': t, 'name': 'drain', 'words': ['n3'], 'is_done': True})
        if t == 29:
            records.append({'kind': 'act', 't': t, 'name': 'resume', 'words': ['n3'], 'is_done': True})
        records.append({'kind': 'queue', 't': t, 'jobs': jobs, 'nodes': nodes})
        for name in HOSTS:
            is_n1 = name == 'n1'
            records.append({'kind': 'host', 't': t, 'name': name, 'is_on': True, 'is_linked': True, 'has_slurmd': True,
                            'claims': {'slurm:lab:7.1': {'small': 1, 'large': 1}} if is_n1 else {'pcmk:x': {'small': 1}},
                            'guests': ['7'] * is_n1, 'steps': ['7'] * is_n1})
    return records + [{'kind': 'calm', 't': SECONDS, 'left': []},
                      {'kind': 'ended', 't': SECONDS, 'job': '7', 'state': 'CANCELLED', 'has_lost_device': False},
                      {'kind': 'ended', 't': SECONDS, 'job': '8', 'state': 'FAILED', 'has_lost_device': True}]


def of(records, kind, name=None, begin=0, end=SECONDS + 1):
    return [record for record in records if record['kind'] == kind and begin <= record['t'] < end and
            (name is None or record.get('name', record.get('job')) == name)]


def plant(kind, name, begin=20, end=SECONDS + 1, **members):
    """A change of a history: records of this kind and name get other members from `begin` to
    `end`."""
    def change(records):
        for record in of(records, kind, name, begin, end):
            record.update(copy.deepcopy(members))
    return change


def queue(begin=20, end=SECONDS, **jobs):
    """A change of a history: Slurm reports other members of jobs 7 and 8 (j7 and j8 here)."""
    def change(records):
        for record in of(records, 'queue', None, begin, end):
            for job, members in jobs.items():
                record['jobs'][job[1:]].update(members)
    return change


def both(*plants):
    return lambda records: [change(records) for change in plants]


def resume_by_nobody(records):
    for record in of(records, 'queue', None, 20, 25):
        record['nodes']['n3']['state'] = 'idle'


NO_GUEST = {'guests': [], 'steps': []}
BOTH = {'slurm:lab:7.1': {'small': 1, 'large': 1}}
SINCE_ENDED = SECONDS - rules.ENDED_S - 4

PLANTS = {
    'a VF taken from a guest': ('guests_keep_their_vfs', plant('host', 'n1', 20, 21, claims={'slurm:lab:7.1': {'small': 1}})),
    'a life on two hosts': ('a_life_is_on_one_host', plant('host', 'n2', 20, 21, claims=BOTH)),
    'a life that runs elsewhere': ('a_life_is_on_one_host', queue(20, 21, j7={'host': 'n2'})),
    'a job that runs without VFs': ('running_jobs_have_their_vfs', plant('host', 'n1', claims={}, guests=[])),
    'a job with one VF too many': ('running_jobs_have_their_vfs', plant('host', 'n1', claims={'slurm:lab:7.1': {'small': 2, 'large': 1}})),
    'the VFs of an earlier life': ('running_jobs_have_their_vfs', queue(j7={'life': 2})),
    'a claim that outlives its job': ('claims_end_with_their_jobs', plant('host', 'n2', SINCE_ENDED, claims={'slurm:lab:8.0': {'small': 1}})),
    'a claim of a job that nobody knows': ('claims_end_with_their_jobs', plant('host', 'n2', SINCE_ENDED, claims={'slurm:lab:9.0': {'small': 1}})),
    'a drain that somebody else ended': ('drains_of_the_operator_stay', resume_by_nobody),
    'a job that does not start': ('everything_heals', plant('calm', None, left=['job 7 is PENDING'])),
    'a guest that sees another': ('guests_are_alone', lambda records: records.append(
        {'kind': 'words', 't': SECONDS, 'host': 'n1', 'text': 'job 7: the VF is not empty'})),
    'a job that fails for no reason': ('jobs_end_as_asked', plant('ended', '8', has_lost_device=False)),
    'a device that was lost though nobody took it': ('jobs_end_as_asked', plant('act', 'kill_softgpu', 0, is_done=False)),
    'a job that is lost with its host': ('jobs_end_as_asked', plant('ended', '7', state='NODE_FAIL')),
}
ALLOWED = {
    'vgpud does not answer': plant('host', 'n1', claims=None),
    'a host is off': plant('host', 'n1', is_on=False, claims=None, **NO_GUEST),
    'the controller does not answer': plant('queue', None, jobs=None, nodes={}),
    'a job starts slowly': plant('host', 'n1', 20, 20 + rules.STARTED_S, claims={}, guests=[]),
    'an end is not known yet': plant('host', 'n1', claims={}, **NO_GUEST),
    'an end is noticed late': plant('host', 'n2', 20, 20 + rules.ENDED_S, claims={'slurm:lab:8.0': {'small': 1}}),
    'a guest outlives its job on a host that is cut off': both(plant('host', 'n1', is_linked=False), queue(j7={'state': 'PENDING', 'life': 2, 'host': ''})),
    'a step outlives its job': both(queue(j7={'state': 'PENDING', 'life': 2, 'host': ''})),
}


def rules_of(records):
    checker = Checker()
    for record in records:
        checker.add(record)
    return {rule for rule, _ in checker.violations}


class Rules(unittest.TestCase):
    def test_a_history_without_a_fault_passes(self):
        self.assertEqual(rules_of(clean_history()), set())

    def test_each_planted_fault_is_reported_by_its_own_rule(self):
        for what, (rule, change) in PLANTS.items():
            with self.subTest(what):
                records = clean_history()
                change(records)
                self.assertEqual(rules_of(records), {rule})

    def test_what_may_happen_is_not_reported(self):
        for what, change in ALLOWED.items():
            with self.subTest(what):
                records = clean_history()
                change(records)
                self.assertEqual(rules_of(records), set())


class Schedules(unittest.TestCase):
    def test_a_seed_gives_the_same_schedule_each_time(self):
        self.assertEqual(schedules.schedule(5), schedules.schedule(5))
        self.assertNotEqual(schedules.schedule(5), schedules.schedule(6))

    def test_every_act_is_a_method_of_the_world(self):
        for name, (_, _, end, _) in schedules.ACTS.items():
            for act in filter(None, (name, end)):
                self.assertTrue(callable(getattr(World, act)), act)

    def test_the_answer_of_squeue_is_read(self):
        line = f'{"7":15}{"1":10}{"RUNNING":20}{"n1":20}{"None":30}{"gres:vgpu:small:2,gres:vgpu:large:1":80}\n'
        jobs, nodes = read_queue(line + 'nodes\nn1|mixed*|vgpu:small:8|vgpu: gpu0 is lost | again\n')
        self.assertEqual(jobs, {'7': {'state': 'RUNNING', 'life': 1, 'host': 'n1', 'reason': 'None', 'wants': {'small': 2, 'large': 1}}})
        self.assertEqual(nodes['n1']['reason'], 'vgpu: gpu0 is lost | again')
