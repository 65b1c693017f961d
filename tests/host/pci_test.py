# SPDX-License-Identifier: MIT
"""Base of the tests of vgpud with PFs of vendors' drivers: two PFs in a VM. Each test has a new
vgpud."""
import json
import os
import shutil
import unittest

import kernel_log
from machine import HOST
from host import wait_for
from pci_machine import GENERIC, PFS, XE, PciMachine
from vgpud_in_vm import STATE_DIR, VgpudInVm

DEVICES = '/sys/bus/pci/devices'
MIB = 1 << 20


class PciTest(VgpudInVm, unittest.TestCase):
    """"net" is driven by the kernel's igb, "b50" by vgpu_test_xe.ko. igbvf is loaded, so the kernel has a
    driver for each VF that vgpud does not keep it from."""
    kernel = os.environ.get('VGPU_PCI_KERNEL', '6.12')
    gpus = [{'id': 'net', 'pci': {'address': GENERIC, 'manage': 'full'}},
            {'id': 'b50', 'pci': {'address': XE, 'manage': 'full', 'contracts': 'approximate', 'vram_mb': 16384}}]
    module_parameters = ''  # of vgpu_test_xe.ko
    expected_warnings = ()
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.directory = os.path.join(HOST, 'logs', cls.__name__)
        shutil.rmtree(cls.directory, ignore_errors=True)
        os.makedirs(cls.directory)
        cls.vm = PciMachine(cls.directory, kernel=cls.kernel)
        cls.vm.__enter__()
        cls.addClassCleanup(cls.vm.kill)
        cls.addClassCleanup(cls.save_logs)
        cls.load()

    @classmethod
    def load(cls):
        """Loads the drivers and starts the bus; tests call it again after a reboot."""
        cls.vm.check(f'load vfio && insmod /built/vgpu_test_xe.ko {cls.module_parameters} && '
                     f'echo xe > {DEVICES}/{XE}/driver_override && load igb', 120)
        cls.vm.check(f'echo {XE} > /sys/bus/pci/drivers_probe')
        cls.start_bus()

    @classmethod
    def tearDownClass(cls):
        kernel_log.look(cls.vm, cls.expected_warnings)

    def setUp(self):
        self.open_vfs = {}
        self.vm.check(f'mkdir -p /r{STATE_DIR}')
        self.mark_log()

    def tearDown(self):
        for address in list(self.open_vfs):
            self.close(address)
        self.vm.run('kill -9 $(pidof vgpud)')
        self.inject('off 0 0 0')
        for pf in PFS:
            self.write_pf(pf, 'sriov_numvfs', 0)
            self.write_pf(pf, 'sriov_drivers_autoprobe', 1)
        self.vm.check(f'rm -rf /r{STATE_DIR}')

    # --- the PFs

    def write_pf(self, pf, name, value):
        self.vm.check(f'echo {value} > {DEVICES}/{pf}/{name}', 120)

    def read_pf(self, pf, name):
        return self.vm.check(f'cat {DEVICES}/{pf}/{name}')

    def count(self, pf):
        return int(self.vm.check(f'ls -d {DEVICES}/{pf}/virtfn* 2>/dev/null | wc -l'))

    def driver(self, address):
        """Name of the driver of a function; '' if it has none."""
        return os.path.basename(self.vm.run(f'readlink {DEVICES}/{address}/driver').text.strip())

    def inject(self, what):
        """Sets what happens to stores of the xe module: fail, delay or kill FIRST COUNT VALUE."""
        self.vm.check(f'echo {what} > /sys/module/vgpu_test_xe/parameters/inject')

    def log_lines(self):
        return self.vm.check("dmesg -s 4194304 | sed -n 's/.*xe 0000:02:00.0: wrote //p'").split('\n')

    def mark_log(self):
        self.marked = len(self.log_lines())

    def writes(self):
        """The writes that the xe module accepted since mark_log(), such as "vf1 vram_quota
        536870912"."""
        return self.log_lines()[self.marked:]

    # --- users of VFs

    def open(self, address):
        """Opens a VF as a VMM does, until close()."""
        group = os.path.basename(self.vm.check(f'readlink {DEVICES}/{address}/iommu_group'))
        self.vm.check(f'in_root python3 -I -S /tests/vfio_vf.py {group} {address} hold > /tmp/{address} 2>&1 &')
        said = wait_for(f'{address} to be open', 60, lambda: self.vm.run(f'grep open /tmp/{address}').text.strip(), 0.2)
        self.open_vfs[address] = int(said.split()[1])

    def close(self, address):
        self.vm.check(f'kill -9 {self.open_vfs.pop(address)}')
        wait_for(f'{address} to be closed', 30,
                 lambda: self.vm.run(f'cat {DEVICES}/{address}/enable').text.strip() in ('0', '') or
                 self.vm.run(f'test -e {DEVICES}/{address}').status == 1, 0.2)

    # --- documents

    def put_document(self, gpu, names, vram=None, scheduler=None):
        """Writes a configuration with these VFs for VMs to /tmp/vms.json."""
        profile = {'resources': {'vram': vram} if vram else {}, 'assignment_mode': 'vfio-pci'}
        if scheduler:
            profile['scheduler'] = scheduler
        self.put('/tmp/vms.json', json.dumps({
            'profiles': {'vm': profile},
            'configs': {'vms': [{'gpu': gpu, 'vfs': [{'profile': 'vm', 'name': name} for name in names]}]}}))

    def apply(self, gpu, names, vram=None, scheduler=None):
        self.put_document(gpu, names, vram, scheduler)
        answer = self.run_ctl('apply /tmp/vms.json --yes', 120)
        self.assertEqual(answer.status, 0, answer.text)

    def vfs(self, *keys):
        """The values of these properties for all VFs."""
        return [tuple(vf.get(key) for key in keys) for vf in self.ctl('list --vfs')['vfs']]
