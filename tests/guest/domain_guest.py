# SPDX-License-Identifier: MIT
"""A test guest that libvirt starts: what its domain needs besides a VF, and the command channel.

    guest = DomainGuest(directory, 'worker')
    xml = f'<os>… {guest.boot()}</os> … <devices>… {guest.domain_devices()}</devices>'
    …  # virsh define, virsh start
    guest.booted()
    guest.load()
    print(guest.run('in_root rocminfo').text)
"""
import os
import time

from host import HostError, wait_for
from suite import LOAD, LOAD_SECONDS
from vm import Vm

BOOT = '''<kernel>{kernel}</kernel>
    <initrd>{initrd}</initrd>
    <cmdline>console=ttyS0 panic=-1 loglevel=7 mitigations=off</cmdline>'''
SHARE = '''<filesystem type='mount' accessmode='squash' multidevs='remap'>
      <source dir='{path}'/><target dir='{tag}'/><readonly/>
    </filesystem>'''
SERIALS = '''<serial type='file'><source path='{console}'/><target port='0'/></serial>
    <serial type='unix'><source mode='bind' path='{channel}'/><target port='1'/></serial>'''


class DomainGuest(Vm):
    """`seen_as` is the path of log_dir for a QEMU that has another root than the test."""

    def __init__(self, log_dir, name, seen_as=None, **options):
        super().__init__([], log_dir, name=name, **options)
        self.seen_as = seen_as or self.log_dir

    def inside(self, what):
        return os.path.join(self.seen_as, f'{self.name}.{what}')

    def boot(self):
        """The content of <os>."""
        image = os.path.join(self.images, self.kernel)
        return BOOT.format(kernel=os.path.join(image, 'vmlinuz'), initrd=os.path.join(image, 'initrd.gz'))

    def domain_devices(self):
        """Elements for <devices>: shares and serial ports."""
        devices = [SHARE.format(path=path, tag=tag) for tag, path in self.shares()]
        devices.append(SERIALS.format(console=self.inside('console.log'), channel=self.inside('ch')))
        return '\n    '.join(devices)

    def booted(self):
        """Waits until the guest takes commands."""
        self.pending = b''
        self.connect(time.monotonic() + 30)
        self.wait_for(b'#ready', 180)
        return self

    def load(self):
        """Loads the driver."""
        answer = self.run(LOAD, timeout=LOAD_SECONDS)
        if answer.status != 0:
            raise HostError(f'{LOAD}: {answer.text}\n{self.dmesg()[-3000:]}')
        wait_for('the render node', 60, lambda: self.run('test -e /dev/dri/renderD128').status == 0, 0.2)

    def word_of_vram(self):
        """Address of a word of VRAM where neither PF nor firmware writes (64 MiB into it)."""
        # a VF with a driver is enabled already
        bar = self.run("for d in /sys/bus/pci/devices/*; do grep -q 0x686c $d/device || continue; "
                       "[ -e $d/driver ] || echo 1 > $d/enable; head -n 1 $d/resource | cut -d' ' -f1; done").text.split()[0]
        return hex(int(bar, 16) + (64 << 20))
