# SPDX-License-Identifier: MIT
"""From nothing to a GPU in a guest, and back: packages, vgpud with softgpu, libvirt's own domain, stock amdgpu."""
import json
import os
import shutil
import unittest
import xml.etree.ElementTree as ElementTree

from debian_system import OUT, ROOT, DebianSystem, wait_for
from doc_commands import files_of
from domain_guest import DomainGuest
from suite import PROGRAM_SECONDS
from vfio_user_client import VfUserClient
from vm import GUEST

# what the system sees of build/guest, and where QEMU and libvirt write
IMAGE = '/srv/guest'
WORK = '/var/lib/libvirt/images'
EMULATOR = f'''#!/bin/sh
root={IMAGE}/qemu
exec $root/lib64/ld-linux-x86-64.so.2 --library-path $root/usr/lib/x86_64-linux-gnu --argv0 qemu-system-x86_64 \\
    $root/usr/bin/qemu-system-x86_64 -L $root/usr/share/qemu -L $root/usr/share/seabios "$@"
'''
SECRET = 0x5ec2e7
MIB = 1 << 20


class Guest(DomainGuest):
    """The guest image as the system sees it."""
    images = WORK

    def __init__(self, system):
        super().__init__(f'/proc/{system.pid}/root{WORK}', 'vm1', seen_as=WORK)
        self.system = system

    def shares(self):
        return [('system', IMAGE + '/system'), ('tests', IMAGE + '/programs')]

    def bring_kernel(self):
        """Copies the kernel, because libvirt gives these files to QEMU's user."""
        place = os.path.join(self.log_dir, self.kernel)
        os.makedirs(place)
        for name in ('vmlinuz', 'initrd.gz'):
            shutil.copy(os.path.join(GUEST, self.kernel, name), place)


class Whole(unittest.TestCase):
    def setUp(self):
        self.system = DebianSystem('whole', shares={
            IMAGE + '/qemu': os.path.join(GUEST, 'qemu/root'), IMAGE + '/system': os.path.join(GUEST, 'system/root'),
            IMAGE + '/programs': os.path.join(GUEST, 'programs')})
        self.system.__enter__()
        self.addCleanup(self.system.__exit__)
        self.system.boot()

    def vfs(self):
        return json.loads(self.system.check('vgpuctl list --vfs --json'))['vfs']

    def write_document_files(self, guest):
        """Writes the files of docs/libvirt.md, with the guest image's system in the domain."""
        with open(os.path.join(ROOT, 'docs', 'libvirt.md'), encoding='utf-8') as document:
            files = dict(files_of(document.read()))
        domain = ElementTree.fromstring(files['vm1.xml'])
        domain.find('memory').text = '2048'
        domain.find('os').extend(ElementTree.fromstring(f'<os>{guest.boot()}</os>'))
        # TCG: see docs/guests.md
        domain.append(ElementTree.fromstring("<vcpu current='1'>2</vcpu>"))
        domain.append(ElementTree.fromstring("<cpu mode='maximum'/>"))
        devices = domain.find('devices')
        devices.find('emulator').text = '/usr/local/bin/qemu-system-x86_64'
        devices.extend(ElementTree.fromstring(f'<devices>{guest.domain_devices()}</devices>'))
        self.system.write('/srv/vgpu.json', files['vgpu.json'])
        self.system.write('/srv/vm1.xml', ElementTree.tostring(domain, encoding='unicode'))

    def keep_logs(self, guest):
        place = os.path.join(OUT, 'logs', 'whole')
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        for name in ('console.log', 'channel.log'):
            if os.path.exists(guest.path(name)):
                shutil.copy(guest.path(name), place)
        with open(os.path.join(place, 'journal.log'), 'w', encoding='utf-8') as log:
            log.write(self.system.run('journalctl --no-pager')[1])

    def vram_of(self, vf, offset):
        """A word of the VF's VRAM, read by a client in place of a guest."""
        with VfUserClient(f'/proc/{self.system.pid}/root{vf["socket"]}') as client:
            return int.from_bytes(client.read(0, offset, 4), 'little')

    def test_from_packages_to_a_domain_that_computes_and_back_to_a_clean_slice(self):
        system = self.system
        system.install('vgpu', 'vgpu-softgpu', more='libvirt-daemon-system libvirt-clients')
        system.wait_for_gpu()
        system.write('/usr/local/bin/qemu-system-x86_64', EMULATOR)
        system.check('chmod 755 /usr/local/bin/qemu-system-x86_64')
        guest = Guest(system)
        guest.bring_kernel()
        self.write_document_files(guest)
        self.addCleanup(guest.kill)
        self.addCleanup(self.keep_logs, guest)

        system.check('cd /srv && vgpuctl apply vgpu.json')
        system.check('cd /srv && vgpuctl attach-xml vm1.xml --profile small >vm1-gpu.xml && '
                     'virsh define --validate vm1-gpu.xml')
        system.check('virsh start vm1')
        [vf] = [vf for vf in self.vfs() if vf['owner']]
        self.assertEqual((vf['owner_name'], vf['attached'], vf['profile']), ('vm1', True, 'small'))

        guest.booted()
        guest.load()
        answer = guest.run('in_root rocminfo', timeout=PROGRAM_SECONDS)
        self.assertEqual(answer.status, 0, answer.text)
        self.assertIn('AMD Radeon Instinct MI25 MxGPU', answer.text)
        self.assertRegex(answer.text, r'Chip ID: +26732\(0x686c\)')
        answer = guest.run('in_root /tests/array_increment', timeout=PROGRAM_SECONDS)
        self.assertEqual((answer.status, answer.text.strip().splitlines()[-1:]), (0, ['ok array_increment']), answer.text)
        word = guest.word_of_vram()
        self.assertEqual(guest.run(f'devmem {word} 32 {SECRET} && devmem {word} 32').text.strip().lower(), f'0x{SECRET:08x}')

        system.check('virsh destroy vm1')
        wait_for('the slice scrubbed and free', 30, lambda: all(
            not vf['owner'] and not vf['attached'] and vf['state'] == 'provisioned' for vf in self.vfs()))
        [after] = [other for other in self.vfs() if other['name'] == vf['name']]
        self.assertGreater(after['generation'], vf['generation'], 'the VF was not provisioned again')
        self.assertEqual(self.vram_of(after, 64 * MIB), 0)
        system.check('virsh undefine vm1')


if __name__ == '__main__':
    unittest.main()
