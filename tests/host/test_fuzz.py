# SPDX-License-Identifier: MIT
"""Random ioctls from clients that are killed; vgpu_pf.ko stays whole (fuzz_ioctl.py, in the machine).

VGPU_FUZZ_SEED repeats a run, except for the order in which processes run. VGPU_FUZZ_S sets its
seconds.
"""
import os
import random
import unittest

import test_module

SEED = int(os.environ.get('VGPU_FUZZ_SEED', random.randrange(1 << 32)))
SECONDS = int(os.environ.get('VGPU_FUZZ_S', 20))


class Fuzz(test_module.ModuleTest):
    def test_random_ioctls(self):
        print(f'seed {SEED}', end=' ', flush=True)
        answer = self.vm.run(f'in_root env PYTHONPATH=/tests python3 -B /tests/fuzz_ioctl.py {SEED} '
                             f'{SECONDS} 2>&1', SECONDS + 120)
        with open(os.path.join(self.directory, 'fuzz.log'), 'w') as log:
            log.write(answer.text)
        self.assertEqual(answer.status, 0, f'seed {SEED}: {answer.text[-3000:]}')
        self.write('sriov_numvfs', 0)
        self.vm.check('rmmod vgpu_pf', 120)
        self.load()
        self.assertEqual(self.vm.check('test -e /dev/vgpu-pf0 && echo there'), 'there')


if __name__ == '__main__':
    unittest.main()
