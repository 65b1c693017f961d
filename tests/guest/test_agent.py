# SPDX-License-Identifier: MIT
"""vgpu-agent in a guest, seen through vgpuctl: versions, processes, self-test, quiesce and thaw."""
import os
import re
import shutil
import subprocess
import time
import unittest

from host import BIN, wait_for
from suite import Background, GuestTest

MOUNT = ('mkdir -p /r/agent /r/run && '
         'mount -t 9p -o trans=virtio,version=9p2000.L,cache=none,ro,msize=262144 agent /r/agent && '
         'mount -t cgroup2 none /r/sys/fs/cgroup')
START = 'in_root /agent/vgpu-agent 2>>/tmp/agent.log </dev/null & echo $! >/tmp/agent.pid'


class Agent(GuestTest):
    @classmethod
    def boot(cls, name):
        vm = cls.vms[name]
        vm.agent_socket = vm.sockets[0].removesuffix('.sock') + '.agent.sock'
        vm.agent_share = os.path.join(cls.directory, 'agent')
        os.makedirs(vm.agent_share)
        shutil.copy(os.path.join(BIN, 'vgpu-agent'), vm.agent_share)
        super().boot(name)
        answer = vm.run(MOUNT)
        if answer.status != 0:
            raise AssertionError(answer.text)
        vm.run(START)

    def agent(self):
        return self.host.ctl('show', 'a')['vf']['agent']

    def wait_for_agent(self, what, is_true):
        """Waits until `is_true` accepts the agent's section of vgpuctl show; returns the
        section."""
        def look():
            agent = self.agent()
            return agent if agent['connected'] and is_true(agent) else None
        try:
            return wait_for(what, 60, look, 0.3)
        except Exception as error:
            log = 'no log'
            if self.vms['a'].process.poll() is None and not what.startswith('with a program'):
                log = self.vms['a'].run('cat /tmp/agent.log').text
            raise AssertionError(f'{error}: {self.agent()}\n{log}') from error

    def setUp(self):
        super().setUp()
        # the agent must have seen the end of an earlier test's program
        self.wait_for_agent('connected', lambda agent: agent['health'] == 'ok' and agent['processes'] == 0)

    def test_versions_and_vram_are_those_of_the_guest(self):
        agent = self.agent()
        self.assertEqual(agent['version'], '0.1.0')
        self.assertEqual(agent['kernel'], self.vms['a'].run('uname -r').text.strip())
        self.assertEqual(agent['driver'].split()[0], 'amdgpu')
        self.assertRegex(agent['rocr'], r'^1\.\d+')
        self.assertRegex(agent['pci_address'], r'^0000:00:[0-9a-f]{2}\.0$')
        # the driver keeps a little for itself
        self.assertGreater(agent['vram_total_bytes'], 400 << 20)
        self.assertLessEqual(agent['vram_total_bytes'], 512 << 20)
        self.assertEqual(agent['misbehaved'], 0)

    def test_show_prints_it(self):
        done = subprocess.run([os.path.join(BIN, 'vgpuctl'), '--bus', self.host.bus, 'show', 'a'],
                              capture_output=True, text=True, timeout=60, check=True)
        for line in (r'^Agent: +0\.1\.0$', r'^Agent connected: +yes$', r'^Guest kernel: +6\.12',
                     r'^Health: +ok$', r'^Processes: +\d+$'):
            self.assertRegex(done.stdout, re.compile(line, re.M))

    def test_a_hip_program_is_seen_with_its_vram_and_queues(self):
        program = Background(self, 'long_kernel', 20000, vm=self.vms['a'])
        agent = self.wait_for_agent('with a program, its queue', lambda agent: any(
            int(entry.split()[2]) > 0 for entry in agent['process_list']))
        program.finish()
        _, vram_bytes, _, comm = agent['process_list'][0].split(None, 3)
        self.assertEqual(comm, 'long_kernel')
        self.assertGreater(int(vram_bytes), 0)
        self.wait_for_agent('gone', lambda agent: agent['processes'] == 0)

    def test_self_test_passes(self):
        report = self.host.ctl('self-test', 'a')
        print(report, flush=True)
        self.assertTrue(report['ok'], report)
        self.assertIn('gfx900', report['text'])

    def test_quiesce_stops_the_engine_and_thaw_lets_the_program_finish(self):
        program = Background(self, 'long_kernel', 500, 60, vm=self.vms['a'])
        self.wait_for_agent('with a program, its queue', lambda agent: any(
            int(entry.split()[2]) > 0 for entry in agent['process_list']))
        report = self.host.ctl('quiesce', 'a')
        print(report, flush=True)
        before = self.stats()['wave_instructions']
        self.wait_for_agent('with a program, quiesced', lambda agent: agent['quiesced'])
        time.sleep(3)
        self.assertEqual(self.stats()['wave_instructions'], before)
        self.assertTrue(program.is_running())
        self.assertTrue(self.host.ctl('thaw', 'a')['ok'])
        program.finish()

    def test_an_agent_that_is_killed_is_missed_and_its_successor_thaws(self):
        vm = self.vms['a']
        vm.run('(in_root /tests/long_kernel 500 40; echo "rc $?") >/tmp/program.log 2>&1 </dev/null &')
        self.wait_for_agent('its queue', lambda agent: any(
            int(entry.split()[2]) > 0 for entry in agent['process_list']))
        self.assertTrue(self.host.ctl('quiesce', 'a')['ok'])
        vm.run('kill -9 $(cat /tmp/agent.pid)')
        wait_for('the loss', 60, lambda: not self.agent()['connected'], 0.3)
        self.assertNotIn('rc', vm.run('cat /tmp/program.log').text)
        vm.run(START)
        self.wait_for_agent('connected again', lambda agent: agent['health'] == 'ok')
        wait_for('the end of the program', 120,
                 lambda: 'rc 0' in vm.run('cat /tmp/program.log').text, 0.5)

    def test_vgpud_restarts_and_the_agent_is_there_again(self):
        self.host.vgpud.terminate()
        self.host.vgpud.wait(timeout=20)
        self.host.start_vgpud()
        self.wait_for_agent('connected again', lambda agent: agent['health'] == 'ok')


if __name__ == '__main__':
    unittest.main(verbosity=2)
