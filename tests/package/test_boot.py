# SPDX-License-Identifier: MIT
"""The units under a real systemd: it starts vgpud as after a boot, confines it, watches it."""
import json
import unittest

from debian_system import DebianSystem, wait_for

# CHOWN 0, DAC_OVERRIDE 1, FOWNER 3, SETGID 6, SETUID 7, SYS_NICE 23
CAPABILITIES = f'{1 << 0 | 1 << 1 | 1 << 3 | 1 << 6 | 1 << 7 | 1 << 23:016x}'


class Boot(unittest.TestCase):
    hangs = 0

    @classmethod
    def setUpClass(cls):
        cls.system = DebianSystem('boot')
        cls.system.__enter__()
        cls.addClassCleanup(cls.system.__exit__)
        cls.system.install('vgpu', 'vgpu-softgpu', 'vgpu-exporter', 'vgpu-agent')
        cls.system.boot()

    def setUp(self):
        self.system.wait_for_gpu()

    def pid_of(self, program):
        return int(self.system.read(f'/run/vgpu/gpu0/{program}.pid').split()[0])

    def devices(self):
        return self.pid_of('softgpu'), self.pid_of('vgpu-pf')

    def status_of(self, pid):
        lines = self.system.check(f'cat /proc/{pid}/status').splitlines()
        return dict(line.split(':\t', 1) for line in lines if ':\t' in line)

    def wait_for_another(self, before, seconds):
        wait_for('another vgpud', seconds, lambda: self.system.show('vgpud', 'MainPID') not in ('0', before))

    def test_vgpud_is_in_service_after_boot(self):
        self.assertEqual(self.system.show('vgpud', 'ActiveState'), 'active',
                         self.system.run('journalctl --no-pager -u vgpud')[1])
        self.assertEqual(self.system.show('vgpud', 'StatusText'), 'serving org.vgpu1')

    def test_a_vf_is_created_and_destroyed_through_polkit_and_the_real_bus(self):
        self.system.check('vgpuctl create --name boot --vram 64M')
        vfs = json.loads(self.system.check('vgpuctl list --vfs --json'))['vfs']
        self.assertEqual([vf['name'] for vf in vfs], ['boot'])
        self.system.check('vgpuctl destroy boot')

    def scrape(self):
        script = 'import urllib.request as u; print(u.urlopen("http://127.0.0.1:9482/metrics").read().decode())'
        return self.system.check(f"python3 -c '{script}'")

    def test_the_exporter_is_started_by_its_first_scraper_and_confined(self):
        self.assertEqual(self.system.show('vgpu-exporter.socket', 'ActiveState'), 'active')
        self.assertIn('vgpu_up 1\n', self.scrape(), self.system.run('journalctl --no-pager -u vgpu-exporter')[1])
        status = self.status_of(int(self.system.show('vgpu-exporter', 'MainPID')))
        self.assertEqual(status['CapEff'], f'{0:016x}')
        self.assertNotIn('0', status['Uid'].split())
        self.assertEqual(status['NoNewPrivs'], '1')
        self.assertEqual(status['Seccomp'], '2')

    def test_vgpud_and_its_devices_are_confined(self):
        self.system.check('mkdir -p /home/somebody')
        for pid in (int(self.system.show('vgpud', 'MainPID')), *self.devices()):
            status = self.status_of(pid)
            self.assertEqual(status['CapBnd'], CAPABILITIES)
            self.assertEqual(status['NoNewPrivs'], '1')
            self.assertEqual(status['Seccomp'], '2')
            where = f'nsenter --target {pid} --mount --root --wd '
            self.assertIn('Read-only', self.system.run(where + 'touch /etc/vgpu/x')[1])
            self.assertEqual(self.system.run(where + 'ls -A /home')[1], '')

    def test_devices_run_as_a_user_without_rights(self):
        for pid in self.devices():
            status = self.status_of(pid)
            self.assertNotIn('0', status['Uid'].split() + status['Gid'].split())
            self.assertEqual(status['Groups'].split(), [])
            self.assertEqual((status['CapEff'], status['CapPrm']), (f'{0:016x}', f'{0:016x}'))

    def test_devices_complain_of_nothing(self):
        for program in ('softgpu', 'vgpu-pf'):
            self.assertNotIn('not permitted', self.system.read(f'/run/vgpu/gpu0/{program}.log'))

    def test_devices_lock_what_they_have_touched(self):
        if self.system.run('ulimit -l unlimited')[0] != 0:
            self.skipTest('this machine may not raise the limit of locked memory')
        for pid in self.devices():
            self.assertNotEqual(self.status_of(pid)['VmLck'].split()[0], '0')

    def test_devices_end_quanta_in_real_time(self):
        self.system.need_real_time(self)
        # LimitRTPRIO= of the unit: the devices' user has no CAP_SYS_NICE
        if self.system.run('prlimit --rtprio=2 true')[0] != 0:
            self.skipTest('this machine may not raise the limit of real-time priorities')
        for pid in self.devices():
            threads = self.system.check(f'for t in /proc/{pid}/task/*; do chrt -p ${{t##*/}}; done')
            self.assertIn('SCHED_FIFO', threads)

    def test_a_killed_vgpud_comes_back_and_adopts_its_devices(self):
        devices, before = self.devices(), self.system.show('vgpud', 'MainPID')
        self.system.check(f'kill -KILL {before}')
        self.wait_for_another(before, 60)
        self.system.wait_for_gpu()
        self.assertEqual(self.devices(), devices)

    def test_a_vgpud_that_hangs_is_replaced(self):
        devices, before = self.devices(), self.system.show('vgpud', 'MainPID')
        self.system.check(f'kill -STOP {before}')
        type(self).hangs += 1
        self.wait_for_another(before, 120)
        self.system.wait_for_gpu()
        self.assertEqual(self.devices(), devices)

    def test_stopped_it_leaves_its_devices_and_the_bus_starts_it_again(self):
        devices = self.devices()
        self.system.check('systemctl stop vgpud')
        self.assertEqual(self.system.show('vgpud', 'ActiveState'), 'inactive')
        self.system.check(f'kill -0 {devices[0]} {devices[1]}')
        self.system.wait_for_gpu()
        self.assertEqual(self.system.show('vgpud', 'ActiveState'), 'active')
        self.assertEqual(self.devices(), devices)

    def test_restarted_it_is_another_process_with_the_same_devices(self):
        devices, before = self.devices(), self.system.show('vgpud', 'MainPID')
        self.system.check('systemctl restart vgpud')
        self.system.wait_for_gpu()
        self.assertNotEqual(self.system.show('vgpud', 'MainPID'), before)
        self.assertEqual(self.devices(), devices)

    def test_the_agent_is_started_by_its_port_alone(self):
        self.assertEqual(self.system.show('vgpu-agent', 'ActiveState'), 'inactive')
        self.system.check('mkdir -p /run/systemd/system && '
                          'sed "/^BindsTo=\\|^After=/d" /lib/systemd/system/vgpu-agent.service '
                          '>/run/systemd/system/without-port.service && systemctl daemon-reload && '
                          'systemctl start without-port')
        self.assertEqual(self.system.show('without-port', 'ActiveState'), 'active')
        wait_for('the agent to look for its port', 30, lambda: 'there is no port' in self.system.check(
            'journalctl --no-pager -u without-port'))
        self.system.check('systemctl stop without-port')

    def test_amdgpu_gets_its_options(self):
        # the unit is for virtual machines, which this is not
        self.system.check('sed /^Condition/d /lib/systemd/system/vgpu-modprobe.service '
                          '>/run/systemd/system/anywhere.service && systemctl daemon-reload && '
                          'systemctl start anywhere')
        self.assertEqual(self.system.read('/run/modprobe.d/vgpu.conf'),
                         self.system.check('vgpu-agent --modprobe-options'))

    def test_only_a_vgpud_that_hangs_is_replaced(self):
        self.system.check('journalctl --sync')
        journal = self.system.check('journalctl --no-pager -u vgpud')
        self.assertEqual(journal.count('Watchdog timeout'), self.hangs, journal)

    def test_no_unit_of_ours_has_failed(self):
        failed = self.system.check('systemctl --failed --no-legend --plain')
        self.assertNotIn('vgpu', failed)


if __name__ == '__main__':
    unittest.main()
