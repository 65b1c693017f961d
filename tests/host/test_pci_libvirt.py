# SPDX-License-Identifier: MIT
"""Debian's libvirtd in the machine of the host level: a domain gets a VF of a vendor's PF driver by
<hostdev>, through vgpu's hook."""
import os
import sys
import unittest
import uuid

from machine import GUEST, ROOT
from host import wait_for
from pci_test import PciTest
from vgpud_in_vm import BUS

sys.path.insert(0, os.path.join(ROOT, 'tests', 'libvirt'))
from virt import DOMAIN, EMULATOR, LIBVIRTD_CONF, QEMU_CONF  # noqa: E402  pylint: disable=wrong-import-position

NAMES = ['web-1', 'web-2', 'web-3']
# QEMU opens /dev/vfio as root
CONFIGURATION = QEMU_CONF + '''
user = "root"
group = "root"
namespaces = [ ]
'''
PLACES = ('/etc/libvirt', '/var/lib/libvirt', '/var/cache/libvirt', '/var/log/libvirt', '/run/libvirt')
HOSTDEV = '''<hostdev mode='subsystem' type='pci' managed='no'><source><address domain='0x0000'
    bus='0x{bus}' slot='0x{slot}' function='0x{function}'/></source></hostdev>'''
PROBE_S = 300  # libvirtd starts QEMU, which the machine emulates, to learn what it can


class Libvirt(PciTest):
    gpus = PciTest.gpus[:1]

    @classmethod
    def load(cls):
        super().load()
        cls.vm.check(f'mkdir /r/qemu && mount --bind /system{GUEST}/qemu/root /r/qemu && ln -s /run /r/var/run')
        for place in PLACES:
            cls.vm.check(f'mkdir -p /r{place} && mount -t tmpfs libvirt /r{place}')
        cls.vm.check('mkdir -p /r/etc/libvirt/hooks/qemu.d')
        cls.put('/etc/libvirt/qemu.conf', CONFIGURATION)
        cls.put('/etc/libvirt/libvirtd.conf', LIBVIRTD_CONF.format(log='/tmp/libvirtd.log'))
        cls.put('/etc/libvirt/emulator', EMULATOR.format(root='/qemu'))
        with open(os.path.join(ROOT, 'daemon/libvirt/50-vgpu')) as hook:
            cls.put('/etc/libvirt/hooks/qemu.d/50-vgpu',
                    hook.read().replace('/usr/bin', '/vgpu').replace('vgpuctl hook', f'vgpuctl --bus {BUS} hook'))
        cls.vm.check('chmod 755 /r/etc/libvirt/emulator /r/etc/libvirt/hooks/qemu.d/50-vgpu')
        cls.vm.check('in_root libvirtd -f /etc/libvirt/libvirtd.conf -p /run/libvirt/libvirtd.pid '
                     '> /r/tmp/libvirtd.out 2>&1 &')
        wait_for('libvirtd', 120, lambda: cls.virsh('list').status == 0, 1)

    @classmethod
    def save_logs(cls):
        super().save_logs()
        with open(os.path.join(cls.directory, 'libvirtd.log'), 'w') as log:
            log.write(cls.vm.run('cat /r/tmp/libvirtd.out /r/tmp/libvirtd.log /r/var/log/libvirt/qemu/*').text)

    def setUp(self):
        super().setUp()
        self.start_vgpud()

    @classmethod
    def virsh(cls, command, seconds=120):
        return cls.vm.run(f'in_root virsh -c qemu:///system {command} 2>&1', seconds)

    def define(self, name, devices='', attach=''):
        """Defines a domain; `attach` are the arguments of `vgpuctl attach-xml`. Returns its UUID."""
        identity = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
        self.put('/tmp/plain.xml', DOMAIN.format(name=name, uuid=identity, memory=64, boot='', more='',
                                                 devices=devices, emulator='/etc/libvirt/emulator'))
        if attach:
            self.vm.check(f'in_root vgpuctl --bus {BUS} attach-xml /tmp/plain.xml {attach} > /tmp/attached.xml && '
                          'cp /tmp/attached.xml /r/tmp/plain.xml')
        defined = self.virsh('define --validate /tmp/plain.xml', PROBE_S)
        self.assertEqual(defined.status, 0, defined.text)
        return identity

    def test_a_domain_has_its_vf_while_it_runs_and_no_other_domain_gets_it(self):
        self.apply('net', NAMES)
        address = self.vf('web-2')['address']
        owner = 'libvirt:' + self.define('vm1', attach='--vf web-2')
        bus, slot, function = address[5:7], address[8:10], address[11:]
        self.define('vm2', devices=HOSTDEV.format(bus=bus, slot=slot, function=function))
        started = self.virsh('start vm1', PROBE_S)
        self.assertEqual(started.status, 0, started.text)
        vf = self.vf('web-2')
        self.assertEqual((vf['owner'], vf['attached'], self.driver(address)), (owner, True, 'vfio-pci'))
        refused = self.virsh('start vm2', PROBE_S)
        self.assertEqual(refused.status, 1)
        self.assertIn(f'its <hostdev> {address} is net/vf2', ' '.join(refused.text.split()))
        self.assertEqual(self.virsh('domstate vm1').text.strip(), 'running')
        self.virsh('destroy vm1')
        wait_for('the release', 60, lambda: (self.vf('web-2')['owner'], self.vf('web-2')['attached']) == ('', False), 1)
        started = self.virsh('start vm1', PROBE_S)
        self.assertEqual(started.status, 0, started.text)
        self.virsh('destroy vm1')
        wait_for('the release', 60, lambda: self.vf('web-2')['owner'] == '', 1)


if __name__ == '__main__':
    unittest.main()
