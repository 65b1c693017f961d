# SPDX-License-Identifier: MIT
"""docs/pacemaker.md with the real VirtualDomain, libvirtd and QEMU: a VM with a VF, whose host dies."""
import os
import unittest

import domain_cluster
from doc_commands import files_of
from domain_cluster import PLACE, VGPUCTL
from fleet import ROOT, wait_for
from test_pacemaker import document

VF = '1002:686c'


@unittest.skipIf(domain_cluster.missing(), domain_cluster.missing())
class VirtualDomain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = domain_cluster.DomainCluster(os.path.join(ROOT, 'build', 'fleet', 'domains'))
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.stop)
        cls.n1, cls.n2 = cls.cluster.hosts

    def settle(self, but=None):
        """Waits until vm1 runs, on another host than `but`, with one VF there and none elsewhere; returns its host."""
        def is_so():
            running = self.cluster.running()
            return 'vm1' in running and running['vm1'] != but and self.cluster.is_each_claimed_once()
        wait_for('vm1 with one VF', 240, is_so, 0.5)
        host = next(host for host in self.cluster.hosts if host.name == self.cluster.running()['vm1'])
        self.assertIn(VF, host.pci_of('vm1'))
        return host

    def test_1_the_commands_of_the_document_start_a_vm_with_a_vf(self):
        text = document(with_virtual_domain=True)
        for host in self.cluster.hosts:
            host.make_domain('vm1')
        self.n2.write('/tmp/vgpu.json', dict(files_of(text))['vgpu.json'])
        self.n2.run(VGPUCTL, 'apply', '/tmp/vgpu.json')
        self.n1.write('/usr/local/bin/sudo', '#!/bin/sh\nexec "$@"\n', 0o755)
        self.n1.write('/tmp/pacemaker.md', text)
        self.n1.run('env', 'VGPU_TEST_TIME_SCALE=4', 'python3', os.path.join(ROOT, 'tests', 'support', 'doc_commands.py'),
                    '/tmp/pacemaker.md', 'pacemaker', seconds=500)
        self.settle()

    def test_2_a_vm_that_moves_claims_on_its_new_host_and_not_on_the_old_one(self):
        old = self.settle()
        self.cluster.run('crm', 'resource', 'move', 'vm1', *(host.name for host in self.cluster.hosts if host is not old))
        self.settle(but=old.name)
        self.cluster.run('crm', 'resource', 'clear', 'vm1')

    def test_3_a_vm_whose_host_dies_runs_on_the_other_host_after_fencing(self):
        old = self.settle()
        old.kill()
        self.settle(but=old.name)
        self.assertEqual(self.cluster.switch.fenced, [old.name])
        old.boot()
        old.start_all()
        # vgpud ends the claim from before the boot
        self.settle()
