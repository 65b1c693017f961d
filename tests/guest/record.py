# SPDX-License-Identifier: MIT
"""Records what a stock driver does to a VF's registers while it loads, for tests/golden.

    python3 tests/guest/record.py tests/golden/stock_boot_6.12.txt

record.py is between QEMU and softgpu and copies vfio-user messages both ways. It writes one line
for an access that traps: R or W (BAR5: dword offset and value) or D (BAR2: dword offset and value),
all hexadecimal. Rings, VBIOS and command buffers lie in memory that QEMU maps; they do not trap and
are not seen here.
"""
import array
import os
import socket
import struct
import sys
import tempfile
import threading

from host import Host, wait_for
from suite import LOAD, LOAD_SECONDS
from vm import Vm

HEADER = struct.Struct('<HHIII')  # id, command, size, flags, error
REGION = struct.Struct('<QII')  # offset, region, count
READ, WRITE, WRITE_MULTI = 9, 10, 15
REPLY = 1
REGISTERS, DOORBELLS = 5, 2


class Pipe:
    """One direction of a vfio-user connection, message by message with its descriptors."""

    def __init__(self, source, sink, seen):
        self.source, self.sink, self.seen = source, sink, seen
        threading.Thread(target=self.run, daemon=True).start()

    def receive(self, size, fds):
        data = b''
        while len(data) < size:
            part, ancillary, _, _ = self.source.recvmsg(size - len(data), socket.CMSG_SPACE(64))
            if not part:
                raise ConnectionError
            for level, kind, content in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    numbers = array.array('i')
                    numbers.frombytes(content[:len(content) - len(content) % 4])
                    fds.extend(numbers)
            data += part
        return data

    def run(self):
        try:
            while True:
                fds = []
                header = self.receive(HEADER.size, fds)
                body = self.receive(HEADER.unpack(header)[2] - HEADER.size, fds)
                self.seen(header, body)
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))]
                self.sink.sendmsg([header + body], rights if fds else [])
                for fd in fds:
                    os.close(fd)
        except OSError:
            for end in (self.source, self.sink):
                end.close()


class Recorder:
    """Listens at `path` for one client of the VF at `upstream`."""

    def __init__(self, path, upstream):
        self.lines, self.lock = [], threading.Lock()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(1)
        threading.Thread(target=self.serve, args=(upstream,), daemon=True).start()

    def serve(self, upstream):
        client, _ = self.listener.accept()
        server = socket.socket(socket.AF_UNIX)
        server.connect(upstream)
        Pipe(client, server, self.request)
        Pipe(server, client, self.reply)

    def add(self, kind, region, offset, data):
        if region == DOORBELLS and kind == 'W':
            kind = 'D'
        elif region != REGISTERS:
            return
        with self.lock:
            self.lines.append(f'{kind} {offset // 4:05x} {int.from_bytes(data, "little"):x}')

    def request(self, header, body):
        command = HEADER.unpack(header)[1]
        if command == WRITE:
            offset, region, count = REGION.unpack_from(body)
            self.add('W', region, offset, body[REGION.size:REGION.size + count])
        if command == WRITE_MULTI:
            for at in range(8, len(body), REGION.size + 8):
                offset, region, count = REGION.unpack_from(body, at)
                self.add('W', region, offset, body[at + REGION.size:at + REGION.size + count])

    def reply(self, header, body):
        _, command, _, flags, _ = HEADER.unpack(header)
        if command == READ and flags & REPLY and len(body) > REGION.size:
            offset, region, _ = REGION.unpack_from(body)
            self.add('R', region, offset, body[REGION.size:])


def main():
    with tempfile.TemporaryDirectory(prefix='vgpu-record-') as directory:
        with Host(directory) as host:
            path = os.path.join(directory, 'recorded.sock')
            recorder = Recorder(path, host.create_vf('a'))
            with Vm([path], directory, name='a') as vm:
                answer = vm.run(LOAD, timeout=LOAD_SECONDS)
                if answer.status != 0:
                    raise SystemExit(answer.text + vm.dmesg()[-2000:])
                wait_for('the render node', 60,
                         lambda: vm.run('test -e /dev/dri/renderD128').status == 0, 0.2)
                release = vm.run('uname -r').text.strip()
            lines = list(recorder.lines)
    with open(sys.argv[1], 'w') as out:
        out.write(f'# Linux {release}, {LOAD}; written by tests/guest/record.py\n')
        out.writelines(line + '\n' for line in lines)
    print(f'{len(lines)} accesses')


if __name__ == '__main__':
    main()
