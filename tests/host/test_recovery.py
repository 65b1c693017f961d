# SPDX-License-Identifier: MIT
"""The kernel reports an error to the PF's driver that only a reset of the bus repairs, as AER
does."""
import os
import unittest

from work_test import MIB, WorkTest

DEVICE_LOST = (r'vgpu_pf .*: (device lost|the device is lost; waiting for it)$',
               'how the driver says that it lets go of the device')


class Told(WorkTest):
    expected_warnings = WorkTest.expected_warnings + (DEVICE_LOST,)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.vm.check('insmod /built/vgpu_test_recovery.ko')

    def tell(self, what):
        pf = os.path.basename(self.path().rstrip('/'))
        self.vm.check(f'echo {pf} > /sys/module/vgpu_test_recovery/parameters/{what}', 240)


class Recovery(Told):
    def test_guests_go_on_and_are_reset_as_before(self):
        guests = [self.guest(vf, 'endless') for vf in (1, 2)]
        for _ in range(3):
            for guest in guests:
                self.assert_runs(guest)
            self.tell('frozen')
        for guest in guests:
            self.assert_runs(guest)
        self.reset(1, 2)
        for guest in guests:
            self.assert_works_again(guest)

    def test_functions_and_quotas_stay(self):
        self.vm.check(f'echo 2 > {self.path("sriov_numvfs")}')
        words = f'od -An -tx4 -j0 -N16 {self.path("virtfn1/config")}'
        before = self.vm.check(words)
        self.tell('frozen')
        self.assertEqual(self.vm.check(words), before)
        self.assertEqual(self.vm.check(f'cat {self.path("sriov_numvfs")}'), '2')
        self.assertEqual(self.vm.check(f'cat {self.path("sriov_admin/vf3/profile/vram_quota")}'),
                         str(self.QUOTA_MIB * MIB))
        self.vm.check(f'echo 0 > {self.path("sriov_numvfs")}', 240)
        self.assert_works_again(self.attach(3))


class Failure(Told):
    def test_a_device_that_has_failed_for_good_is_let_go(self):
        self.tell('failed')
        refused = self.vm.run(f'echo {16 * MIB} > {self.path("sriov_admin/vf1/profile/vram_quota")}', 60)
        self.assertNotEqual(refused.status, 0)
        self.vm.check('rmmod vgpu_pf', 120)


class NoReset(Told):
    def test_a_device_that_cannot_be_reset_is_let_go_without_a_complaint(self):
        self.tell('stuck')
        self.tell('stuck')
        refused = self.vm.run(f'echo {16 * MIB} > {self.path("sriov_admin/vf1/profile/vram_quota")}', 60)
        self.assertNotEqual(refused.status, 0)
        self.vm.check('rmmod vgpu_pf', 120)


if __name__ == '__main__':
    unittest.main()
