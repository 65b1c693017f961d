# SPDX-License-Identifier: MIT
"""The package of the kernel module: the module is compiled for the system's kernel when both are
installed."""
import unittest

from debian_system import DebianSystem


class Module(unittest.TestCase):
    def test_it_is_compiled_when_installed_and_gone_when_removed(self):
        with DebianSystem('module') as system:
            system.install('vgpu-pf-dkms', more='linux-headers-amd64')
            kernel = system.check('ls /lib/modules').split()[-1]
            found = f'find /lib/modules/{kernel}/updates -name "vgpu_pf.ko*" 2>/dev/null'
            self.assertEqual(len(system.run(found)[1].split()), 1)
            self.assertIn('vgpu-pf/0.1.0', system.check('dkms status'))
            self.assertIn('time_scale', system.check(f'modinfo -k {kernel} vgpu_pf'))
            system.check('apt-get purge -qy vgpu-pf-dkms')
            self.assertEqual(system.run(found)[1].split(), [])
            self.assertFalse(system.exists('/usr/src/vgpu-pf-0.1.0'))


if __name__ == '__main__':
    unittest.main()
