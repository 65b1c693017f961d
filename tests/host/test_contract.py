# SPDX-License-Identifier: MIT
"""The contract suite over vgpu_pf.ko: tests/contract/pf_platform in the machine, against /dev/vgpu-pf0."""
import os
import re
import unittest

from card_test import CardTest

PROGRAM = 'in_root VGPU_PF_DEVICE=/dev/vgpu-pf0 contract_pf_platform --gtest_filter=*/Kernel --gtest_color=no'
MIN_TESTS = 20  # a suite that has lost its tests shows nothing
MAY_SKIP = 4  # the tests of messages on a socket: this platform has none


def count(pattern, text):
    return len(re.findall(pattern, text, re.MULTILINE))


class Contract(CardTest):
    """A device in the shape that the suite describes."""
    vfs = 4
    card_options = {'vram_mb': 512, 'aperture_mb': 256}
    expected_warnings = ((r'VF\d+: in service but not in the checkpoint', 'the suite erases the journal'),)

    def test_contract_of_a_platform(self):
        listed = count(r'^  \w', self.vm.check(f'{PROGRAM} --gtest_list_tests 2>&1', 120))
        self.assertGreaterEqual(listed, MIN_TESTS)
        answer = self.vm.run(f'{PROGRAM} 2>&1', 900)
        with open(os.path.join(self.directory, 'contract.log'), 'w') as log:
            log.write(answer.text)
        self.assertEqual(answer.status, 0, answer.text[-6000:])
        passed = count(r'^\[       OK \] .*/Kernel', answer.text)
        self.assertLessEqual(listed - passed, MAY_SKIP, answer.text[-6000:])


class ContractOn7(Contract):
    kernel = '7.x'


if __name__ == '__main__':
    unittest.main()
