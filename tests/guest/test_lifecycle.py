# SPDX-License-Identifier: MIT
"""Guests whose driver is unloaded and loaded, that reboot or die, or that run another kernel."""
import os
import signal
import unittest

from host import wait_for
from suite import GuestTest


class Lifecycle(GuestTest):
    def test_the_driver_unloads_and_loads_again(self):
        vm = self.vms['a']
        # the driver releases a process some time after its end
        answer = vm.run('for i in 1 2 3 4 5 6 7 8; do rmmod amdgpu && break; sleep 1; done; '
                        'cat /sys/module/amdgpu/refcnt; test ! -d /sys/module/amdgpu', timeout=180)
        self.assertEqual(answer.status, 0, answer.text + vm.dmesg()[-2000:])
        self.load(vm)
        self.program('vector_add')

    def test_the_guest_reboots(self):
        vm = self.vms['a']
        self.program('array_increment')
        vm.reboot()
        self.load(vm)
        self.program('vector_add')

    def test_a_killed_guest_is_followed_by_another_on_the_same_vf(self):
        vm = self.vms['a']
        before = self.host.vf('a')['vram_bytes']
        vm.kill()
        wait_for('the VF to be detached', 20, lambda: not self.host.vf('a')['attached'])
        vm.__enter__()
        self.load(vm)
        self.program('vector_add')
        self.assertEqual(self.host.vf('a')['vram_bytes'], before)

    def test_vgpud_dies_and_the_guest_computes_on(self):
        os.kill(self.host.vgpud.pid, signal.SIGKILL)
        self.host.vgpud.wait(timeout=10)
        self.program('array_increment')
        self.host.start_vgpud()
        self.program('array_increment')
        self.assertEqual(self.host.vf('a')['state'], 'running')

    def test_vgpu_pf_dies_and_the_guest_computes_on(self):
        os.kill(self.host.helper('vgpu-pf'), signal.SIGKILL)
        wait_for('vgpud to notice', 20, lambda: not self.host.gpu_is_ok(), 0.01)
        wait_for('gpu0 in service again', 30, self.host.gpu_is_ok)
        self.program('array_increment')


class NewerKernel(GuestTest):
    """Linux 7.x with default parameters: UVD and VCE take part, and their rings are tested."""
    kernel = '7.x'
    load_command = 'load_amdgpu'

    def test_it_initialises_and_computes(self):
        console = self.vms['a'].dmesg()
        self.assertNotRegex(console, r'amdgpu.*(IB test failed|failed \(-110\))')
        self.program('array_increment')
        self.program('streams')


if __name__ == '__main__':
    unittest.main(verbosity=2)
