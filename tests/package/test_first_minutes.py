# SPDX-License-Identifier: MIT
"""A new user's first minutes: the packages in a fresh system, vgpud with softgpu, the first VF."""
import os
import stat
import subprocess
import unittest

from debian_system import ROOT, DebianSystem, packages

UNITS = ('vgpud.service',)


class Document(unittest.TestCase):
    def agree(self, system, group, *names):
        """Runs the commands of `group` in these documents, one document after the other; all must agree."""
        system.bring(os.path.join(ROOT, 'tests/support/doc_commands.py'),
                     *(os.path.join(ROOT, 'docs', name) for name in names))
        for name in names:
            text = system.check('cd /packages && PACKAGES=/packages VGPU_TEST_TIME_SCALE=10 '
                                f'python3 doc_commands.py {name} {group}', 900)
            self.assertIn('commands agree', text)

    def test_its_commands_do_what_it_says(self):
        with DebianSystem('document') as system:
            # the cache has no packages that these packages only recommend
            system.write('/etc/apt/apt.conf.d/tests', 'APT::Install-Recommends "false";\n')
            system.boot()
            system.bring(*packages().values())
            self.agree(system, 'softgpu', 'install.md', 'guests.md')

    def test_without_packages_its_commands_do_what_the_packages_would(self):
        names = ('vgpu', 'vgpu-softgpu', 'vgpu-agent')
        with DebianSystem('by-hand') as system:
            # what the packages depend on stays
            system.install(*names)
            system.check(f'apt-get purge -qy {" ".join(names)} && groupdel vgpu')
            system.boot()
            # their files, as cmake installs them, and nothing of what their scripts do
            for name in names:
                system.check(f'dpkg-deb --fsys-tarfile /packages/{name}_*.deb | '
                             'tar -x --keep-directory-symlink -C /')
            # this system has neither an initramfs nor udev
            system.check('for name in update-initramfs udevadm; do printf "#!/bin/sh\\n" >/usr/sbin/$name; '
                         'chmod 755 /usr/sbin/$name; done')
            self.agree(system, 'by-hand', 'install.md', 'guests.md')
            system.wait_for_gpu()
            system.check('systemctl stop vgpud')
            # the bus starts vgpud again
            system.wait_for_gpu()
            self.assertTrue(system.exists('/etc/systemd/system/multi-user.target.wants/vgpud.service'))
            self.assertTrue(system.exists('/etc/systemd/system/sysinit.target.wants/vgpu-modprobe.service'))
            line = system.read('/etc/apparmor.d/local/abstractions/libvirt-qemu').strip()
            with open(os.path.join(ROOT, 'debian/vgpu.postinst'), encoding='utf-8') as script:
                self.assertIn(f"line='{line}'\n", script.read())


class FirstMinutes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.system = DebianSystem('first')
        cls.system.__enter__()
        cls.addClassCleanup(cls.system.__exit__)
        cls.system.boot()
        cls.system.install('vgpu', 'vgpu-softgpu')
        cls.system.wait_for_gpu()

    def test_units_have_no_mistakes(self):
        for unit in UNITS:
            self.assertEqual(self.system.check(f'systemd-analyze verify --man=no /lib/systemd/system/{unit}'), '')

    def test_the_unit_starts_with_the_system_and_by_the_bus(self):
        for link in ('multi-user.target.wants/vgpud.service', 'dbus-org.vgpu1.service'):
            target = os.readlink(f'/proc/{self.system.pid}/root/etc/systemd/system/{link}')
            self.assertEqual(target, '/lib/systemd/system/vgpud.service')
        activation = self.system.read('/usr/share/dbus-1/system-services/org.vgpu1.service')
        self.assertIn('SystemdService=dbus-org.vgpu1.service\n', activation)

    def test_others_may_look_but_not_change(self):
        as_nobody = 'setpriv --reuid nobody --regid nogroup --clear-groups '
        self.assertIn('gpu0', self.system.check(as_nobody + 'vgpuctl list --gpus'))
        status, text = self.system.run(as_nobody + 'vgpuctl create --name mine --vram 64M')
        self.assertEqual(status, 4, text)

    def test_directories_have_the_modes_of_the_threat_model(self):
        for path, mode in (('run/vgpu', 0o755), ('run/vgpu/gpu0', 0o1775), ('var/lib/vgpu', 0o700),
                           ('run/vgpu/gpu0/vf1.sock', 0o600), ('run/vgpu/gpu0/uapi.sock', 0o600),
                           ('run/vgpu/gpu0/softgpu.log', 0o640)):
            seen = stat.S_IMODE(os.stat(f'/proc/{self.system.pid}/root/{path}').st_mode)
            self.assertEqual(oct(seen), oct(mode), path)

    def test_members_of_the_group_read_the_logs_of_devices(self):
        self.system.check('setpriv --reuid nobody --regid vgpu --clear-groups '
                          'cat /run/vgpu/gpu0/softgpu.log /run/vgpu/gpu0/vgpu-pf.log')
        status, _ = self.system.run('setpriv --reuid nobody --regid nogroup --clear-groups '
                                    'cat /run/vgpu/gpu0/softgpu.log')
        self.assertNotEqual(status, 0)

    def test_apparmor_lets_qemu_of_libvirt_connect_to_sockets(self):
        # libvirt of Debian 12 includes this file into the profile of every QEMU
        profile = 'profile qemu {\n  #include <local/abstractions/libvirt-qemu>\n}\n'
        done = subprocess.run(['apparmor_parser', '--preprocess', '--skip-kernel-load', '--base',
                               f'/proc/{self.system.pid}/root/etc/apparmor.d'],
                              input=profile, capture_output=True, text=True, timeout=60, check=False)
        self.assertIn('/run/vgpu/**.sock rw,', done.stdout, done.stderr)


if __name__ == '__main__':
    unittest.main()
