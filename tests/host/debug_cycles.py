# SPDX-License-Identifier: MIT
"""vgpu_pf.ko on the debug kernel (tests/host/debug): the whole life of module and VFs, again and again.

VGPU_CYCLES: how often the functions come and go (default 1000; some seconds each), over a VM for each CPU. Besides, the suites of
sysfs, uapi and of guests at work run on this kernel. The kernel's log must be free of what KASAN, UBSAN,
lockdep, kmemleak and the debugging of objects say.
"""
import concurrent.futures
import os
import unittest

import test_module
import test_work
from card_test import TROUBLE, CardTest

CYCLES = int(os.environ.get('VGPU_CYCLES', '1000'))
BATCH = 10  # lives of the functions in one of the module
# one life, from probe to remove; `pf` is the PF in sysfs
LIFE = '''
    echo $address > $driver/bind &&
    echo 4 > $pf/sriov_numvfs &&
    echo 300 > $pf/sriov_admin/vf2/profile/weight &&
    echo 1 > $pf/sriov_admin/.bulk_profile/exec_quantum_ms &&
    echo 1 > $pf/virtfn0/reset &&
    echo 1 > $pf/sriov_admin/vf3/stop &&
    cat $pf/sriov_admin/vf*/state > /dev/null &&
    echo 0 > $pf/sriov_numvfs &&
    echo $address > $driver/unbind'''
LIVES = '''
    insmod /built/vgpu_pf.ko time_scale=20 &&
    echo $address > $driver/unbind &&
    for i in $(seq %d); do %s || exit 1; done &&
    rmmod vgpu_pf'''


def assert_no_leak(test, vm):
    """Nothing that kmemleak finds twice in a row was allocated by our modules."""
    vm.check('echo scan > /sys/kernel/debug/kmemleak; sleep 6; echo scan > /sys/kernel/debug/kmemleak', 300)
    test.assertNotIn('vgpu', vm.check('cat /sys/kernel/debug/kmemleak', 120))


class DebugLives(CardTest):
    """The lives are dealt out to a VM for each CPU."""
    kernel = 'debug'

    @classmethod
    def load(cls):
        directories = [os.path.join(cls.directory, f'vm{number}') for number in range(2, os.cpu_count() + 1)]
        cls.vms = [cls.vm] + [cls.start(directory)[1] for directory in directories]

    def live(self, vm, cycles):
        vm.check(f'pf={self.path()}; address=$(basename $pf); driver=/sys/bus/pci/drivers/vgpu_pf')
        for done in range(0, cycles, BATCH):
            count = min(BATCH, cycles - done)
            vm.check((LIVES % (count, LIFE)).replace('\n', ' '), 120 * count)
            self.assertNotRegex(vm.dmesg(), TROUBLE, f'after {done + count} lives')
        assert_no_leak(self, vm)

    def test_module_and_functions_come_and_go(self):
        shares = [len(range(number, CYCLES, len(self.vms))) for number in range(len(self.vms))]
        with concurrent.futures.ThreadPoolExecutor(len(self.vms)) as pool:
            for end in [pool.submit(self.live, vm, share) for vm, share in zip(self.vms, shares)]:
                end.result()


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
