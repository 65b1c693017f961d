# SPDX-License-Identifier: MIT
"""Sleep of the machine. 9p does not survive it, so that afterwards the machine has only busybox and
sysfs."""
import re
import unittest

from work_test import MIB, WorkTest

POWER = '/sys/power'


class Power(WorkTest):
    """The kernel's own test mode: every device is suspended and resumed, the machine stays awake."""
    expected_warnings = WorkTest.expected_warnings + (
        (r'VF1 is in use: not suspended|pci_pm_suspend.* returns -16|failed to suspend.* error -16',
         'the suspend that must be refused'),
        (r'vgpu_pf .*: device lost$', 'how the core says that it lets go of the device'))

    def sleep(self):
        return self.vm.run(f'echo freeze > {POWER}/state', 240)

    def calls(self, log):
        """The callbacks that the kernel called for the PF's driver: [(callback, result)]"""
        return re.findall(r'vgpu_pf 0*1:01:00\.0: (?:PM: )?(pci_pm_\w+)\S* returned (-?\d+)', log)

    def test_suspend_and_resume(self):
        if self.vm.run(f'test -e {POWER}/pm_test -a -e {POWER}/pm_print_times').status != 0:
            self.fail('this kernel cannot try out sleep: CONFIG_PM_SLEEP_DEBUG')
        self.vm.check(f'echo devices > {POWER}/pm_test; echo 1 > {POWER}/pm_print_times')
        with self.subTest('refused while a VF is in use'):
            guest = self.guest(1, 'endless')
            self.assertNotEqual(self.sleep().status, 0)
            self.assertIn('VF1 is in use: not suspended', self.vm.dmesg())
            self.assertIn(('pci_pm_suspend', '-16'), self.calls(self.vm.dmesg()))
            self.assert_runs(guest)
            guest.ask('unload')
            guest.kill()
        before = self.vm.dmesg()
        answer = self.sleep()
        self.assertEqual(answer.status, 0, answer.text)
        log = self.vm.dmesg()[len(before):]
        self.assertEqual(self.calls(log), [('pci_pm_suspend', '0'), ('pci_pm_resume', '0')])
        self.assertEqual(self.vm.check(f'cat {self.path("sriov_admin/vf1/state")}'), 'PROVISIONED')
        self.assert_served()

    def assert_served(self):
        """Checks work, a reset, a release and another VF, without anything from 9p."""
        guest = self.guest(1, 'compute')
        neighbour = self.guest(2, 'endless')
        self.assert_right(guest)
        self.assert_runs(neighbour)
        self.assertEqual(guest.ask('flr'), 'reset')
        self.assert_works_again(guest)
        self.assert_runs(neighbour)
        guest.kill()
        for value, state in ((0, 'ABSENT'), (16 * MIB, 'PROVISIONED')):
            self.vm.check(f'for i in $(seq 100); do echo {value} > {self.path("sriov_admin/vf1/profile/vram_quota")} '
                          '&& break; sleep 0.1; done 2>/dev/null', 240)
            self.assertEqual(self.vm.check(f'cat {self.path("sriov_admin/vf1/state")}'), state)
        self.assert_works_again(self.attach(1))


if __name__ == '__main__':
    unittest.main()
