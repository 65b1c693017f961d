# SPDX-License-Identifier: MIT
"""Two guests with the stock driver on two VFs of one GPU: shares, and preemption in the middle of waves."""
import time
import unittest

from host import HostError, wait_for
from suite import Background, GuestTest

# wave instructions; a HIP program executes far fewer before its kernel runs
LONG_KERNEL_RUNS = 20_000_000
QUANTUM_US = 2000
WINDOW_SECONDS = 20


def part_of_a(before, after):
    """(a's part of what both got between two moments, what a got)"""
    got = {name: after[name] - before[name] for name in 'ab'}
    return got['a'] / sum(got.values()), got['a']


class Sharing(GuestTest):
    host_options = {'quantum_us': QUANTUM_US}
    guests = {'a': 100, 'b': 300}

    def wait_until_busy(self, *names):
        start = {name: self.stats(name)['wave_instructions'] for name in names}
        for name in names:
            wait_for(f'the long kernel of {name}', 120, lambda name=name: self.stats(name)[
                'wave_instructions'] - start[name] > LONG_KERNEL_RUNS, 0.2)

    def moment(self):
        """Counters of both VFs. Each kind is read at one moment, because a call takes a while on a
        busy host.

        A host that stands still for 100 ms, as a virtual one does, makes that slice longer by 100
        ms, and the scheduler takes a second to even it out. A share is therefore measured between
        moments at which no VF has a lag of more than a quantum. Such moments must come: the
        scheduler promises this bound.
        """
        seen = []
        try:
            vfs = wait_for('a moment at which nobody owes more than a quantum', 20, lambda: self.even_vfs(seen))
        except HostError as error:
            self.fail(f'{error}; lag ns, overruns and longest overrun: {seen[-20:]}')
        stats = {vf['vf']: vf for vf in self.host.gpu_stats()['vfs']}
        return {'service_ns': {name: vfs[name]['service_ns'] for name in 'ab'},
                'instructions': {name: stats[vfs[name]['index']]['wave_instructions'] for name in 'ab'}}

    def even_vfs(self, seen):
        vfs = {vf['name']: vf for vf in self.host.ctl('list', '--vfs')['vfs']}
        seen.append([(vf['lag_ns'], vf['overruns'], vf['overrun_max_ns']) for vf in vfs.values()])
        return vfs if all(abs(vfs[name]['lag_ns']) <= QUANTUM_US * 1000 for name in 'ab') else None

    def test_two_guests_share_one_to_three_and_their_results_are_exact(self):
        a = Background(self, 'long_kernel', 80000, vm=self.vms['a'])
        b = Background(self, 'long_kernel', 240000, vm=self.vms['b'])
        self.wait_until_busy('a', 'b')
        before = self.moment()
        time.sleep(WINDOW_SECONDS)
        after = self.moment()
        self.assertTrue(a.is_running() and b.is_running(), 'a kernel ended inside the window')
        a.finish()
        b.finish()

        (share, service), (work, _) = (part_of_a(before[kind], after[kind]) for kind in ('service_ns', 'instructions'))
        print(f'share of a: {share:.4f} of the time, {work:.4f} of the instructions', flush=True)
        self.assertGreater(service, 500 * QUANTUM_US * 1000, 'too few quanta to judge')
        self.assertAlmostEqual(share, 0.25, delta=0.02 * 0.25)
        # the two guests' QEMUs compete with the engine for the host's CPUs while they boot kernels
        self.assertAlmostEqual(work, 0.25, delta=0.03)

    def test_a_thousand_world_switches_in_the_middle_of_waves(self):
        before = {name: self.host.vf(name)['switches'] for name in 'ab'}
        rounds = 30000
        while True:
            a = Background(self, 'long_kernel', rounds, vm=self.vms['a'])
            b = Background(self, 'long_kernel', 3 * rounds, vm=self.vms['b'])
            a.finish()
            b.finish()
            switches = {name: self.host.vf(name)['switches'] - before[name] for name in 'ab'}
            if min(switches.values()) >= 1000:
                break
        print(f'switches: {switches}', flush=True)

    def test_a_thousand_queue_preemptions_between_world_switches(self):
        a = Background(self, 'queue_churn', 1000, 3000, vm=self.vms['a'])
        b = Background(self, 'long_kernel', 60000, vm=self.vms['b'])
        b.finish()
        a.finish()


if __name__ == '__main__':
    unittest.main(verbosity=2)
