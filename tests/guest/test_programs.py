# SPDX-License-Identifier: MIT
"""Programs of the standard compute stack in one guest with the stock driver; every result is verified."""
import re
import unittest

from suite import GuestTest, provokes


class Programs(GuestTest):
    def test_rocminfo_lists_the_vf_as_a_gfx900_agent(self):
        answer = self.vms['a'].run('in_root rocminfo', timeout=120)
        self.assertEqual(answer.status, 0, answer.text)
        self.assertRegex(answer.text, r'Name:\s+gfx900\b')
        self.assertRegex(answer.text, r'Compute Unit:\s+8\b')
        self.assertRegex(answer.text, r'Chip ID:\s+26732\(0x686c\)')

    def test_clinfo_lists_the_vf(self):
        answer = self.vms['a'].run('in_root clinfo', timeout=180)
        self.assertEqual(answer.status, 0, answer.text)
        self.assertRegex(answer.text, r'Device Name\s+gfx900')

    def test_array_increment(self):
        self.program('array_increment')

    def test_vector_add(self):
        self.program('vector_add')

    def test_matmul_through_lds(self):
        self.program('matmul')

    def test_reduction_scan_and_ballot(self):
        self.program('reduction')

    def test_atomics(self):
        self.program('atomics')

    def test_sha256(self):
        self.program('sha256')

    def test_memset_and_copies(self):
        self.program('memset')

    def test_copies_of_many_megabytes(self):
        self.program('large_copy')

    def test_streams_and_events(self):
        self.program('streams')

    def test_scratch_grows_on_demand(self):
        self.program('scratch')

    def test_graph(self):
        self.program('graph')

    def test_lanes_exchange_halves_clocks_and_all_of_the_lds(self):
        self.program('lane_ops')

    def test_groups_of_a_cooperative_launch_wait_for_each_other(self):
        self.program('cooperative')

    def test_kernels_take_and_free_memory(self):
        self.program('device_heap')

    def test_memory_of_cpu_and_gpu_together(self):
        self.program('managed')

    def test_streams_wait_for_values_and_allocate_in_order(self):
        self.program('stream_values')

    def test_rectangles_and_boxes_are_copied_and_filled(self):
        self.program('pitched')

    def test_an_assertion_that_fails_ends_the_program_with_words(self):
        answer = self.vms['a'].run('in_root /tests/kernel_assert', timeout=120)
        self.assertEqual(answer.status, 128 + 6, answer.text)
        self.assertIn('as far as here', answer.text)
        self.assertEqual(answer.text.count('a lane beyond the limit'), 4)
        self.assertNotIn('synchronize:', answer.text)
        self.program('array_increment')

    def test_opencl(self):
        self.program('opencl')

    def test_kernels_start_kernels(self):
        self.program('enqueue')

    def test_printf_from_a_kernel_prints_each_line_once(self):
        lines = self.program('printf').splitlines()
        want = {f'item {item} of group {group} says {40 + item * 0.125:.3f} hello'
                for group in range(2) for item in range(70)}
        self.assertEqual(len(lines), 141)
        self.assertEqual(set(lines) - {'ok printf'}, want)

    def test_two_processes_at_once(self):
        answer = self.vms['a'].run(
            'in_root /tests/long_kernel 5000 2 >/tmp/one & in_root /tests/matmul >/tmp/two & wait; '
            'cat /tmp/one /tmp/two', timeout=240)
        self.assertEqual(answer.text.split('\n')[:2], ['ok long_kernel', 'ok matmul'])

    def test_overcommit_is_a_clean_out_of_memory(self):
        pieces = int(re.search(r'(\d+) pieces of 32 MiB', self.program('overcommit')).group(1))
        self.assertLess(pieces, 16)  # of a VF with 512 MiB
        self.assertGreater(pieces, 8)

    @provokes('faults')
    def test_a_wild_pointer_is_reported_and_harms_nobody_else(self):
        vm = self.vms['a']
        answer = vm.run('in_root /tests/long_kernel 20000 2 >/tmp/neighbour & sleep 6; '
                        'in_root /tests/wild_pointer; wait; cat /tmp/neighbour', timeout=240)
        self.assertIn('Memory access fault by GPU node-1', answer.text)
        self.assertIn('0x7f1234560000', answer.text)
        self.assertNotIn('synchronize:', answer.text)
        self.assertIn('ok long_kernel', answer.text)
        self.assertRegex(vm.dmesg(), r'\[gfxhub0\] .*page fault')
        self.program('array_increment')

    def test_more_queues_than_hardware_slots(self):
        self.program('many_streams', 40)

    def test_more_processes_than_vmids(self):
        command = ' & '.join(f'in_root /tests/array_increment >/tmp/p{i}' for i in range(10))
        answer = self.vms['a'].run(f'{command} & wait; cat /tmp/p?', timeout=400)
        self.assertEqual(answer.text.split(), ['ok', 'array_increment'] * 10)

    def test_queue_preemption_keeps_waves(self):
        self.program('queue_churn', 100)

    def test_evictions_keep_the_kernel_of_a_pm4_queue(self):
        self.program('pm4_queue')


if __name__ == '__main__':
    unittest.main(verbosity=2)
