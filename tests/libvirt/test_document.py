# SPDX-License-Identifier: MIT
"""docs/libvirt.md as its readers use it, and what vgpud learns from libvirt's events."""
import os
import subprocess
import sys

from host import BIN, ROOT, wait_for
from test_domains import DomainTest


class Document(DomainTest):
    profiles = {}
    # as in the configuration of the packages
    machine_options = {'vram_mb': 2048, 'aperture_mb': 256}

    def test_every_command_of_the_document_does_what_it_says(self):
        shims = self.machine.path('bin')
        self.machine.write(os.path.join(shims, 'sudo'), '#!/bin/sh\nexec "$@"\n', 0o755)
        document = self.machine.path('libvirt.md')
        with open(os.path.join(ROOT, 'docs', 'libvirt.md')) as text:
            # the QEMU of this machine is too old; a reader also puts in the path of a QEMU
            self.machine.write(document, text.read().replace('/usr/bin/qemu-system-x86_64', self.machine.emulator))
        done = subprocess.run([sys.executable, os.path.join(ROOT, 'tests', 'support', 'doc_commands.py'), document,
                               'libvirt'], capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL,
                              env={'PATH': f'{shims}:{BIN}:/usr/sbin:/usr/bin:/sbin:/bin', 'LC_ALL': 'C.UTF-8',
                                   'LIBVIRT_DEFAULT_URI': 'qemu:///system'})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Events(DomainTest):
    machine_options = {'libvirt': 'qemu:///system'}

    def name_of(self, vf):
        return self.machine.vf(vf)['owner_name']

    def test_owners_have_the_names_of_their_domains_also_after_a_restart_of_vgpud(self):
        vm = self.domain('vm1', '--vf', 'small-1').start()
        self.machine.vgpud.kill()
        self.machine.vgpud.wait(timeout=10)
        self.machine.start_vgpud()
        wait_for('the name', 20, lambda: self.name_of('small-1') == 'vm1', 0.1)
        self.assertEqual(vm.state(), 'running')

    def test_a_domain_that_ended_while_vgpud_was_away_is_found_as_an_orphan_with_the_reason(self):
        vm = self.domain('vm1', '--vf', 'small-1').start()
        self.machine.vgpud.kill()
        self.machine.vgpud.wait(timeout=10)
        vm.destroy()
        self.machine.start_vgpud()
        # a claim younger than a minute is no orphan yet
        wait_for('the orphan', 90, lambda: "domain 'vm1' is shut off" in self.machine.vf('small-1')['orphan'], 0.5)
        vf = self.machine.vf('small-1')
        self.machine.ctl('release', 'small-1', '--owner', vm.owner, '--generation', str(vf['owner_generation']), '--scrub')
        wait_for('the VF free', 20, self.machine.is_at_rest, 0.1)

    def test_a_dead_libvirtd_changes_nothing(self):
        self.machine.libvirtd.kill()
        self.machine.libvirtd.wait(timeout=10)
        self.assertTrue(self.machine.ctl('list', '--vfs')['vfs'])
        self.machine.ctl('claim', 'small-2', '--owner', 'slurm:1')
        self.machine.ctl('release', 'small-2', '--owner', 'slurm:1', '--generation',
                         str(self.machine.vf('small-2')['owner_generation']))
        self.machine.start_libvirtd()
        vm = self.domain('vm1', '--vf', 'small-1').start()
        # the next vgpud does not know what the hook reported; libvirt's events report it again
        self.machine.vgpud.kill()
        self.machine.vgpud.wait(timeout=10)
        self.machine.start_vgpud()
        wait_for('the name', 60, lambda: self.name_of('small-1') == 'vm1', 0.2)
        self.assertEqual(vm.state(), 'running')
