# SPDX-License-Identifier: MIT
"""Guests of a real Pacemaker with VFs on two hosts, while hosts, links and vgpud die. The steps follow each other on one
cluster, which docs/pacemaker.md sets up."""
import os
import re
import shutil
import subprocess
import time
import unittest

import cluster
from cluster import AGENT, VGPUCTL
from doc_commands import files_of
from fleet import ROOT, FleetError, wait_for

SMALL = 2       # VFs of each host
MONITOR_S = 15  # the monitor interval of the agent, as in the document
DAMPEN_S = 10
DOMAIN = '4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10'
STUB = """#!/bin/sh
case $* in
*--gpus*) echo "{gpus}" ;;
*--capacity*) echo "{capacity}" ;;
*) echo "{vfs}" ;;
esac
"""


def document(with_virtual_domain=False):
    """docs/pacemaker.md for hosts without IPMI, and without VirtualDomain unless they have a QEMU that can attach a VF."""
    with open(os.path.join(ROOT, 'docs', 'pacemaker.md'), encoding='utf-8') as file:
        text = file.read()
    text = re.sub(r'stonith:fence_ipmilan \\\n *params ip=\S+ username=\S+ password_script=\S+', 'stonith:fence_fleet params', text)
    return text if with_virtual_domain else re.sub(
        r'ocf:heartbeat:VirtualDomain \\\n *params config=\S+( \\?\n? *autoset_utilization_\w+=false)+',
        'ocf:fleet:guest params profile=small', text)


class Pacemaker(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster.Cluster(os.path.join(ROOT, 'build', 'fleet', 'pacemaker'))
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.stop)
        cls.n1, cls.n2 = cls.cluster.hosts

    def settle(self, count, seconds=120):
        """Waits until `count` guests run, each with one VF. No guest may run twice meanwhile."""
        def is_so():
            for name, hosts in self.cluster.guests().items():
                self.assertEqual(len(hosts), 1, f'{name} runs twice')
            return len(self.cluster.running()) == count and self.cluster.is_each_claimed_once()
        wait_for(f'{count} guests with one VF each', seconds, is_so, 0.5)

    def capacity(self):
        return {host.name: self.cluster.attribute(host, 'vgpu_small') for host in self.cluster.hosts}

    def wait_for_capacity(self, n1, n2, seconds=3 * MONITOR_S):
        wait_for(f'capacity {n1} and {n2}', seconds, lambda: self.capacity() == {'n1': n1, 'n2': n2}, 0.5)

    def wait_for_health(self, host, colour, seconds=3 * MONITOR_S + DAMPEN_S):
        wait_for(f'{host.name} {colour}', seconds, lambda: self.cluster.health(host) == colour, 0.5)

    def on(self, host):
        """Names of the guests on a host."""
        return sorted(name for name, where in self.cluster.running().items() if where == host.name)

    def stop_guest(self, name):
        self.cluster.run('crm', 'resource', 'stop', name)

    def test_1_the_commands_of_the_document_do_what_it_says(self):
        text = document()
        self.n2.write('/tmp/vgpu.json', dict(files_of(text))['vgpu.json'])
        self.n2.run(VGPUCTL, 'apply', '/tmp/vgpu.json')
        self.n1.write('/usr/local/bin/sudo', '#!/bin/sh\nexec "$@"\n', 0o755)
        self.n1.write('/tmp/pacemaker.md', text)
        self.n1.run('python3', os.path.join(ROOT, 'tests', 'support', 'doc_commands.py'), '/tmp/pacemaker.md', 'pacemaker',
                    seconds=300)
        self.wait_for_capacity(SMALL, SMALL)
        self.settle(1)

    def test_2_a_claim_of_somebody_else_lowers_the_capacity_of_its_host(self):
        vf = next(vf for vf in self.n2.vfs() if not vf['owner'])
        self.n2.ctl('claim', vf['target'], '--owner', 'slurm:7')
        self.wait_for_capacity(SMALL, SMALL - 1)
        claim = self.n2.claims()['slurm:7'][0]
        self.n2.ctl('release', vf['target'], '--owner', 'slurm:7', '--generation', str(claim['owner_generation']))
        self.wait_for_capacity(SMALL, SMALL)

    def test_3_no_more_guests_run_than_there_are_vfs(self):
        for number in range(2, 6):
            self.cluster.vm(f'vm{number}')
        self.settle(2 * SMALL)
        self.cluster.run('crm_resource', '--wait', seconds=90)
        self.settle(2 * SMALL)
        # the guest that waits gets the VF of one that ends, and fails if the VF is not empty
        self.stop_guest(self.on(self.n1)[0])
        self.settle(2 * SMALL)
        self.stop_guest(self.on(self.n1)[0])
        self.settle(2 * SMALL - 1)

    def test_4_guests_of_a_host_that_died_start_elsewhere_after_it_was_fenced(self):
        stayed = {name: self.n1.claims()['libvirt:' + cluster.uuid_of(name)] for name in self.on(self.n1)}
        self.assertEqual((len(stayed), len(self.on(self.n2))), (1, SMALL))
        self.n2.kill()
        self.settle(SMALL)
        self.assertEqual(self.cluster.switch.fenced, ['n2'])
        claims = self.n1.claims()
        for name, vfs in stayed.items():
            self.assertEqual([(vf['name'], vf['owner_generation']) for vf in claims['libvirt:' + cluster.uuid_of(name)]],
                             [(vf['name'], vf['owner_generation']) for vf in vfs], 'nobody else lost a VF')

    def test_5_a_host_that_is_back_has_no_claim_from_before_its_death(self):
        self.n2.boot()
        self.n2.start_all()
        self.settle(2 * SMALL - 1)

    def test_6_a_restart_of_vgpud_moves_no_guest(self):
        before, processes = self.cluster.guests(), self.n2.run('sh', '-c', 'cat /run/guests/*')
        self.n2.kill_program('vgpud')
        self.n2.start_vgpud()
        end = time.monotonic() + MONITOR_S + DAMPEN_S
        while time.monotonic() < end:
            self.assertEqual(self.cluster.guests(), before)
            time.sleep(0.5)
        self.assertEqual(self.n2.run('sh', '-c', 'cat /run/guests/*'), processes)
        self.settle(2 * SMALL - 1)

    def test_7_guests_leave_a_host_without_vgpud(self):
        self.stop_guest(self.on(self.n1)[0])
        self.settle(2 * SMALL - 2)
        moved = self.on(self.n2)
        self.assertTrue(moved)
        self.n2.kill_program('vgpud')
        self.wait_for_health(self.n2, 'red')
        wait_for('all guests on n1', 60, lambda: len(self.on(self.n1)) == 2 * SMALL - 2, 0.5)
        self.assertEqual(set(self.n1.guests()), set(self.on(self.n1)))
        self.assertIn('vgpud does not answer', self.cluster.run('crm_mon', '--one-shot', '--show-node-attributes'))
        self.n2.start_vgpud()
        self.wait_for_health(self.n2, 'green', 90)
        # nobody could end their claims, which are found as orphans after a minute
        self.wait_for_capacity(SMALL, SMALL - len(moved), 180)
        self.n2.ctl('release', '--orphans')
        self.wait_for_capacity(SMALL, SMALL)
        self.settle(2 * SMALL - 2)

    def test_8_of_two_hosts_that_are_cut_off_from_each_other_one_is_fenced(self):
        before = list(self.cluster.switch.fenced)
        self.n2.cut()
        wait_for('fencing', 60, lambda: len(self.cluster.switch.fenced) > len(before), 0.2)
        self.settle(2 * SMALL - 2)
        self.assertEqual(self.cluster.switch.fenced, [*before, 'n2'], 'the delay of fence-n1 lets n1 win')
        self.n2.boot()
        self.n2.start_all()
        wait_for('both nodes', 90, lambda: self.cluster.online() == {'n1', 'n2'}, 0.5)
        self.wait_for_capacity(SMALL, SMALL, 90)

    def test_9_a_stop_of_the_agent_offers_no_vf_and_stops_no_guest(self):
        # guests may move to the host that is back, and must have moved before the test counts them
        self.cluster.run('crm_resource', '--wait', seconds=90)
        self.settle(2 * SMALL - 2)
        running = self.cluster.running()
        used = {host.name: len(self.on(host)) or None for host in self.cluster.hosts}
        self.cluster.run('crm', 'resource', 'stop', 'vgpu-clone')
        wait_for('the end of the agent', 60, lambda: self.capacity() == used, 0.5)
        wait_for('no health', 60, lambda: not self.cluster.health(self.n1), 0.5)
        self.cluster.run('crm_resource', '--wait', seconds=90)
        self.assertEqual(self.cluster.running(), running)
        self.settle(2 * SMALL - 2)


class Agent(unittest.TestCase):
    """The agent itself, on a host of a cluster without resources."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster.Cluster(os.path.join(ROOT, 'build', 'fleet', 'agent'))
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.stop)
        cls.host = cls.cluster.hosts[0]
        cls.host.write('/tmp/vgpu.json', dict(files_of(document()))['vgpu.json'])
        cls.host.run(VGPUCTL, 'apply', '/tmp/vgpu.json')

    def call(self, action, path='', **parameters):
        """Calls the agent; returns (exit status, output)."""
        variables = [f'OCF_RESKEY_{name}={value}' for name, value in parameters.items()]
        done = subprocess.run(self.host.inside('env', 'OCF_ROOT=/usr/lib/ocf', 'OCF_RESOURCE_INSTANCE=test',
                                               'OCF_RESKEY_CRM_meta_interval=15000',
                                               f'PATH={path}/usr/sbin:/usr/bin:/sbin:/bin', *variables,
                                               '/usr/lib/ocf/resource.d/vgpu/capacity', action),
                              capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_ocf_tester_finds_nothing(self):
        self.assertIn('passed all tests', self.host.run('ocf-tester', '-n', 'test', '/usr/lib/ocf/resource.d/vgpu/capacity',
                                                        seconds=120))

    def test_a_wrong_parameter_is_named_with_what_to_write(self):
        for parameters, words in (({'prefix': 'a b'}, "prefix='a b' cannot begin the name"),
                                  ({'dampen': '10s'}, "dampen='10s' is not a number of seconds")):
            for action in ('validate-all', 'start'):
                status, text = self.call(action, **parameters)
                self.assertEqual((status, words in text), (6, True), text)
        self.assertEqual(self.call('monitor')[0], 7, 'nothing was started')

    def test_a_host_without_vgpu_has_the_agent_not_installed(self):
        self.host.run('mv', '/usr/bin/vgpuctl', '/usr/bin/vgpuctl.away')
        try:
            status, text = self.call('start')
            self.assertEqual((status, 'there is no program vgpuctl' in text), (5, True), text)
            self.assertEqual(self.call('monitor')[0], 7)
            self.assertEqual(self.call('stop')[0], 0)
        finally:
            self.host.run('mv', '/usr/bin/vgpuctl.away', '/usr/bin/vgpuctl')

    def test_a_profile_that_vanished_is_no_longer_published(self):
        self.assertEqual(self.call('start')[0], 0)
        self.cluster.run('crm_attribute', '--type', 'nodes', '--node', 'n1', '--utilization', '--name', 'vgpu_gone', '--update', '3')
        self.cluster.run('crm_attribute', '--type', 'nodes', '--node', 'n1', '--utilization', '--name', 'cpu', '--update', '3')
        self.assertEqual(self.call('monitor')[0], 0)
        self.assertEqual([self.cluster.attribute(self.host, name) for name in ('vgpu_small', 'vgpu_gone', 'cpu')],
                         [SMALL, None, 3])
        self.assertEqual(self.call('stop')[0], 0)
        self.assertIsNone(self.cluster.attribute(self.host, 'vgpu_small'))

    def published(self, health, gpus, capacity, vfs=''):
        """Checks `health`; returns (utilization, status) that the agent publishes if vgpuctl prints
        these lines."""
        self.host.write('/tmp/stub/vgpuctl', STUB.format(gpus=gpus, capacity=capacity, vfs=vfs), 0o755)
        self.assertEqual(self.call('start', path='/tmp/stub:', prefix='stub_', dampen='0')[0], 0)
        self.addCleanup(self.call, 'stop', prefix='stub_')
        wait_for(health, 10, lambda: self.cluster.health(self.host) == health, 0.2)
        status = self.cluster.run('attrd_updater', '--name', 'vgpu-status', '--query')
        return self.cluster.attribute(self.host, 'stub_small'), re.search('value="(.*)"', status).group(1)

    def test_the_health_is_that_of_the_gpus(self):
        self.assertEqual(self.published('green', 'gpu0 ok\ngpu1 ok', 'small 3 1'), (4, 'ok'))
        self.assertEqual(self.published('yellow', 'gpu0 ok\ngpu1 pf-lost', 'small 3 1\nsmall 0 0'),
                         (4, "gpu1 is pf-lost: run 'vgpuctl doctor' on this node"))
        self.assertEqual(self.published('red', 'gpu0 device-lost\ngpu1 pf-lost', 'small 0 1')[0], 1)
        self.assertEqual(self.published('red', '', ''), (None, 'vgpud has no GPU: add one to /etc/vgpu/vgpud.json'))

    def test_claims_of_others_and_forgotten_claims_do_not_count(self):
        vfs = f"""small  yes  libvirt:{DOMAIN}  -
small  no   {DOMAIN}  -
small  no   domain:{DOMAIN}  -
small  yes  libvirt:vm1  -
small  no   slurm:lab:7.0  -
small  no   libvirt:{DOMAIN}  'libvirt:{DOMAIN}' (claim 3) no longer exists
small  yes  night  the lease of 'night' (claim 4) is over
large  no   slurm:lab:8.0  -
-      no   slurm:lab:9.0  -
small  no   -  -"""
        self.assertEqual(self.published('green', 'gpu0 ok', 'small 1 7\n- 0 1\nlarge 0 1', vfs)[0], 4)

    def test_a_vf_whose_lease_is_over_counts_as_free_unless_it_is_open(self):
        vfs = f"""small  no  night  the lease of 'night' (claim 4) is over
small  no  libvirt:{DOMAIN}  the lease of 'libvirt:{DOMAIN}' (claim 5) is over"""
        self.assertEqual(self.published('green', 'gpu0 ok', 'small 2 0', vfs)[0], 2)
        self.assertEqual(self.published('green', 'gpu0 ok', 'small 1 1', vfs.replace('no', 'yes', 1))[0], 1)

    def test_shellcheck_and_checkbashisms_find_nothing(self):
        found = [tool for tool in (['shellcheck', '--exclude=SC1091'], ['checkbashisms']) if shutil.which(tool[0])]
        for tool in found:
            done = subprocess.run([*tool, AGENT], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        if len(found) < 2:
            self.skipTest('shellcheck or checkbashisms is not installed')
