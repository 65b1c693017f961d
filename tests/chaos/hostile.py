# SPDX-License-Identifier: MIT
"""Hostile clients of the bus, and of the sockets of softgpu, vgpu-pf and vgpud."""
import os
import random
import socket
import struct


def aligned(data, to):
    return data + bytes(-len(data) % to)


def header_field(code, signature, text):
    words = bytes([code, 1]) + signature + b'\0' + struct.pack('<I', len(text)) + text.encode() + b'\0'
    return aligned(words, 8)


def method_call(serial, path, interface, method):
    """A D-Bus message without arguments, for org.vgpu1."""
    fields = (header_field(1, b'o', path) + header_field(2, b's', interface) + header_field(3, b's', method) +
              header_field(6, b's', 'org.vgpu1'))
    return struct.pack('<cBBBIII', b'l', 1, 0, 1, 0, serial, len(fields)) + fields


def connect_bus(path):
    bus = socket.socket(socket.AF_UNIX)
    bus.settimeout(2)
    bus.connect(path)
    bus.sendall(b'\0AUTH EXTERNAL ' + str(os.getuid()).encode().hex().encode() + b'\r\n')
    bus.recv(256)
    bus.sendall(b'BEGIN\r\n')
    bus.sendall(hello())
    return bus


def hello():
    fields = (header_field(1, b'o', '/org/freedesktop/DBus') + header_field(2, b's', 'org.freedesktop.DBus') +
              header_field(3, b's', 'Hello') + header_field(6, b's', 'org.freedesktop.DBus'))
    return struct.pack('<cBBBIII', b'l', 1, 0, 1, 0, 1, len(fields)) + fields


def flood(path, _):
    """Sends many calls and reads no answer; the connection stays open until the caller closes it."""
    bus = connect_bus(path)
    calls = b''.join(method_call(serial, '/org/vgpu1', 'org.freedesktop.DBus.ObjectManager', 'GetManagedObjects')
                     for serial in range(2, 400))
    try:
        bus.sendall(calls)
    except OSError:
        pass
    return bus


def hang_up(path, rng):
    """Closes connections in the middle of a message."""
    for _ in range(20):
        bus = connect_bus(path)
        call = method_call(2, '/org/vgpu1', 'org.freedesktop.DBus.Introspectable', 'Introspect')
        bus.sendall(call[:rng.randint(1, len(call))])
        bus.close()


def garbage(path, rng):
    """Sends bytes that are not a message; the bus closes the connection."""
    bus = connect_bus(path)
    try:
        bus.sendall(rng.randbytes(4096))
    except OSError:
        pass
    bus.close()


def nonsense(path, rng):
    """Sends random bytes to a socket of either type, in messages of any length."""
    for kind in (socket.SOCK_SEQPACKET, socket.SOCK_STREAM):
        for _ in range(8):
            client = socket.socket(socket.AF_UNIX, kind)
            client.settimeout(0.2)
            try:
                client.connect(path)
                client.send(rng.randbytes(rng.randint(1, 2000)))
                client.recv(4096)
            except OSError:
                pass
            client.close()


BUS_CLIENTS = {'flood': flood, 'hang_up': hang_up, 'garbage': garbage}


def attack_bus(path, name, seed):
    """Returns the connection that the caller must close later, or None."""
    try:
        return BUS_CLIENTS[name](path, random.Random(seed))
    except OSError:
        return None
