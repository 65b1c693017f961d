# SPDX-License-Identifier: MIT
"""The whole card in a VM: a stock kernel finds root port, PF and VFs behind softgpu's host view."""
import os
import shutil
import socket
import struct
import sys
import unittest

import kernel_log
from machine import DOMAINS, HOST, Card, Machine

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'guest'))
from host import wait_for  # noqa: E402  pylint: disable=wrong-import-position

EBUSY = 16
LOADERS = {'bridge': 'insmod /built/vgpu_test_bridge.ko', 'vmd': 'load vmd'}


class Client:
    """A minimal vfio-user client, which attaches to a function's socket; `error` is the device's
    answer."""
    HEADER = struct.Struct('<HHIII')
    VERSION = 1

    def __init__(self, path):
        self.channel = socket.socket(socket.AF_UNIX)
        self.channel.settimeout(30)
        self.channel.connect(path)
        body = struct.pack('<HH', 0, 0) + b'{"capabilities":{"max_msg_fds":8}}\0'
        size = self.HEADER.size + len(body)
        self.channel.sendall(self.HEADER.pack(1, self.VERSION, size, 0, 0) + body)
        self.error = self.HEADER.unpack(self.channel.recv(self.HEADER.size, socket.MSG_WAITALL))[4]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()


class HostViewTest(unittest.TestCase):
    """A card and a VM for all tests of the class; logs in build/host/logs/CLASS."""
    view = 'bridge'
    kernel = '6.12'
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.directory = os.path.join(HOST, 'logs', cls.__name__)
        shutil.rmtree(cls.directory, ignore_errors=True)
        os.makedirs(cls.directory)
        cls.card = Card(cls.directory, view=cls.view)
        cls.card.__enter__()
        cls.addClassCleanup(cls.card.stop)
        cls.before_boot()
        cls.vm = Machine(cls.card.path('host.sock'), cls.directory, kernel=cls.kernel)
        cls.vm.__enter__()
        cls.addClassCleanup(cls.vm.kill)
        cls.open_domain()

    @classmethod
    def before_boot(cls):
        """Prepares what must exist before the VM boots."""

    @classmethod
    def open_domain(cls):
        cls.vm.check(LOADERS[cls.view])
        cls.vm.check('load pf_stub && '
                     'echo 1002 6860 > /sys/bus/pci/drivers/pci-pf-stub/new_id || true')

    def sysfs(self, function, attribute=''):
        """Path of an attribute of function 0 (the PF) or n (VFn)."""
        return f'/sys/bus/pci/devices/{DOMAINS[self.view]}:01:{function >> 3:02x}.{function & 7}/{attribute}'

    def read(self, function, attribute):
        return self.vm.check(f'cat {self.sysfs(function, attribute)}')

    def exists(self, function):
        return self.vm.run(f'test -e {self.sysfs(function, "config")}').status == 0

    def set_vfs(self, count):
        if self.read(0, 'sriov_numvfs') != '0':
            self.vm.check(f'echo 0 > {self.sysfs(0, "sriov_numvfs")}')
        if count:
            self.vm.check(f'echo {count} > {self.sysfs(0, "sriov_numvfs")}')
        self.assertEqual(self.read(0, 'sriov_numvfs'), str(count))

    def setpci(self, function, setting):
        slot = os.path.basename(self.sysfs(function).rstrip('/'))
        return self.vm.check(f'in_root setpci -s {slot} {setting}')

    def lspci(self, function):
        slot = os.path.basename(self.sysfs(function).rstrip('/'))
        return self.vm.check(f'in_root lspci -D -n -vv -s {slot} 2>/dev/null')

    def tearDown(self):
        self.assertEqual(kernel_log.conditions(self.vm.dmesg()), [])

    @classmethod
    def tearDownClass(cls):
        kernel_log.look(cls.vm)


class CardInAVm:
    """Tests for every variant of the host view."""

    def test_pf_has_sriov_and_ari(self):
        self.set_vfs(0)
        self.assertEqual((self.read(0, 'vendor'), self.read(0, 'device')), ('0x1002', '0x6860'))
        self.assertEqual(self.read(0, 'sriov_totalvfs'), '16')
        self.assertEqual(self.read(0, 'ari_enabled'), '1')
        shown = self.lspci(0)
        self.assertIn('Capabilities: [200 v1] Vendor Specific Information: ID=0002', shown)
        self.assertRegex(shown, r'Region 0: Memory at [1-9a-f][0-9a-f]* \(64-bit, prefetchable\)')
        self.assertIn('MSI-X: Enable- Count=2', shown)

    def test_as_many_vfs_as_asked_for(self):
        for count in (1, 4, 16, 0):
            self.set_vfs(count)
            for function in range(1, 17):
                self.assertEqual(self.exists(function), function <= count, f'VF{function} of {count}')

    def test_vf_shows_its_capabilities_and_its_part_of_the_bars(self):
        self.set_vfs(4)
        self.assertEqual((self.read(2, 'vendor'), self.read(2, 'device')), ('0x1002', '0x686c'))
        bars = [int(self.read(function, 'resource').split()[15], 16) for function in (1, 2, 3)]
        self.assertEqual([bars[1] - bars[0], bars[2] - bars[1]], [512 << 10] * 2)
        shown = self.lspci(2)
        for capability in ('Express (v2) Endpoint', 'MSI: Enable- Count=1/1', 'FLReset+',
                           'Alternative Routing-ID'):
            self.assertIn(capability, shown)

    def test_vf_is_reset_by_sysfs(self):
        self.set_vfs(2)
        self.assertIn('flr', self.read(1, 'reset_method'))
        self.setpci(1, 'COMMAND=4')
        self.vm.check(f'echo 1 > {self.sysfs(1, "reset")}')
        # the reset detaches the VF, and the kernel attaches it again by restoring the command
        # register
        self.assertEqual(self.setpci(1, 'COMMAND'), '0004')
        self.setpci(1, 'COMMAND=0')
        self.assertNotIn('not ready', self.vm.dmesg())

    def test_pf_is_reset_by_a_bus_reset(self):
        self.set_vfs(0)
        self.setpci(0, 'COMMAND=6')
        bars = self.read(0, 'resource')
        self.vm.check(f'echo bus > {self.sysfs(0, "reset_method")}')
        self.vm.check(f'echo 1 > {self.sysfs(0, "reset")}')
        self.assertEqual(self.setpci(0, 'COMMAND'), '0006')
        self.assertEqual(int(self.setpci(0, 'BASE_ADDRESS_5'), 16), int(bars.split()[15], 16))
        self.setpci(0, 'COMMAND=0')
        self.set_vfs(1)

    def test_vf_the_vm_has_refuses_a_client(self):
        self.set_vfs(2)
        self.setpci(1, 'COMMAND=4')
        with Client(self.card.path('vf1.sock')) as client:
            self.assertEqual(client.error, EBUSY)
        with Client(self.card.path('vf2.sock')) as client:
            self.assertEqual(client.error, 0)
        self.setpci(1, 'COMMAND=0')
        with Client(self.card.path('vf1.sock')) as client:
            self.assertEqual(client.error, 0)

    def test_vf_of_a_client_refuses_the_vm(self):
        self.set_vfs(2)
        with Client(self.card.path('vf1.sock')) as client:
            self.assertEqual(client.error, 0)
            self.setpci(1, 'COMMAND=4')
            self.assertEqual(self.setpci(1, 'COMMAND'), '0000')
            self.assertTrue(self.exists(1))
        wait_for('the client to be gone', 10, lambda: self.setpci(1, 'COMMAND=4') == '' and
                 self.setpci(1, 'COMMAND') == '0004')
        self.setpci(1, 'COMMAND=0')

    def test_pf_the_vm_has_refuses_a_client(self):
        with Client(self.card.path('pf.sock')) as client:
            self.assertEqual(client.error, EBUSY)

    def test_disabled_vfs_are_free_for_clients(self):
        self.set_vfs(1)
        self.setpci(1, 'COMMAND=4')
        self.set_vfs(0)
        with Client(self.card.path('vf1.sock')) as client:
            self.assertEqual(client.error, 0)

    def test_z_reboot_finds_the_card_again(self):
        self.set_vfs(4)
        self.vm.reboot()
        self.open_domain()
        self.assertEqual(self.read(0, 'sriov_numvfs'), '0')
        self.set_vfs(2)


class Bridge(CardInAVm, HostViewTest):
    def test_bridge_is_unloaded_and_loaded(self):
        self.set_vfs(2)
        self.setpci(1, 'COMMAND=4')
        self.vm.check('rmmod vgpu_test_bridge')
        self.assertFalse(self.exists(0))
        self.vm.check(LOADERS['bridge'])
        self.set_vfs(4)


class Vmd(CardInAVm, HostViewTest):
    view = 'vmd'


class NewerKernel(CardInAVm, HostViewTest):
    kernel = '7.x'


class Passthrough(HostViewTest):
    """Stock vfio-pci on VFs, behind the IOMMU of the root port."""

    @classmethod
    def open_domain(cls):
        super().open_domain()
        cls.vm.check('insmod /built/vgpu_test_iommu.ko && load vfio && '
                     'echo 1 > /sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts')

    def bind(self, function):
        """Gives the function to vfio-pci; returns (IOMMU group, PCI address)."""
        slot = os.path.basename(self.sysfs(function).rstrip('/'))
        self.vm.check(f'echo vfio-pci > {self.sysfs(function, "driver_override")} && '
                      f'echo {slot} > /sys/bus/pci/drivers_probe')
        return os.path.basename(self.vm.check(f'readlink {self.sysfs(function, "iommu_group")}')), slot

    def test_vf_is_handed_to_user_space_with_a_group_of_its_own(self):
        self.vm.check(f'echo 0 > {self.sysfs(0, "sriov_drivers_autoprobe")}')
        self.set_vfs(2)
        groups = [self.bind(function) for function in (1, 2)]
        self.assertNotEqual(groups[0][0], groups[1][0])
        for group, slot in groups:
            found = self.vm.check(f'in_root python3 /tests/vfio_vf.py {group} {slot} 2>&1')
            self.assertEqual(found.split('\n'), ['viable 1', 'regions 9', 'id 686c1002',
                                                 'register 80000001', 'reset done'])
        self.assertIn('VF1: attached by the host view', self.card.log())


class PfOfAClient(HostViewTest):
    @classmethod
    def before_boot(cls):
        cls.client = Client(cls.card.path('pf.sock'))
        cls.addClassCleanup(cls.client.channel.close)

    def test_vm_finds_no_pf_until_the_client_is_gone(self):
        self.assertEqual(self.client.error, 0)
        self.assertFalse(self.exists(0))
        self.client.channel.close()
        self.vm.reboot()
        self.open_domain()
        self.assertTrue(self.exists(0))


if __name__ == '__main__':
    unittest.main()
