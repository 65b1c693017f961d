# SPDX-License-Identifier: MIT
"""A client of a VF's socket in place of QEMU, which sees VRAM from outside of any guest."""
import socket
import struct

from host import HostError


class VfUserClient:
    """A minimal vfio-user client, which reads and writes a BAR."""
    VERSION, REGION_READ, REGION_WRITE = 1, 9, 10

    def __init__(self, path):
        self.channel = socket.socket(socket.AF_UNIX)
        self.channel.settimeout(10)
        self.channel.connect(path)
        self.ask(self.VERSION, struct.pack('<HH', 0, 1) + b'{"capabilities":{}}\0')
        # memory and bus master enable: a BAR answers nothing before
        self.write(7, 4, b'\x06\x00')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()

    def take(self, size):
        data = b''
        while len(data) < size:
            more = self.channel.recv(size - len(data))
            if not more:
                raise HostError('the device closed the connection')
            data += more
        return data

    def ask(self, command, payload):
        self.channel.sendall(struct.pack('<HHIII', 1, command, 16 + len(payload), 0, 0) + payload)
        _, _, size, flags, error = struct.unpack('<HHIII', self.take(16))
        answer = self.take(size - 16)
        if flags & 0x20 or error:
            raise HostError(f'command {command}: error {error}')
        return answer

    def read(self, region, offset, size):
        return self.ask(self.REGION_READ, struct.pack('<QII', offset, region, size))[16:]

    def write(self, region, offset, data):
        self.ask(self.REGION_WRITE, struct.pack('<QII', offset, region, len(data)) + data)
