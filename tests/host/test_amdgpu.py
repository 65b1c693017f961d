# SPDX-License-Identifier: MIT
"""The machine that has the PF binds a VF to its own stock amdgpu, and HIP computes on the VF."""
import os
import shutil
import unittest

import kernel_log
from machine import DOMAINS, HOST, Card, Machine, prepare_guest
from vf_guest import VfGuest

MIB = 1 << 20
# Linux 6.12 has a bug that hits every Vega10 VF (docs/guests.md)
LOAD = 'load amdgpu ip_block_mask=0xdf'
LOAD_SECONDS = 400
PROGRAM_SECONDS = 400
EXPECTED_WARNINGS = (
    (r'VF1 is in use', 'functions and resources that must stay are asked for'),
    (r' amdgpu', "the stock driver's own words; WARN is looked for in them, too"))


class Amdgpu(unittest.TestCase):
    """VF1 is the machine's own, VF2 belongs to a guest outside."""
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        prepare_guest()
        cls.directory = os.path.join(HOST, 'logs', cls.__name__)
        shutil.rmtree(cls.directory, ignore_errors=True)
        os.makedirs(cls.directory)
        cls.card = Card(cls.directory, vfs=4, vram_mb=1024, aperture_mb=512)
        cls.card.__enter__()
        cls.addClassCleanup(cls.card.stop)
        cls.vm = Machine(cls.card.path('host.sock'), cls.directory, memory='3G', has_guest=True)
        cls.vm.__enter__()
        cls.addClassCleanup(cls.vm.kill)
        cls.vm.check('insmod /built/vgpu_test_bridge.ko && open_guest')
        # amdgpu spins in the kernel until the PF has answered, and the PF's driver is on the same machine
        cls.vm.check('echo full > /sys/kernel/debug/sched/preempt')
        cls.vm.check('insmod /built/vgpu_pf.ko time_scale=20', 120)
        cls.vm.check(f'echo host > {cls.pf("sriov_admin/vf1/assignment_mode")}')
        for vf, quota in ((1, 512), (2, 256), (3, 192)):
            cls.vm.check(f'echo {quota * MIB} > {cls.pf(f"sriov_admin/vf{vf}/profile/vram_quota")}', 120)
        cls.vm.check(f'echo 3 > {cls.pf("sriov_numvfs")}', 120)
        cls.vm.check(LOAD, LOAD_SECONDS)
        cls.wait_for_render_node()

    @classmethod
    def wait_for_render_node(cls):
        cls.vm.check('for i in $(seq 600); do test -e /dev/dri/renderD128 && break; sleep 0.1; done; '
                     'test -e /dev/dri/renderD128', 120)

    @staticmethod
    def pf(name=''):
        return f'/sys/bus/pci/devices/{DOMAINS["bridge"]}:01:00.0/{name}'

    def program(self, name):
        answer = self.vm.run(f'in_guest /tests/{name}', PROGRAM_SECONDS)
        self.assertEqual((answer.status, answer.text.strip().splitlines()[-1:]), (0, ['ok ' + name]),
                         f'{answer.text}\n{self.vm.dmesg()[-3000:]}')

    def driver_of(self, function):
        return os.path.basename(self.vm.check(f'readlink {function}/driver'))

    def test_hip_computes_on_the_vf(self):
        self.program('array_increment')
        self.program('vector_add')
        self.assertEqual(self.driver_of(self.pf('virtfn0')), 'amdgpu')

    def test_pf_and_other_vfs_are_not_amdgpus(self):
        self.assertEqual(self.driver_of(self.pf()), 'vgpu_pf')
        self.assertEqual(self.vm.run(f'test -e {self.pf("virtfn1/driver")}').status, 1)
        self.assertEqual(self.vm.check('ls /dev/dri').split(), ['card0', 'renderD128'])

    def test_a_vf_in_use_keeps_functions_and_resources(self):
        for name, value in (('sriov_numvfs', 0), ('sriov_admin/vf1/profile/vram_quota', 0),
                            ('sriov_admin/vf1/assignment_mode', 'none')):
            answer = self.vm.run(f'echo {value} > {self.pf(name)}', 120)
            self.assertIn('busy', answer.text, name)

    def test_what_is_set_does_not_wait_for_a_driver_that_loads(self):
        assignment_mode = self.pf('sriov_admin/vf3/assignment_mode')
        weight = self.pf('sriov_admin/vf2/profile/weight')
        self.vm.check(f'(echo host > {assignment_mode}; echo $? > /tmp/loaded) > /dev/null 2>&1 & '
                      'for i in $(seq 100); do '
                      f'dmesg | grep -q "amdgpu .*01:00.3" && break; sleep 0.1; done; '
                      f'cat {weight} > /tmp/before && cat /tmp/before > {weight} && ! test -e /tmp/loaded', 120)
        self.vm.check('for i in $(seq 600); do test -e /tmp/loaded && break; sleep 0.5; done; grep -qx 0 /tmp/loaded',
                      LOAD_SECONDS)
        self.assertEqual(self.driver_of(self.pf('virtfn2')), 'amdgpu')
        self.vm.check(f'echo {DOMAINS["bridge"]}:01:00.3 > /sys/bus/pci/drivers/amdgpu/unbind', LOAD_SECONDS)
        self.vm.check(f'echo none > {assignment_mode}', 120)

    def test_hip_computes_while_a_neighbour_does(self):
        with VfGuest(self.card.path('vf2.sock')) as guest:
            guest.boot()
            guest.order('compute')
            self.program('array_increment')
            rounds, wrong = guest.end_compute()
            guest.ask('unload')
        self.assertGreater(rounds, 0)
        self.assertEqual(wrong, 0)

    def test_driver_comes_and_goes(self):
        self.vm.check(f'echo {DOMAINS["bridge"]}:01:00.1 > /sys/bus/pci/drivers/amdgpu/unbind', LOAD_SECONDS)
        self.assertEqual(self.vm.check(f'cat {self.pf("sriov_admin/vf1/state")}'), 'PROVISIONED')
        # without the reload amdkfd stays locked, because it takes the removal of a device for a
        # suspend
        self.vm.check('rmmod amdgpu', LOAD_SECONDS)
        self.vm.check(LOAD, LOAD_SECONDS)
        self.wait_for_render_node()
        self.program('array_increment')

    def tearDown(self):
        self.assertEqual(kernel_log.conditions(self.vm.dmesg()), [])

    @classmethod
    def tearDownClass(cls):
        kernel_log.look(cls.vm, EXPECTED_WARNINGS)


if __name__ == '__main__':
    unittest.main()
