# SPDX-License-Identifier: MIT
"""The module as a DKMS package: added, built for this Debian's own kernel, installed, removed; in a tree of its own."""
import glob
import os
import shutil
import subprocess
import tempfile
import unittest

from machine import ROOT

SOURCES = ('hw', 'uapi', 'core', 'linux', 'Kbuild', 'dkms.conf')


class Dkms(unittest.TestCase):
    def setUp(self):
        kernels = sorted(os.path.basename(os.path.dirname(path))
                         for path in glob.glob('/lib/modules/*/build'))
        if not shutil.which('dkms') or not kernels:
            self.skipTest('no dkms or no kernel headers on this machine')
        self.kernel = kernels[-1]
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)
        source = self.path('src', 'vgpu-pf-0.1.0')
        for name in SOURCES:
            origin = os.path.join(ROOT, 'pf-driver', name)
            target = os.path.join(source, 'pf-driver', name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            (shutil.copytree if os.path.isdir(origin) else shutil.copy)(origin, target)
        shutil.copy(os.path.join(ROOT, 'pf-driver', 'dkms.conf'), source)
        os.makedirs(self.path('tree'))
        os.makedirs(self.path('installed', self.kernel))

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def dkms(self, verb, *arguments):
        done = subprocess.run(
            ['dkms', verb, 'vgpu-pf/0.1.0', '--dkmstree', self.path('tree'), '--sourcetree',
             self.path('src'), '--installtree', self.path('installed'), *arguments],
            capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def installed(self):
        return glob.glob(self.path('installed', self.kernel, '**', 'vgpu_pf.ko*'), recursive=True)

    def test_it_is_built_installed_and_removed(self):
        self.dkms('add')
        self.dkms('build', '-k', self.kernel)
        self.dkms('install', '-k', self.kernel)
        self.assertEqual(len(self.installed()), 1)
        self.assertIn('installed', self.dkms('status'))
        self.dkms('remove', '--all')
        self.assertEqual(self.installed(), [])


if __name__ == '__main__':
    unittest.main()
