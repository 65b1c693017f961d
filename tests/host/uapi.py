# SPDX-License-Identifier: MIT
"""The uapi of /dev/vgpu-pfN (pf-driver/uapi/vgpu_pf.h) for tests.

    with Pf() as pf:
        print(pf.info().total_vfs)
        pf.call(PROVISION, Provision(vf=1, vram_bytes=16 << 20))

A call that fails raises Refused: an OSError that also has the text of the PF core.
"""
import ctypes
import errno
import fcntl
import mmap
import os
import struct

IOC_TYPE = 0xB7
(GET_INFO, GET_VF, PROVISION, RELEASE, SCRUB_DURABLE, CONTROL, SET_RUN_TABLE, GET_RUN_TABLE,
 GET_EVENT_RING, SAVE, RESTORE, LEASE, VERIFY_ZERO, DUMP, GET_ERROR, CANCEL) = range(1, 17)
PAUSE, RESUME, STOP, RESET, CLEAR_QUARANTINE = range(1, 6)
(ABSENT, PROVISIONED, READY, RUNNING, PAUSED, STOPPED, RESETTING, QUARANTINED, SCRUBBING,
 MISMATCH) = range(10)
EVENT_RUN, EVENT_STATE, EVENT_SCRUBBED, EVENT_POLICY = 1, 2, 8, 13
MAX_VFS = 16
TABLE_ENTRIES = 1024
U32, U64, I32 = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int32


class Info(ctypes.Structure):
    _fields_ = [('size', U32), ('uapi_version', U32), ('total_vfs', U32), ('platform', U32)] + [
        (name, U64) for name in ('vram_bytes', 'vram_free_bytes', 'vram_largest_free_bytes',
                                 'vram_pf_bytes', 'vram_unit_bytes', 'vram_aperture_bytes')] + [
        ('doorbell_pages', U32), ('cu_count', U32), ('device_time_ns', U64),
        ('table_generation', U64), ('boot_id', U64), ('lease_held', U32), ('device_lost', U32),
        ('switches', U64), ('switch_p50_ns', U64), ('switch_p99_ns', U64), ('switch_max_ns', U64),
        ('device_resets', U64), ('name', ctypes.c_char * 64)]


class Vf(ctypes.Structure):
    _fields_ = [('size', U32), ('vf', U32), ('state', U32), ('generation', U32),
                ('vram_bytes', U64), ('vram_first_offset', U64), ('cu_mask', U64),
                ('doorbell_pages', U32), ('attached', U32), ('in_full_access', U32),
                ('has_work', U32)] + [
        (name, U64) for name in ('service_ns', 'wave_instructions', 'switches', 'overruns',
                                 'overrun_max_ns', 'flrs', 'guest_flrs', 'hangs', 'full_access_count',
                                 'full_access_timeouts', 'mailbox_messages', 'mailbox_unknown',
                                 'doorbells_latched', 'faults', 'bad_packets', 'bad_accesses',
                                 'illegal_instructions')] + [
        ('guard_events', U64 * 4), ('guard_level', U32), ('last_error', U32),
        ('uuid', ctypes.c_uint8 * 16), ('driver_version', ctypes.c_char * 64),
        ('guest_fb_usage_bytes', U64), ('reserved_service_ns', U64), ('throttled_ns', U64)]


class Provision(ctypes.Structure):
    _fields_ = [('size', U32), ('vf', U32), ('vram_bytes', U64), ('cu_mask', U64),
                ('doorbell_pages', U32), ('generation', U32), ('preempt_timeout_us', U32),
                ('full_access_timeout_ms', U32), ('uuid', ctypes.c_uint8 * 16),
                ('guard_limits', U32 * 4), ('flags', U32), ('reserved', U32)]


class VfRef(ctypes.Structure):
    _fields_ = [('size', U32), ('vf', U32), ('generation', U32), ('reserved', U32)]


class Control(ctypes.Structure):
    _fields_ = [('size', U32), ('vf', U32), ('generation', U32), ('action', U32)]


class RunEntry(ctypes.Structure):
    _fields_ = [('vf', U32), ('quantum_us', U32)]


class Contract(ctypes.Structure):
    _fields_ = [('budget_ns', U64), ('period_ns', U64), ('burst_ns', U64), ('rate_ppm', U32),
                ('ahead', U32), ('priority_class', U32), ('flags', U32), ('preempt_timeout_us', U32),
                ('phase_us', U32)]


class RunTable(ctypes.Structure):
    _fields_ = [('size', U32), ('count', U32), ('generation', U64), ('reserve_count', U32),
                ('flags', U32),
                ('reserve', RunEntry * MAX_VFS), ('entries', RunEntry * TABLE_ENTRIES),
                ('contracts', Contract * MAX_VFS), ('weights', U32 * MAX_VFS),
                ('max_gap_us', U32 * MAX_VFS)]

    def plan(self):
        """[(vf, quantum_us)] of the entries."""
        return [(entry.vf, entry.quantum_us) for entry in self.entries[:self.count]]


class RingInfo(ctypes.Structure):
    _fields_ = [('size', U32), ('entries', U32), ('bytes', U64), ('events_offset', U64)]


class Stream(ctypes.Structure):
    _fields_ = [('size', U32), ('vf', U32), ('generation', U32), ('fd', I32), ('bytes', U64)]


class Error(ctypes.Structure):
    _fields_ = [('size', U32), ('error', I32), ('message', ctypes.c_char * 160)]


class Cancel(ctypes.Structure):
    _fields_ = [('size', U32), ('reserved', U32)]


class Lease(ctypes.Structure):
    _fields_ = [('size', U32), ('acquire', U32)]


class Event(ctypes.Structure):
    _fields_ = [('seq', U64), ('time_ns', U64), ('type', U32), ('vf', U32), ('duration_ns', U64),
                ('arg', U64), ('arg2', U64), ('table_generation', U64), ('reserved_ns', U64)]


class Refused(OSError):
    """A call that failed; `text` is what GET_ERROR says."""

    def __init__(self, number, text):
        super().__init__(number, text or os.strerror(number))
        self.text = text


CONTRACT_STRICT, CONTRACT_GANG = 1, 2


def command(op, size):
    """_IOWR(0xB7, op, size)."""
    return 3 << 30 | size << 16 | IOC_TYPE << 8 | op


class Node:
    """An open character device."""

    def __init__(self, path, flags=os.O_RDWR):
        self.fd = os.open(path, flags | os.O_CLOEXEC)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def raw(self, number, data):
        """Makes an ioctl with bytes; returns the bytes afterwards."""
        buffer = bytearray(data)
        fcntl.ioctl(self.fd, number, buffer)
        return bytes(buffer)

    def call(self, op, payload):
        payload.size = ctypes.sizeof(payload)
        try:
            fcntl.ioctl(self.fd, command(op, ctypes.sizeof(payload)), payload)
        except OSError as error:
            raise Refused(error.errno, self.last_error().message.decode()) from None
        return payload

    def last_error(self):
        error = Error()
        fcntl.ioctl(self.fd, command(GET_ERROR, ctypes.sizeof(error)), error)
        return error

    def vf(self, number):
        return self.call(GET_VF, Vf(vf=number))

    def take_changes(self):
        """Number of events since the last read of this file; waits for one unless O_NONBLOCK."""
        return struct.unpack('<Q', os.read(self.fd, 8))[0]


class Pf(Node):
    """/dev/vgpu-pfN."""

    def __init__(self, flags=os.O_RDWR, index=0):
        super().__init__(f'/dev/vgpu-pf{index}', flags)

    def info(self):
        return self.call(GET_INFO, Info())

    def provision(self, vf, vram_bytes, **more):
        return self.call(PROVISION, Provision(vf=vf, vram_bytes=vram_bytes, **more))

    def release(self, vf):
        """Releases a VF and confirms that its scrub is durable."""
        self.call(RELEASE, VfRef(vf=vf))
        self.confirm_scrub(vf)

    def confirm_scrub(self, vf):
        with Ring(self) as ring:
            ring.wait(lambda event: event.type == EVENT_SCRUBBED and event.vf == vf,
                      before=lambda: self.is_scrubbed(vf))

    def is_scrubbed(self, vf):
        """Confirms the scrub if it is finished; returns whether it is."""
        try:
            self.call(SCRUB_DURABLE, VfRef(vf=vf))
            return True
        except Refused as error:
            if error.errno != errno.EBUSY:
                raise
            return False

    def control(self, vf, action):
        self.call(CONTROL, Control(vf=vf, action=action))

    def table(self):
        return self.call(GET_RUN_TABLE, RunTable())

    def set_table(self, plan, generation=None, contracts=None, weights=None):
        """`contracts`: fields of Contract by VF; `weights`: by VF."""
        table = RunTable(count=len(plan))
        for vf, weight in (weights or {}).items():
            table.weights[vf - 1] = weight
        for vf, fields in (contracts or {}).items():
            table.contracts[vf - 1] = Contract(**fields)
        table.generation = self.table().generation + 1 if generation is None else generation
        for entry, (vf, quantum_us) in zip(table.entries, plan):
            entry.vf, entry.quantum_us = vf, quantum_us
        self.call(SET_RUN_TABLE, table)

    def lease(self, acquire):
        self.call(LEASE, Lease(acquire=acquire))

    def stream(self, op, fd, vf=0):
        return self.call(op, Stream(vf=vf, fd=fd)).bytes

    def cancel(self):
        self.call(CANCEL, Cancel())


class Ring:
    """The event ring, from now on."""

    def __init__(self, pf):
        self.pf = pf
        self.info = pf.call(GET_EVENT_RING, RingInfo())
        self.memory = mmap.mmap(pf.fd, self.info.bytes, prot=mmap.PROT_READ, flags=mmap.MAP_SHARED)
        self.next = self.head()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.memory.close()

    def head(self):
        return struct.unpack_from('<Q', self.memory, 0)[0]

    def entry(self, seq):
        at = self.info.events_offset + (seq - 1) % self.info.entries * ctypes.sizeof(Event)
        return Event.from_buffer_copy(self.memory[at:at + ctypes.sizeof(Event)])

    def take(self):
        """Returns the events since the last call."""
        events = [self.entry(seq) for seq in range(self.next, self.head())]
        self.next += len(events)
        return events

    def wait(self, wanted, before=None):
        """Waits for an event that `wanted` accepts and returns it; returns True once `before` is
        true."""
        while True:
            for event in self.take():
                if wanted(event):
                    return event if before is None else before() or event
            if before is not None and before():
                return True
            self.pf.take_changes()
