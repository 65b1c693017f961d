# SPDX-License-Identifier: MIT
"""vgpud on the kernel platform: the same daemon and the same vgpuctl, the PF core in vgpu_pf.ko."""
import json
import unittest

import test_module
from machine import DOMAINS, prepare_guest
from work_test import WINDOW_SECONDS, Work
from host import wait_for
from suite import LOAD, LOAD_SECONDS, PROGRAM_SECONDS
from vgpud_in_vm import BUS, VgpudInVm
from vm import Vm

MIB = 1 << 20

class VgpudTest(VgpudInVm, test_module.ModuleTest):
    """vgpud in the machine, on a bus of its own."""

    @classmethod
    def load(cls):
        super().load()
        cls.addClassCleanup(cls.save_logs)
        cls.start_bus()
        cls.start_vgpud()

    def destroy(self, name):
        number = self.vf(name)['index']
        self.ctl(f'destroy {name}')
        wait_for(f'{name} to be scrubbed', 30,
                 lambda: self.read(f'sriov_admin/vf{number}/state') == 'ABSENT', 0.2)


class Vgpud(VgpudTest):
    def test_the_gpu_in_the_kernel_is_found_by_itself(self):
        gpu = self.ctl('list --gpus')['gpus'][0]
        self.assertEqual(gpu['id'], 'gpu0')
        self.assertIn('/dev/vgpu-pf0', json.dumps(self.ctl('show gpu0')))

    def test_vfs_are_created_changed_and_destroyed(self):
        self.ctl('create --name a --vram 32M --weight 300')
        self.ctl('create --name b --vram 16M')
        number = self.vf('a')['index']
        self.assertEqual(self.read(f'sriov_admin/vf{number}/profile/vram_quota'), str(32 * MIB))
        self.ctl('set a --weight 500')
        self.assertEqual(self.vf('a')['weight'], 500)
        refused = self.vm.run(f'in_root vgpuctl --bus {BUS} create --name c --vram 64G')
        self.assertNotEqual(refused.status, 0)
        self.assertIn('VRAM', refused.text)
        self.destroy('a')
        self.destroy('b')

    def test_killed_it_finds_its_vfs_again_and_the_module_keeps_them(self):
        self.ctl('create --name kept --vram 16M --weight 700')
        before = self.vf('kept')
        number = before['index']
        self.kill_vgpud()
        self.assertEqual(self.read(f'sriov_admin/vf{number}/state'), 'PROVISIONED')
        self.start_vgpud()
        after = self.vf('kept')
        for key in ('index', 'uuid', 'weight', 'vram_bytes'):
            self.assertEqual(after[key], before[key], key)
        self.destroy('kept')

    def test_weights_written_in_sysfs_reach_it(self):
        self.ctl('create --name p --vram 16M')
        number = self.vf('p')['index']
        self.write(f'sriov_admin/vf{number}/profile/weight', 250)
        wait_for('the weight', 20, lambda: self.vf('p')['weight'] == 250, 0.2)
        self.refused(f'sriov_admin/vf{number}/profile/vram_quota', 0, 'busy')
        self.assertEqual(self.vf('p')['weight'], 250)
        self.destroy('p')

    def test_a_assignment_mode_is_refused_set_kept_and_taken_back(self):
        refused = self.vm.run(f'in_root vgpuctl --bus {BUS} create --name h --vram 16M --assignment-mode vfio-pci')
        self.assertNotEqual(refused.status, 0)
        self.assertIn('VGPU-313', refused.text)
        self.assertIn('IOMMU', refused.text)
        self.assertEqual(self.ctl('list --vfs')['vfs'], [])
        self.ctl('create --name h --vram 16M --assignment-mode host')
        number = self.vf('h')['index']
        assignment_mode = f'sriov_admin/vf{number}/assignment_mode'
        self.assertIn('[host]', self.read(assignment_mode))
        self.assertEqual(self.vf('h')['assignment_mode'], 'host')
        self.assertIn('VGPU-313', self.vm.run(f'in_root vgpuctl --bus {BUS} set h --assignment-mode vfio-user').text)
        self.write(assignment_mode, 'none')
        wait_for('vgpud to set it back', 20, lambda: '[host]' in self.read(assignment_mode), 0.2)
        self.kill_vgpud()
        self.write(assignment_mode, 'none')
        self.start_vgpud()
        self.assertIn('[host]', self.read(assignment_mode))
        self.destroy('h')
        wait_for('the next VF to begin as by default', 20, lambda: '[none]' in self.read(assignment_mode), 0.2)

    def test_the_driver_goes_and_comes_back_under_it(self):
        driver = '/sys/bus/pci/drivers/vgpu_pf'
        name = f'{DOMAINS["bridge"]}:01:00.0'
        self.ctl('create --name s --vram 16M')
        self.vm.check(f'echo {name} > {driver}/unbind', 120)
        wait_for('vgpud to say so', 30, lambda: self.states() != {'ok'}, 0.2)
        self.vm.check(f'echo {name} > {driver}/bind', 120)
        self.wait_for_state('ok')
        self.assertEqual(self.vf('s')['vram_bytes'], 16 * MIB)
        self.destroy('s')


class AssignmentMode(VgpudTest):
    """VFs for vfio-pci, behind the IOMMU of the root port."""

    @classmethod
    def load(cls):
        cls.vm.check('insmod /built/vgpu_test_iommu.ko && load vfio && '
                     'echo 1 > /sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts')
        super().load()

    def test_vfio_gets_the_function_of_a_vf_that_is_made_for_it(self):
        self.ctl('create --name v --vram 16M --assignment-mode vfio-pci')
        number = self.vf('v')['index']
        self.write('sriov_numvfs', number)
        function = self.vm.check(f'readlink -f {self.path(f"virtfn{number - 1}")}')
        self.assertIn('vfio-pci', self.vm.check(f'readlink {function}/driver'))
        self.ctl('set v --assignment-mode none')
        self.assertEqual(self.vm.run(f'test -e {function}/driver').status, 1)
        self.assertEqual(self.vf('v')['assignment_mode'], 'none')
        self.destroy('v')
        self.write('sriov_numvfs', 0)


class Away(Work, VgpudTest):
    """vgpud is away while guests compute."""
    vfs = 4
    RATIO = 3

    def test_killed_the_table_keeps_cycling_until_a_new_one_adopts(self):
        self.start_shell()
        self.ctl(f'create --name heavy --vram 32M --weight {100 * self.RATIO}')
        self.ctl('create --name light --vram 32M --weight 100')
        heavy, light = self.vf('heavy'), self.vf('light')
        guests = [self.guest(vf['index'], 'endless') for vf in (heavy, light)]
        self.assert_ratio(heavy, light)
        self.kill_vgpud()
        wait_for('the lease to be free', 20, lambda: self.table_and_lease()[1] == 0, 0.2)
        table = self.table_and_lease()
        for _ in range(2):
            self.assert_ratio(heavy, light)
        self.assertEqual(self.table_and_lease(), table)
        self.start_vgpud()
        for before in (heavy, light):
            after = self.vf(before['name'])
            for key in ('index', 'uuid', 'weight', 'vram_bytes'):
                self.assertEqual(after[key], before[key], key)
        self.assert_ratio(heavy, light)
        for guest in guests:
            self.assert_runs(guest)
            guest.kill()
        self.destroy('heavy')
        self.destroy('light')

    def table_and_lease(self):
        """[generation of the table in force, 1 if a client has the lease]"""
        return [int(word) for word in self.python('print(pf.info().table_generation, pf.info().lease_held)').split()]

    def assert_ratio(self, heavy, light):
        got = self.service(WINDOW_SECONDS)
        self.assertGreater(got[light['index']], 0, got)
        self.assertAlmostEqual(got[heavy['index']] / got[light['index']], self.RATIO, delta=0.3, msg=got)


class StockGuest(VgpudTest):
    """A guest with the stock driver on a VF's own socket; its PF is the module in the machine."""
    card_options = {'vram_mb': 1024, 'aperture_mb': 512}

    @classmethod
    def setUpClass(cls):
        prepare_guest()
        super().setUpClass()

    def test_a_guest_computes_and_survives_vgpud_and_a_reset(self):
        self.ctl('create --name g --vram 512M')
        socket = self.card.path(f'vf{self.vf("g")["index"]}.sock')
        with Vm([socket], self.directory, name='guest') as guest:
            loaded = guest.run(LOAD, LOAD_SECONDS)
            self.assertEqual(loaded.status, 0, loaded.text)
            self.assertIn(self.vf('g')['state'], ('ready', 'running'))
            self.compute(guest)
            self.kill_vgpud()
            self.compute(guest)
            self.start_vgpud()
            self.ctl('reset g')
            wait_for('the guest to have recovered', 120,
                     lambda: 'GPU reset(1) succeeded' in guest.dmesg(), 0.5)
            self.compute(guest)
        self.destroy('g')

    def compute(self, guest):
        answer = guest.run('in_root /tests/vector_add', PROGRAM_SECONDS)
        self.assertEqual(answer.status, 0, answer.text)
        self.assertIn('ok vector_add', answer.text)


if __name__ == '__main__':
    unittest.main()
