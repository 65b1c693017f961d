# SPDX-License-Identifier: MIT
"""Random ioctls against vgpu_pf.ko: runs in the machine, for a bounded time, from a seed.

    fuzz_ioctl.py SEED SECONDS

Three processes call ioctls of the nodes without a pause and are killed at random moments; another
process replaces each killed one. Operations, sizes, contents, descriptors and even the ioctl's type
and direction are random, as a careless or hostile client could send them. Many numbers are near
valid ones. Any answer is right, but there must be one.
"""
import ctypes
import fcntl
import mmap
import os
import random
import select
import signal
import sys
import time

import uapi

WORKERS = 3
NODES = ('/dev/vgpu-pf0', '/dev/vgpu-pf0', '/dev/vgpu-pf0', '/dev/vgpu/vf1', '/dev/vgpu/vf2')
STRUCTS = {
    uapi.GET_INFO: uapi.Info, uapi.GET_VF: uapi.Vf, uapi.PROVISION: uapi.Provision,
    uapi.RELEASE: uapi.VfRef, uapi.SCRUB_DURABLE: uapi.VfRef, uapi.CONTROL: uapi.Control,
    uapi.SET_RUN_TABLE: uapi.RunTable, uapi.GET_RUN_TABLE: uapi.RunTable,
    uapi.GET_EVENT_RING: uapi.RingInfo, uapi.SAVE: uapi.Stream, uapi.RESTORE: uapi.Stream,
    uapi.LEASE: uapi.Lease, uapi.VERIFY_ZERO: uapi.VfRef, uapi.DUMP: uapi.Stream,
    uapi.GET_ERROR: uapi.Error, uapi.CANCEL: uapi.Cancel}
EDGES = (0, 1, 2, 3, 5, 16, 17, 255, 1 << 24, 1 << 25, 0x7fffffff, 0x80000000, 0xffffffff)
IOC_MAX_BYTES = (1 << 14) - 1
WAIT_S = 2  # limit of one ioctl, after which a signal ends it


class Interrupted(Exception):
    pass


class Worker:
    """`counts` is shared memory: the number of calls, and of calls that succeeded."""

    def __init__(self, seed, counts):
        self.rng = random.Random(seed)
        self.counts = counts
        self.nodes = []
        self.pipe = os.pipe()
        self.file = os.memfd_create('stream')
        os.write(self.file, self.rng.randbytes(4096))

    def word(self):
        return self.rng.choice(EDGES) if self.rng.random() < 0.8 else self.rng.getrandbits(32)

    def plausible(self, op):
        """A struct of the operation with mostly small dwords."""
        size = ctypes.sizeof(STRUCTS[op])
        words = [self.word() if self.rng.random() < 0.2 else self.rng.choice((0, 0, 1, 2))
                 for _ in range(min(size // 4, 48))]
        if self.rng.random() < 0.5:
            words = [0] * len(words)
        words[1] = self.rng.randrange(4)  # mostly the VF's number
        body = bytearray(b''.join(word.to_bytes(4, 'little') for word in words).ljust(size, b'\0'))
        if op == uapi.PROVISION:
            body[8:16] = (self.rng.randrange(6) << 24).to_bytes(8, 'little')
        if op == uapi.CONTROL:
            body[12:16] = self.rng.randrange(7).to_bytes(4, 'little')
        if op in (uapi.SAVE, uapi.RESTORE, uapi.DUMP):
            body[12:16] = self.descriptor().to_bytes(4, 'little', signed=True)
        if op == uapi.SET_RUN_TABLE and self.rng.random() < 0.7:
            body[4:8] = self.rng.randrange(5).to_bytes(4, 'little')
        return body

    def descriptor(self):
        choices = [*self.pipe, self.file, 0, -1, 999, *self.nodes]
        return self.rng.choice(choices)

    def open(self):
        flags = self.rng.choice((os.O_RDWR, os.O_RDWR, os.O_RDONLY))
        try:
            self.nodes.append(os.open(self.rng.choice(NODES), flags | os.O_NONBLOCK))
        except OSError:
            pass

    def call(self, node):
        op = self.rng.choice(list(STRUCTS)) if self.rng.random() < 0.9 else self.rng.randrange(256)
        if op == uapi.CANCEL and self.rng.random() < 0.8:
            return
        known = op in STRUCTS
        body = self.plausible(op) if known and self.rng.random() < 0.8 else \
            bytearray(self.rng.randbytes(self.rng.randrange(IOC_MAX_BYTES)))
        number = uapi.command(op, len(body))
        if self.rng.random() < 0.1:
            number = uapi.command(op, self.rng.randrange(len(body) + 1))
        if self.rng.random() < 0.02:
            number ^= 1 << self.rng.choice((8, 15, 30, 31))
            body = body.ljust(IOC_MAX_BYTES, b'\0')
        self.counts[0] += 1
        fcntl.ioctl(node, number, body)
        self.counts[1] += 1

    def call_with_bad_pointer(self, node):
        op = self.rng.choice(list(STRUCTS))
        address = self.rng.choice((0, 1, 4095, 1 << 46, -4096))
        fcntl.ioctl(node, uapi.command(op, ctypes.sizeof(STRUCTS[op])), address)

    def look(self, node):
        choice = self.rng.randrange(4)
        if choice == 0:
            os.read(node, self.rng.choice((0, 1, 8, 64)))
        elif choice == 1:
            select.select([node], [node], [node], 0)
        elif choice == 2:
            os.write(node, b'x' * self.rng.randrange(16))
        else:
            length = self.rng.choice((4096, 1 << 20, 4096 + 16384 * 64, 8 << 20))
            offset = self.rng.choice((0, 0, 4096))
            protection = self.rng.choice((mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE))
            with mmap.mmap(node, length, mmap.MAP_SHARED, protection, offset=offset) as memory:
                memory[self.rng.randrange(4096)]

    def drain(self):
        """Reads the pipe if it has data."""
        if select.select([self.pipe[0]], [], [], 0)[0]:
            os.read(self.pipe[0], 65536)

    def step(self):
        if not self.nodes or self.rng.random() < 0.05:
            self.open()
        if self.nodes and (len(self.nodes) > 6 or self.rng.random() < 0.04):
            os.close(self.nodes.pop(self.rng.randrange(len(self.nodes))))
        if not self.nodes:
            return
        node = self.rng.choice(self.nodes)
        act = self.rng.choices((self.call, self.call_with_bad_pointer, self.look),
                                (0.85, 0.05, 0.1))[0]
        signal.setitimer(signal.ITIMER_REAL, WAIT_S)
        try:
            act(node)
        except (OSError, ValueError, OverflowError, Interrupted):
            pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        self.drain()

    def run(self):
        signal.signal(signal.SIGALRM, self.interrupt)
        while True:
            try:
                self.step()
            except Interrupted:  # the timer went off after the act had ended
                pass

    @staticmethod
    def interrupt(*_):
        raise Interrupted


def spawn(seed, counts):
    child = os.fork()
    if child == 0:
        Worker(seed, counts).run()
    return child


def main(seed, seconds):
    print('seed', seed, flush=True)
    rng = random.Random(seed)
    end = time.monotonic() + seconds
    counts = [(ctypes.c_uint64 * 2).from_buffer(mmap.mmap(-1, mmap.PAGESIZE))
              for _ in range(WORKERS)]
    workers = [spawn(rng.getrandbits(64), counts[number]) for number in range(WORKERS)]
    kills = 0
    while time.monotonic() < end:
        time.sleep(rng.uniform(0.05, 1.0))
        victim = rng.randrange(WORKERS)
        os.kill(workers[victim], signal.SIGKILL)
        os.waitpid(workers[victim], 0)
        kills += 1
        workers[victim] = spawn(rng.getrandbits(64), counts[victim])
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)
    with uapi.Pf() as pf:
        assert pf.info().device_lost == 0
        print('calls', sum(count[0] for count in counts), 'of which succeeded',
              sum(count[1] for count in counts), 'kills', kills, 'events', uapi.Ring(pf).head() - 1)


if __name__ == '__main__':
    main(int(sys.argv[1]), float(sys.argv[2]))
