# SPDX-License-Identifier: MIT
"""Resets, hangs and guests that misbehave: they affect one guest, and the other does not notice."""
import os
import re
import signal
import unittest

from host import wait_for
from suite import Background, GuestTest
from vm import Vm

RESET_DONE = re.compile(r'amdgpu: GPU reset\(\d+\) succeeded')


class Resets(GuestTest):
    """Guest a is reset, guest b computes."""
    guests = {'a': 100, 'b': 100}

    def resets(self):
        return len(RESET_DONE.findall(self.vms['a'].dmesg()))

    def assert_recovers(self, before):
        vm = self.vms['a']
        wait_for('the driver of a to have recovered', 90, lambda: self.resets() > before, 0.5)
        self.program('array_increment', vm=vm)

    def beside_a_neighbour(self, action):
        """Does `action` while b computes; neither b's results nor b's driver may notice."""
        flrs, resets = self.host.vf('b')['flrs'], self.resets()
        b = Background(self, 'long_kernel', 20000, 2, vm=self.vms['b'])
        action()
        self.assert_recovers(resets)
        b.finish()
        self.assertEqual(self.host.vf('b')['flrs'], flrs)
        self.assertIsNone(RESET_DONE.search(self.vms['b'].dmesg()))

    def test_an_idle_vf_reset_by_the_host_recovers(self):
        self.beside_a_neighbour(lambda: self.host.ctl('reset', 'a'))

    def test_a_busy_vf_reset_by_the_host_recovers(self):
        vm = self.vms['a']

        def reset_while_busy():
            before = self.stats('a')['wave_instructions']
            vm.start('in_root /tests/long_kernel 2000000')
            wait_for('a to compute', 120, lambda: self.stats('a')[
                'wave_instructions'] > before + 20_000_000, 0.2)
            self.host.ctl('reset', 'a')
            vm.finish(timeout=180)  # the process is killed or ends with an error

        self.beside_a_neighbour(reset_while_busy)

    def assert_the_guests_own_reset_is_served(self, engine):
        """A job of the guest waits for ever; after 10 s its driver requests a reset."""
        requests = self.host.vf('a')['guest_flrs']
        self.beside_a_neighbour(lambda: self.program('stuck_job', engine))
        self.assertGreater(self.host.vf('a')['guest_flrs'], requests)

    def test_a_reset_that_the_guest_asks_for_after_a_copy_job_timed_out_is_served(self):
        self.assert_the_guests_own_reset_is_served('sdma')

    def test_a_reset_that_the_guest_asks_for_after_a_compute_job_timed_out_is_served(self):
        self.assert_the_guests_own_reset_is_served('compute')

    def test_a_hang_is_ended_by_a_reset_of_that_vf_alone(self):
        vm = self.vms['a']

        def hang():
            before = self.stats('a')['wave_instructions']
            vm.start('in_root /tests/long_kernel 2000000')
            wait_for('a to compute', 120, lambda: self.stats('a')[
                'wave_instructions'] > before + 20_000_000, 0.2)
            self.host.control({'inject': {'vf': self.host.vf('a')['index'], 'point': 'idle',
                                          'effect': 'lost'}})
            wait_for('the hang to be seen', 60, lambda: self.host.vf('a')['hangs'] > 0)
            vm.finish(timeout=180)

        self.beside_a_neighbour(hang)


class DeviceReset(GuestTest):
    guests = {'a': 100, 'b': 100}

    def test_a_vf_that_cannot_be_reset_alone_costs_the_device_and_all_guests_recover(self):
        done = {name: len(RESET_DONE.findall(vm.dmesg())) for name, vm in self.vms.items()}
        self.program('vector_add', vm=self.vms['b'])
        self.host.control({'inject': {'vf': self.host.vf('a')['index'], 'point': 'flr',
                                      'effect': 'lost'}})
        self.host.ctl('reset', 'a')
        for name, vm in self.vms.items():
            wait_for(f'the driver of {name} to have recovered', 90, lambda n=name, v=vm: len(
                RESET_DONE.findall(v.dmesg())) > done[n], 0.5)
        for vm in self.vms.values():
            self.program('array_increment', vm=vm)
        self.assertIn('resetting the whole device', self.host.log_of('vgpu-pf'))


class Misbehaviour(GuestTest):
    """Guest c has no driver; a program in it writes the VF's registers. Guest a computes."""
    guests = {'a': 100}

    def misbehave(self, how, seconds=15):
        socket = self.host.create_vf('c', vram='256M')
        self.addCleanup(self.host.destroy_vf, 'c')
        flrs = self.host.vf('a')['flrs']
        with Vm([socket], self.directory, name='c') as vm:
            vm.start(f'in_root /tests/abuse 0000:00:03.0 {how} {seconds}')
            self.program('long_kernel', 5000)
            self.program('vector_add')
            answer = vm.finish(timeout=120)
            self.assertIn('ok abuse', answer.text)
            self.assertEqual(self.host.vf('a')['flrs'], flrs)
            seen = self.host.vf('c')
        return answer.text, seen

    def test_exclusive_access_that_is_never_given_back_is_taken(self):
        text, seen = self.misbehave('hold', 30)
        self.assertIn('got exclusive access', text)
        self.assertGreater(seen['flrs'], 0)

    def test_a_flood_of_messages_is_contained(self):
        _, seen = self.misbehave('flood')
        self.assertGreater(seen['guard_level'], 0)

    def test_a_storm_of_doorbells_is_contained(self):
        self.misbehave('storm')


class DeviceLost(GuestTest):
    def test_softgpu_dies_and_a_restarted_guest_is_served(self):
        vm = self.vms['a']
        self.program('array_increment')
        os.kill(self.host.helper('softgpu'), signal.SIGKILL)
        wait_for('vgpud to say so', 20, lambda: not self.host.gpu_is_ok(), 0.01)
        vm.kill()
        # the words of QEMU's message differ from one run to the next
        with open(vm.path('qemu.log')) as log:
            self.assertRegex(log.read(), r'qemu-system-x86_64: \S')
        wait_for('vgpud to name the cause', 20, lambda: 'device-lost' in self.host.vgpud_log(), 0.1)
        wait_for('gpu0 in service again', 30, self.host.gpu_is_ok)
        wait_for('the VF', 30, lambda: self.host.vf('a').get('socket'))
        vm.__enter__()
        self.load(vm)
        self.program('vector_add')


if __name__ == '__main__':
    unittest.main(verbosity=2)
