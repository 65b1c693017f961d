# SPDX-License-Identifier: MIT
"""Domains of libvirt with VFs: their life, two that request one VF, and programs that die
meanwhile.

No domain here has an operating system: QEMU with a VF and a firmware that finds no disk is enough.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
import unittest

from host import ROOT, HostError, wait_for
from vfio_user_client import VfUserClient
from virt import VGPUCTL, Machine, run

LOGS = os.path.join(ROOT, 'build', 'libvirt', 'logs')


def at_once(*calls):
    """Results of functions that run at the same time."""
    results = [None] * len(calls)

    def call(index):
        results[index] = calls[index]()

    threads = [threading.Thread(target=call, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


class DomainTest(unittest.TestCase):
    profiles = {'small': 3, 'rare': 1}
    vram = '32MiB'
    machine_options = {}
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        directory = os.path.join(LOGS, cls.__name__)
        shutil.rmtree(directory, ignore_errors=True)
        cls.machine = Machine(directory, **cls.machine_options)
        cls.machine.__enter__()
        cls.addClassCleanup(cls.machine.stop)
        if cls.profiles:
            cls.machine.make_vfs(vram=cls.vram, **cls.profiles)

    def setUp(self):
        self.domains = []
        self.addCleanup(self.clean)

    def clean(self):
        for domain in self.domains:
            domain.destroy()
            domain.virsh('undefine')
        wait_for('all VFs free', 30, self.machine.is_at_rest, 0.1)

    def domain(self, name, *attach, **options):
        domain = self.machine.domain(name, *attach, **options)
        self.domains.append(domain)
        return domain.define()

    def assert_refused(self, done, *words):
        self.assertNotEqual(done.returncode, 0, done.stdout)
        for word in words:
            self.assertIn(word, done.stderr)


class Life(DomainTest):
    def test_a_domain_has_a_vf_from_start_to_destroy(self):
        vm = self.domain('vm1', '--profile', 'small').start()
        vf = self.machine.vf_of(vm)
        self.assertTrue(vf['attached'])
        self.assertEqual(vf['owner_name'], 'vm1')
        self.assertEqual(os.readlink(vm.socket()), vf['socket'])
        devices = vm.virsh('qemu-monitor-command', '--hmp', 'info pci').stdout
        self.assertIn('PCI device 1002:686c', devices)
        generation = vf['generation']
        self.assertEqual(vm.destroy().returncode, 0)
        self.assertEqual(self.machine.owned(), {})
        wait_for('the VF scrubbed', 20, self.machine.is_at_rest, 0.05)
        self.assertGreater(self.machine.vf(vf['name'])['generation'], generation, 'the VF was not provisioned again')
        self.assertFalse(os.path.exists(os.path.dirname(vm.socket())))

    def test_qemu_runs_as_another_user_and_nobody_else_is_let_to_the_socket(self):
        vm = self.domain('vm1', '--vf', 'small-2').start()
        facts = os.stat(vm.socket())
        self.assertEqual(facts.st_uid, os.stat(f'/proc/{vm.qemu()}').st_uid)
        self.assertNotEqual(facts.st_uid, 0)
        self.assertEqual(facts.st_mode & 0o077, 0)
        vm.destroy()
        self.assertEqual(os.stat(self.machine.vf('small-2')['socket']).st_uid, 0)

    def test_a_domain_keeps_its_vf_through_a_reset(self):
        vm = self.domain('vm1', '--profile', 'small').start()
        before = self.machine.vf_of(vm)
        self.assertEqual(vm.virsh('reset').returncode, 0)
        time.sleep(1)
        after = self.machine.vf_of(vm)
        self.assertEqual(vm.state(), 'running')
        self.assertEqual((after['name'], after['owner_generation'], after['attached']),
                         (before['name'], before['owner_generation'], True))

    def test_start_right_after_destroy_waits_for_the_scrub_of_its_vf(self):
        vm = self.domain('vm1', '--vf', 'rare-1')
        for _ in range(3):
            vm.start()
            self.assertEqual(vm.destroy().returncode, 0)

    def test_a_domain_with_two_vfs_has_both_or_none(self):
        two = self.domain('two', '--vf', 'rare-1', '--profile', 'small').start()
        owned = self.machine.owned()
        self.assertEqual(set(owned.values()), {two.owner})
        self.assertEqual(os.readlink(two.socket(0)), self.machine.vf('rare-1')['socket'])
        self.assertTrue(os.readlink(two.socket(1)).startswith('/run/vgpu/gpu0/vf'))
        self.assertEqual(two.virsh('qemu-monitor-command', '--hmp', 'info pci').stdout.count('1002:686c'), 2)
        greedy = self.domain('greedy', '--profile', 'small', '--vf', 'rare-1')
        self.assert_refused(greedy.virsh('start'), "'rare-1') belongs to 'libvirt:" + two.uuid)
        self.assertEqual(self.machine.owned(), owned)

    def test_a_qemu_that_dies_gives_its_vf_back(self):
        vm = self.domain('vm1', '--vf', 'small-1').start()
        generation = self.machine.vf_of(vm)['generation']
        os.kill(vm.qemu(), signal.SIGKILL)
        vm.wait_for_state('shut off')
        wait_for('the VF scrubbed', 20, lambda: self.machine.is_at_rest() and
                 self.machine.vf('small-1')['generation'] > generation, 0.05)

    def test_refusals_say_why_and_what_helps(self):
        self.domain('vm1', '--profile', 'rare').start()
        late = self.domain('vm2', '--profile', 'rare')
        self.assert_refused(late.virsh('start'), "vgpu: domain 'vm2': no VF can be assigned: VGPU-312: none of the 1 VFs of "
                            "profile 'rare' is free: 1 claimed.", "'vgpuctl list --vfs' shows their owners.")
        mistyped = self.domain('vm3', '--profile', 'smal')
        self.assert_refused(mistyped.virsh('start'), "there is no VF of profile 'smal'; existing profiles: rare, small")

    def test_a_domain_without_vfs_starts_without_vgpud_being_asked(self):
        plain = self.machine.domain('plain')
        plain.xml = lambda: plain.plain
        self.domains.append(plain.define())
        # a stopped vgpud does not answer: a hook that asks it would refuse the start
        os.kill(self.machine.vgpud.pid, signal.SIGSTOP)
        try:
            for operation in ('prepare', 'start', 'release', 'reconnect'):
                done = plain.hook(operation)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, '', ''), operation)
            plain.start()
        finally:
            os.kill(self.machine.vgpud.pid, signal.SIGCONT)
        self.assertEqual(self.machine.owned(), {})

    def test_save_and_migrate_are_refused_with_our_reason_and_the_domain_runs_on(self):
        vm = self.domain('vm1', '--profile', 'small').start()
        for command in (['save', self.machine.path('saved')], ['managedsave'], ['migrate', '--live', 'qemu:///system'],
                        ['snapshot-create-as', '--name', 'now', '--no-metadata', '--memspec', self.machine.path('memory')]):
            done = vm.virsh(*command)
            self.assert_refused(done, "'vgpu-vf-is-never-saved' does not support live migration")
            self.assertEqual(vm.state(), 'running')
        self.assertTrue(self.machine.vf_of(vm)['attached'])

    def test_qemu_alone_would_save_a_vf(self):
        """Without attach-xml's blocker QEMU saves a VF, although it does not have the device's
        state."""
        vm = self.domain('vm1', '--profile', 'small').start()
        ask = lambda **command: vm.virsh('qemu-monitor-command', json.dumps(command)).stdout
        saved = os.path.join('/var/lib/libvirt/qemu', 'memory')
        migrate = {'execute': 'migrate', 'arguments': {'uri': 'file:' + saved}}
        self.assertIn('vgpu-vf-is-never-saved', ask(**migrate))
        self.assertIn('return', ask(execute='blockdev-del', arguments={'node-name': 'vgpu-vf-is-never-saved'}))
        self.assertNotIn('error', ask(**migrate))

    def test_a_saved_or_migrated_domain_is_refused_by_the_hook(self):
        vm = self.domain('vm1', '--profile', 'small')
        for operation in ('restore', 'migrate'):
            done = vm.hook(operation)
            self.assert_refused(done, 'a saved or migrated domain does not contain the VF\'s state')
            command = re.search("'(virsh managedsave-remove [^']*)'", done.stderr)
            self.assertEqual(run(*command[1].split()).returncode, 0, done.stderr)


class Races(DomainTest):
    profiles = {'small': 8, 'rare': 1}

    def test_of_two_domains_that_want_one_vf_one_gets_it(self):
        a, b = (self.domain(name, '--profile', 'rare') for name in 'ab')
        for _ in range(3):
            done = at_once(lambda: a.virsh('start'), lambda: b.virsh('start'))
            self.assertEqual(sorted(one.returncode for one in done), [0, 1], [one.stderr for one in done])
            winner, loser = (a, b) if done[0].returncode == 0 else (b, a)
            self.assertEqual(self.machine.owned(), {'rare-1': winner.owner})
            self.assertEqual(loser.state(), 'shut off')
            winner.destroy()

    def test_eight_domains_start_at_once(self):
        domains = [self.domain(f'vm{n}', '--profile', 'small') for n in range(8)]
        for start in range(2):
            began = time.monotonic()
            done = at_once(*(lambda vm=vm: vm.virsh('start', seconds=300) for vm in domains))
            self.assertEqual([one.stderr for one in done if one.returncode], [])
            print(f'8 domains started in {time.monotonic() - began:.1f} s')
            self.assertEqual(set(self.machine.owned().values()), {vm.owner for vm in domains})
            # at the second start every VF is still being scrubbed when a domain requests it
            at_once(*(vm.destroy for vm in domains))

    def test_a_late_release_does_not_touch_the_next_owner(self):
        a, b = (self.domain(name, '--profile', 'rare') for name in 'ab')
        xml = a.xml()
        a.start()
        a.destroy()
        b.start()
        before = self.machine.vf('rare-1')
        self.assertEqual(a.hook('release', xml).returncode, 0)
        after = self.machine.vf('rare-1')
        self.assertEqual((after['owner'], after['owner_generation'], after['generation'], after['attached']),
                         (b.owner, before['owner_generation'], before['generation'], True))
        self.assertEqual(b.state(), 'running')


class Scrub(DomainTest):
    def test_vram_of_a_released_vf_is_zero_for_the_next_domain(self):
        """The device zeroes VRAM. The test reads it with its own client in place of QEMU, except
        the first MiB, which the PF core writes."""
        vram, step, pattern = 32 << 20, 1 << 20, b'secret of vm a!!'
        a, b = (self.domain(name, '--vf', 'rare-1') for name in 'ab')
        self.assertEqual(a.hook('prepare').returncode, 0)
        with VfUserClient(a.socket()) as client:
            for offset in range(step, vram, step):
                client.write(0, offset, pattern)
            self.assertEqual(client.read(0, vram - step, len(pattern)), pattern)
        self.assertEqual(a.hook('release').returncode, 0)
        done = b.hook('prepare')
        self.assertEqual(done.returncode, 0, done.stderr)
        with VfUserClient(b.socket()) as client:
            for offset in range(step, vram, step):
                self.assertEqual(client.read(0, offset, len(pattern)), bytes(len(pattern)), hex(offset))
        self.assertEqual(b.hook('release').returncode, 0)


class Deaths(DomainTest):
    def test_libvirtd_restarts_and_running_domains_keep_their_vfs(self):
        vm = self.domain('vm1', '--profile', 'small').start()
        before = self.machine.vf_of(vm)
        self.machine.restart_libvirtd()
        self.assertEqual(vm.state(), 'running')
        after = self.machine.vf_of(vm)
        self.assertEqual((after['name'], after['owner_generation'], after['attached']),
                         (before['name'], before['owner_generation'], True))

    def test_vgpud_restarts_and_running_domains_keep_their_vfs(self):
        vm = self.domain('vm1', '--profile', 'small').start()
        before = self.machine.vf_of(vm)
        self.kill_vgpud()
        self.machine.start_vgpud()
        after = self.machine.vf_of(vm)
        self.assertEqual((after['name'], after['owner_generation'], after['attached']),
                         (before['name'], before['owner_generation'], True))
        self.assertEqual(vm.destroy().returncode, 0)
        self.assertEqual(self.machine.owned(), {})

    def test_a_claim_that_was_lost_is_found_again_when_libvirtd_restarts(self):
        vm = self.domain('vm1', '--profile', 'small').start()
        vf = self.machine.vf_of(vm)
        self.machine.ctl('release', vf['target'], '--owner', vm.owner, '--generation', str(vf['owner_generation']))
        self.machine.restart_libvirtd()
        # libvirtd answers before its threads have called the hook for the domains that run
        wait_for('the claim', 30, lambda: self.machine.owned() == {vf['name']: vm.owner}, 0.1)
        self.assertTrue(self.machine.vf_of(vm)['attached'])

    def test_without_vgpud_domains_with_vfs_do_not_start_and_others_do(self):
        vm = self.domain('vm1', '--profile', 'small')
        plain = self.machine.domain('plain')
        plain.xml = lambda: plain.plain
        self.domains.append(plain.define())
        self.kill_vgpud()
        try:
            self.assert_refused(vm.virsh('start'), "vgpu: domain 'vm1': no VF can be assigned: vgpud does not answer on the bus",
                                "systemctl start vgpud")
            plain.start()
        finally:
            self.machine.start_vgpud()
        vm.start()

    def test_a_domain_that_ends_while_vgpud_is_away_can_start_again(self):
        vm = self.domain('vm1', '--vf', 'rare-1').start()
        self.kill_vgpud()
        self.assertEqual(vm.destroy().returncode, 0, 'a release never fails')
        self.machine.start_vgpud()
        self.assertEqual(self.machine.owned(), {'rare-1': vm.owner})
        vm.start()

    def test_a_vgpud_that_does_not_answer_costs_a_bounded_time_and_leaves_nothing(self):
        vm = self.domain('vm1', '--vf', 'rare-1')
        began = time.monotonic()
        os.kill(self.machine.vgpud.pid, signal.SIGSTOP)
        try:
            done = vm.virsh('start')
        finally:
            os.kill(self.machine.vgpud.pid, signal.SIGCONT)
        self.assert_refused(done, "vgpu: domain 'vm1': no VF can be assigned: vgpud does not answer")
        # prepare, and the release that follows every refusal
        self.assertLess(time.monotonic() - began, 25)
        wait_for('what was asked meanwhile is undone', 20, self.machine.is_at_rest, 0.1)
        vm.start()

    def test_a_hook_whose_package_is_gone_lets_everything_pass(self):
        with open(os.path.join(ROOT, 'daemon/libvirt/50-vgpu')) as hook:
            script = hook.read().replace('/usr/bin/vgpuctl', '/nowhere/vgpuctl')
        vm = self.domain('vm1', '--profile', 'small')
        done = subprocess.run(['/bin/sh', '-c', script, 'hook', 'vm1', 'prepare', 'begin', '-'], input=vm.xml(),
                              capture_output=True, text=True, timeout=20, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, '', ''))

    def kill_vgpud(self):
        self.machine.vgpud.kill()
        self.machine.vgpud.wait(timeout=10)


class Cost(DomainTest):
    def test_prepare_and_start_are_quick(self):
        """Prints how long the hook delays a start, without a verdict."""
        vm = self.domain('vm1', '--profile', 'small')
        xml = vm.xml().replace('</domain>', "<seclabel model='dac'><label>+0:+0</label></seclabel></domain>")
        times = []
        for _ in range(10):
            began = time.monotonic()
            for operation in ('prepare', 'start'):
                done = vm.hook(operation, xml)
                self.assertEqual(done.returncode, 0, done.stderr)
            times.append((time.monotonic() - began) * 1000)
            vm.hook('release', xml)
            wait_for('all VFs free', 30, self.machine.is_at_rest, 0.02)
        print(f'prepare + start: median {sorted(times)[5]:.0f} ms, worst {max(times):.0f} ms')


class Written(DomainTest):
    def test_attach_xml_edits_a_domain_of_libvirt(self):
        vm = self.machine.domain('vm1')
        vm.xml = lambda: vm.plain
        self.domains.append(vm.define())
        done = run(VGPUCTL, '--bus', self.machine.bus, 'attach-xml', 'vm1', '--profile', 'small', '--write')
        self.assertEqual((done.returncode, done.stdout), (0, 'vm1: defined; takes effect at its next start\n'), done.stderr)
        first = vm.virsh('dumpxml', '--inactive').stdout
        vm.start()
        self.assertTrue(self.machine.vf_of(vm)['attached'])
        vm.destroy()
        again = run(VGPUCTL, '--bus', self.machine.bus, 'attach-xml', 'vm1', '--profile', 'small', '--write')
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(vm.virsh('dumpxml', '--inactive').stdout, first)

    def test_attach_xml_names_the_command_that_shows_the_domains(self):
        done = run(VGPUCTL, '--bus', self.machine.bus, 'attach-xml', 'nobody', '--profile', 'small', '--write')
        self.assert_refused(done, "there is no domain 'nobody'; 'virsh list --all' lists all domains")
        self.assertEqual(run('virsh', 'list', '--all').returncode, 0)


if __name__ == '__main__':
    unittest.main()
