# SPDX-License-Identifier: MIT
"""A domain of libvirt with an operating system: the stock amdgpu driver on its VF, reboot, power off."""
import os
import unittest

from domain_guest import DomainGuest
from suite import PROGRAM_SECONDS
from test_domains import DomainTest

# root owns the files of the image
AS_ROOT = "<seclabel type='static' model='dac' relabel='no'><label>+0:+0</label></seclabel>"


class Compute(DomainTest):
    profiles = {'gpu': 1}
    vram = '512MiB'
    machine_options = {'vfs': 4, 'vram_mb': 2048, 'aperture_mb': 512}

    def guest_domain(self, name):
        guest = DomainGuest(self.machine.directory, name)
        os.makedirs(guest.share, exist_ok=True)
        return guest, self.domain(name, '--profile', 'gpu', memory=2048, boot=guest.boot(), more=AS_ROOT,
                                  devices=guest.domain_devices())

    def test_a_guest_computes_reboots_and_powers_off_and_the_next_finds_nothing_of_it(self):
        guest, vm = self.guest_domain('worker')
        vm.start()
        guest.booted()
        guest.load()
        answer = guest.run('in_root rocminfo', timeout=PROGRAM_SECONDS)
        self.assertEqual(answer.status, 0, answer.text)
        self.assertIn('gfx900', answer.text)
        answer = guest.run('in_root /tests/array_increment', timeout=PROGRAM_SECONDS)
        self.assertEqual((answer.status, answer.text.strip().splitlines()[-1:]), (0, ['ok array_increment']), answer.text)
        before = self.machine.vf_of(vm)

        guest.reboot()
        self.assertEqual(guest.run('true').status, 0)
        after = self.machine.vf_of(vm)
        self.assertEqual((after['name'], after['owner_generation']), (before['name'], before['owner_generation']))

        # writes a pattern to VRAM through BAR0, which the next guest must not find
        word = guest.word_of_vram()
        self.assertEqual(guest.run(f'devmem {word} 32 0x5ec2e7 && devmem {word} 32').text.strip().lower(), '0x005ec2e7')
        guest.start('poweroff -f')
        vm.wait_for_state('shut off', 60)
        self.assertEqual(self.machine.owned(), {})

        other_guest, other = self.guest_domain('other')
        other.start()
        other_guest.booted()
        word = other_guest.word_of_vram()
        self.assertEqual(other_guest.run(f'devmem {word} 32').text.strip(), '0x00000000')


if __name__ == '__main__':
    unittest.main()
