# SPDX-License-Identifier: MIT
"""Jobs that are VMs: each boots the stock amdgpu on its VF and computes. Two hosts have one VF each, so that at most two VMs
run at once and three of them get a VF that another VM had."""
import glob
import os
import unittest

import fleet
from fleet import BIN, ROOT, wait_for
from observer import ask_controller

DIRECTORY = os.path.join(ROOT, 'build', 'fleet', 'vms')
JOBS = int(os.environ.get('VGPU_FLEET_VMS', 5))
# for all VMs, of which two run at once. The driver of a guest without CPU time gives up (PSP create
# ring failed), so run this test alone.
SECONDS = 1800 + 600 * JOBS
GPU = {'vfs': 2, 'vram_mb': 1024, 'aperture_mb': 512, 'threads': 1}
VM = '''#!/usr/bin/python3
# a job that is a VM: QEMU by vgpu-slurm run, and what its guest answers
import os, sys
sys.path.insert(0, {guest!r})
from suite import LOAD
from vm import Vm

class JobVm(Vm):
    slowness = 8

    def arguments(self):
        return [{program!r}, 'run', '--', *super().arguments()]

print('job', os.environ['SLURM_JOB_ID'], 'on', os.environ['SLURMD_NODENAME'], flush=True)
with JobVm([], '/tmp/vm' + os.environ['SLURM_JOB_ID']) as vm:
    for command in ('cat /sys/bus/pci/devices/*/device', LOAD, 'in_root rocminfo', 'in_root /tests/array_increment'):
        answer = vm.run(command, timeout=240)
        print('$', command, answer.text, 'status', answer.status, sep='\\n', flush=True)
        if answer.status != 0:
            print(vm.dmesg()[-3000:])
            sys.exit(1)
'''


class Vms(unittest.TestCase):
    def outputs(self, cluster):
        """{job: what it printed}"""
        found = {}
        for host in cluster.hosts:
            for path in glob.glob(os.path.join(host.disk, 'log', 'guests', '*')):
                with open(path, errors='replace') as file:
                    found[os.path.basename(path)] = file.read()
        return found

    def test_each_job_is_a_vm_that_computes_on_its_vf(self):
        with fleet.Fleet(DIRECTORY, hosts=2, profiles={'gpu': (1, '512MiB')}, gpu=GPU, slurmd_timeout=300) as cluster:
            cluster.file('vm', VM.format(guest=os.path.join(ROOT, 'tests', 'guest'), program=os.path.join(BIN, 'vgpu-slurm')), 0o755)
            for host in cluster.hosts:
                host.run('install', '-d', '-m', '1777', '/var/log/guests')
            jobs = [cluster.submit({'gpu': 1}, output='/var/log/guests/%j', script='vm') for _ in range(JOBS)]
            wait_for('the end of all VMs', SECONDS, lambda: not cluster.queue(), 2)
            states = {job: known['state'] for job, known in ask_controller(cluster)[0].items()}
            outputs = self.outputs(cluster)
            for job in jobs:
                with self.subTest(job=job):
                    self.assertEqual(states[job], 'COMPLETED', outputs.get(job))
                    self.assertIn('0x686c', outputs[job])
                    self.assertIn('gfx900', outputs[job])
                    self.assertIn('ok array_increment', outputs[job])
            wait_for('the end of all claims', 60, lambda: not cluster.claims(), 0.5)
