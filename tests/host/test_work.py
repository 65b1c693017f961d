# SPDX-License-Identifier: MIT
"""Work on the engine while the module in the machine schedules it, after IGT's SR-IOV tests, with
guests (work_test.py)."""
import time
import unittest

import uapi
from vf_guest import TIME_SCALE
from work_test import MIB, WINDOW_SECONDS, WorkTest

SWITCH_MS = 500  # the PF's limit for a step of a switch, times the module's time_scale
MARGIN_SECONDS = 2  # for the reset, on a busy machine


class Shares(WorkTest):
    def test_equal_vfs_get_equal_time_and_get_on_equally(self):
        self.assert_equal()

    def test_equal_vfs_that_keep_their_turns_get_on_equally_too(self):
        """VFs with work share the time that VFs without work leave of their slices."""
        self.write('.bulk_profile/sched_priority', 'normal')
        self.addCleanup(self.write, '.bulk_profile/sched_priority', 'low')
        self.assert_equal()

    def assert_equal(self):
        guests = {vf: self.guest(vf, 'endless') for vf in (1, 2, 3)}
        before = {vf: guest.progress() for vf, guest in guests.items()}
        got = self.service()
        # counted by the guests' own kernels, independently of the PF and the device
        progress = {vf: guest.progress() - before[vf] for vf, guest in guests.items()}
        for figures in (got, progress):
            mean = sum(figures[vf] for vf in guests) / len(guests)
            self.assertGreater(mean, 0)
            for vf in guests:
                self.assertAlmostEqual(figures[vf] / mean, 1, delta=0.1, msg=figures)
        self.assertEqual(got[4], 0)

    def test_weights_are_shares(self):
        self.write('vf2/profile/weight', 300)
        self.addCleanup(self.write, 'vf2/profile/weight', 100)
        for vf in (1, 2):
            self.guest(vf, 'endless')
        got = self.service()
        self.assertAlmostEqual(got[2] / got[1], 3, delta=0.3, msg=got)

    def test_a_vf_that_is_alone_gets_all(self):
        self.guest(1, 'endless')
        got = self.service()
        self.assertGreater(got[1], 0.8e9 * WINDOW_SECONDS, got)

    def test_work_after_a_rest_alone_is_counted_and_the_rest_is_not(self):
        guest = self.guest(1)
        got = self.service(5)
        self.assertLess(got[1], 0.5e9, got)
        guest.endless()
        time.sleep(2)
        got = self.service()
        self.assertGreater(got[1], 0.8e9 * WINDOW_SECONDS, got)


class Contracts(WorkTest):
    """The module alone keeps the contracts: no program changes the table after the test has set
    it."""
    PERIOD_NS = 200_000_000

    def promise(self, contracts):
        """Sets a run table with equal entries for all VFs, and contracts (fields of uapi.Contract
        by VF)."""
        self.python(f'pf.set_table([(vf, 5000) for vf in range(1, {self.vfs + 1})], contracts={contracts!r})')

    def setUp(self):
        super().setUp()
        self.addCleanup(self.promise, {})

    def assert_parts(self, got, wanted, delta=0.03):
        """Compares each VF's part of the window's time."""
        parts = {vf: ns / (WINDOW_SECONDS * 1e9) for vf, ns in got.items()}
        for vf, part in wanted.items():
            self.assertAlmostEqual(parts[vf], part, delta=delta, msg=f'VF{vf} of {parts}')

    def test_a_reservation_comes_on_top_of_the_weight(self):
        for vf in (1, 2, 3):
            self.guest(vf, 'endless')
        self.promise({1: {'budget_ns': self.PERIOD_NS // 4, 'period_ns': self.PERIOD_NS}})
        got = self.service()
        shared = sum(got.values()) - WINDOW_SECONDS * 1e9 / 4
        self.assert_parts(got, {1: 0.25 + shared / 3 / (WINDOW_SECONDS * 1e9), 4: 0})
        self.assertAlmostEqual(got[2] / got[3], 1, delta=0.1, msg=got)

    def test_a_cap_holds_also_alone(self):
        self.guest(1, 'endless')
        self.promise({1: {'rate_ppm': 150_000, 'burst_ns': 20_000_000}})
        self.assert_parts(self.service(), {1: 0.15})
        self.guest(2, 'endless')
        self.assert_parts(self.service(), {1: 0.15})

    def test_a_gang_gets_its_slots_and_no_more(self):
        gang = {'budget_ns': self.PERIOD_NS // 4, 'period_ns': self.PERIOD_NS, 'phase_us': 30_000,
                'flags': uapi.CONTRACT_GANG}
        self.guest(1, 'endless')
        self.promise({1: gang})
        self.assert_parts(self.service(), {1: 0.25})
        self.guest(2, 'endless')
        got = self.service()
        self.assert_parts(got, {1: 0.25})
        self.assertGreater(got[2], 0.6e9 * WINDOW_SECONDS, got)

    def test_a_lower_priority_class_gets_what_the_higher_leaves(self):
        self.guest(1, 'endless')
        self.promise({1: {'priority_class': 1}})
        self.guest(2, 'endless')
        self.assert_parts(self.service(), {1: 0}, delta=0.01)


class Resets(WorkTest):
    expected_warnings = WorkTest.expected_warnings + (
        (r'world switch 2 -> \d+ failed, command [45], status 0x(ff|11)', 'VF2 is made to hang'),)

    def test_neighbour_computes_on_through_two_resets(self):
        neighbour = self.guest(1, 'compute')
        victim = self.guest(2, 'endless')
        before = self.counters()
        for _ in range(2):
            self.reset(2)
            self.assert_works_again(victim)
        after = self.counters()
        self.assertEqual(after[2]['flrs'] - before[2]['flrs'], 2)
        self.assertEqual(after[1]['flrs'], before[1]['flrs'])
        self.assert_right(neighbour)

    def test_two_resets_at_once(self):
        neighbour = self.guest(1, 'compute')
        victims = [self.guest(vf, 'endless') for vf in (2, 3)]
        self.reset(2, 3)
        for victim in victims:
            self.assert_works_again(victim)
        self.assert_right(neighbour)

    def test_resets_in_the_middle_of_switches(self):
        self.write('.bulk_profile/exec_quantum_ms', 1)
        self.addCleanup(self.write, '.bulk_profile/exec_quantum_ms', 0)
        neighbour = self.guest(1, 'compute')
        victim = self.guest(2)
        for _ in range(4):
            victim.endless()
            self.reset(2)
            victim.ask('forget')
            victim.boot()
        self.assert_right(neighbour)

    def assert_waited_at_most(self, runs, vf, seconds):
        """Checks that the VF waited at most `seconds` between two slices."""
        slices = [run for run in runs if run[2] == vf]
        gaps = [(later[0] - earlier[1]) / 1e9 for earlier, later in zip(slices, slices[1:])]
        self.assertGreater(len(gaps), 1, runs)
        self.assertLess(max(gaps), seconds)

    def test_a_job_that_cannot_be_stopped_is_reset_alone(self):
        neighbour = self.guest(1, 'compute')
        victim = self.guest(2, 'endless')
        self.assert_runs(victim)
        before = self.counters()
        self.watch_runs()
        self.inject({'inject': {'vf': 2, 'point': 'idle', 'effect': 'lost', 'count': 1}})
        self.await_reset(before, 2)
        after = self.counters()
        self.assertEqual(after[2]['hangs'] - before[2]['hangs'], 1)
        self.assertEqual(after[2]['flrs'] - before[2]['flrs'], 1)
        self.assertEqual((after[1]['flrs'], after[1]['hangs']), (before[1]['flrs'], before[1]['hangs']))
        # the neighbour may have computed all of that before the fault
        self.assert_right(neighbour)
        neighbour.order('compute')
        time.sleep(1)
        self.assert_right(neighbour)
        self.assert_waited_at_most(self.runs(), 1, SWITCH_MS * TIME_SCALE / 1000 + MARGIN_SECONDS)
        self.assert_works_again(victim)


class PfReset(WorkTest):
    def test_work_is_scheduled_after_a_reset_of_the_pf_while_a_guard_watches(self):
        # the guard watches a guest that requests full access twice
        self.python(f'pf.release(1); pf.provision(1, {32 * MIB}, guard_limits=(0, 1, 0, 0))')
        guests = [self.guest(vf) for vf in (1, 2)]
        self.reset(1)
        guests[0].ask('forget')
        guests[0].boot()
        self.assertGreater(self.counters()[1]['guard_level'], 0)
        for _ in range(3):
            self.vm.check(f'echo 1 > {self.path("reset")}', 120)
        self.reset(1, 2)
        for guest in guests:
            guest.ask('forget')
            guest.boot()
            guest.endless()
        got = self.service()
        for vf in (1, 2):
            self.assertGreater(got[vf], 0.3e9 * WINDOW_SECONDS, got)


class Control(WorkTest):
    expected_warnings = WorkTest.expected_warnings + (
        (r'VF1 is in use', 'functions that must stay are to be disabled'),)

    def test_paused_is_off_the_engine(self):
        neighbour = self.guest(1, 'endless')
        guest = self.guest(2, 'endless')
        self.assert_runs(guest)
        self.python('pf.control(2, uapi.PAUSE)')
        count = guest.progress()
        got = self.service(3)
        self.assertEqual((guest.progress(), got[2]), (count, 0))
        self.assertGreater(got[1], 0)
        self.python('pf.control(2, uapi.RESUME)')
        self.assert_runs(guest)
        self.assert_runs(neighbour)

    def test_stopped_is_off_the_engine_until_a_reset(self):
        neighbour = self.guest(1, 'compute')
        guest = self.guest(2, 'endless')
        self.write('vf2/stop', 1)
        self.assertEqual(self.service(3)[2], 0)
        self.reset(2)
        self.assert_works_again(guest)
        self.assert_right(neighbour)

    def test_vram_beyond_the_quota_is_out_of_reach(self):
        neighbour = self.guest(1, 'compute')
        guest = self.guest(2)
        before = self.counters()
        self.assertEqual(guest.ask('attack'), 'stopped 3 of 3')
        after = self.counters()
        self.assertGreaterEqual(after[2]['faults'] - before[2]['faults'], 2)
        self.assertEqual(after[1]['faults'], before[1]['faults'])
        self.assert_right(neighbour)

    def test_functions_stay_while_a_guest_has_one(self):
        numvfs = self.path('sriov_numvfs')
        self.vm.check(f'echo 2 > {numvfs}', 120)
        guest = self.guest(1, 'endless')
        self.assertIn('busy', self.vm.run(f'echo 0 > {numvfs}', 120).text)
        self.assertIn('busy', self.vm.run(f'echo 0 > {self.path("sriov_admin/vf1/profile/vram_quota")}', 120).text)
        self.assert_runs(guest)
        guest.kill()
        deadline = time.monotonic() + 60
        while self.vm.run(f'echo 0 > {numvfs}', 120).status != 0:
            self.assertLess(time.monotonic(), deadline, 'the VF is still in use')
        self.assertEqual(self.vm.check(f'cat {numvfs}'), '0')


if __name__ == '__main__':
    unittest.main()
