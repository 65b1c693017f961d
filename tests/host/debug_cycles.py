# SPDX-License-Identifier: MIT
"""vgpu_pf.ko on the debug kernel (tests/host/debug): many whole lives of module and VFs.

VGPU_CYCLES: how often the functions come and go (default 1000; some seconds each), divided among
one VM for each CPU. In each life two guests share the engine before their VFs are reset. The suites
of sysfs, uapi, binding, loss, assignment mode, power and of guests at work also run on this kernel,
and random ioctls. The kernel's log must have no report of KASAN, UBSAN, lockdep, kmemleak and the
debugging of objects.

VGPU_DEBUG_KERNEL=6.12 runs all of it on a stock kernel, without these checks.
"""
import concurrent.futures
import os
import time
import unittest

import kernel_log
import test_fuzz
import test_loss
import test_module
import test_power
import test_work
from card_test import CardTest
from vf_guest import VfGuest
from work_test import Work

KERNEL = os.environ.get('VGPU_DEBUG_KERNEL', 'debug')
CYCLES = int(os.environ.get('VGPU_CYCLES', '1000'))
BATCH = 10  # lives of the functions in one life of the module
SCAN_BATCHES = 10  # lives of the module between two scans for leaks while it is loaded
WORKERS = (1, 2)
SWITCHES = 4  # world switches of each worker before its reset
# one life, from probe to remove, in two parts; `pf` is the PF in sysfs
BEGIN = '''
    echo $address > $driver/bind &&
    echo 4 > $pf/sriov_numvfs &&
    echo 300 > $pf/sriov_admin/vf2/profile/weight &&
    echo 1 > $pf/sriov_admin/.bulk_profile/exec_quantum_ms'''
END = '''
    echo 1 > $pf/virtfn3/reset &&
    echo 1 > $pf/sriov_admin/vf3/stop &&
    cat $pf/sriov_admin/vf*/state > /dev/null &&
    for i in $(seq 200); do echo 0 2> /dev/null > $pf/sriov_numvfs && break; sleep 0.1; done &&
    test $(cat $pf/sriov_numvfs) = 0 &&
    echo $address > $driver/unbind'''
# one awk that polls for at most a minute, because a new process takes a quarter of a second on this
# kernel
SWITCHED = '''
    awk -v least=%d -v dump=$(echo /sys/kernel/debug/vgpu_pf/pf*/dump) -v began=$(cut -d. -f1 /proc/uptime) \'
        BEGIN { do {
            ready = 0;
            while ((getline line < dump) > 0)
                if (line ~ /^VF/) vf = line;
                else if (vf ~ /^VF[12]:/ && match(line, /switches [0-9]+/))
                    ready += substr(line, RSTART + 9, RLENGTH - 9) + 0 >= least;
            close(dump);
            getline now < "/proc/uptime"; close("/proc/uptime");
        } while (ready < 2 && now - began < 60); exit ready < 2 }\'''' % SWITCHES
KMEMLEAK = '/sys/kernel/debug/kmemleak'


def one_line(script):
    return ' '.join(script.split())


class DebugTest:
    kernel = KERNEL

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        assert_no_leak(cls.vm)


def assert_no_leak(vm):
    """Fails if kmemleak finds memory of the project's modules after two scans, or if the kernel's
    log has a problem."""
    if KERNEL == 'debug':
        vm.check(f'echo scan > {KMEMLEAK}; sleep 6; echo scan > {KMEMLEAK}', 300)
        found = vm.check(f'cat {KMEMLEAK}', 120)
        if 'vgpu' in found:
            raise AssertionError(found)
    found = kernel_log.conditions(vm.dmesg())
    if found:
        raise AssertionError('\n'.join(found[:20]))


class DebugLives(DebugTest, CardTest):
    """The lives are divided among one VM for each CPU."""
    expected_warnings = Work.expected_warnings
    # a life maps and unmaps all VRAM of the PF, and this kernel checks each page
    vfs = 4
    card_options = {'vram_mb': 128, 'aperture_mb': 16}

    @classmethod
    def load(cls):
        directories = [os.path.join(cls.directory, f'vm{number}') for number in range(2, os.cpu_count() + 1)]
        cls.machines = [(cls.card, cls.vm)] + [cls.start(directory) for directory in directories]

    def life(self, card, vm):
        vm.check(one_line(BEGIN), 240)
        guests = [VfGuest(card.path(f'vf{vf}.sock')) for vf in WORKERS]
        try:
            for guest in guests:
                guest.boot()
                guest.endless()
            vm.check(one_line(SWITCHED), 120)
            for guest in guests:
                self.assertEqual(guest.ask('flr'), 'reset')
        finally:
            for guest in guests:
                guest.kill()
        vm.check(one_line(END), 240)

    def live(self, card, vm, cycles):
        vm.check(f'pf={self.path()}; address=$(basename $pf); driver=/sys/bus/pci/drivers/vgpu_pf')
        for done in range(0, cycles, BATCH):
            vm.check('insmod /built/vgpu_pf.ko time_scale=20 && echo $address > $driver/unbind', 240)
            for _ in range(min(BATCH, cycles - done)):
                self.life(card, vm)
            if done // BATCH % SCAN_BATCHES == 0:
                assert_no_leak(vm)
            vm.check('rmmod vgpu_pf', 240)
            self.assertEqual(kernel_log.conditions(vm.dmesg()), [], f'after {done + BATCH} lives')
        assert_no_leak(vm)

    def test_module_and_functions_come_and_go(self):
        shares = [len(range(number, CYCLES, len(self.machines))) for number in range(len(self.machines))]
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(len(self.machines)) as pool:
            for end in [pool.submit(self.live, card, vm, share)
                        for (card, vm), share in zip(self.machines, shares)]:
                end.result()
        print(f'{CYCLES} lives in {time.monotonic() - began:.0f} s', end=' ', flush=True)
        for _, vm in self.machines:
            kernel_log.look(vm, self.expected_warnings)


class DebugFunctions(DebugTest, test_module.Functions):
    pass


class DebugPolicy(DebugTest, test_module.Policy):
    pass


class DebugUapi(DebugTest, test_module.Uapi):
    pass


class DebugBinding(DebugTest, test_module.Binding):
    pass


class DebugAssignmentMode(DebugTest, test_module.AssignmentMode):
    pass


class DebugLoss(DebugTest, test_loss.Loss):
    pass


class DebugPower(DebugTest, test_power.Power):
    pass


class DebugFuzz(DebugTest, test_fuzz.Fuzz):
    pass


class DebugResets(DebugTest, test_work.Resets):
    pass


class DebugControl(DebugTest, test_work.Control):
    pass


if __name__ == '__main__':
    unittest.main()
