# SPDX-License-Identifier: MIT
"""VRAM, doorbells and registers of a VF belong to nobody else, also after resizes and resets.

After IGT's exclusive-ranges, selfconfig, xe_sriov_vram and xe_sriov_flr, with guests
(work_test.py).
"""
import json
import time
import unittest

from work_test import MIB, WorkTest

PAGE = 4096
PF_BYTES = 256 << 10  # at the start of a VF's VRAM, for VBIOS and PF2VF
# registers that a guest may write at any time and that mean nothing to a driver that has booted
PLAIN_REGISTERS = ('VCE_VCE_MMSCH_VF_CTX_SIZE', 'GC_SCRATCH_REG3')
MAILBOX_REGISTER = 'NBIO_MAILBOX_MSGBUF_TRN_DW3'
# registers that a driver that has booted has written
DOORBELL_REGISTERS = ('SDMA0_SDMA0_GFX_DOORBELL', 'GC_CP_MEC_DOORBELL_RANGE_UPPER')
DWORDS_OF_PAGE = PAGE // 4
LATE_MS = 4000  # the PF gives a step 500 ms, times the module's time_scale


class IsolationTest(WorkTest):
    def quota(self, vf, mib):
        """Changes the quota of a VF that nobody uses; waits for a VF whose client has just gone."""
        deadline = time.monotonic() + 60
        command = f'echo {mib * MIB} > {self.path(f"sriov_admin/vf{vf}/profile/vram_quota")}'
        while self.vm.run(command, 240).status != 0:
            self.assertLess(time.monotonic(), deadline, f'VF{vf} does not get {mib} MiB')
            time.sleep(0.2)

    def fill(self, guest, seed, where='all'):
        self.assertTrue(guest.ask(f'fill {seed} {where}').startswith('filled'))

    def assert_kept(self, guest, seed, where='all'):
        answer = guest.ask(f'check {seed} {where}').split()
        self.assertEqual((answer[0], answer[1]), ('kept', answer[3]), f'seed {seed}: {answer}')
        return int(answer[1])

    def read(self, guest, *registers):
        values = {}
        for register in registers:
            word, value = guest.ask(f'read {register}').split()
            self.assertEqual(word, 'read')
            values[register] = int(value)
        return values


class Ranges(IsolationTest):
    def tearDown(self):
        self.doCleanups()  # guests first
        for vf in range(1, self.vfs + 1):
            self.quota(vf, self.QUOTA_MIB)

    def test_every_page_of_vram_is_one_vfs(self):
        # holes of all sizes, then larger VFs that have to use them
        for vf, mib in ((1, 16), (3, 48), (2, 0), (4, 0), (2, 64), (1, 0), (4, 48), (1, 64)):
            self.quota(vf, mib)
        clients = {vf: self.attach(vf) for vf in range(1, self.vfs + 1)}
        for vf, client in clients.items():
            self.fill(client, vf)
        quotas = {1: 64, 2: 64, 3: 48, 4: 48}
        for vf, client in clients.items():
            pages = self.assert_kept(client, vf)
            self.assertEqual(pages, (quotas[vf] * MIB - PF_BYTES) // PAGE, f'VF{vf}')

    def test_a_guest_finds_its_quota_also_after_resizes(self):
        for mib in (32, 48, 16):
            self.quota(2, mib)
            guest = self.attach(2)
            self.assertEqual(guest.ask('boot'), f'booted {mib}')
            self.assertEqual(self.vm.check(f'cat {self.path("sriov_admin/vf2/profile/vram_quota")}'), str(mib * MIB))
            self.assertEqual(self.counters()[2]['vram_bytes'], mib * MIB)
            self.assertEqual(self.read(guest, 'NBIO_RCC_CONFIG_MEMSIZE')['NBIO_RCC_CONFIG_MEMSIZE'], mib)
            guest.kill()

    def test_beyond_the_quota_nothing_is_read_or_written_also_after_resizes(self):
        neighbours = {vf: self.attach(vf) for vf in (1, 3, 4)}
        for vf, neighbour in neighbours.items():
            self.fill(neighbour, vf)
        for mib in (32, 48, 16):
            self.quota(2, mib)
            guest = self.attach(2)
            self.fill(guest, 2)
            self.assertEqual(self.assert_kept(guest, 2), (mib * MIB - PF_BYTES) // PAGE)
            guest.boot()
            before = self.counters()
            self.assertEqual(guest.ask('attack'), 'stopped 3 of 3', f'{mib} MiB')
            self.assertEqual(guest.ask('overwrite'), 'stopped 3 of 3', f'{mib} MiB')
            after = self.counters()
            self.assertGreaterEqual(after[2]['faults'] - before[2]['faults'], 4)
            for vf, neighbour in neighbours.items():
                self.assertEqual(after[vf]['faults'], before[vf]['faults'])
                self.assert_kept(neighbour, vf)
            guest.kill()

    def test_doorbells_are_one_vfs(self):
        self.vm.check(f'echo {self.vfs} > {self.path("sriov_numvfs")}', 120)
        self.addCleanup(self.vm.check, f'echo 0 > {self.path("sriov_numvfs")}', 120)
        ranges = []
        for number in range(self.vfs):
            words = self.vm.check(f'cat {self.path(f"virtfn{number}/resource")}').split('\n')[2].split()
            ranges.append((int(words[0], 16), int(words[1], 16)))
        ranges.sort()
        for (first, last), (following, _) in zip(ranges, ranges[1:]):
            self.assertLess(first, last)
            self.assertLess(last, following)

    def test_doorbells_beyond_the_vfs_pages_reach_nobody(self):
        pages = 64  # a driver uses fewer
        self.quota(2, 0)
        self.python(f'pf.provision(2, 32 << 20, doorbell_pages={pages})')
        self.addCleanup(self.python, 'pf.release(2)')
        self.assertEqual(self.counters()[2]['doorbell_pages'], pages)
        neighbour = self.guest(1)
        guest = self.guest(2)
        before = self.statistics()
        guest.ask(f'ring {pages * DWORDS_OF_PAGE}')
        guest.ask(f'ring {200 * DWORDS_OF_PAGE}')
        beyond = self.statistics()
        self.assertEqual(beyond[2]['doorbells_dropped'] - before[2]['doorbells_dropped'], 2)
        self.assertEqual(beyond[2]['doorbells'], before[2]['doorbells'])
        guest.ask(f'ring {pages * DWORDS_OF_PAGE - 2}')
        within = self.statistics()
        self.assertEqual(within[2]['doorbells'] - beyond[2]['doorbells'], 1)
        for counter in ('doorbells', 'doorbells_dropped', 'doorbells_latched'):
            self.assertEqual(within[1][counter], before[1][counter], counter)
        neighbour.kill()
        guest.kill()


class FunctionResets(IsolationTest):
    """A reset clears what belongs to the VF, and nothing else. VF1 and VF4 are the neighbours."""
    expected_warnings = WorkTest.expected_warnings + (
        (r'VF\d is in use', 'functions are asked back until a guest that was killed has gone'),)

    def setUp(self):
        super().setUp()
        self.neighbours = {vf: self.guest(vf) for vf in (1, 4)}
        for vf, neighbour in self.neighbours.items():
            self.mark(neighbour, vf)
        self.marked = {vf: self.read(neighbour, *PLAIN_REGISTERS, MAILBOX_REGISTER, *DOORBELL_REGISTERS)
                       for vf, neighbour in self.neighbours.items()}
        self.neighbours[1].order('compute')

    def mark(self, guest, vf):
        """Writes marks of this VF to VRAM and registers."""
        self.fill(guest, vf, 'rest')
        for register in (*PLAIN_REGISTERS, MAILBOX_REGISTER):
            self.assertEqual(guest.ask(f'write {register} {0x1000 + vf}'), 'written')

    def assert_neighbours_are_untouched(self):
        self.assert_right(self.neighbours[1])
        counters = self.counters()
        for vf, neighbour in self.neighbours.items():
            self.assert_kept(neighbour, vf, 'rest')
            self.assertEqual(self.read(neighbour, *self.marked[vf]), self.marked[vf], f'VF{vf}')
            self.assertEqual(counters[vf]['flrs'], self.flrs[vf], f'VF{vf}')
        self.neighbours[1].order('compute')

    def victim(self, work=None):
        """A guest on VF2, marked; from here on only VF2 and VF3 may be reset."""
        self.flrs = {vf: counters['flrs'] for vf, counters in self.counters().items()}
        guest = self.guest(2)
        self.mark(guest, 2)
        if work:
            guest.endless()
            self.assert_runs(guest)
        return guest

    def test_the_pfs_flr_clears_registers_and_doorbells_of_that_vf(self):
        guest = self.victim('endless')
        marked = self.read(guest, *PLAIN_REGISTERS, *DOORBELL_REGISTERS)
        self.assertEqual({marked[name] for name in PLAIN_REGISTERS}, {0x1002})
        self.assertNotIn(0, marked.values())
        self.python('pf.control(2, uapi.PAUSE)')
        latched = self.counters()[2]
        guest.ask('ring 1024')
        after_ring = self.counters()[2]
        self.assertEqual(after_ring['doorbells_latched'] - latched['doorbells_latched'], 1)
        self.assertEqual(after_ring['has_work'], 1)
        self.reset(2)
        self.assertEqual(set(self.read(guest, *PLAIN_REGISTERS, *DOORBELL_REGISTERS).values()), {0})
        self.assertEqual(self.counters()[2]['has_work'], 0)
        # PF and guest talk across this reset, and VRAM is the VF's until it is released
        self.assertEqual(self.read(guest, MAILBOX_REGISTER)[MAILBOX_REGISTER], 0x1002)
        self.assert_kept(guest, 2, 'rest')
        # the doorbell gate is shut until a driver boots
        dropped = self.statistics()[2]['doorbells_dropped']
        guest.ask('ring 1024')
        self.assertEqual(self.statistics()[2]['doorbells_dropped'] - dropped, 1)
        self.assert_works_again(guest)
        self.assert_neighbours_are_untouched()

    def test_a_function_level_reset_under_work_clears_the_mailbox_too(self):
        guest = self.victim('endless')
        before = self.counters()
        self.assertEqual(guest.ask('flr'), 'reset')
        self.await_reset(before, 2)
        self.assertEqual(self.counters()[2]['guest_flrs'] - before[2]['guest_flrs'], 1)
        self.assertEqual(set(self.read(guest, *PLAIN_REGISTERS, MAILBOX_REGISTER, *DOORBELL_REGISTERS).values()), {0})
        self.assert_kept(guest, 2, 'rest')
        self.assert_works_again(guest)
        self.assert_neighbours_are_untouched()

    def test_reset_in_sysfs_takes_that_function_alone(self):
        self.vm.check(f'echo {self.vfs} > {self.path("sriov_numvfs")}', 120)
        self.addCleanup(self.disable)
        guest = self.victim('endless')
        # VF3 is this machine's own: bus master, so that softgpu gives it to the host view
        command = 'od -An -tx1 -j4 -N1 '
        config = self.path('virtfn2/config')
        self.vm.check(f"printf '\\004' | dd of={config} bs=1 seek=4 conv=notrunc 2>/dev/null")
        self.assertEqual(self.vm.check(command + config), '04')
        for _ in range(3):
            before = self.counters()
            self.vm.check(f'echo 1 > {self.path("virtfn2/reset")}', 120)
            self.await_reset(before, 3)
        # no longer bus master, so no longer in use
        self.vm.check(f"printf '\\000' | dd of={config} bs=1 seek=4 conv=notrunc 2>/dev/null")
        # VF2 belongs to a client of softgpu, so this machine's reset does not reach it
        self.vm.run(f'echo 1 > {self.path("virtfn1/reset")}', 120)
        self.assert_runs(guest)
        self.assertEqual(self.counters()[2]['flrs'], self.flrs[2])
        self.assert_neighbours_are_untouched()

    def disable(self):
        for guest in self.neighbours.values():
            guest.kill()
        # each client that has gone takes its state out of the engine first
        deadline = time.monotonic() + 180
        while self.vm.run(f'sleep 0.5; echo 0 > {self.path("sriov_numvfs")}', 120).status != 0:
            self.assertLess(time.monotonic(), deadline, f'a VF is still in use: {self.counters()}')

    def test_two_resets_of_a_vf_at_once_are_one_or_two_and_not_a_hang(self):
        guest = self.victim('endless')
        before = self.counters()
        told = self.python('''
def reset(number):
    try:
        uapi.Pf().control(2, uapi.RESET)
        return 0
    except uapi.Refused as error:
        return error.errno
with futures.ThreadPoolExecutor() as pool:
    print(json.dumps(list(pool.map(reset, range(2)))))''')
        self.assertIn(0, json.loads(told))
        self.await_reset(before, 2)
        self.assertIn(self.counters()[2]['flrs'] - before[2]['flrs'], (1, 2))
        self.assertEqual(self.counters()[2]['hangs'], before[2]['hangs'])
        self.assert_works_again(guest)
        self.assert_neighbours_are_untouched()

    # ---- in the middle of a switch ----

    def flr_while_a_step_is_late(self, point):
        """Makes one step of VF2's switch late, and resets VF2 meanwhile.

        The event ring shows that no VF ran at the reset, so the switch was in flight.
        """
        guest = self.victim('endless')
        before = self.counters()
        self.python('uapi.ring = uapi.Ring(pf); time.sleep(1)')
        self.inject({'inject': {'vf': 2, 'point': point, 'effect': 'late', 'delay_ms': LATE_MS}})
        asked, runs = json.loads(self.python(f'''
import os, re
deadline = time.monotonic() + 60
def in_flight():
    text = os.memfd_create('dump')
    pf.stream(uapi.DUMP, text)
    found = re.search(rb'switch: busy 1, (\\d+) -> (\\d+)', os.pread(text, 1 << 16, 0))
    os.close(text)
    return found and b'2' in found.groups()
seen = 0
while seen < 2:  # one look may have caught a switch that is quick
    assert time.monotonic() < deadline, 'no switch was late'
    seen = seen + 1 if in_flight() else 0
    time.sleep(0.1)
asked = pf.info().device_time_ns
pf.control(2, uapi.RESET)
while pf.vf(2).flrs == {before[2]['flrs']}:
    assert time.monotonic() < deadline, 'no reset'
    time.sleep(0.1)
time.sleep(1)
runs = [(e.time_ns - e.duration_ns, e.time_ns, e.vf) for e in uapi.ring.take() if e.type == uapi.EVENT_RUN]
print(json.dumps([asked, runs]))'''))
        running = [run for run in runs if run[0] <= asked < run[1]]
        self.assertEqual(running, [], 'a VF ran when the reset was asked for')
        self.assertTrue([run for run in runs if run[1] <= asked], 'nothing ran before')
        self.assertTrue([run for run in runs if run[0] > asked and run[2] == 1], 'nothing runs afterwards')
        self.await_reset(before, 2)
        self.assert_works_again(guest)
        self.assert_neighbours_are_untouched()

    def test_flr_while_the_vf_is_being_loaded(self):
        self.flr_while_a_step_is_late('load')

    def test_flr_while_the_vf_is_being_saved(self):
        self.flr_while_a_step_is_late('save')

    def test_flr_during_a_save_for_migration(self):
        guest = self.victim('endless')
        before = self.counters()
        told = json.loads(self.python('''
import os
pf.control(2, uapi.PAUSE)
reader, writer = os.pipe()
def save():
    try:
        with uapi.Pf() as other:
            return [0, other.stream(uapi.SAVE, writer, 2)]
    except uapi.Refused as error:
        return [error.errno, error.text]
    finally:
        os.close(writer)
with futures.ThreadPoolExecutor() as pool:
    saver = pool.submit(save)
    os.read(reader, 4096)  # it has begun, and goes on only as far as the pipe takes it
    pf.control(2, uapi.RESET)
    rest = 0
    while data := os.read(reader, 1 << 20):
        rest += len(data)
    print(json.dumps(saver.result()))'''))
        self.await_reset(before, 2)
        # a save that a reset interrupts must fail: nobody may take a half state for a whole one
        self.assertNotEqual(told[0], 0, told)
        self.assert_works_again(guest)
        self.assert_neighbours_are_untouched()


if __name__ == '__main__':
    unittest.main()
