#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests of tests/card/run on copies of /sys: it reports what is there, and writes nothing."""
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PF = '0000:03:00.0'


class CardReport(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = os.path.join(place.name, 'root')
        self.output = os.path.join(place.name, 'output')
        os.makedirs(self.output)
        os.makedirs(f'{self.root}/sys/bus/pci/devices')

    def write(self, path, text, mode=0o644):
        path = f'{self.root}/{path}'
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text + '\n')
        os.chmod(path, mode)

    def add_gpu(self, driver='xe', pci_class='0x030000'):
        node = f'sys/bus/pci/devices/{PF}'
        for name, text in {'vendor': '0x8086', 'device': '0xe212', 'class': pci_class, 'sriov_totalvfs': '12',
                           'sriov_numvfs': 'must not be read', 'sriov_drivers_autoprobe': '0',
                           'sriov_admin/vf1/profile/exec_quantum_ms': '16'}.items():
            self.write(f'{node}/{name}', text)
        self.write(f'{node}/sriov_admin/vf1/stop', '', mode=0o200)
        self.write('sys/bus/pci/devices/0000:03:00.1/enable', '0')
        os.symlink('../0000:03:00.1', f'{self.root}/{node}/virtfn0')
        os.symlink(f'../../../bus/pci/drivers/{driver}', f'{self.root}/{node}/driver')

    def run_report(self, *options):
        return subprocess.run([sys.executable, '-B', f'{HERE}/run', '--root', self.root, '--output', self.output,
                               *options], capture_output=True, text=True, timeout=60, check=False)

    def files(self):
        (name,) = os.listdir(self.output)
        with tarfile.open(f'{self.output}/{name}') as tar:
            return {os.path.basename(one.name): tar.extractfile(one).read().decode()
                    for one in tar.getmembers() if one.isfile()}

    def test_a_machine_without_such_a_gpu_is_told_so(self):
        done = self.run_report()
        self.assertEqual(done.returncode, 3)
        self.assertIn("there is no SR-IOV GPU with a vendor's PF driver", done.stdout)
        self.assertEqual(os.listdir(self.output), [])

    def test_a_gpu_is_reported_with_modes_and_values_and_nothing_is_written(self):
        self.add_gpu()
        done = self.run_report()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        files = self.files()
        lines = files[f'sysfs-{PF}.txt'].splitlines()
        for line in (f'{PF}/driver: xe', f'{PF}/sriov_totalvfs: 0644 12', f'{PF}/sriov_admin/vf1/stop: 0200',
                     f'{PF}/sriov_admin/vf1/profile/exec_quantum_ms: 0644 16', '0000:03:00.1/enable: 0644 0'):
            self.assertIn(line, lines)
        self.assertNotIn('must not be read', files[f'sysfs-{PF}.txt'])
        self.assertEqual([claim['holds'] for claim in json.loads(files['claims.json'])['claims']], [True])

    def test_other_devices_are_reported_only_by_name(self):
        self.add_gpu(driver='igb', pci_class='0x020000')
        self.assertEqual(self.run_report().returncode, 3)
        self.assertEqual(self.run_report('--address', PF).returncode, 0)

    def test_a_gpu_of_our_own_driver_is_not_reported(self):
        self.add_gpu(driver='vgpu_pf')
        self.assertEqual(self.run_report().returncode, 3)

    def test_a_copy_is_never_written_to(self):
        self.assertEqual(self.run_report('--write').returncode, 2)


if __name__ == '__main__':
    unittest.main()
