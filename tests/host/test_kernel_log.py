# SPDX-License-Identifier: MIT
"""kernel_log.py finds the problems in recorded lines and in the log of a kernel that warns."""
import os
import shutil
import unittest

import kernel_log
from machine import HOST, Machine

WARNINGS = (
    # until 6.16
    'WARNING: CPU: 0 PID: 71 at /src/pf-driver/core/vf/control.c:52 enter_running+0x1/0x9 [vgpu_pf]',
    # since 6.17
    'WARNING: /src/pf-driver/core/vf/control.c:52 at enter_running+0x1/0x9 [vgpu_pf], CPU#0: insmod/71',
    'BUG: kernel NULL pointer dereference, address: 0000000000000000',
    'vgpu_pf 0001:01:00.0: driver left SR-IOV enabled after remove',
    "pci 0001:01:00.0: BAR 5 [mem size 0x00080000]: can't assign; no space")
HARMLESS = (
    'vgpu_pf 0001:01:00.0: VF1: guest was not ready to reset in time',
    'pci 0001:01:00.1: [1002:686c] type 00 class 0x038000 PCIe Endpoint')


class Lines(unittest.TestCase):
    def test_condition_is_found_in_the_words_of_old_and_new_kernels(self):
        for line in WARNINGS:
            self.assertEqual(kernel_log.conditions(f'fine\n[    1.0] {line}\nfine'), [f'[    1.0] {line}'])
        self.assertEqual(kernel_log.conditions('\n'.join(HARMLESS)), [])

    def test_warnings_about_what_is_ours_are_found_unless_expected(self):
        raw = '<6>[1.0] vgpu_pf: an information\n<4>[2.0] vgpu_pf: odd\n<3>[3.0] vgpu_pf: lost\n<4>[4.0] clock: odd'
        self.assertEqual(kernel_log.warnings(raw), ['<4>[2.0] vgpu_pf: odd', '<3>[3.0] vgpu_pf: lost'])
        self.assertEqual(kernel_log.warnings(raw, ((': odd', 'a reason'), (': lost', 'another'))), [])


class Warning612(unittest.TestCase):
    """A machine without a card, whose kernel warns."""
    kernel = '6.12'

    def test_a_warning_of_this_kernel_is_found(self):
        directory = os.path.join(HOST, 'logs', type(self).__name__)
        shutil.rmtree(directory, ignore_errors=True)
        with Machine(None, directory, kernel=self.kernel) as vm:
            kernel_log.look(vm)
            vm.check('insmod /built/vgpu_test_failing.ko warns=1')
            with self.assertRaisesRegex(AssertionError, r'WARNING: .*vgpu_test_failing'):
                kernel_log.look(vm)


class Warning7(Warning612):
    kernel = '7.x'


if __name__ == '__main__':
    unittest.main()
