# SPDX-License-Identifier: MIT
"""Packages are installed, upgraded and removed: what stays, what does not, and that no script asks a
question."""
import unittest

from debian_system import DebianSystem, older, wait_for

HOST = ('vgpu', 'vgpu-softgpu')
EDITED = '// edited\n'
# the calls of udevadm when the agent's rule was installed or removed
ASKED = 'control --reload\ntrigger --action=add --subsystem-match=virtio-ports\n'
APPARMOR_RULES = '/etc/apparmor.d/local/abstractions/libvirt-qemu'

# where packages put files, and where dpkg, apt and systemd keep files of their own
PACKAGED = ('/etc/', '/usr/', '/var/lib/')
KEPT_BY_OTHERS = ('/var/lib/dpkg', '/var/lib/apt', '/var/lib/systemd')
# the group stays (docs/install.md)
ACCOUNTS = tuple('/etc/' + name + old for name in ('group', 'gshadow', 'passwd', 'shadow') for old in ('', '-'))


def is_packaged(name):
    return name.startswith(PACKAGED) and not name.startswith(KEPT_BY_OTHERS)


class Life(unittest.TestCase):
    """Each test begins with a fresh system that has booted."""

    def start(self, name):
        system = DebianSystem(name)
        system.__enter__()
        self.addCleanup(system.__exit__)
        system.boot()
        return system

    @staticmethod
    def use(system):
        """Uses vgpu as an administrator does, before the packages are removed or replaced."""
        system.wait_for_gpu()
        system.check('vgpuctl create --name train --vram 64M')

    def test_an_upgrade_keeps_configuration_state_and_running_devices(self):
        system = self.start('upgrade')
        system.install(*HOST, place=older())
        self.use(system)
        system.write('/etc/vgpu/vgpud.json', EDITED + system.read('/etc/vgpu/vgpud.json'))
        devices = system.processes('softgpu') + system.processes('vgpu-pf')
        self.assertEqual(len(devices), 2)
        vgpud = system.processes('vgpud')
        text = system.install(*HOST)
        self.assertIn('over (0.1.0~previous)', text)
        self.assertTrue(system.read('/etc/vgpu/vgpud.json').startswith(EDITED))
        self.assertEqual(system.processes('softgpu') + system.processes('vgpu-pf'), devices)
        wait_for('the new vgpud', 60, lambda: system.processes('vgpud') not in ([], vgpud))
        system.wait_for_gpu()
        self.assertIn('train', system.check('vgpuctl list --vfs'))
        self.assertEqual(system.processes('softgpu') + system.processes('vgpu-pf'), devices)

    def test_removed_it_leaves_configuration_and_state_and_a_hook_that_does_nothing(self):
        system = self.start('remove')
        system.install(*HOST)
        self.use(system)
        system.check('apt-get remove -qy vgpu vgpu-softgpu')
        self.assertEqual(system.processes('vgpud'), [])
        for kept in ('/etc/vgpu/vgpud.json', '/var/lib/vgpu/gpus/gpu0.json'):
            self.assertTrue(system.exists(kept), kept)
        for gone in ('/usr/sbin/vgpud', '/usr/bin/vgpuctl', '/usr/sbin/softgpu',
                     '/usr/share/dbus-1/system.d/org.vgpu1.conf'):
            self.assertFalse(system.exists(gone), gone)
        wait_for('the devices to end', 20,
                 lambda: not system.processes('softgpu') + system.processes('vgpu-pf'))
        self.assertEqual(
            system.check('echo "<domain/>" | /etc/libvirt/hooks/qemu.d/50-vgpu vm prepare begin -'), '')

    def test_purged_it_leaves_nothing(self):
        system = self.start('purge')
        system.install_dependencies(*HOST)
        before = self.traces_in(system)
        system.install(*HOST)
        # a file without vgpu in its name, which traces_in() must also find
        self.assertLessEqual({APPARMOR_RULES, 'words in ' + APPARMOR_RULES}, self.traces_in(system) - before)
        self.use(system)
        # the daemon alone: the purge also ends its devices, whose sockets are in /run/vgpu
        system.check('apt-get purge -qy vgpu')
        wait_for('the devices to end', 20,
                 lambda: not system.processes('softgpu') + system.processes('vgpu-pf'))
        self.assertFalse(system.exists('/run/vgpu'))
        system.check('apt-get purge -qy vgpu-softgpu')
        self.assertEqual(self.traces_in(system) - before, set())

    def test_the_agent_comes_and_goes(self):
        system = self.start('agent')
        system.install_dependencies('vgpu-agent')
        before = self.traces_in(system)
        system.install('vgpu-agent')
        # only the rule of its port starts it
        self.assertEqual(system.check('systemctl is-enabled vgpu-agent || true').strip(), 'static')
        self.assertTrue(system.exists('/etc/systemd/system/sysinit.target.wants/vgpu-modprobe.service'))
        self.assertIn('options amdgpu', system.check('vgpu-agent --modprobe-options 6.12.1'))
        system.check('apt-get purge -qy vgpu-agent')
        self.assertEqual(self.traces_in(system) - before, set())

    def test_the_agent_of_a_running_guest_starts_restarts_and_ends_with_its_package(self):
        system = self.start('agent-runs')
        # replaces udevadm: records its calls and fails, which must not fail an installation
        system.write('/usr/bin/udevadm', '#!/bin/sh\necho "$*" >>/asked\nexit 1\n')
        system.check('chmod 755 /usr/bin/udevadm && mkdir -p /run/udev && python3 -c '
                     '"import socket; socket.socket(socket.AF_UNIX).bind(\'/run/udev/control\')"')
        system.install('vgpu-agent', place=older())
        self.assertEqual(system.read('/asked'), ASKED)
        # what the rule starts, without the port
        system.check('sed "/^BindsTo=\\|^After=/d" /lib/systemd/system/vgpu-agent.service '
                     '>/etc/systemd/system/vgpu-agent.service && systemctl daemon-reload && '
                     'systemctl start vgpu-agent')
        before = wait_for('the agent', 30, lambda: system.processes('vgpu-agent'))
        system.install('vgpu-agent')
        wait_for('the new agent', 30, lambda: system.processes('vgpu-agent') not in ([], before))
        self.assertEqual(system.read('/asked'), 2 * ASKED)
        system.check('apt-get remove -qy vgpu-agent')
        self.assertEqual(system.processes('vgpu-agent'), [])
        # udev must reload its rules, because the port no longer starts the agent
        self.assertEqual(system.read('/asked'), 3 * ASKED)

    @staticmethod
    def traces_in(system):
        """All that a package of vgpu may have left: files named after vgpu, files where packages put files,
        and files there that mention vgpu."""
        names = system.check('find / -xdev \\( -path /proc -o -path /packages -o -path /var/lib/dpkg -o '
                             '-path /var/cache -o -path /var/log \\) -prune -o -print; find /run').splitlines()
        # a file may go meanwhile, and there may be none
        mentions = system.check('grep -rlsF vgpu /etc /usr /var/lib || true').splitlines()
        return ({name for name in names if 'vgpu' in name or is_packaged(name)} |
                {'words in ' + name for name in mentions if is_packaged(name) and name not in ACCOUNTS})


if __name__ == '__main__':
    unittest.main()
