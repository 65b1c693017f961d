# SPDX-License-Identifier: MIT
"""vgpud with the files of Linux' xe on a real SR-IOV PF: vgpu_test_xe.ko has xe's names, limits and errnos."""
import time
import unittest

from pci_machine import XE
from pci_test import DEVICES, MIB, PciTest
from host import wait_for

NAMES = ['web-1', 'web-2', 'web-3']
SIZE = '512MiB'
WEIGHTS = (100, 200, 400)
NS_PER_S = 1_000_000_000
COUNT_S = 3  # vgpud counts once a second
QUANTUM_PAUSE_S = 10  # least time between restorations: daemon/backend/sriov/drift_guard.h
EIO = 5


class XeTest(PciTest):
    gpus = PciTest.gpus[1:]

    def setUp(self):
        super().setUp()
        self.start_vgpud()

    def make(self, names=tuple(NAMES), weight=100):
        self.apply('b50', names, SIZE, {'weight': weight})

    def profile(self, name, functions):
        """The numbers in a file of these functions; 0 is the PF."""
        files = ' '.join(f'{DEVICES}/{XE}/sriov_admin/{"pf" if one == 0 else f"vf{one}"}/profile/{name}'
                         for one in functions)
        return [int(line) for line in self.vm.check(f'cat {files}').split()]

    def assert_complete(self, names):
        """Checks that all VFs have their VRAM, a quantum, a timeout and vfio-pci, and no
        condition."""
        count = len(names)
        self.assertEqual([one[0] for one in self.vfs('name')], list(names))
        self.assertEqual(self.profile('vram_quota', range(1, count + 1)), [512 * MIB] * count)
        for name in ('exec_quantum_ms', 'preempt_timeout_us'):
            self.assertNotIn(0, self.profile(name, range(count + 1)))
        for address, condition in self.vfs('address', 'condition'):
            self.assertEqual((self.driver(address), condition), ('vfio-pci', ''))
        self.assertEqual(self.count(XE), count)
        self.assertEqual(self.read_pf(XE, 'sriov_drivers_autoprobe'), '0')

    def event_kinds(self):
        return self.run_ctl('events --noheadings -o KIND').text.split()


class Slots(XeTest):
    """With `vfs`, the driver enables more VFs than there are; the others wait without VRAM."""
    gpus = [{'id': 'b50', 'pci': {**XeTest.gpus[0]['pci'], 'vfs': 4}}]

    def test_vfs_come_and_go_while_another_is_open(self):
        self.make(NAMES[:1])
        self.assertEqual(self.count(XE), 4)
        self.open(self.vf('web-1')['address'])
        self.mark_log()
        self.ctl('create --gpu b50 --name web-2 --vram 256M')
        self.assertEqual(self.profile('vram_quota', (1, 2)), [512 * MIB, 256 * MIB])
        self.ctl('destroy web-2')
        self.ctl('create --gpu b50 --name web-3 --vram 1G')
        self.assertEqual(self.profile('vram_quota', (1, 2)), [512 * MIB, 1024 * MIB])
        self.assertEqual([line for line in self.writes() if 'numvfs' in line], [])
        self.assertEqual(self.vfs('name', 'attached', 'condition'), [('web-1', True, ''), ('web-3', False, '')])


class Xe(XeTest):
    """What vgpud writes, when, and how it reacts to the driver and to other programs."""

    def test_vram_comes_before_the_number_of_vfs_and_quanta_after_it(self):
        self.make()
        writes = self.writes()
        enabled = writes.index('pf numvfs 3')
        before, after = writes[:enabled], writes[enabled + 1:]
        self.assertEqual([line for line in before if 'vram_quota' in line],
                         [f'vf{vf} vram_quota {512 * MIB}' for vf in (1, 2, 3)])
        self.assertFalse([line for line in before if 'quantum' in line or 'timeout' in line], before)
        self.assertFalse([line for line in after if 'vram_quota' in line], after)
        self.assert_complete(NAMES)

    def test_another_count_is_refused_while_a_vf_is_open_and_nothing_is_written(self):
        self.make()
        self.open(self.vf('web-2')['address'])
        self.put_document('b50', [*NAMES, 'web-4'], SIZE, {'weight': 100})
        self.mark_log()
        refused = self.run_ctl('apply /tmp/vms.json --yes --force')
        self.assertNotEqual(refused.status, 0)
        self.assertIn('web-2', refused.text)
        self.assertEqual(self.writes(), [])
        self.assert_complete(NAMES)

    def test_a_kill_after_any_write_of_another_count_is_completed_by_the_next_vgpud(self):
        names = ['web-1']
        self.make(names)
        # stores of the change to n VFs: 0, then n quotas, then n, then the quantum of the PF
        for count, store in ((2, 1), (3, 3), (4, 6), (5, 8), (6, 5)):
            names.append(f'web-{count}')
            self.put_document('b50', names, SIZE, {'weight': 100})
            with self.subTest(count=count, store=store):
                self.inject(f'kill {store} 1 0')
                self.run_ctl('apply /tmp/vms.json --yes')
                # vgpuctl ends when the bus does, before the killed process is gone
                wait_for('vgpud to be killed', 10, lambda: self.vm.run('pidof vgpud').status == 1, 0.2)
                self.inject('off 0 0 0')
                self.start_vgpud()
                wait_for('the apply to be completed', 60, lambda: self.run_ctl('assert /tmp/vms.json').status == 0, 0.5)
                self.assert_complete(names)

    def test_a_number_that_the_driver_refuses_is_reported_and_the_vfs_come_back(self):
        self.make()
        self.put_document('b50', [*NAMES, 'web-4'], SIZE, {'weight': 100})
        self.inject(f'fail 6 1 {EIO}')  # 0, four quotas, 4
        refused = self.run_ctl('apply /tmp/vms.json --yes')
        self.assertNotEqual(refused.status, 0)
        self.assertIn('firmware of the GPU refused', ' '.join(refused.text.split()))
        wait_for('the VFs', 60, lambda: self.vfs('condition') == [('',)] * 3, 0.5)
        self.assert_complete(NAMES)

    def test_a_reload_of_the_driver_loses_all_values_and_vgpud_writes_them_again(self):
        self.make(weight=300)
        before = self.vfs('name', 'uuid', 'weight', 'vram_bytes', 'address')
        quanta = self.profile('exec_quantum_ms', range(4))
        self.vm.check(f'echo {XE} > {DEVICES}/{XE}/driver/unbind', 120)
        wait_for('vgpud to notice', 60, lambda: self.states() != {'ok'}, 0.5)
        self.assertEqual(self.count(XE), 0)
        self.vm.check(f'echo {XE} > /sys/bus/pci/drivers_probe')
        self.wait_for_state('ok')
        wait_for('the VFs', 60, lambda: self.count(XE) == 3 and self.vfs('condition') == [('',)] * 3, 0.5)
        self.assertEqual(self.vfs('name', 'uuid', 'weight', 'vram_bytes', 'address'), before)
        self.assertEqual(self.profile('exec_quantum_ms', range(4)), quanta)
        self.assert_complete(NAMES)

    def test_each_kernel_offers_what_its_files_allow(self):
        for level, offered in (('617', []), ('619', ['quantum_us']), ('701', ['quantum_us', 'vram_bytes']),
                               ('702', ['quantum_us', 'vram_bytes'])):
            with self.subTest(level=level):
                self.vm.check(f'echo {XE} > {DEVICES}/{XE}/driver/unbind && '
                              f'echo {level} > /sys/module/vgpu_test_xe/parameters/level', 120)
                wait_for('vgpud to notice', 60, lambda: self.states() != {'ok'}, 0.5)
                self.vm.check(f'echo {XE} > /sys/bus/pci/drivers_probe')
                self.wait_for_state('ok')
                abilities = self.ctl('show b50')['gpu']['abilities']
                self.assertEqual([key for key in ('quantum_us', 'vram_bytes')
                                  if abilities.get(key, {'needs': 'never'})['needs'] != 'never'], offered)
                self.assertEqual(abilities['vfs']['needs'], 'all-idle')

    def test_a_quantum_that_somebody_writes_is_put_back_three_times(self):
        self.make()
        file = f'{DEVICES}/{XE}/sriov_admin/vf2/profile/exec_quantum_ms'
        own = self.vm.check(f'cat {file}')
        for turn in range(3):
            self.vm.check(f'echo 99 > {file}')
            wait_for(f'turn {turn}', 60, lambda: self.vm.check(f'cat {file}') == own, 0.5)
        self.vm.check(f'echo 99 > {file}')
        # the text is wrapped
        wait_for('vgpud to give up', 60,
                 lambda: 'no longer restores it' in ' '.join(self.run_ctl('events b50').text.split()), 1)
        time.sleep(QUANTUM_PAUSE_S)
        self.assertEqual(self.vm.check(f'cat {file}'), '99')
        self.assertEqual(self.event_kinds().count('driver-changed'), 4)

    def test_a_write_that_the_driver_holds_up_holds_up_nobody_else(self):
        self.make()
        self.inject('delay 1 1 600000')
        self.vm.check('in_root vgpuctl --bus unix:path=/run/bus.sock set web-2 --weight 300 > /tmp/set 2>&1 &')
        wait_for('the state to tell', 60, lambda: 'has not finished: write' in self.run_ctl('show b50').text, 0.5)
        self.assertEqual(len(self.vfs('name')), 3)
        self.inject('off 0 0 0')
        wait_for('the write', 120, lambda: 'has not finished' not in self.run_ctl('show b50').text, 1)
        wait_for('the weight', 60, lambda: self.profile('exec_quantum_ms', [2])[0] >= 2 * self.profile(
            'exec_quantum_ms', [1])[0], 1)


class BusyTime(XeTest):
    """The busy time of VFs, counted by the perf PMU of the xe module."""
    gpus = [{'id': 'b50', 'pci': {**PciTest.gpus[1]['pci'], 'busy_time': True}}]
    module_parameters = 'pmu=1 busy=0xe'  # VFs 1 to 3 always have work

    def busy_ns(self):
        return [one[0] for one in self.vfs('service_ns')]

    def test_the_measured_shares_are_those_of_the_weights(self):
        self.make()
        for name, weight in zip(NAMES, WEIGHTS):
            self.ctl(f'set {name} --weight {weight}')
        time.sleep(COUNT_S)
        before = self.busy_ns()
        wait_for('10 s of busy time', 120, lambda: sum(self.busy_ns()) - sum(before) > 10 * NS_PER_S, 1)
        after = self.busy_ns()
        spent = [last - first for first, last in zip(before, after)]
        for measured, weight in zip(spent, WEIGHTS):
            self.assertAlmostEqual(measured / sum(spent), weight / sum(WEIGHTS), delta=0.02)

    def test_an_idle_vf_gets_no_time_and_the_others_share_it(self):
        self.make()
        self.vm.check('echo 6 > /sys/module/vgpu_test_xe/parameters/busy')
        time.sleep(COUNT_S)
        before = self.busy_ns()
        wait_for('4 s of busy time', 120, lambda: sum(self.busy_ns()) - sum(before) > 4 * NS_PER_S, 1)
        spent = [last - first for first, last in zip(before, self.busy_ns())]
        self.vm.check('echo 14 > /sys/module/vgpu_test_xe/parameters/busy')
        self.assertEqual(spent[2], 0)
        self.assertAlmostEqual(spent[0] / (spent[0] + spent[1]), 0.5, delta=0.02)


class NoBusyTime(XeTest):
    """The kernel has no PMU for the GPU."""
    gpus = BusyTime.gpus

    def test_the_busy_time_is_unknown_and_an_event_says_why(self):
        self.make()
        self.assertEqual(self.vfs('service_ns'), [(None,)] * 3)
        text = ' '.join(self.run_ctl('events b50').text.split())
        self.assertIn('the busy time of VFs of 0000:02:00.0 is unknown: there is no /sys/bus/event_source', text)
        self.assertEqual(self.event_kinds().count('driver-changed'), 1)


if __name__ == '__main__':
    unittest.main()
