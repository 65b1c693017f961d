# SPDX-License-Identifier: MIT
"""What an administrator does: any number of functions, drivers for each of them, every file of sriov_admin.

After IGT's sriov_basic, auto_provisioning and xe_sriov_admin. VGPU_ORDER_SEED repeats an order.
"""
import base64
import os
import random
import unittest

import test_module
from card_test import CardTest

MIB = 1 << 20
VFS = CardTest.vfs
SEED = int(os.environ.get('VGPU_ORDER_SEED', random.randrange(1 << 32)))

# values that differ from each other and from the default, which comes last
READ_WRITE = {
    'exec_quantum_ms': ('7', '12', '0'),
    'preempt_timeout_us': ('50000', '70000', '0'),
    'sched_priority': ('high', 'low'),
    'vram_quota': (str(16 * MIB), '0'),
    'weight': ('300', '50', '100'),
    'min_pct': ('5', '0'),
    'max_pct': ('60', '100')}
BULK = {
    'exec_quantum_ms': ('5', '0'),
    'preempt_timeout_us': ('60000', '0'),
    'sched_priority': ('normal', 'low'),
    'vram_quota': (str(16 * MIB), '0'),
    'weight': ('200', '100')}
CHOICES = {'sched_priority': ('low', 'normal', 'high')}
# polls file argv[1], writes argv[2] to file argv[3], and expects a notification
NOTIFIED = '''
import select, sys
watched, value, written = sys.argv[1:]
with open(watched) as file:
    file.read()
    poller = select.poll()
    poller.register(file, select.POLLPRI | select.POLLERR)
    assert poller.poll(0) == [], 'told of before the write'
    with open(written, 'w') as other:
        other.write(value)
    assert poller.poll(10000) != [], 'not told'
    file.seek(0)
    print(file.read().strip())
'''


def shown(name, value):
    """The text that a file shows after `value` was written."""
    if name not in CHOICES:
        return value
    return ' '.join(f'[{choice}]' if choice == value else choice for choice in CHOICES[name])


class Numbers(test_module.ModuleTest):
    def test_every_number_of_functions_in_any_order(self):
        print(f'seed {SEED}', end=' ', flush=True)
        counts = list(range(VFS + 1))
        random.Random(SEED).shuffle(counts)
        for count in counts:
            with self.subTest(count=count, seed=SEED):
                self.write('sriov_numvfs', count)
                self.assertEqual(self.read('sriov_numvfs'), str(count))
                self.assertEqual(self.functions(), count)
                quotas = self.quotas()
                self.assertEqual(len(set(quotas[:count])), min(count, 1), quotas)
                self.assertEqual(quotas[count:], [0] * (VFS - count))
                self.assertNotIn(0, quotas[:count])
                self.write('sriov_numvfs', 0)
                self.assertEqual(self.quotas(), [0] * VFS)

    def test_each_function_is_bound_and_unbound_while_the_others_stay(self):
        driver = '/sys/bus/pci/drivers/pci-pf-stub'
        self.vm.check('load pf_stub')
        self.write('sriov_numvfs', VFS)
        slots = [os.path.basename(self.vm.check(f'readlink -f {self.path(f"virtfn{number}")}'))
                 for number in range(VFS)]
        order = list(range(VFS))
        random.Random(SEED).shuffle(order)
        bound = set()
        self.assertEqual(self.bound(slots), bound)
        for number in order:
            self.vm.check(f'echo pci-pf-stub > {self.path(f"virtfn{number}/driver_override")} && '
                          f'echo {slots[number]} > {driver}/bind')
            bound.add(number)
            self.assertEqual(self.bound(slots), bound)
        for number in order:
            self.vm.check(f'echo {slots[number]} > {driver}/unbind')
            self.assertEqual(self.bound(slots), bound - {number})
            self.vm.check(f'echo {slots[number]} > {driver}/bind')
            self.assertEqual(self.bound(slots), bound)
        # a driver that has not enabled its function does not hold it
        self.write('sriov_numvfs', 0)
        self.assertEqual(self.functions(), 0)

    def bound(self, slots):
        """Numbers of the functions that pci-pf-stub has; fails if another driver has one."""
        links = self.vm.check('for slot in ' + ' '.join(slots) + '; do '
                              'readlink /sys/bus/pci/devices/$slot/driver || echo -; done').split()
        self.assertEqual(len(links), len(slots))
        self.assertLessEqual({os.path.basename(link) for link in links}, {'-', 'pci-pf-stub'})
        return {number for number, link in enumerate(links) if link != '-'}


class Attributes(test_module.ModuleTest):
    """Tests every file of sriov_admin; a new file that is in no table here fails."""

    def modes(self, directory):
        """{name: mode} of the files in a directory of sriov_admin."""
        text = self.vm.check(f'cd {self.path("sriov_admin/" + directory)} && stat -c "%n %a" *')
        return dict(line.split() for line in text.split('\n'))

    def profile(self, vf, name):
        return f'sriov_admin/vf{vf}/profile/{name}'

    def values(self, name, written=None, value=None):
        """The values of this file of all VFs, after a write of `value` to the file `written`, if
        given."""
        files = ' '.join(self.path(self.profile(vf, name)) for vf in range(1, VFS + 1))
        act = f'echo {value} > {self.path(written)} && ' if written else ''
        return self.vm.check(f'{act}cat {files}', 240).split('\n')

    def test_what_is_written_to_any_file_of_any_vf_is_read_back_there_alone(self):
        for vf in range(1, VFS + 1):
            self.assertEqual(self.modes(f'vf{vf}/profile'), {name: '644' for name in READ_WRITE})
        for name, values in READ_WRITE.items():
            before = self.values(name)
            self.assertEqual(before, [shown(name, values[-1])] * VFS, name)
            for vf in range(1, VFS + 1):
                for value in values:
                    expected = [*before]
                    expected[vf - 1] = shown(name, value)
                    self.assertEqual(self.values(name, self.profile(vf, name), value), expected,
                                     f'{name} of VF{vf} = {value}')

    def test_what_is_written_for_all_is_read_back_at_each(self):
        self.assertEqual(self.modes('.bulk_profile'), {name: '200' for name in BULK})
        for name, values in BULK.items():
            for value in values:
                self.assertEqual(self.values(name, f'sriov_admin/.bulk_profile/{name}', value),
                                 [shown(name, value)] * VFS, f'{name} = {value}')

    def test_other_files_of_a_vf(self):
        self.assertEqual({name: mode for name, mode in self.modes('vf1').items() if name != 'profile'},
                         {'stop': '200', 'state': '444', 'owner': '444', 'assignment_mode': '644'})
        for value in ('host', 'none'):
            self.write('sriov_admin/vf1/assignment_mode', value)
            self.assertIn(f'[{value}]', self.read('sriov_admin/vf1/assignment_mode'))

    def test_the_pfs_own_files_are_read_only(self):
        modes = self.modes('pf/profile')
        self.assertEqual(set(modes.values()), {'444'})
        self.assertEqual(set(modes), {'exec_quantum_ms', 'preempt_timeout_us', 'sched_priority'})

    def notified(self, watched, value, written):
        return self.vm.check(f'in_root python3 -B /tmp/notified.py {self.path(watched)} {value} {self.path(written)}')

    def test_who_polls_a_file_is_notified_of_a_change(self):
        packed = base64.b64encode(NOTIFIED.encode()).decode()
        self.vm.check(f'echo {packed} | base64 -d > /r/tmp/notified.py')
        for name, values in READ_WRITE.items():
            for value in values:
                file = self.profile(1, name)
                self.assertEqual(self.notified(file, value, file), shown(name, value), name)
        for name, values in BULK.items():
            for value in values:
                self.assertEqual(self.notified(self.profile(VFS, name), value, f'sriov_admin/.bulk_profile/{name}'),
                                 shown(name, value), name)
        for value in ('host', 'none'):
            self.assertIn(f'[{value}]', self.notified('sriov_admin/vf1/assignment_mode', value, 'sriov_admin/vf1/assignment_mode'))


if __name__ == '__main__':
    unittest.main()
