# SPDX-License-Identifier: MIT
"""A Cluster whose hosts have libvirtd with the hook of vgpu, and a QEMU that can attach VFs (tests/guest/image)."""
import os
import shutil

from cluster import VGPUCTL, Cluster, Node, uuid_of
from fleet import BIN, wait_for
from virt import DOMAIN, EMULATOR, GUEST, LIBVIRTD_CONF, QEMU_CONF

QEMU = os.path.join(GUEST, 'qemu', 'root')
PLACE = '/etc/libvirt/vms'


def missing():
    """What this machine lacks, or an empty text."""
    if not shutil.which('libvirtd'):
        return 'there is no libvirtd'
    return '' if os.path.exists(os.path.join(QEMU, 'usr/bin/qemu-system-x86_64')) else 'tests/guest/image has made no QEMU'


class DomainNode(Node):
    def boot(self):
        super().boot()
        self.write('/etc/libvirt/qemu.conf', QEMU_CONF + 'namespaces = [ ]\n')
        self.write('/etc/libvirt/libvirtd.conf', LIBVIRTD_CONF.format(log='/var/log/libvirtd.log'))
        # QEMU of Debian 12 is too old; if /dev/kvm cannot be used, libvirtd probes QEMU again at
        # every call
        self.write('/usr/local/bin/qemu', EMULATOR.format(root=QEMU), 0o755)
        self.run('sh', '-c', 'rm -f /dev/kvm; rm -rf /usr/lib/x86_64-linux-gnu/qemu; chmod 755 /var/lib/libvirt')

    def start_libvirtd(self):
        self.start('libvirtd', 'libvirtd', '-f', '/etc/libvirt/libvirtd.conf')
        wait_for(f'libvirtd of {self.name}', 120, lambda: self.succeeds('virsh', '-c', 'qemu:///system', 'list'), 0.5)

    def start_all(self):
        self.start_bus()
        self.start_libvirtd()
        self.start_vgpud()
        wait_for(f'the GPU of {self.name}', 60, self.is_gpu_ok)
        self.start_pacemaker()

    def make_domain(self, name):
        """Writes NAME.xml with a VF of the profile small, as docs/pacemaker.md does."""
        self.write(f'{PLACE}/plain.xml', DOMAIN.format(name=name, uuid=uuid_of(name), memory=64, boot='', devices='', more='',
                                                       emulator='/usr/local/bin/qemu'))
        self.write(f'{PLACE}/{name}.xml', self.run(VGPUCTL, 'attach-xml', f'{PLACE}/plain.xml', '--profile', 'small'))

    def guests(self):
        return self.run('virsh', '-c', 'qemu:///system', 'list', '--name').split()

    def pci_of(self, guest):
        return self.run('virsh', '-c', 'qemu:///system', 'qemu-monitor-command', guest, '--hmp', 'info pci')


class DomainCluster(Cluster):
    node = DomainNode
    libvirt = 'qemu:///system'
    vgpu_libvirt = os.path.join(BIN, 'vgpu-libvirt')
