# SPDX-License-Identifier: MIT
"""Jobs of a real Slurm with VFs on three hosts, while hosts, links and daemons die. The steps of Fleet follow each
other on one cluster."""
import collections
import os
import time
import unittest

import fleet
from fleet import ROOT, SLURMD_TIMEOUT, FleetError, wait_for

DIRECTORY = os.path.join(ROOT, 'build', 'fleet')
SMALL, LARGE = 20, 10
START_S = 10
HEALTH_S = 10
NOTHING = '#!/bin/sh\n'


def claimed_jobs(cluster, count, seconds=START_S):
    """Waits until `count` jobs run and each has exactly one VF on its own host."""
    def is_so():
        running = [job for job, (state, _) in cluster.queue().items() if state == 'R']
        return len(running) == count and cluster.is_each_claimed_once()
    wait_for(f'{count} jobs with one VF each', seconds, is_so, 0.2)


class Fleet(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = fleet.Fleet(os.path.join(DIRECTORY, 'hosts'))
        cls.enterClassContext(cls.cluster) if hasattr(cls, 'enterClassContext') else cls.enter()
        cls.jobs = []

    @classmethod
    def enter(cls):
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.stop)

    def host(self, name):
        return next(host for host in self.cluster.hosts if host.name == name)

    def running(self):
        return {job: host for job, (state, host) in self.cluster.queue().items() if state == 'R'}

    def test_1_thirty_jobs_have_one_vf_each_on_evenly_loaded_hosts(self):
        for profile, count in (('small', SMALL), ('large', LARGE)):
            self.jobs.extend(self.cluster.submit({profile: 1}) for _ in range(count))
        claimed_jobs(self.cluster, SMALL + LARGE)
        loads = collections.Counter(self.running().values())
        self.assertLessEqual(max(loads.values()) - min(loads.values()), 1, loads)

    def test_2_a_job_that_finds_no_vf_free_waits_for_one(self):
        more = [self.cluster.submit({'small': 1}) for _ in range(6)]
        claimed_jobs(self.cluster, SMALL + LARGE + 4)
        waiting = [job for job in more if self.cluster.queue()[job][0] == 'PD']
        self.assertEqual(len(waiting), 2)
        self.cluster.slurm('scancel', self.jobs[0])
        # its guest fails if the VF is not empty
        claimed_jobs(self.cluster, SMALL + LARGE + 4)

    def test_3_jobs_of_a_host_that_died_start_elsewhere_with_other_vfs(self):
        lost = self.host('n3')
        moved = {job for job, host in self.running().items() if host == lost.name}
        others = {job: found for job, found in self.cluster.claims().items() if job not in moved}
        lost.kill()
        wait_for('its jobs to be requeued', SLURMD_TIMEOUT + 15 + 10,
                 lambda: lost.name not in self.running().values(), 0.5)
        wait_for('as many jobs as fit', 60, lambda: len(self.running()) == 24 and
                 self.cluster.is_each_claimed_once(but=[lost]), 0.5)
        now = self.cluster.claims(but=[lost])
        self.assertEqual({job: now.get(job) for job in others}, others, 'nobody else lost a VF')

    def test_4_a_host_that_is_back_has_no_claim_without_a_job(self):
        host = self.host('n3')
        host.boot()
        host.start_all()
        wait_for('no claim of an earlier life', 2 * HEALTH_S + 60, self.cluster.is_each_claimed_once, 0.5)
        wait_for('all jobs', 60, lambda: len(self.running()) == 34, 0.5)

    def test_5_a_host_that_is_cut_off_loses_nothing_and_has_one_life_of_each_job_afterwards(self):
        host = self.host('n2')
        before = host.claims()
        host.cut()
        end = time.monotonic() + 2 * SLURMD_TIMEOUT
        while time.monotonic() < end:
            self.assertEqual(set(before), set(host.claims()), 'a claim ended while the controller was out of reach')
            time.sleep(0.5)
        host.heal()
        wait_for('one life of each job', 180, lambda: len(self.running()) == 34 and
                 self.cluster.is_each_claimed_once(), 1)

    def test_6_a_host_without_vgpud_is_drained_by_us_and_resumed_by_us(self):
        host = self.host('n1')
        claims = host.claims()
        host.kill_program('vgpud')
        wait_for('the drain', HEALTH_S + 15, lambda: 'vgpu: vgpud does not answer' in
                 self.cluster.slurm('sinfo', '-R', '-h', '-o', '%E %N'), 0.5)
        host.start_vgpud()
        wait_for('the end of the drain', HEALTH_S + 40, lambda: self.cluster.states() <= {'mix', 'alloc', 'idle'}, 0.5)
        self.assertEqual(set(host.claims()), set(claims), 'jobs and claims outlive vgpud')

    def test_7_no_claim_outlives_the_jobs(self):
        self.cluster.slurm('scancel', '--user=nobody')
        wait_for('no claim', 2 * HEALTH_S, lambda: not self.cluster.claims(), 0.5)
        for host in self.cluster.hosts:
            self.assertIn('ok', host.run(os.path.join(fleet.BIN, 'vgpuctl'), 'list', '--gpus'))


class Negative(unittest.TestCase):
    def test_a_prolog_that_claims_nothing_fails_the_first_step(self):
        with fleet.Fleet(os.path.join(DIRECTORY, 'negative'), hosts=1, scripts={'prolog': NOTHING, 'taskprolog': NOTHING}) as cluster:
            for _ in range(4):
                cluster.submit({'small': 1})
            with self.assertRaises(FleetError):
                claimed_jobs(cluster, 4)
