# SPDX-License-Identifier: MIT
"""A domain of libvirt with an operating system: the stock amdgpu driver on its VF, reboot, power off."""
import os
import socket
import time
import unittest

from host import HostError, wait_for
from suite import LOAD, LOAD_SECONDS, PROGRAM_SECONDS
from test_domains import DomainTest
from vm import GUEST, GuestError, Vm

BOOT = '''<kernel>{kernel}</kernel>
    <initrd>{initrd}</initrd>
    <cmdline>console=ttyS0 panic=-1 loglevel=7 mitigations=off</cmdline>'''
SHARE = '''<filesystem type='mount' accessmode='squash' multidevs='remap'>
      <source dir='{path}'/><target dir='{tag}'/><readonly/>
    </filesystem>'''
SERIALS = '''<serial type='file'><source path='{console}'/><target port='0'/></serial>
    <serial type='unix'><source mode='bind' path='{channel}'/><target port='1'/></serial>'''
# the files of the image are root's
AS_ROOT = "<seclabel type='static' model='dac' relabel='no'><label>+0:+0</label></seclabel>"


class Guest(Vm):
    """The command channel of a domain: QEMU itself is libvirt's."""

    def __init__(self, machine, name):
        super().__init__([], machine.directory, name=name)
        self.machine = machine

    def domain_options(self):
        image = os.path.join(GUEST, self.kernel)
        devices = [SHARE.format(path=path, tag=tag) for tag, path in self.shares()]
        devices.append(SERIALS.format(console=self.path('console.log'), channel=self.path('ch')))
        return {'memory': 2048, 'devices': '\n    '.join(devices), 'more': AS_ROOT,
                'boot': BOOT.format(kernel=os.path.join(image, 'vmlinuz'), initrd=os.path.join(image, 'initrd.gz'))}

    def connect(self, deadline):
        while True:
            channel = socket.socket(socket.AF_UNIX)
            try:
                channel.connect(self.path('ch'))
                self.channel = channel
                return
            except OSError:
                channel.close()
            if time.monotonic() > deadline:
                raise GuestError(f'no channel to {self.name}')
            time.sleep(0.05)

    def booted(self):
        self.pending = b''
        self.connect(time.monotonic() + 30)
        self.wait_for(b'#ready', 180)
        return self


class Compute(DomainTest):
    profiles = {'gpu': 1}
    vram = '512MiB'
    machine_options = {'vfs': 4, 'vram_mb': 2048, 'aperture_mb': 512}

    def guest_domain(self, name):
        guest = Guest(self.machine, name)
        os.makedirs(guest.share, exist_ok=True)
        return guest, self.domain(name, '--profile', 'gpu', **guest.domain_options())

    def test_a_guest_computes_reboots_and_powers_off_and_the_next_finds_nothing_of_it(self):
        guest, vm = self.guest_domain('worker')
        vm.start()
        guest.booted()
        self.load(guest)
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

        # what the next one would find: a pattern in VRAM, through BAR0
        word = self.word_of_vram(guest)
        self.assertEqual(guest.run(f'devmem {word} 32 0x5ec2e7 && devmem {word} 32').text.strip().lower(), '0x005ec2e7')
        guest.start('poweroff -f')
        vm.wait_for_state('shut off', 60)
        self.assertEqual(self.machine.owned(), {})

        other_guest, other = self.guest_domain('other')
        other.start()
        other_guest.booted()
        word = self.word_of_vram(other_guest)
        self.assertEqual(other_guest.run(f'devmem {word} 32').text.strip(), '0x00000000')

    @staticmethod
    def word_of_vram(guest):
        """Address of a word of VRAM where neither PF nor firmware writes."""
        bar = guest.run("for d in /sys/bus/pci/devices/*; do grep -q 0x686c $d/device && echo 1 > $d/enable && "
                        "head -n 1 $d/resource | cut -d' ' -f1; done").text.split()[0]
        return hex(int(bar, 16) + (64 << 20))

    def load(self, guest):
        answer = guest.run(LOAD, timeout=LOAD_SECONDS)
        if answer.status != 0:
            raise HostError(f'{LOAD}: {answer.text}\n{guest.dmesg()[-3000:]}')
        wait_for('the render node', 60, lambda: guest.run('test -e /dev/dri/renderD128').status == 0, 0.2)


if __name__ == '__main__':
    unittest.main()
