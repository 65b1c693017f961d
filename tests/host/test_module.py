# SPDX-License-Identifier: MIT
"""vgpu_pf.ko on a stock kernel: the PF behind softgpu's host view, its sysfs, its uapi.

Acceptance tests after IGT's SR-IOV suites, against sysfs and uapi only. The uapi's own suite,
test_module_uapi.py, runs in the machine. Every class ends with a check of the kernel's log.
"""
import base64
import os
import time
import unittest

from card_test import CardTest
from machine import DOMAINS
from vf_guest import VfGuest

MIB = 1 << 20
VFS = CardTest.vfs


class ModuleTest(CardTest):
    """Access to the module's sysfs."""

    def read(self, name):
        return self.vm.check(f'cat {self.path(name)}')

    def write(self, name, value, timeout=120):
        self.vm.check(f'echo {value} > {self.path(name)}', timeout)

    def refused(self, name, value, words):
        """A write that must fail, with these words of strerror."""
        answer = self.vm.run(f'echo {value} > {self.path(name)}', 120)
        self.assertNotEqual(answer.status, 0, f'{name} took {value}')
        self.assertIn(words, answer.text, f'{name} = {value}')

    def quotas(self):
        files = ' '.join(self.path(f'sriov_admin/vf{vf}/profile/vram_quota')
                         for vf in range(1, self.vfs + 1))
        return [int(line) for line in self.vm.check(f'cat {files}').split()]

    def unloads_soon(self):
        """Unloads the module, which only polls whether its last user has gone."""
        self.vm.check('(for i in $(seq 100); do rmmod vgpu_pf && exit 0; sleep 0.2; done; exit 1)', 120)

    def functions(self):
        text = self.vm.check(f'ls -d {self.path("virtfn*")} 2>/dev/null || true')
        return len(text.split())


class Functions(ModuleTest):
    """sriov_numvfs, and the functions and their parts of VRAM."""
    expected_warnings = (
        (r'VF1 is in use|VFs already enabled. Disable before', 'functions that must stay are to be changed'),
        (r'probe (of|with driver).*vgpu_test_failing failed|vgpu_test_failing.* probe .*failed', 'a driver that fails'))

    def tearDown(self):
        self.vm.run(f'echo 0 > {self.path("sriov_numvfs")}', 120)

    def test_enabling_gives_equal_parts_that_disabling_takes_back(self):
        for count in (1, 2, 3, 7, 16):
            self.write('sriov_numvfs', count)
            self.assertEqual(self.read('sriov_numvfs'), str(count))
            self.assertEqual(self.functions(), count)
            quotas = self.quotas()
            share = min(64, 1 << ((512 - 16) // count).bit_length() - 1) * MIB
            self.assertEqual(quotas, [share] * count + [0] * (VFS - count))
            self.assertEqual(self.read('sriov_admin/vf1/state'), 'PROVISIONED')
            self.write('sriov_numvfs', 0)
            self.assertEqual(self.functions(), 0)
            self.assertEqual(self.quotas(), [0] * VFS)
            self.assertEqual(self.read('sriov_admin/vf1/state'), 'ABSENT')

    def test_who_is_killed_while_parts_are_given_leaves_none_behind(self):
        """The first parts after a load take a while, because they are scrubbed."""
        numvfs = self.path('sriov_numvfs')
        for delay_us in (10000, 30000, 60000, 100000):
            self.unloads_soon()
            self.load()
            self.vm.check(f'(echo {VFS} > {numvfs}) > /dev/null 2>&1 & writer=$!; usleep {delay_us}; '
                          'kill -9 $writer; wait $writer; true')
            if self.read('sriov_numvfs') == '0':
                self.vm.check(f'(for i in $(seq 300); do cat {self.path("sriov_admin/vf*/state")} | grep -qvx ABSENT || '
                              'exit 0; sleep 0.1; done; exit 1)', 60)
            else:
                self.write('sriov_numvfs', 0)
            self.assertEqual(self.quotas(), [0] * VFS, delay_us)

    def test_count_is_checked(self):
        self.refused('sriov_numvfs', VFS + 1, 'out of range')
        self.write('sriov_numvfs', 2)
        self.refused('sriov_numvfs', 3, 'busy')
        self.write('sriov_numvfs', 0)

    def test_explicit_provisioning_is_left_alone(self):
        self.write('sriov_admin/vf2/profile/vram_quota', 32 * MIB)
        self.write('sriov_numvfs', 3)
        self.assertEqual(self.quotas()[:3], [0, 32 * MIB, 0])
        self.write('sriov_numvfs', 0)
        self.assertEqual(self.quotas()[:3], [0, 32 * MIB, 0])
        self.write('sriov_admin/vf2/profile/vram_quota', 0)
        self.assertEqual(self.quotas(), [0] * VFS)

    def test_an_owned_vf_keeps_the_functions(self):
        self.write('sriov_numvfs', 2)
        self.vm.check('sleep 600 < /dev/vgpu/vf1 & echo $! > /tmp/owner; sleep 0.5')
        self.refused('sriov_numvfs', 0, 'busy')
        self.refused('sriov_admin/vf1/profile/vram_quota', 0, 'busy')
        self.assertIn('pid', self.read('sriov_admin/vf1/owner'))
        self.vm.check('kill $(cat /tmp/owner); sleep 0.5')
        self.write('sriov_numvfs', 0)

    def test_no_driver_is_probed_and_links_lead_to_the_functions(self):
        self.write('sriov_numvfs', 2)
        for vf in (1, 2):
            link = self.vm.check(f'readlink -f {self.path(f"sriov_admin/vf{vf}/device")}')
            self.assertEqual(link, self.vm.check(f'readlink -f {self.path(f"virtfn{vf - 1}")}'))
            self.assertEqual(self.vm.run(f'test -e {link}/driver').status, 1)
            self.assertEqual(self.vm.check(f'cat {link}/driver_override'), 'none')
        self.assertIn('[none]', self.read('sriov_admin/vf1/assignment_mode'))
        self.write('sriov_numvfs', 0)
        self.assertEqual(self.vm.run(f'test -e {self.path("sriov_admin/vf1/device")}').status, 1)

    def test_vfio_needs_an_iommu(self):
        self.refused('sriov_admin/vf1/assignment_mode', 'vfio-pci', 'not supported')
        self.refused('sriov_admin/vf1/assignment_mode', 'nobody', 'nvalid')
        self.assertIn('[none]', self.read('sriov_admin/vf1/assignment_mode'))

    def test_a_vf_goes_to_the_hosts_driver_when_it_has_resources(self):
        self.vm.check('load pf_stub; echo 1002 686c > /sys/bus/pci/drivers/pci-pf-stub/new_id || true')
        self.write('sriov_admin/vf1/assignment_mode', 'host')
        self.write('sriov_numvfs', 2)
        link = self.vm.check(f'readlink -f {self.path("virtfn0")}')
        self.assertIn('pci-pf-stub', self.vm.check(f'readlink {link}/driver'))
        self.assertEqual(self.vm.run(f'test -e {self.path("virtfn1")}/driver').status, 1)
        self.write('sriov_admin/vf1/assignment_mode', 'none')
        self.assertEqual(self.vm.run(f'test -e {link}/driver').status, 1)
        self.write('sriov_numvfs', 0)

    def test_a_host_driver_that_fails_is_asked_once(self):
        def probes():
            return int(self.vm.check('sleep 2; cat /sys/module/vgpu_test_failing/parameters/probes'))

        self.vm.check('insmod /built/vgpu_test_failing.ko')
        self.addCleanup(self.vm.run, 'rmmod vgpu_test_failing')
        self.write('sriov_admin/vf1/assignment_mode', 'host')
        self.addCleanup(self.write, 'sriov_admin/vf1/assignment_mode', 'none')
        for times in (1, 2):
            self.write('sriov_numvfs', 2)
            self.assertEqual(probes(), times)
            self.write('sriov_numvfs', 0)


class Policy(ModuleTest):
    """sriov_admin without a lease."""
    expected_warnings = ((r'exceeds the aperture', 'nonsense is written'),)

    def python(self, script):
        return self.vm.check(f"in_root sh -c \"cd /tests && python3 -B -c 'import uapi; {script}'\"")

    def plan(self):
        return [int(word) for word in self.python('print(*(q for v, q in uapi.Pf().table().plan()))').split()]

    def profile(self, vf, name):
        return f'sriov_admin/vf{vf}/profile/{name}'

    def test_defaults(self):
        for name, value in (('exec_quantum_ms', '0'), ('preempt_timeout_us', '0'),
                            ('sched_priority', '[low] normal high'), ('vram_quota', '0'),
                            ('weight', '100'), ('min_pct', '0'), ('max_pct', '100')):
            self.assertEqual(self.read(self.profile(1, name)), value, name)
        self.assertEqual(self.read('sriov_admin/pf/profile/exec_quantum_ms'), '0')
        self.assertEqual(self.read('sriov_admin/vf1/owner'), 'none')

    def test_what_is_written_is_read_back(self):
        for name, value in (('exec_quantum_ms', 7), ('preempt_timeout_us', 50000), ('weight', 300),
                            ('max_pct', 60), ('min_pct', 10)):
            before = self.read(self.profile(5, name))
            self.write(self.profile(5, name), value)
            self.assertEqual(self.read(self.profile(5, name)), str(value))
            if name == 'min_pct':
                self.write(self.profile(5, 'min_pct'), before)
            self.assertEqual(self.read(self.profile(6, name)), before if name != 'min_pct' else '0')
        for name, value in (('exec_quantum_ms', 0), ('preempt_timeout_us', 0), ('weight', 100),
                            ('max_pct', 100)):
            self.write(self.profile(5, name), value)

    def test_nonsense_is_refused(self):
        for name in ('exec_quantum_ms', 'preempt_timeout_us', 'weight', 'min_pct', 'max_pct',
                     'vram_quota', 'sched_priority'):
            for value in ('x', '-1', '1x', "''"):
                self.refused(self.profile(1, name), value, 'nvalid')
        self.refused(self.profile(1, 'exec_quantum_ms'), 1001, 'nvalid')
        self.refused(self.profile(1, 'preempt_timeout_us'), 100000001, 'nvalid')
        self.refused(self.profile(1, 'weight'), 0, 'nvalid')
        self.refused(self.profile(1, 'max_pct'), 101, 'nvalid')
        self.refused(self.profile(1, 'sched_priority'), 'normal', 'not permitted')
        self.refused('sriov_admin/.bulk_profile/sched_priority', 'high', 'not permitted')

    def functions_for(self, count):
        self.write('sriov_numvfs', count)
        self.addCleanup(self.write, 'sriov_numvfs', 0)

    def set(self, vf, name, value, default):
        self.write(self.profile(vf, name), value)
        self.addCleanup(self.write, self.profile(vf, name), default)

    def shares(self):
        """The shares of the VFs with resources in a round of the plan."""
        plan = [quantum for quantum, quota in zip(self.plan(), self.quotas()) if quota]
        return [quantum / sum(plan) for quantum in plan]

    def await_shares(self, wanted):
        """Waits for these shares: the plan follows a change of VFs after a moment."""
        deadline = time.monotonic() + 30
        while True:
            shares = self.shares()
            if len(shares) == len(wanted) and all(abs(a - b) < 0.005 for a, b in zip(shares, wanted)):
                return
            self.assertLess(time.monotonic(), deadline, f'{shares}, not {wanted}')
            time.sleep(0.2)

    def test_weights_shape_the_table(self):
        self.functions_for(VFS)
        self.write(self.profile(1, 'weight'), 200)
        plan = self.plan()
        self.assertEqual(len(plan), VFS)
        self.assertAlmostEqual(plan[0] / plan[1], 2, delta=0.01)
        self.assertLessEqual(sum(plan), 60000)
        self.write(self.profile(1, 'weight'), 100)
        self.assertEqual(len(set(self.plan())), 1)

    def test_a_floor_is_a_part_of_the_round_of_those_with_resources(self):
        self.functions_for(VFS)
        self.set(1, 'min_pct', 60, 0)
        self.await_shares([0.6] + (VFS - 1) * [0.4 / (VFS - 1)])
        self.assertLessEqual(sum(self.plan()), 60000)
        for vf in range(3, VFS + 1):
            self.write(self.profile(vf, 'vram_quota'), 0)
        self.await_shares([0.6, 0.4])
        self.write(self.profile(2, 'vram_quota'), 0)
        self.await_shares([1])

    def test_a_cap_is_a_part_of_the_round_and_a_contract(self):
        def rate_ppm():
            return self.python('print(uapi.Pf().table().contracts[0].rate_ppm)')

        self.functions_for(2)
        self.set(1, 'weight', 300, 100)
        self.await_shares([0.75, 0.25])
        self.set(1, 'max_pct', 50, 100)
        self.await_shares([0.5, 0.5])
        self.assertEqual(rate_ppm(), '500000')
        self.write(self.profile(1, 'max_pct'), 100)
        self.await_shares([0.75, 0.25])
        self.assertEqual(rate_ppm(), '0')

    def test_the_longest_gap_can_be_changed_while_it_runs(self):
        gap = 'sriov_admin/max_gap_ms'
        self.assertEqual(self.read(gap), '60')
        self.addCleanup(self.write, gap, 60)
        self.functions_for(VFS)
        self.set(1, 'weight', 200, 100)
        for value in (40, 80):
            self.write(gap, value)
            self.assertEqual(self.read(gap), str(value))
            self.assertAlmostEqual(sum(self.plan()), value * 1000, delta=100)
        self.write(gap, 0)
        self.assertAlmostEqual(sum(self.plan()), (VFS + 1) * 6000, delta=VFS)
        for value in (10001, -1, 'x'):
            self.refused(gap, value, 'nvalid')

    def test_contracts_of_a_policy_writer_that_has_gone_stay_in_force(self):
        self.functions_for(2)
        self.python('pf = uapi.Pf(); pf.lease(1); pf.set_table([(1, 5000), (2, 5000)], contracts={'
                    '1: dict(budget_ns=2000000, period_ns=20000000), 2: dict(rate_ppm=300000, burst_ns=9000000)})')
        self.addCleanup(self.python, 'uapi.Pf().set_table([(1, 5000)])')
        self.set(1, 'weight', 300, 100)
        self.set(1, 'max_pct', 80, 100)
        told = self.python('c = uapi.Pf().table().contracts; '
                           'print(c[0].budget_ns, c[0].period_ns, c[0].rate_ppm, c[1].rate_ppm, c[1].burst_ns)')
        self.assertEqual(told, '2000000 20000000 800000 300000 9000000')

    def test_floors_cannot_exceed_the_whole(self):
        self.write(self.profile(1, 'min_pct'), 60)
        self.refused(self.profile(2, 'min_pct'), 50, 'space')
        self.write(self.profile(1, 'min_pct'), 0)

    def test_bulk_reaches_all(self):
        self.write('sriov_admin/.bulk_profile/exec_quantum_ms', 3)
        self.assertEqual({self.read(self.profile(vf, 'exec_quantum_ms')) for vf in (1, 9, VFS)},
                         {'3'})
        self.assertEqual(self.plan(), [3000] * VFS)
        self.write('sriov_admin/.bulk_profile/sched_priority', 'normal')
        self.assertEqual(self.read(self.profile(4, 'sched_priority')), 'low [normal] high')
        self.write('sriov_admin/.bulk_profile/sched_priority', 'low')
        self.write('sriov_admin/.bulk_profile/exec_quantum_ms', 0)

    def test_one_vf_cannot_leave_the_priority_of_all(self):
        bulk, one = 'sriov_admin/.bulk_profile/sched_priority', self.profile(4, 'sched_priority')
        self.write(bulk, 'normal')
        self.addCleanup(self.write, bulk, 'low')
        self.refused(one, 'low', 'not permitted')
        self.write(one, 'high')
        self.assertEqual(self.read(one), 'low normal [high]')
        self.write(one, 'normal')
        self.assertEqual(self.read(one), 'low [normal] high')
        self.write(bulk, 'low')
        self.refused(one, 'normal', 'not permitted')
        self.assertEqual(self.read(one), '[low] normal high')

    def test_quota_provisions_resizes_and_releases(self):
        quota = self.profile(3, 'vram_quota')
        self.write(quota, 1)
        self.assertEqual(self.read(quota), str(16 * MIB))  # rounded up
        self.write(quota, 48 * MIB)
        self.assertEqual(self.read(quota), str(48 * MIB))
        self.refused(quota, 1 << 40, 'nvalid')
        self.assertEqual(self.read(quota), str(48 * MIB))  # as it was
        self.write(quota, 0)
        self.assertEqual(self.read('sriov_admin/vf3/state'), 'ABSENT')

    def test_stop(self):
        self.write(self.profile(2, 'vram_quota'), 16 * MIB)
        self.refused('sriov_admin/vf2/stop', 0, 'nvalid')
        self.write('sriov_admin/vf2/stop', 1)
        self.assertEqual(self.read('sriov_admin/vf2/state'), 'STOPPED')
        self.write(self.profile(2, 'vram_quota'), 0)


class Uapi(ModuleTest):
    """test_module_uapi.py in the machine."""

    def test_uapi_suite(self):
        answer = self.vm.run('in_root sh -c "cd /tests && python3 -B test_module_uapi.py 2>&1"', 900)
        with open(os.path.join(self.directory, 'uapi.log'), 'w') as log:
            log.write(answer.text)
        self.assertEqual(answer.status, 0, answer.text[-6000:])
        self.assertNotIn('skipped', answer.text)

    def test_debugfs_describes(self):
        self.assertIn('VF16', self.vm.check('cat /sys/kernel/debug/vgpu_pf/pf0/dump'))
        self.vm.check('cat /sys/kernel/debug/vgpu_pf/pf0/trace')


class Binding(ModuleTest):
    """The module is loaded and unloaded."""
    expected_warnings = ((r'vgpu_pf .*: device lost$', 'how the core says that it lets go of a device that is reset'),)

    def loads(self):
        self.vm.check('insmod /built/vgpu_pf.ko time_scale=20', 120)

    def unloads(self):
        self.vm.check('rmmod vgpu_pf', 120)

    def test_twenty_times(self):
        for _ in range(20):
            self.unloads()
            self.assertEqual(self.vm.run('test -e /dev/vgpu-pf0').status, 1)
            self.loads()
        self.assertEqual(self.quotas(), [0] * VFS)

    def test_unloading_takes_functions_away(self):
        self.write('sriov_numvfs', 4)
        self.unloads()
        self.assertEqual(self.functions(), 0)
        self.loads()
        self.assertEqual(self.quotas(), [0] * VFS)

    def test_explicit_resources_are_adopted(self):
        self.write('sriov_admin/vf2/profile/vram_quota', 32 * MIB)
        self.unloads()
        self.loads()
        self.assertEqual(self.quotas()[:3], [0, 32 * MIB, 0])
        self.assertEqual(self.read('sriov_admin/vf2/state'), 'PROVISIONED')
        self.write('sriov_admin/vf2/profile/vram_quota', 0)

    def test_an_open_file_keeps_the_module(self):
        self.vm.check('sleep 600 < /dev/vgpu-pf0 & echo $! > /tmp/holder; sleep 0.5')
        self.assertNotEqual(self.vm.run('rmmod vgpu_pf').status, 0)
        self.vm.check('kill $(cat /tmp/holder); sleep 0.5')
        self.unloads()
        self.loads()

    def test_unbinding_under_an_open_file(self):
        driver = '/sys/bus/pci/drivers/vgpu_pf'
        script = '\n'.join((
            'import errno, os, select, sys, threading, uapi',
            'pf = uapi.Pf(); ring = uapi.Ring(pf); vf = uapi.Node("/dev/vgpu/vf1")',
            'open(sys.argv[1] + "/unbind", "w").write(sys.argv[2])',
            'poller = select.poll(); poller.register(pf.fd, select.POLLIN)',
            'assert poller.poll(0)[0][1] & select.POLLHUP',
            'for call in (pf.info, lambda: vf.vf(1), lambda: pf.lease(1)):',
            '    try:',
            '        call(); sys.exit("answered")',
            '    except uapi.Refused as error:',
            '        assert error.errno == errno.ENODEV, error',
            'assert ring.head() >= 1',
            'open(sys.argv[1] + "/bind", "w").write(sys.argv[2])',
            'assert uapi.Pf(index=1).info().total_vfs == 16',
        ))
        packed = base64.b64encode(script.encode()).decode()
        self.vm.check(f'echo {packed} | base64 -d > /r/tmp/unbind.py')
        self.vm.check(f'in_root env PYTHONPATH=/tests python3 -B /tmp/unbind.py {driver} '
                      f'{DOMAINS["bridge"]}:01:00.0', 120)
        self.unloads()
        self.loads()

    def test_readers_do_not_disturb_binding(self):
        self.vm.check(f'(while :; do cat {self.path("sriov_admin/vf1/state")} /sys/kernel/debug/vgpu_pf/'
                      'pf0/dump; done) > /dev/null 2>&1 & echo $! > /tmp/reader')
        self.vm.check('(while :; do dd if=/dev/vgpu-pf0 bs=8 count=1 iflag=nonblock; done) '
                      '> /dev/null 2>&1 & echo $! > /tmp/opener')
        driver = '/sys/bus/pci/drivers/vgpu_pf'
        for _ in range(8):
            self.write('sriov_numvfs', 2)
            self.vm.check(f'echo {DOMAINS["bridge"]}:01:00.0 > {driver}/unbind', 120)
            self.vm.check(f'echo {DOMAINS["bridge"]}:01:00.0 > {driver}/bind', 120)
        self.vm.check('kill $(cat /tmp/reader /tmp/opener); sleep 1')
        self.unloads()
        self.loads()

    def test_reset_by_the_kernel_loses_the_vfs_contents_only(self):
        self.write('sriov_admin/vf1/profile/vram_quota', 16 * MIB)
        lost = self.vm.check('dmesg | grep -c "device lost" || true')
        self.write('reset', 1)
        self.assertEqual(self.read('sriov_admin/vf1/state'), 'PROVISIONED')
        self.assertEqual(self.vm.check('dmesg | grep -c "device lost" || true'), lost)
        self.assertIn('device suspended', self.vm.dmesg())
        self.write('sriov_admin/vf1/profile/vram_quota', 0)
        self.assertEqual(self.quotas(), [0] * VFS)


class Client(ModuleTest):
    """A client outside the machine has a VF's socket open; no driver is up in its guest yet."""
    expected_warnings = (
        (r'VF1 is in use|pci_pm_suspend.* returns -16|failed to suspend.* error -16', 'what has to stay is to go, and to sleep'),)

    def await_attached(self, vf, is_attached):
        self.vm.check(f'(for i in $(seq 300); do grep -q "^VF{vf}: .* attached {int(is_attached)}," '
                      '/sys/kernel/debug/vgpu_pf/pf0/dump && exit 0; sleep 0.1; done; exit 1)', 60)

    def test_an_attached_vf_keeps_its_resources_the_functions_the_module_and_the_machine_awake(self):
        quota = 'sriov_admin/vf1/profile/vram_quota'
        self.write(quota, 32 * MIB)
        self.write('sriov_numvfs', 2)
        with VfGuest(self.card.path('vf1.sock')):
            self.await_attached(1, True)
            self.refused('sriov_numvfs', 0, 'busy')
            self.refused(quota, 0, 'busy')
            self.assertNotEqual(self.vm.run('rmmod vgpu_pf', 120).status, 0)
            self.vm.check('echo devices > /sys/power/pm_test')
            self.assertNotEqual(self.vm.run('echo freeze > /sys/power/state', 120).status, 0)
            self.assertEqual(self.read('sriov_admin/vf1/state'), 'PROVISIONED')
        self.await_attached(1, False)
        self.write('sriov_numvfs', 0)
        self.write(quota, 0)
        self.unloads_soon()
        self.load()


    def test_a_driver_that_only_holds_the_function_is_not_the_client(self):
        quota = 'sriov_admin/vf1/profile/vram_quota'
        self.vm.check('load pf_stub; echo 1002 686c > /sys/bus/pci/drivers/pci-pf-stub/new_id || true')
        self.write('sriov_admin/vf1/assignment_mode', 'host')
        self.addCleanup(self.write, 'sriov_admin/vf1/assignment_mode', 'none')
        self.write(quota, 32 * MIB)
        self.write('sriov_numvfs', 2)
        driver = f'{self.path("virtfn0")}/driver'
        for holds in (True, False):
            self.assertEqual(self.vm.run(f'test -e {driver}').status, 0 if holds else 1)
            with VfGuest(self.card.path('vf1.sock')):
                self.await_attached(1, True)
                self.refused('sriov_numvfs', 0, 'busy')
                self.refused(quota, 0, 'busy')
                self.assertNotEqual(self.vm.run('rmmod vgpu_pf', 120).status, 0)
            self.await_attached(1, False)
            self.vm.check(f'test ! -e {driver} || basename $(readlink -f {self.path("virtfn0")}) > {driver}/unbind')
        self.write('sriov_numvfs', 0)
        self.write(quota, 0)


class AssignmentMode(ModuleTest):
    """VFs for vfio-pci, behind the IOMMU of the root port."""
    expected_warnings = ((r'VF1 is in use', 'functions that must stay are to be disabled'),)

    @classmethod
    def load(cls):
        cls.vm.check('insmod /built/vgpu_test_iommu.ko && load vfio && '
                     'echo 1 > /sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts')
        super().load()

    def test_vfio_gets_the_function_with_the_resources(self):
        self.write('sriov_admin/vf1/assignment_mode', 'vfio-pci')
        self.write('sriov_numvfs', 2)
        function = self.vm.check(f'readlink -f {self.path("virtfn0")}')
        self.assertIn('vfio-pci', self.vm.check(f'readlink {function}/driver'))
        self.assertEqual(self.vm.run(f'test -e {self.path("virtfn1")}/driver').status, 1)
        group = os.path.basename(self.vm.check(f'readlink {function}/iommu_group'))
        script = (f'import sys, time; sys.argv[1:] = ["{group}", "{os.path.basename(function)}"]; '
                  'import vfio_vf; open("/tmp/opened", "w"); time.sleep(600)')
        packed = base64.b64encode(script.encode()).decode()
        self.vm.check(f'echo {packed} | base64 -d > /r/tmp/hold.py')
        self.vm.check('in_root env PYTHONPATH=/tests python3 -B /tmp/hold.py > /dev/null 2>&1 & '
                      'for i in $(seq 200); do test -e /r/tmp/opened && break; sleep 0.1; done; '
                      'test -e /r/tmp/opened', 60)
        self.refused('sriov_numvfs', 0, 'busy')
        self.refused('sriov_admin/vf1/assignment_mode', 'none', 'busy')
        self.refused('sriov_admin/vf1/profile/vram_quota', 0, 'busy')
        self.assertNotEqual(self.vm.run('rmmod vgpu_pf', 120).status, 0)
        self.vm.check('kill $(pidof python3); sleep 1')
        self.write('sriov_numvfs', 0)
        self.assertEqual(self.quotas(), [0] * VFS)

    def test_a_vf_without_resources_cannot_be_opened(self):
        quota = 'sriov_admin/vf1/profile/vram_quota'
        self.write('sriov_admin/vf1/assignment_mode', 'vfio-pci')
        self.addCleanup(self.write, 'sriov_admin/vf1/assignment_mode', 'none')
        self.write('sriov_numvfs', 1)
        function = self.vm.check(f'readlink -f {self.path("virtfn0")}')
        for _ in range(2):
            self.assertIn('vfio-pci', self.vm.check(f'readlink {function}/driver'))
            self.write(quota, 0)
            self.await_driver(function, False)
            self.assertEqual(self.vm.check(f'cat {function}/driver_override'), 'none')
            self.write(quota, 16 * MIB)
            self.await_driver(function, True)
        self.write('sriov_numvfs', 0)
        self.write(quota, 0)

    def await_driver(self, function, is_there):
        test = '' if is_there else '! '
        self.vm.check(f'(for i in $(seq 300); do test {test}-e {function}/driver && exit 0; sleep 0.1; done; exit 1)', 60)

    def test_the_module_can_be_unloaded_when_vfio_has_been_closed(self):
        self.write('sriov_admin/vf1/assignment_mode', 'vfio-pci')
        self.addCleanup(self.write, 'sriov_admin/vf1/assignment_mode', 'none')
        self.write('sriov_numvfs', 1)
        function = self.vm.check(f'readlink -f {self.path("virtfn0")}')
        group = os.path.basename(self.vm.check(f'readlink {function}/iommu_group'))
        for _ in range(3):
            self.vm.check(f'in_root python3 -B /tests/vfio_vf.py {group} {os.path.basename(function)}', 60)
        self.unloads_soon()
        self.vm.check('insmod /built/vgpu_pf.ko time_scale=20', 120)
        self.assertEqual(self.quotas(), [0] * VFS)


if __name__ == '__main__':
    unittest.main()
