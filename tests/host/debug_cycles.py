# SPDX-License-Identifier: MIT
"""vgpu_pf.ko on the debug kernel (tests/host/debug): the whole life of module and VFs, again and again.

VGPU_CYCLES: how often (default 1000; some seconds each). Besides, the suites of sysfs, uapi and of guests at
work run on this kernel. The kernel's log must be free of what KASAN, UBSAN, lockdep, kmemleak and the
debugging of objects say.
"""
import os
import unittest

import test_module
import test_work
from card_test import TROUBLE, CardTest

CYCLES = int(os.environ.get('VGPU_CYCLES', '1000'))
BATCH = 10  # between looks at the log
# one life; `pf` is the PF in sysfs
LIFE = '''
    insmod /built/vgpu_pf.ko time_scale=20 &&
    echo 4 > $pf/sriov_numvfs &&
    echo 300 > $pf/sriov_admin/vf2/profile/weight &&
    echo 1 > $pf/sriov_admin/.bulk_profile/exec_quantum_ms &&
    echo 1 > $pf/virtfn0/reset &&
    echo 1 > $pf/sriov_admin/vf3/stop &&
    cat $pf/sriov_admin/vf*/state > /dev/null &&
    echo 0 > $pf/sriov_numvfs &&
    rmmod vgpu_pf'''


def assert_no_leak(test, vm):
    """Nothing that kmemleak finds twice in a row was allocated by our modules."""
    vm.check('echo scan > /sys/kernel/debug/kmemleak; sleep 6; echo scan > /sys/kernel/debug/kmemleak', 300)
    test.assertNotIn('vgpu', vm.check('cat /sys/kernel/debug/kmemleak', 120))


class DebugLives(CardTest):
    kernel = 'debug'

    def test_module_and_functions_come_and_go(self):
        self.vm.check(f'rmmod vgpu_pf; pf={self.path()}', 120)
        for done in range(0, CYCLES, BATCH):
            count = min(BATCH, CYCLES - done)
            self.vm.check('for i in $(seq %d); do %s || exit 1; done' % (count, LIFE.replace('\n', ' ')), 120 * count)
            self.assertNotRegex(self.vm.dmesg(), TROUBLE, f'after {done + count} lives')
        assert_no_leak(self, self.vm)


class DebugFunctions(test_module.Functions):
    kernel = 'debug'


class DebugUapi(test_module.Uapi):
    kernel = 'debug'


class DebugResets(test_work.Resets):
    kernel = 'debug'


class DebugControl(test_work.Control):
    kernel = 'debug'


if __name__ == '__main__':
    unittest.main()
