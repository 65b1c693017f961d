# SPDX-License-Identifier: MIT
"""The device disappears under vgpu_pf.ko, like a card whose link is down, and comes back.

While the device is away, softgpu answers all accesses to the PF with all ones; afterwards PF and
functions are as after a reset of the bus.
"""
import base64
import json
import socket
import unittest

import test_module

MIB = 1 << 20
LOST = {'inject': {'point': 'device', 'effect': 'lost'}}
SAVER = '''
import errno, os, uapi
with uapi.Pf() as pf:
    pf.control(1, uapi.PAUSE)
    reader, writer = os.pipe()
    os.write(1, b'saving\\n')
    try:
        pf.stream(uapi.SAVE, writer, 1)
    except uapi.Refused as error:
        assert error.errno == errno.ENODEV, error
        print('ended:', error.text)
'''
WHILE_LOST = '''
import errno, uapi
with uapi.Pf() as pf:
    assert pf.info().device_lost == 1
    for call in (lambda: pf.provision(3, 16 << 20), lambda: pf.control(1, uapi.RESET),
                 lambda: pf.call(uapi.VERIFY_ZERO, uapi.VfRef(vf=3))):
        try:
            call()
            raise AssertionError('answered')
        except uapi.Refused as error:
            assert error.errno == errno.ENODEV, error
            assert 'device' in error.text, error
    assert pf.vf(1).vf == 1
'''
WAIT = '''
import sys, time, uapi
with uapi.Pf() as pf:
    while pf.info().device_lost != int(sys.argv[1]):
        time.sleep(0.05)
'''


class LossTest(test_module.ModuleTest):
    expected_warnings = ((r'device lost$|the device is lost$|not a vgpu device|was not released|refused its page table|in service but not in the checkpoint|could not be scrubbed \(-19\)',
                          'the device is taken away'),)

    def setUp(self):
        self.write('sriov_admin/vf1/profile/vram_quota', 32 * MIB)

    def tearDown(self):
        self.order({'clear': {}})

    def order(self, verb):
        """Sends one request to softgpu's control socket."""
        with socket.socket(socket.AF_UNIX) as control:
            control.settimeout(20)
            control.connect(self.card.path('control.sock'))
            control.sendall(json.dumps(verb).encode() + b'\n')
            self.assertEqual(json.loads(control.recv(4096)), {'ok': True})

    def serves(self):
        """Checks that a VF can be provisioned, and released with a scrub."""
        quota = 'sriov_admin/vf2/profile/vram_quota'
        self.write(quota, 16 * MIB)
        self.assertEqual(self.read('sriov_admin/vf2/state'), 'PROVISIONED')
        self.write(quota, 0)
        self.assertEqual(self.read('sriov_admin/vf2/state'), 'ABSENT')

    def await_state(self, vf, state):
        path = self.path(f'sriov_admin/vf{vf}/state')
        self.vm.check(f'(for i in $(seq 300); do grep -qx {state} {path} && exit 0; sleep 0.1; done; exit 1)', 60)

    def lose_and_meet(self):
        """Takes the device away, and makes a request, which must fail because of it."""
        self.order(LOST)
        self.refused('sriov_admin/vf2/profile/vram_quota', 16 * MIB, 'No such device')

    def is_found_again(self):
        """Checks that the module, which looks for the device every second, finds it again."""
        quota = self.path('sriov_admin/vf2/profile/vram_quota')
        self.vm.check(f'(for i in $(seq 100); do echo {16 * MIB} > {quota} && exit 0; sleep 0.2; done; exit 1) 2>&1', 120)
        self.assertEqual(self.read('sriov_admin/vf1/state'), 'PROVISIONED')
        self.assertEqual(self.quotas()[:2], [32 * MIB, 16 * MIB])
        self.serves()


class Loss(LossTest):
    def setUp(self):
        super().setUp()
        for name, text in (('saver', SAVER), ('while_lost', WHILE_LOST), ('wait', WAIT)):
            packed = base64.b64encode(text.encode()).decode()
            self.vm.check(f'echo {packed} | base64 -d > /r/tmp/{name}.py')

    def lose(self):
        self.order(LOST)
        self.script('wait', 1)

    def come_back(self):
        self.order({'clear': {}})
        self.script('wait', 0)

    def script(self, name, *arguments):
        words = ' '.join(str(argument) for argument in arguments)
        return self.vm.check(f'in_root env PYTHONPATH=/tests python3 -B /tmp/{name}.py {words}', 120)

    def losses_told(self):
        return self.vm.check('dmesg | grep -c "device lost" || true')

    def test_a_lost_device_is_notified_once_and_its_vfs_are_served_again(self):
        before = int(self.losses_told())
        self.lose()
        self.script('while_lost')
        self.refused('sriov_admin/vf2/profile/vram_quota', 16 * MIB, 'No such device')
        self.refused('sriov_admin/vf1/profile/vram_quota', 0, 'No such device')
        self.assertEqual(self.quotas()[0], 32 * MIB)
        for name, text, value in (('weight', '100', 300), ('sched_priority', '[low] normal high', 'high')):
            self.refused(f'sriov_admin/vf1/profile/{name}', value, 'No such device')
            self.assertEqual(self.read(f'sriov_admin/vf1/profile/{name}'), text)
        self.vm.check('cat /sys/kernel/debug/vgpu_pf/pf0/dump > /dev/null; sleep 3')
        self.assertEqual(int(self.losses_told()), before + 1)
        self.come_back()
        self.assertEqual(self.read('sriov_admin/vf1/state'), 'PROVISIONED')
        self.assertEqual(self.quotas()[:2], [32 * MIB, 0])
        self.serves()

    def test_a_longest_gap_that_cannot_be_planned_stays_as_it_was(self):
        gap, weight = 'sriov_admin/max_gap_ms', 'sriov_admin/vf1/profile/weight'
        self.write(weight, 300)  # from now on the table is planned
        self.assertEqual(self.read(gap), '60')
        self.lose()
        self.refused(gap, 20, 'No such device')
        self.assertEqual(self.read(gap), '60')
        self.come_back()
        for value in (20, 60):
            self.write(gap, value)
            self.assertEqual(self.read(gap), str(value))
        self.write(weight, 100)
        self.serves()

    def test_a_loss_that_a_request_meets_first_is_come_back_from(self):
        for _ in range(3):
            self.order(LOST)
            self.refused('sriov_admin/vf2/profile/vram_quota', 16 * MIB, 'No such device')
            self.come_back()
            self.serves()

    def test_a_request_under_way_ends(self):
        self.vm.check('in_root env PYTHONPATH=/tests python3 -B /tmp/saver.py > /r/tmp/saver.log 2>&1 & '
                      'echo $! > /tmp/saver; for i in $(seq 200); do grep -q saving /r/tmp/saver.log && '
                      'break; sleep 0.1; done; sleep 0.5', 60)
        self.lose()
        self.vm.check('for i in $(seq 100); do test -d /proc/$(cat /tmp/saver) || break; sleep 0.1; done')
        self.assertIn('ended: ', self.vm.check('cat /r/tmp/saver.log'))
        self.come_back()
        self.serves()

    def test_functions_are_enabled_again(self):
        self.write('sriov_numvfs', 2)
        words = f'od -An -tx4 -j8 -N4 {self.path("virtfn1/config")}'
        identity = self.vm.check(words)
        self.lose()
        self.come_back()
        self.assertEqual(self.vm.check(words), identity)
        self.assertEqual(self.read('sriov_numvfs'), '2')
        self.write('sriov_numvfs', 0)
        self.write('sriov_numvfs', 2)
        self.serves()
        self.write('sriov_numvfs', 0)

    def test_releases_and_provisioning_under_way_end(self):
        quotas = 'sriov_admin/.bulk_profile/vram_quota'
        self.vm.check(f'rm -f /tmp/ended; cd {self.path("sriov_admin/.bulk_profile")}; '
                      f'(while echo {16 * MIB} > vram_quota && echo 0 > vram_quota; do :; done; touch /tmp/ended) '
                      '> /tmp/told 2>&1 & sleep 1')
        self.order(LOST)
        # far less than a release may take
        self.vm.check('(for i in $(seq 100); do test -e /tmp/ended && exit 0; sleep 0.1; done; exit 1)', 60)
        self.assertIn('No such device', self.vm.check('cat /tmp/told'))
        self.come_back()
        self.write(quotas, 0)
        self.assertEqual(self.quotas(), [0] * self.vfs)

    def test_equal_parts_are_taken_back_when_the_device_is_back(self):
        self.write('sriov_admin/vf1/profile/vram_quota', 0)
        self.write('sriov_numvfs', 2)
        given = self.quotas()
        self.assertEqual(len([quota for quota in given if quota]), 2)
        self.lose()
        self.write('sriov_numvfs', 0)
        self.assertEqual(self.quotas(), given)
        self.come_back()
        for vf in (1, 2):
            self.await_state(vf, 'ABSENT')
        self.assertEqual(self.quotas(), [0] * self.vfs)
        self.serves()

    def test_a_lost_device_can_be_let_go_and_found_anew(self):
        self.lose()
        self.vm.check('rmmod vgpu_pf', 120)
        self.assertNotEqual(self.vm.run('insmod /built/vgpu_pf.ko && test -e /dev/vgpu-pf0').status, 0)
        self.vm.run('rmmod vgpu_pf')
        self.order({'clear': {}})
        self.vm.check(f'echo 1 > {self.path("remove")}; echo 1 > /sys/bus/pci/rescan', 120)
        self.load()
        self.assertEqual(self.quotas()[0], 32 * MIB)
        self.serves()


class LossAndReset(LossTest):
    """A reset or a sleep first saves the configuration space, which is all ones while the device is
    away."""
    expected_warnings = LossTest.expected_warnings + (
        (r'not ready \d+ms after FLR|config space inaccessible|timed out waiting for pending transaction',
         'the device is reset while it is away'),)

    def test_a_device_that_comes_back_while_it_is_reset_is_found(self):
        self.lose_and_meet()
        self.vm.check(f'(echo 1 > {self.path("reset")}; touch /tmp/reset) > /dev/null 2>&1 & sleep 2')
        self.order({'clear': {}})
        self.vm.check('(for i in $(seq 300); do test -e /tmp/reset && exit 0; sleep 0.2; done; exit 1)', 120)
        self.is_found_again()


class LossAndSleep(LossTest):
    """After the sleep the machine has only busybox and sysfs (test_power.py)."""
    expected_warnings = LossTest.expected_warnings + (
        (r'pci_pm_resume.* returns -19|failed to resume.*: error -19', 'the device is away when the machine wakes'),)

    def test_a_device_that_was_away_during_a_sleep_is_found(self):
        self.vm.check('echo devices > /sys/power/pm_test')
        self.lose_and_meet()
        answer = self.vm.run('echo freeze > /sys/power/state', 240)
        self.assertEqual(answer.status, 0, answer.text)
        self.vm.check('sleep 3')
        self.order({'clear': {}})
        self.is_found_again()


if __name__ == '__main__':
    unittest.main()
