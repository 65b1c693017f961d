# SPDX-License-Identifier: MIT
"""The uapi of vgpu_pf.ko, in the machine whose kernel has it loaded (test_module.py runs it there).

Each test leaves the card as it found it: no VF with resources, no functions, no lease.
"""
import ctypes
import errno
import fcntl
import mmap
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import uapi
from uapi import Pf, Refused, Ring

MIB = 1 << 20
VF_MIB = 16
HAS_CARD = os.path.exists('/dev/vgpu-pf0')
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
SO_TIMESTAMPING = 37
SENT_IS_NOTIFIED = 1 << 1 | 1 << 4 | 1 << 8 | 1 << 11  # TX_SOFTWARE, SOFTWARE, TX_SCHED, OPT_TSONLY


def sysfs(name):
    return os.path.join('/sys/class/vgpu/vgpu-pf0/device', name)


def read_sysfs(name):
    with open(sysfs(name)) as file:
        return file.read().strip()


def write_sysfs(name, value):
    with open(sysfs(name), 'w') as file:
        file.write(str(value))


@unittest.skipUnless(HAS_CARD, 'no vgpu_pf.ko with a card in this machine')
class UapiTest(unittest.TestCase):
    def setUp(self):
        self.pf = Pf()
        self.addCleanup(self.pf.close)

    def refused(self, number, call, *arguments, **named):
        with self.assertRaises(OSError) as caught:
            call(*arguments, **named)
        self.assertEqual(errno.errorcode[caught.exception.errno], errno.errorcode[number],
                         caught.exception)
        return caught.exception

    def provisioned(self, vf, mib=VF_MIB):
        self.pf.provision(vf, mib * MIB)
        self.addCleanup(self.release, vf)

    def release(self, vf):
        with Pf() as pf:
            if pf.vf(vf).state == uapi.ABSENT:
                return
            if pf.vf(vf).state != uapi.SCRUBBING:
                pf.call(uapi.RELEASE, uapi.VfRef(vf=vf))
            pf.confirm_scrub(vf)

    def paused(self, vf):
        self.provisioned(vf)
        self.pf.control(vf, uapi.PAUSE)


class Arguments(UapiTest):
    def test_info_describes_card_and_platform(self):
        info = self.pf.info()
        self.assertEqual((info.uapi_version, info.platform, info.device_lost), (1, 1, 0))
        self.assertEqual(info.total_vfs, int(read_sysfs('sriov_totalvfs')))
        self.assertEqual(info.vram_free_bytes, info.vram_bytes - info.vram_pf_bytes)
        self.assertEqual(info.name, b'gpu0')
        self.assertGreater(info.device_time_ns, 0)

    def test_shorter_struct_is_extended_and_filled_as_far_as_it_goes(self):
        reply = self.pf.raw(uapi.command(uapi.GET_INFO, 12), bytes(12))
        self.assertEqual(struct.unpack_from('<3I', reply)[2], self.pf.info().total_vfs)

    def test_longer_struct_is_taken_if_the_rest_is_zero(self):
        size = ctypes.sizeof(uapi.Info) + 64
        reply = self.pf.raw(uapi.command(uapi.GET_INFO, size), bytes(size))
        self.assertEqual(struct.unpack_from('<3I', reply)[2], self.pf.info().total_vfs)
        self.assertEqual(reply[-64:], bytes(64))

    def test_longer_struct_with_unknown_content_is_refused(self):
        size = ctypes.sizeof(uapi.Info) + 8
        self.refused(errno.E2BIG, self.pf.raw, uapi.command(uapi.GET_INFO, size),
                     bytes(size - 1) + b'\1')
        self.assertIn('longer', self.pf.last_error().message.decode())

    def test_unknown_operation_is_refused(self):
        self.refused(errno.EOPNOTSUPP, self.pf.raw, uapi.command(99, 8), bytes(8))

    def test_other_ioctls_are_not_ours(self):
        self.refused(errno.ENOTTY, self.pf.raw, 0x5401, bytes(64))
        self.refused(errno.ENOTTY, self.pf.raw, uapi.command(1, 8) & ~(3 << 30), bytes(8))

    def test_vf_that_does_not_exist_is_named(self):
        for vf in (0, self.pf.info().total_vfs + 1, 0xffffffff):
            error = self.refused(errno.ENOENT, self.pf.vf, vf)
            self.assertIn('there is no VF', error.text)

    def test_wrong_sizes_flags_and_actions_are_refused(self):
        for arguments in ({'vram_bytes': 0}, {'vram_bytes': 1}, {'vram_bytes': 1 << 60},
                          {'vram_bytes': 16 * MIB, 'flags': 1 << 31},
                          {'vram_bytes': 16 * MIB, 'cu_mask': 1 << 63},
                          {'vram_bytes': 16 * MIB, 'doorbell_pages': 1 << 20}):
            with self.assertRaises(Refused, msg=arguments) as caught:
                self.pf.call(uapi.PROVISION, uapi.Provision(vf=1, **arguments))
            self.assertIn(caught.exception.errno, (errno.EINVAL, errno.ENOSPC))
        self.refused(errno.EINVAL, self.pf.control, 1, 99)
        self.refused(errno.EINVAL, self.pf.control, 1, uapi.PAUSE)  # ABSENT

    def test_what_is_reserved_must_be_zero(self):
        self.refused(errno.EINVAL, self.pf.call, uapi.CANCEL, uapi.Cancel(reserved=1))
        self.assertIn('reserved', self.pf.last_error().message.decode())
        self.pf.info()  # not cancelled

    def test_stale_generation_is_refused(self):
        self.provisioned(1)
        generation = self.pf.vf(1).generation
        self.refused(errno.ESTALE, self.pf.call, uapi.RELEASE,
                     uapi.VfRef(vf=1, generation=generation + 1))

    def test_errors_belong_to_their_file(self):
        with Pf() as other:
            self.refused(errno.ENOENT, self.pf.vf, 0)
            self.assertEqual(self.pf.last_error().error, -errno.ENOENT)
            self.assertEqual(other.last_error().error, 0)

    def test_bad_pointer_is_a_fault(self):
        libc = ctypes.CDLL(None, use_errno=True)
        result = libc.ioctl(self.pf.fd, ctypes.c_ulong(uapi.command(uapi.GET_INFO, 64)),
                            ctypes.c_void_p(8))
        self.assertEqual((result, ctypes.get_errno()), (-1, errno.EFAULT))


class Permissions(UapiTest):
    def test_reading_needs_no_write_access(self):
        with Pf(os.O_RDONLY) as pf:
            pf.info()
            pf.vf(1)
            pf.table()
            Ring(pf).memory.close()

    def test_changing_needs_it(self):
        with Pf(os.O_RDONLY) as pf:
            for op, payload in ((uapi.PROVISION, uapi.Provision(vf=1, vram_bytes=16 * MIB)),
                                (uapi.RELEASE, uapi.VfRef(vf=1)),
                                (uapi.CONTROL, uapi.Control(vf=1, action=uapi.STOP)),
                                (uapi.SET_RUN_TABLE, uapi.RunTable()),
                                (uapi.LEASE, uapi.Lease(acquire=1)),
                                (uapi.DUMP, uapi.Stream(fd=1)),
                                (uapi.VERIFY_ZERO, uapi.VfRef(vf=1))):
                self.refused(errno.EPERM, pf.call, op, payload)

    def test_nodes_are_for_root_and_its_group(self):
        for path in ('/dev/vgpu-pf0', '/dev/vgpu/vf1'):
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o660, path)

    def test_node_of_a_vf_has_one_owner_who_sees_that_vf_only(self):
        with uapi.Node('/dev/vgpu/vf2') as node:
            self.refused(errno.EBUSY, uapi.Node, '/dev/vgpu/vf2')
            self.assertIn(f'pid {os.getpid()}', read_sysfs('sriov_admin/vf2/owner'))
            self.assertEqual(node.vf(0).vf, 2)
            self.assertEqual(node.vf(2).state, uapi.ABSENT)
            self.refused(errno.EPERM, node.vf, 3)
            self.refused(errno.EPERM, node.call, uapi.GET_INFO, uapi.Info())
            self.refused(errno.EPERM, node.call, uapi.RELEASE, uapi.VfRef(vf=2))
        self.assertEqual(read_sysfs('sriov_admin/vf2/owner'), 'none')


class LifeCycle(UapiTest):
    def test_provision_release_scrub_confirm(self):
        before = self.pf.info().vram_free_bytes
        with Ring(self.pf) as ring:
            request = self.pf.provision(3, 32 * MIB)
            vf = self.pf.vf(3)
            self.assertEqual((vf.state, vf.vram_bytes, vf.generation),
                             (uapi.PROVISIONED, 32 * MIB, request.generation))
            self.assertEqual(read_sysfs('sriov_admin/vf3/state'), 'PROVISIONED')
            self.assertEqual(self.pf.info().vram_free_bytes, before - 32 * MIB)
            self.pf.call(uapi.RELEASE, uapi.VfRef(vf=3, generation=vf.generation))
            ring.wait(lambda event: event.type == uapi.EVENT_SCRUBBED and event.vf == 3)
            self.assertEqual(self.pf.vf(3).state, uapi.SCRUBBING)  # until this client confirms
            self.pf.call(uapi.VERIFY_ZERO, uapi.VfRef(vf=3))
            self.pf.call(uapi.SCRUB_DURABLE, uapi.VfRef(vf=3))
        self.assertEqual(self.pf.vf(3).state, uapi.ABSENT)
        self.assertEqual(self.pf.info().vram_free_bytes, before)

    def test_changes_of_state_wake_who_polls_sysfs(self):
        with open(sysfs('sriov_admin/vf1/state')) as state:
            self.assertEqual(state.read(), 'ABSENT\n')
            poller = select.poll()
            poller.register(state, select.POLLPRI | select.POLLERR)
            self.provisioned(1)
            self.assertNotEqual(poller.poll(10000), [])
            state.seek(0)
            self.assertEqual(state.read(), 'PROVISIONED\n')

    def test_preemption_limit_is_shown_and_changed(self):
        self.pf.provision(1, VF_MIB * MIB, preempt_timeout_us=70000)
        self.addCleanup(self.release, 1)
        name = 'sriov_admin/vf1/profile/preempt_timeout_us'
        self.assertEqual(read_sysfs(name), '70000')
        write_sysfs(name, 80000)
        self.assertEqual(read_sysfs(name), '80000')
        write_sysfs(name, 0)

    def test_ranges_of_vram_are_exclusive(self):
        sizes = {1: 48, 2: 16, 3: 32, 4: 16}
        for vf, mib in sizes.items():
            self.provisioned(vf, mib)
        ranges = sorted((self.pf.vf(vf).vram_first_offset, self.pf.vf(vf).vram_bytes)
                        for vf in sizes)
        self.assertGreaterEqual(ranges[0][0], self.pf.info().vram_pf_bytes)
        for (first, size), (following, _) in zip(ranges, ranges[1:]):
            self.assertLessEqual(first + size, following)

    def test_any_absent_vf_is_chosen(self):
        self.provisioned(1)
        chosen = self.pf.provision(0, VF_MIB * MIB).vf
        self.addCleanup(self.release, chosen)
        self.assertEqual(chosen, 2)

    def test_pause_resume_stop_reset(self):
        self.provisioned(1)
        for action, state in ((uapi.PAUSE, uapi.PAUSED), (uapi.RESUME, uapi.PROVISIONED),
                              (uapi.STOP, uapi.STOPPED)):
            self.pf.control(1, action)
            self.assertEqual(self.pf.vf(1).state, state)
        with Ring(self.pf) as ring:
            self.pf.control(1, uapi.RESET)
            ring.wait(lambda event: event.type == uapi.EVENT_STATE and event.arg == uapi.PROVISIONED,
                      before=lambda: self.pf.vf(1).state == uapi.PROVISIONED)


class Functions(UapiTest):
    """sriov_numvfs beside a client of the uapi."""

    def test_what_a_client_provisioned_anew_is_not_taken_back_with_the_equal_parts(self):
        write_sysfs('sriov_numvfs', 4)
        self.addCleanup(write_sysfs, 'sriov_numvfs', 0)
        self.pf.lease(1)
        self.pf.release(1)
        self.provisioned(1)
        generation = self.pf.vf(1).generation
        self.pf.lease(0)
        write_sysfs('sriov_numvfs', 0)
        vfs = [self.pf.vf(number) for number in (1, 2, 3, 4)]
        self.assertEqual([vf.state for vf in vfs], [uapi.PROVISIONED] + 3 * [uapi.ABSENT])
        self.assertEqual(vfs[0].generation, generation)

    def test_what_a_client_released_is_its_own_to_confirm(self):
        write_sysfs('sriov_numvfs', 2)
        self.addCleanup(self.release, 2)
        self.addCleanup(write_sysfs, 'sriov_numvfs', 0)
        with Ring(self.pf) as ring:
            self.pf.call(uapi.RELEASE, uapi.VfRef(vf=2))
            ring.wait(lambda event: event.type == uapi.EVENT_SCRUBBED and event.vf == 2)
        write_sysfs('sriov_numvfs', 0)
        self.assertEqual((self.pf.vf(1).state, self.pf.vf(2).state), (uapi.ABSENT, uapi.SCRUBBING))


class Owners(UapiTest):
    def release_again_and_again(self, is_over, failures):
        while not is_over.is_set():
            for value in (0, VF_MIB * MIB):
                try:
                    write_sysfs('sriov_admin/vf1/profile/vram_quota', value)
                except OSError as error:
                    if error.errno != errno.EBUSY:
                        failures.append(error)

    def test_an_open_vf_keeps_its_resources_whoever_releases_it_meanwhile(self):
        is_over, failures, times = threading.Event(), [], 0
        releaser = threading.Thread(target=self.release_again_and_again, args=(is_over, failures))
        releaser.start()
        self.addCleanup(write_sysfs, 'sriov_admin/vf1/profile/vram_quota', 0)
        self.addCleanup(releaser.join)
        self.addCleanup(is_over.set)
        deadline = time.monotonic() + 60
        while times < 40 and time.monotonic() < deadline:
            try:
                node = uapi.Node('/dev/vgpu/vf1')
            except OSError as error:
                self.assertEqual(error.errno, errno.EBUSY)
                continue
            with node:
                before = node.vf(1)
                time.sleep(0.01)
                after = node.vf(1)
            self.assertEqual((after.state, after.generation), (before.state, before.generation))
            times += 1
        self.assertEqual(times, 40)
        self.assertEqual(failures, [])


class Tables(UapiTest):
    def test_table_is_read_back(self):
        before = self.pf.table()
        self.addCleanup(lambda: self.pf.set_table(before.plan()))
        self.pf.set_table([(1, 4000), (2, 2000), (1, 1000)])
        after = self.pf.table()
        self.assertEqual(after.plan(), [(1, 4000), (2, 2000), (1, 1000)])
        self.assertEqual(after.generation, before.generation + 1)

    def test_wrong_tables_are_refused(self):
        self.refused(errno.ESTALE, self.pf.set_table, [(1, 4000)], generation=1 << 40)
        for plan in ([], [(99, 4000)], [(1, 1)]):
            self.refused(errno.EINVAL, self.pf.set_table, plan)


class Leases(UapiTest):
    def test_one_file_holds_it(self):
        with Pf() as other:
            self.pf.lease(1)
            self.pf.lease(1)
            self.assertEqual(other.info().lease_held, 1)
            self.refused(errno.EBUSY, other.lease, 1)
            self.refused(errno.EBUSY, other.set_table, [(1, 4000)])
            self.pf.lease(0)
            other.lease(1)
        self.assertEqual(self.pf.info().lease_held, 0)

    def test_it_ends_with_its_process(self):
        program = 'import uapi, os, time; p = uapi.Pf(); p.lease(1); print("held", flush=True); ' \
                  'time.sleep(600)'
        with subprocess.Popen([sys.executable, '-c', program], stdout=subprocess.PIPE) as holder:
            holder.stdout.readline()
            self.refused(errno.EBUSY, self.pf.lease, 1)
            holder.kill()
            holder.wait()
        self.pf.lease(1)
        self.pf.lease(0)

    def plan_with_a_floor(self):
        """Gives VF1 resources and makes the driver plan; returns the plan."""
        self.provisioned(1)
        self.addCleanup(self.release, 2)
        self.addCleanup(self.pf.set_table, [(1, 5000)])  # nobody plans any more
        self.addCleanup(write_sysfs, 'sriov_admin/vf1/profile/min_pct', 0)
        return self.replan()

    def replan(self):
        write_sysfs('sriov_admin/vf1/profile/min_pct', 75)
        return self.pf.table().plan()

    def other_plan(self, before):
        """Waits for a plan other than `before`, which comes after a moment, and returns it."""
        deadline = time.monotonic() + 30
        while self.pf.table().plan() == before:
            self.assertLess(time.monotonic(), deadline, before)
            time.sleep(0.05)
        return self.pf.table().plan()

    def test_what_a_holder_provisioned_is_planned_for_when_it_has_died(self):
        before = self.plan_with_a_floor()
        program = 'import uapi, time; p = uapi.Pf(); p.lease(1); p.provision(2, 16 << 20); print("held", flush=True); ' \
                  'time.sleep(600)'
        with subprocess.Popen([sys.executable, '-c', program], stdout=subprocess.PIPE) as holder:
            holder.stdout.readline()
            self.assertEqual(self.pf.table().plan(), before)
            holder.kill()
            holder.wait()
        after = self.other_plan(before)
        self.assertAlmostEqual(after[0][1] / after[1][1], 3, delta=0.01)
        self.assertEqual(self.replan(), after)

    def test_a_longest_gap_written_under_it_is_planned_with_when_it_ends(self):
        before = self.plan_with_a_floor()
        self.addCleanup(write_sysfs, 'sriov_admin/max_gap_ms', read_sysfs('sriov_admin/max_gap_ms'))
        self.pf.lease(1)
        write_sysfs('sriov_admin/max_gap_ms', 2)
        self.assertEqual(self.pf.table().plan(), before)
        self.pf.lease(0)
        after = self.other_plan(before)
        self.assertEqual(after[0], (1, 2000))
        self.assertEqual(self.replan(), after)

    def test_a_table_that_a_holder_has_set_stays_when_it_ends(self):
        self.plan_with_a_floor()
        self.pf.lease(1)
        self.pf.set_table([(1, 4000), (2, 3000)])
        self.pf.provision(2, VF_MIB * MIB)
        self.pf.lease(0)
        write_sysfs('sriov_admin/max_gap_ms', read_sysfs('sriov_admin/max_gap_ms'))
        self.assertEqual(self.pf.table().plan(), [(1, 4000), (2, 3000)])

    def test_with_it_sysfs_writes_are_events_or_refused(self):
        generation = self.pf.table().generation
        self.pf.lease(1)
        with Ring(self.pf) as ring:
            write_sysfs('sriov_admin/vf1/profile/exec_quantum_ms', 12)
            write_sysfs('sriov_admin/.bulk_profile/weight', 300)
            for name, value in (('.bulk_profile/sched_priority', 'normal'), ('vf2/profile/vram_quota', 32 * MIB),
                                ('vf1/profile/min_pct', 10), ('vf1/profile/max_pct', 50),
                                ('vf1/profile/preempt_timeout_us', 50000)):
                self.refused(errno.EBUSY, write_sysfs, f'sriov_admin/{name}', value)
            told = [(event.vf, event.arg, event.arg2) for event in ring.take()
                    if event.type == uapi.EVENT_POLICY]
        self.pf.lease(0)
        self.assertEqual(told, [(1, 1, 12), (0, 5, 300)])
        self.assertEqual(self.pf.table().generation, generation)
        self.assertEqual(self.pf.vf(2).state, uapi.ABSENT)

    def test_with_it_weight_and_quantum_read_as_the_run_table_has_them(self):
        files = [f'sriov_admin/vf{vf}/profile/{name}' for vf in (1, 2, 3)
                 for name in ('weight', 'exec_quantum_ms')]
        before = [read_sysfs(file) for file in files]
        self.pf.lease(1)
        self.pf.set_table([(1, 2500), (2, 4000), (1, 1000)], weights={1: 700, 2: 10000})
        self.assertEqual([read_sysfs(file) for file in files],
                         ['700', '3', '10000', '4', before[4], before[5]])
        self.pf.lease(0)
        self.assertEqual([read_sysfs(file) for file in files], before)


class Events(UapiTest):
    def test_ring_cannot_be_written(self):
        bytes_ = self.pf.call(uapi.GET_EVENT_RING, uapi.RingInfo()).bytes
        self.refused(errno.EPERM, mmap.mmap, self.pf.fd, bytes_,
                     prot=mmap.PROT_READ | mmap.PROT_WRITE, flags=mmap.MAP_SHARED)
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
        at = libc.mmap(None, bytes_, mmap.PROT_READ, mmap.MAP_SHARED, self.pf.fd, 0)
        self.assertEqual(libc.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(4096), 3), -1)
        self.assertEqual(ctypes.get_errno(), errno.EACCES)
        libc.munmap(ctypes.c_void_p(at), ctypes.c_size_t(bytes_))

    def test_mapping_has_bounds(self):
        bytes_ = self.pf.call(uapi.GET_EVENT_RING, uapi.RingInfo()).bytes
        for size, offset in ((bytes_ + 4096, 0), (4096, 4096)):
            self.refused(errno.EINVAL, mmap.mmap, self.pf.fd, size, prot=mmap.PROT_READ,
                         offset=offset)

    def test_mapping_outlives_its_file(self):
        with Pf() as pf:
            ring = Ring(pf)
        self.assertGreaterEqual(ring.head(), 1)
        ring.memory.close()

    def test_poll_and_read_count_what_was_not_told(self):
        with Pf(os.O_RDWR | os.O_NONBLOCK) as pf:
            poller = select.poll()
            poller.register(pf.fd, select.POLLIN)
            self.assertEqual(poller.poll(0), [])
            self.refused(errno.EAGAIN, pf.take_changes)
            with Ring(pf) as ring:
                self.provisioned(1)
                self.assertEqual(poller.poll(5000), [(pf.fd, select.POLLIN)])
                self.assertEqual(pf.take_changes(), len(ring.take()))
            self.assertEqual(poller.poll(0), [])

    def test_short_read_is_refused(self):
        self.refused(errno.EINVAL, os.read, self.pf.fd, 4)

    def test_waiting_read_is_woken(self):
        told = []
        with Pf() as pf:
            waiter = threading.Thread(target=lambda: told.append(pf.take_changes()))
            waiter.start()
            self.provisioned(1)
            waiter.join(20)
        self.assertGreater(told[0], 0)


class Streams(UapiTest):
    def test_dump_goes_to_a_file(self):
        with tempfile.TemporaryFile() as file:
            written = self.pf.stream(uapi.DUMP, file.fileno())
            file.seek(0)
            text = file.read()
        self.assertEqual(len(text), written)
        self.assertTrue(text.startswith(b"vgpu PF core 'gpu0'"), text[:40])

    def test_dump_appends_where_the_file_stands(self):
        with tempfile.TemporaryFile(buffering=0) as file:
            file.write(b'before\n')
            written = self.pf.stream(uapi.DUMP, file.fileno())
            file.write(b'after\n')
            file.seek(0)
            text = file.read()
        self.assertTrue(text.startswith(b'before\nvgpu PF core'))
        self.assertEqual(len(text), written + len(b'before\nafter\n'))

    def test_a_dump_that_nobody_can_read_is_none(self):
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        read_end, write_end = os.pipe()
        os.close(read_end)
        error = self.refused(errno.EPIPE, self.pf.stream, uapi.DUMP, write_end)
        os.close(write_end)
        self.assertIn('file', error.text)

    def test_a_signal_ends_a_dump_that_waits_for_its_pipe(self):
        """A signal whose handler restarts system calls ends the dump, too, because the pipe may
        have a part of the dump."""
        read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(write_end, bytes(4096))
        os.set_blocking(write_end, True)
        before = signal.signal(signal.SIGALRM, lambda *_: None)
        signal.siginterrupt(signal.SIGALRM, False)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        error = self.refused(errno.EINTR, self.pf.stream, uapi.DUMP, write_end)
        signal.signal(signal.SIGALRM, before)
        os.close(write_end)
        os.close(read_end)
        self.assertIn('signal', error.text)

    def socket_in_error(self):
        """An end of a TCP connection that does not block; its error queue has an entry, which nobody reads."""
        with socket.socket() as any_socket:
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack('16sH22x', b'lo', IFF_UP))
        with socket.create_server(('127.0.0.1', 0)) as server:
            near = socket.create_connection(server.getsockname())
            self.addCleanup(near.close)
            far, _ = server.accept()
        self.addCleanup(far.close)
        near.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, SENT_IS_NOTIFIED)
        near.send(b'x')
        near.setblocking(False)
        poller = select.poll()
        poller.register(near, 0)
        self.assertEqual(poller.poll(10000), [(near.fileno(), select.POLLERR)])
        return near

    def fill(self, sender):
        """Sends until the socket takes nothing, also after a pause."""
        refusals = 0
        while refusals < 20:
            try:
                sender.send(bytes(65536))
                refusals = 0
            except BlockingIOError:
                refusals += 1
                time.sleep(0.01)

    def is_ended_by_a_signal(self, op, file, vf=0):
        before = signal.signal(signal.SIGALRM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        error = self.refused(errno.EINTR, self.pf.stream, op, file.fileno(), vf=vf)
        signal.signal(signal.SIGALRM, before)
        self.assertIn('signal', error.text)

    def test_a_signal_ends_a_save_to_a_full_socket_in_error(self):
        """Uses SAVE and not DUMP, because a dump is so small that window probes let it through."""
        self.paused(1)
        sender = self.socket_in_error()
        self.fill(sender)
        self.is_ended_by_a_signal(uapi.SAVE, sender, vf=1)

    def test_a_signal_ends_a_restore_from_an_empty_socket_in_error(self):
        self.paused(1)
        self.is_ended_by_a_signal(uapi.RESTORE, self.socket_in_error(), vf=1)

    def test_a_file_system_that_is_full_at_the_end_is_notified_of(self):
        self.paused(1)
        with tempfile.TemporaryFile(buffering=0) as file:
            saved = self.pf.stream(uapi.SAVE, file.fileno(), vf=1)
        directory = tempfile.mkdtemp()
        self.addCleanup(os.rmdir, directory)
        # the missing space is less than the driver buffers, so that only the last write fails
        subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={saved - 64 * 1024}', 'small', directory], check=True)
        self.addCleanup(subprocess.run, ['umount', directory], check=True)
        with open(os.path.join(directory, 'saved'), 'wb', buffering=0) as file:
            self.refused(errno.ENOSPC, self.pf.stream, uapi.SAVE, file.fileno(), vf=1)

    def test_wrong_descriptors_are_refused(self):
        self.refused(errno.EBADF, self.pf.stream, uapi.DUMP, -1)
        self.refused(errno.EBADF, self.pf.stream, uapi.DUMP, 999)
        with open('/dev/null', 'rb') as file:
            self.refused(errno.EINVAL, self.pf.stream, uapi.DUMP, file.fileno())
        self.refused(errno.EINVAL, self.pf.stream, uapi.DUMP, self.pf.fd)

    def test_save_and_restore_of_a_paused_vf(self):
        self.paused(1)
        with tempfile.TemporaryFile(buffering=0) as file:
            saved = self.pf.stream(uapi.SAVE, file.fileno(), vf=1)
            file.write(b'rest')
            file.seek(0)
            self.assertEqual(self.pf.stream(uapi.RESTORE, file.fileno(), vf=1), saved)
            self.assertEqual(file.read(), b'rest')  # nothing is read ahead
        print(f'saved {saved} bytes', file=sys.stderr)
        self.assertEqual(self.pf.vf(1).state, uapi.PAUSED)

    def test_a_vf_that_is_not_paused_is_refused(self):
        self.provisioned(1)
        with tempfile.TemporaryFile() as file:
            error = self.refused(errno.EINVAL, self.pf.stream, uapi.SAVE, file.fileno(), vf=1)
        self.assertIn('pause it first', error.text)

    def test_what_is_not_a_stream_is_refused(self):
        self.paused(1)
        with tempfile.TemporaryFile(buffering=0) as file:
            file.write(os.urandom(4096))
            file.seek(0)
            self.refused(errno.EBADMSG, self.pf.stream, uapi.RESTORE, file.fileno(), vf=1)
            self.refused(errno.EBADMSG, self.pf.stream, uapi.RESTORE, file.fileno(), vf=1)

    def dump(self):
        with tempfile.TemporaryFile() as file:
            self.pf.stream(uapi.DUMP, file.fileno())

    def dump_soon(self):
        """Dumps when the core has ended an abandoned stream, for which it may have to wait for the
        device."""
        deadline = time.monotonic() + 30
        while True:
            try:
                self.dump()
                return
            except Refused as error:
                if error.errno != errno.EBUSY or time.monotonic() > deadline:
                    raise
            time.sleep(0.05)

    def slow_save(self):
        """A SAVE into a pipe that nobody reads; (thread, result list, read end)."""
        self.paused(1)
        read_end, write_end = os.pipe()
        result = []

        def save():
            try:
                result.append(self.pf.stream(uapi.SAVE, write_end, vf=1))
            except OSError as error:
                result.append(error.errno)
            os.close(write_end)
        thread = threading.Thread(target=save)
        thread.start()
        poller = select.poll()
        poller.register(read_end, select.POLLIN)
        poller.poll(20000)
        return thread, result, read_end

    def test_a_slow_reader_blocks_nobody_else(self):
        thread, result, read_end = self.slow_save()
        with Pf() as other:
            self.assertEqual(other.info().device_lost, 0)
            self.refused(errno.EBUSY, other.stream, uapi.DUMP, 1)
        with os.fdopen(read_end, 'rb') as reader:
            length = len(reader.read())
        thread.join(60)
        self.assertEqual(result, [length])

    def test_a_reader_that_goes_ends_it(self):
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        thread, result, read_end = self.slow_save()
        os.close(read_end)
        thread.join(60)
        self.assertEqual(result, [errno.EPIPE])
        self.dump()

    def test_cancel_ends_it_and_all_that_follows(self):
        with Pf() as pf:
            self.pf, before = pf, self.pf
            thread, result, read_end = self.slow_save()
            self.pf = before
            pf.cancel()
            thread.join(60)
            self.assertEqual(result, [errno.ECANCELED])
            self.refused(errno.ECANCELED, pf.info)
            self.refused(errno.ECANCELED, pf.lease, 1)
            self.assertIn('cancelled', pf.last_error().message.decode())
            os.close(read_end)
        self.dump_soon()

    def test_death_of_the_caller_ends_it(self):
        self.paused(1)
        read_end, write_end = os.pipe()
        program = f'import uapi; uapi.Pf().stream(uapi.SAVE, {write_end}, vf=1)'
        with subprocess.Popen([sys.executable, '-c', program], pass_fds=[write_end]) as child:
            os.read(read_end, 64)
            child.kill()
            child.wait()
        os.close(write_end)
        os.close(read_end)
        self.dump_soon()

    def test_a_signal_ends_the_wait(self):
        self.paused(1)
        read_end, write_end = os.pipe()
        program = f'''
import errno, signal, uapi
signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
signal.setitimer(signal.ITIMER_REAL, 0.5)
try:
    uapi.Pf().stream(uapi.SAVE, {write_end}, vf=1)
except KeyboardInterrupt:
    print('interrupted')
'''
        answer = subprocess.run([sys.executable, '-c', program], pass_fds=[write_end],
                                stdout=subprocess.PIPE, timeout=60, check=False)
        os.close(write_end)
        os.close(read_end)
        self.assertEqual(answer.stdout, b'interrupted\n')


if __name__ == '__main__':
    unittest.main(verbosity=2)
