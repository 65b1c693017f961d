# SPDX-License-Identifier: MIT
"""The contract suite over vgpu_pf.ko: tests/contract/pf_home in the machine, against /dev/vgpu-pf0."""
import os
import unittest

from card_test import CardTest


class Contract(CardTest):
    """A device in the shape that the suite describes."""
    vfs = 4
    card_options = {'vram_mb': 512, 'aperture_mb': 256}

    def test_contract_of_a_home(self):
        answer = self.vm.run('in_root VGPU_PF_DEVICE=/dev/vgpu-pf0 contract_pf_home '
                             '--gtest_filter=*/Kernel --gtest_color=no 2>&1', 900)
        with open(os.path.join(self.directory, 'contract.log'), 'w') as log:
            log.write(answer.text)
        self.assertEqual(answer.status, 0, answer.text[-6000:])
        self.assertIn('[  PASSED  ]', answer.text)


class ContractOn7(Contract):
    kernel = '7.x'


if __name__ == '__main__':
    unittest.main()
