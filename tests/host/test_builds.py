# SPDX-License-Identifier: MIT
"""vgpu_pf.ko is compiled for each of Debian's kernels with W=1, with warnings as errors, and sparse
reports nothing.

7.x refuses Debian 12's sparse, 0.6.4, which does not know __typeof_unqual__; Debian 12 has no smatch.
"""
import glob
import os
import subprocess
import unittest

from machine import HOST, ROOT

SOURCES = ('core', 'linux')


class Builds(unittest.TestCase):
    def build(self, kernel, *options):
        done = subprocess.run([os.path.join(ROOT, 'tests/host/build_modules'), *options, kernel],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=3000, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-6000:])
        said = [line for line in done.stdout.split('\n') if 'warning' in line or 'error' in line]
        self.assertEqual(said, [])

    def check(self, kernel):
        self.build(kernel, '--check')
        with open(os.path.join(HOST, 'modules', kernel, 'src', 'checked')) as checked:
            looked_at = {line.strip().removeprefix('/src/') for line in checked}
        sources = {os.path.relpath(path, ROOT) for part in SOURCES
                   for path in glob.glob(os.path.join(ROOT, 'pf-driver', part, '**', '*.c'), recursive=True)}
        self.assertGreater(len(sources), 40)
        self.assertLessEqual(sources, looked_at)

    def test_debian_12(self):
        self.check('6.1')

    def test_debian_12_backports_and_13(self):
        self.check('6.12')

    def test_debian_13_backports(self):
        self.build('7.x')


if __name__ == '__main__':
    unittest.main()
