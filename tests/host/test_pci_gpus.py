# SPDX-License-Identifier: MIT
"""vgpud with a real SR-IOV PF and the kernel's own driver for it: what the PCI core and vfio do, no model."""
import json
import re
import time
import unittest

from pci_machine import DISK, GENERIC, TOTAL_VFS, XE
from pci_test import DEVICES, MIB, PciTest
from vgpud_in_vm import BUS, COMMAND, STATE_DIR
from host import wait_for

UUIDS = ('4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10', '5f8a2c11-7a0d-4a6c-9a55-2d0a6a3f9b21')
NAMES = ['web-1', 'web-2', 'web-3']


class Generic(PciTest):
    gpus = PciTest.gpus[:1]
    expected_warnings = ((r'blocked until released by user', 'somebody disables VFs of which one is open'),)

    def setUp(self):
        super().setUp()
        self.start_vgpud()

    def make(self, names=tuple(NAMES)):
        self.apply('net', names)
        return dict(self.vfs('name', 'address'))

    def test_the_gpu_shows_its_driver_and_how_many_vfs_it_may_have(self):
        gpu = self.ctl('show net')['gpu']
        self.assertEqual((gpu['driver'], gpu['address'], gpu['total_vfs']), ('igb', GENERIC, TOTAL_VFS))

    def test_vfs_get_vfio_pci_and_no_driver_of_the_host(self):
        addresses = self.make()
        self.assertEqual(self.count(GENERIC), 3)
        self.assertEqual(self.read_pf(GENERIC, 'sriov_drivers_autoprobe'), '0')
        self.assertEqual([self.driver(address) for address in addresses.values()], ['vfio-pci'] * 3)
        self.ctl('set web-2 --assignment-mode host')
        self.assertEqual(self.driver(addresses['web-2']), 'igbvf')
        refused = self.run_ctl('set web-2 --assignment-mode none').text
        self.assertIn("with option 'force'", ' '.join(refused.split()))
        self.assertEqual(self.driver(addresses['web-2']), 'igbvf')
        self.ctl('set web-2 --assignment-mode none --force')
        self.assertEqual(self.driver(addresses['web-2']), '')

    def test_another_count_is_refused_while_a_vf_is_open_and_nothing_changes(self):
        addresses = self.make()
        self.open(addresses['web-2'])
        self.put_document('net', [*NAMES, 'web-4'])
        plan = self.run_ctl('plan /tmp/vms.json')
        self.assertRegex(plan.text, r'enable +net +- +vfs 3 -> 4 +vf-restart')
        self.assertIn('a client has it open', ' '.join(plan.text.split()))
        for option in ('', '--force'):
            refused = self.run_ctl(f'apply /tmp/vms.json --yes {option}')
            self.assertNotEqual(refused.status, 0)
            self.assertIn('web-2', refused.text)
        self.assertEqual(self.count(GENERIC), 3)
        self.assertEqual([self.driver(address) for address in addresses.values()], ['vfio-pci'] * 3)
        self.close(addresses['web-2'])
        self.make([*NAMES, 'web-4'])
        self.assertEqual(self.count(GENERIC), 4)

    def test_killed_vgpud_takes_open_vfs_over(self):
        addresses = self.make()
        before = self.vfs('name', 'uuid', 'address', 'assignment_mode')
        self.open(addresses['web-2'])
        self.kill_vgpud()
        self.start_vgpud()
        self.assertEqual(self.vfs('name', 'uuid', 'address', 'assignment_mode'), before)
        self.assertEqual(self.vfs('name', 'attached'), [('web-1', False), ('web-2', True), ('web-3', False)])

    def test_a_number_that_somebody_else_blocks_blocks_nobody_else(self):
        """The kernel waits for the VF to be closed, and holds the lock of the PF meanwhile."""
        addresses = self.make()
        self.open(addresses['web-2'])
        usual = self.seconds('list --vfs')
        self.vm.check(f'echo 0 > {DEVICES}/{GENERIC}/sriov_numvfs 2> /tmp/blocked &')
        wait_for('the kernel to begin', 30, lambda: self.count(GENERIC) < 3, 0.2)
        wait_for('the event', 60, lambda: 'vf-count-changed' in self.run_ctl('events net').text, 0.5)
        self.assertLess(self.seconds('list --vfs'), 3 * usual + 1)
        self.assertTrue(any(self.vfs('condition')), 'a VF that is gone has a reason')
        self.close(addresses['web-2'])
        wait_for('the kernel to end', 60, lambda: self.count(GENERIC) == 0, 0.5)
        time.sleep(3)
        self.assertEqual(self.count(GENERIC), 0, 'vgpud does not compete')
        self.kill_vgpud()
        self.start_vgpud()
        wait_for('the VFs', 60, lambda: self.count(GENERIC) == 3 and self.vfs('condition') == [('',)] * 3, 0.5)

    def seconds(self, arguments):
        """Seconds that one run of vgpuctl takes."""
        begin = time.monotonic()
        self.ctl(arguments)
        return time.monotonic() - begin

    def hook(self, uuid, operation, address, name):
        """Calls the hook as libvirt does for a domain that has the function and requests the VF
        `name` (none: '')."""
        bus, slot, function = re.fullmatch(r'0000:(..):(..).(.)', address).groups()
        wish = f"<v:vf xmlns:v='urn:vgpu:libvirt:1' name='{name}'/>" if name else ''
        self.put('/tmp/domain.xml', f"<domain><name>vm</name><uuid>{uuid}</uuid><metadata>{wish}</metadata><devices>"
                 "<hostdev mode='subsystem' type='pci' managed='no'><source><address domain='0x0000' "
                 f"bus='0x{bus}' slot='0x{slot}' function='0x{function}'/></source></hostdev></devices></domain>")
        return self.vm.run(f'in_root vgpuctl --bus {BUS} hook -- vm {operation} begin - < /r/tmp/domain.xml 2>&1')

    def test_the_hook_refuses_the_function_of_another_and_resets_what_it_releases(self):
        address = self.make()['web-2']
        first, second = UUIDS
        answer = self.hook(first, 'prepare', address, 'web-2')
        self.assertEqual(answer.status, 0, answer.text)
        self.assertEqual(self.vf('web-2')['owner'], f'libvirt:{first}')
        refused = self.hook(second, 'prepare', address, '')
        self.assertEqual(refused.status, 1)
        self.assertIn(f'its <hostdev> {address} is net/vf2', refused.text)
        # a function that was reset has lost what was written to its configuration space
        command = f'in_root setpci -s {address} 3c.b'
        self.vm.check(f'{command}=5a')
        self.assertEqual(self.vm.check(command), '5a')
        self.assertEqual(self.hook(first, 'release', address, 'web-2').status, 0)
        wait_for('the release', 60, lambda: self.vf('web-2')['owner'] == '', 0.5)
        self.assertEqual(self.vm.check(command), '00')
        self.assertEqual(self.driver(address), 'vfio-pci')
        self.assertEqual(self.hook(second, 'prepare', address, '').status, 0)


class Disk(PciTest):
    """A device of another kind, whose driver has nothing for its VFs but the kernel's sriov_numvfs."""
    gpus = [{'id': 'disk', 'pci': {'address': DISK, 'manage': 'full'}}]

    @classmethod
    def load(cls):
        super().load()
        cls.vm.check('load nvme')

    def test_vfs_are_made_kept_while_open_and_made_again(self):
        self.start_vgpud()
        self.apply('disk', NAMES)
        addresses = dict(self.vfs('name', 'address'))
        self.assertEqual(self.ctl('show disk')['gpu']['driver'], 'nvme')
        self.assertEqual([self.driver(address) for address in addresses.values()], ['vfio-pci'] * 3)
        self.open(addresses['web-2'])
        self.put_document('disk', [*NAMES, 'web-4'])
        self.assertNotEqual(self.run_ctl('apply /tmp/vms.json --yes --force').status, 0)
        self.kill_vgpud()
        self.start_vgpud()
        self.assertEqual(self.vfs('name', 'attached'), [('web-1', False), ('web-2', True), ('web-3', False)])
        self.close(addresses['web-2'])
        self.apply('disk', [*NAMES, 'web-4'])
        self.assertEqual(self.count(DISK), 4)


class All(PciTest):
    """Three drivers, one vgpud: igb, xe and a software GPU with our own PF core."""
    gpus = [*PciTest.gpus, {'id': 'soft', 'softgpu': {'vfs': 4, 'vram_mb': 256, 'aperture_mb': 64}}]
    profiles = {'net': {'resources': {}, 'assignment_mode': 'vfio-pci'},
                'b50': {'resources': {'vram': '512MiB'}, 'assignment_mode': 'vfio-pci'},
                'soft': {'resources': {'vram': '64MiB'}, 'scheduler': {'weight': 200}}}

    def tearDown(self):
        self.vm.run('kill -9 $(pidof vgpud softgpu vgpu-pf)')
        super().tearDown()

    def put_vfs(self, profile_of):
        """Writes a configuration with VFs of all GPUs. `profile_of` gives the profile for a GPU."""
        vfs = {gpu: [{'profile': profile_of(gpu), 'name': f'{gpu}-{n}'} for n in range(1, count + 1)]
               for gpu, count in (('net', 2), ('b50', 3), ('soft', 2))}
        self.put('/tmp/vms.json', json.dumps({
            'profiles': self.profiles,
            'configs': {'vms': [{'gpu': gpu, 'vfs': listed} for gpu, listed in vfs.items()]}}))

    def make(self):
        """igb has no VRAM that a VF could get, so its VFs need a profile without VRAM."""
        self.start_vgpud()
        self.put_vfs(lambda gpu: gpu)
        answer = self.run_ctl('apply /tmp/vms.json --yes', 120)
        self.assertEqual(answer.status, 0, answer.text)

    def test_one_document_is_applied_held_and_exported_with_all_drivers(self):
        self.make()
        self.assertEqual((self.count(GENERIC), self.count(XE)), (2, 3))
        self.assertEqual(sorted(self.vfs('name', 'vram_bytes', 'weight')), sorted(
            [(f'net-{n}', None, None) for n in (1, 2)] + [(f'b50-{n}', 512 * MIB, 100) for n in (1, 2, 3)] +
            [(f'soft-{n}', 64 * MIB, 200) for n in (1, 2)]))
        self.assertEqual(self.run_ctl('assert /tmp/vms.json').status, 0)
        self.vm.check(f'in_root vgpuctl --bus {BUS} export > /r/tmp/exported.json')
        held = self.run_ctl('assert /tmp/exported.json')
        self.assertEqual(held.status, 0, held.text)

    def test_a_plan_tells_what_a_driver_cannot_do(self):
        self.start_vgpud()
        self.put_vfs(lambda gpu: 'soft')
        plan = self.run_ctl('plan /tmp/vms.json')
        self.assertRegex(' '.join(plan.text.split()), r'net.*VRAM')
        self.assertNotEqual(self.run_ctl('apply /tmp/vms.json --yes').status, 0)
        self.assertEqual((self.count(GENERIC), self.count(XE), self.vfs('name')), (0, 0, []))

    def quanta(self):
        return self.vm.check(f'cat {DEVICES}/{XE}/sriov_admin/*/profile/exec_quantum_ms')

    def facts(self):
        return self.vfs('name', 'uuid', 'address', 'vram_bytes', 'weight', 'assignment_mode', 'owner', 'condition')

    def test_after_a_reboot_all_is_as_before(self):
        self.make()
        self.ctl('claim net-1 --owner somebody')
        before, quanta = self.facts(), self.quanta()
        records = self.vm.check(f'tar -C /r{STATE_DIR} -cz . | base64 -w 0; echo')
        self.save_logs()
        self.vm.reboot()
        self.load()
        self.vm.check(f'mkdir -p /r{STATE_DIR} && echo {records} | base64 -d | tar -C /r{STATE_DIR} -xz')
        self.assertEqual((self.count(GENERIC), self.count(XE)), (0, 0))
        self.marked = 0
        self.start_vgpud()
        wait_for('the VFs', 120, lambda: (self.count(GENERIC), self.count(XE)) == (2, 3) and
                 not any(one[-1] for one in self.facts()), 1)
        self.assertEqual(self.facts(), before)
        self.assertEqual(self.quanta(), quanta)
        self.assertEqual([line for line in self.writes() if 'numvfs' in line], ['pf numvfs 3'])
        for pf in (GENERIC, XE):
            self.assertEqual(self.read_pf(pf, 'sriov_drivers_autoprobe'), '0')
        self.assertEqual([self.driver(one[2]) for one in before if one[0][:4] != 'soft'], ['vfio-pci'] * 5)


class Observed(PciTest):
    """VFs of another program, which vgpud only observes."""
    gpus = [{'id': one['id'], 'pci': {'address': one['pci']['address']}} for one in PciTest.gpus]

    def test_nothing_is_written_below_sys(self):
        for pf in (GENERIC, XE):
            self.write_pf(pf, 'sriov_drivers_autoprobe', 0)
            self.write_pf(pf, 'sriov_numvfs', 2)
        self.mark_log()
        self.put('/tmp/vgpud.json', json.dumps({'state_dir': STATE_DIR, 'run_dir': '/run/vgpu', 'gpus': self.gpus}))
        traced = COMMAND.replace('in_root vgpud', 'in_root strace -f -o /tmp/trace -e trace=open,openat,creat vgpud')
        self.vm.check(f'{traced} >> /r/tmp/vgpud.log 2>&1 &')
        self.wait_for_state('ok')
        for gpu in ('net', 'b50'):
            self.ctl(f'create --gpu {gpu} --name {gpu}-1')
            self.assertNotEqual(self.run_ctl(f'reset {gpu}-1').status, 0)
            self.ctl(f'claim {gpu}-1 --owner somebody')
            self.ctl(f'destroy {gpu}-1 --force')
        self.put_document('net', ['a', 'b', 'c'])
        refused = self.run_ctl('apply /tmp/vms.json --yes')
        self.assertIn('VGPU-318', refused.text)
        opened = self.vm.check("grep -c '/sys/' /r/tmp/trace")
        self.assertGreater(int(opened), 20)
        self.assertEqual(self.vm.run("grep '/sys/' /r/tmp/trace | grep -E 'O_WRONLY|O_RDWR|O_CREAT'").text, '')
        self.assertEqual(self.writes(), [])
        self.assertEqual((self.count(GENERIC), self.count(XE)), (2, 2))


if __name__ == '__main__':
    unittest.main()
