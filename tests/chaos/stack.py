# SPDX-License-Identifier: MIT
"""The programs under test: a private bus, vgpud, and the softgpu and vgpu-pf that vgpud starts.

The folders of state and sockets are small file systems in memory, so that a test can fill them. The
module works only in the private namespaces that tests/chaos/run makes.
"""
import glob
import json
import mmap
import os
import re
import signal
import socket
import struct
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
QUANTUM_US = 4000
# as in the unit of vgpud; without root there is no other user
DEVICE_USER = [] if os.environ.get('VGPU_CHAOS_BOX') == 'user' else ['--device-user', 'nobody']
PROGRAMS = ('vgpud', 'softgpu', 'vgpu-pf', 'bus')
SIZES = {'state': '256k', 'run': '16m'}
OFFSET, DELAY = 0, 8  # offsets of the words in the file that tests/chaos/faults.c maps
(GET_INFO, SAVE, RESTORE) = (1, 10, 11)
REQUEST, REPLY, STREAM = struct.Struct('<IIIIQ'), struct.Struct('<IiIIQ160s'), struct.Struct('<IIIiQ')
UAPI_MAGIC = re.search(r'#define VGPU_PF_UAPI_MAGIC\s+(\w+)', open(
    os.path.join(ROOT, 'pf-driver/uapi/vgpu_pf.h'), encoding='utf-8').read()).group(1)

BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>{}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>
"""


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def definitions(text):
    """Returns the VFs of a state file, {name: [VRAM in bytes, weight]}; ValueError if the file is damaged."""
    content = json.loads(text)
    checksum = content.pop('checksum')
    plain = json.dumps(content, sort_keys=True, separators=(',', ':'), ensure_ascii=False)
    if checksum != f'crc32c:{crc32c(plain.encode()):08x}':
        raise ValueError(f'checksum {checksum}')
    return {vf['name']: [vf['vram_bytes'], vf['weight']] for vf in content['vfs'] if not vf['releasing']}


class Stack:
    def __init__(self, directory, binaries, history, device):
        self.directory, self.binaries, self.history = directory, binaries, history
        self.children = {}
        self.expected_ends = set()
        self.ballast = {}
        subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=64m,mode=755', 'chaos', directory], check=True)
        for name, size in SIZES.items():
            os.mkdir(self.path(name))
            subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={size},mode=755', 'chaos', self.path(name)], check=True)
        with open(self.path('faults'), 'wb') as file:
            file.write(bytes(16))
        with open(self.path('faults'), 'r+b') as file:
            self.faults = mmap.mmap(file.fileno(), 16)
        subprocess.run(['cc', '-shared', '-fPIC', '-O1', '-o', self.path('faults.so'),
                        os.path.join(ROOT, 'tests/chaos/faults.c'), '-ldl'], check=True)
        self.address = 'unix:path=' + self.path('bus.sock')
        with open(self.path('bus.conf'), 'w', encoding='utf-8') as file:
            file.write(BUS.format(self.address))
        self.configure(device)
        self.start('bus')
        self.start('vgpud')

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def socket_of(self, name):
        return self.path('run', 'gpu0', name + '.sock')

    def configure(self, device):
        gpu = {'id': 'gpu0', 'quantum_us': QUANTUM_US,
               'softgpu': {'vfs': 4, 'vram_mb': 256, 'aperture_mb': 64, 'cus': 4, 'threads': 1, 'args': ['--control'],
                           **device}}
        with open(self.path('vgpud.json'), 'w', encoding='utf-8') as file:
            json.dump({'state_dir': self.path('state'), 'run_dir': self.path('run'), 'gpus': [gpu],
                       'programs': {'softgpu': self.program('softgpu'), 'vgpu_pf': self.program('vgpu-pf')}}, file)

    def program(self, name):
        return os.path.join(self.binaries, name)

    def start(self, name):
        if name == 'bus':
            words = ['/usr/bin/dbus-daemon', '--nofork', '--nosyslog', '--nopidfile',
                     '--config-file=' + self.path('bus.conf')]
            if os.path.exists(self.path('bus.sock')):
                os.unlink(self.path('bus.sock'))
        else:
            words = [self.program('vgpud'), '--bus', self.address, '--config', self.path('vgpud.json'),
                     '--no-polkit', '--supervise', *DEVICE_USER]
        environment = dict(os.environ)
        if name == 'vgpud':
            environment |= {'LD_PRELOAD': self.path('faults.so'), 'VGPU_CHAOS_FAULTS': self.path('faults')}
        with open(self.path(name + '.log'), 'ab') as log:
            self.children[name] = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                   env=environment)

    def pid(self, name):
        """The pid of the program if it runs, else None."""
        if name in self.children:
            child = self.children[name]
            return child.pid if child.poll() is None else None
        try:
            with open(self.path('run', 'gpu0', name + '.pid'), encoding='utf-8') as file:
                pid = int(file.read().split()[0])
            with open(f'/proc/{pid}/comm', encoding='utf-8') as file:
                return pid if file.read().strip() == name else None
        except (OSError, ValueError, IndexError):
            return None

    def signal(self, name, number):
        pid = self.pid(name)
        if pid:
            os.kill(pid, number)
            if number in (signal.SIGKILL, signal.SIGTERM):
                self.expected_ends.add(pid)
        return pid

    def revive(self):
        """Starts ended programs again, as a service manager does, and records ends that no action caused."""
        for name, child in list(self.children.items()):
            if child.poll() is None:
                continue
            bus_ended = name == 'vgpud' and self.bus_ended_since(child.pid)
            if child.pid not in self.expected_ends and not bus_ended:
                self.history.add('end', program=name, status=child.returncode)
            self.start(name)
            if name == 'bus':
                self.vgpud_of_lost_bus = self.children['vgpud'].pid

    vgpud_of_lost_bus = None

    def bus_ended_since(self, pid):
        return pid == self.vgpud_of_lost_bus or self.children['bus'].poll() is not None

    def fill(self, name):
        """Fills the file system of `name`."""
        self.ballast[name] = open(self.path(name, 'ballast'), 'wb', buffering=0)
        try:
            while True:
                self.ballast[name].write(bytes(4096))
        except OSError:
            pass

    def empty(self, name):
        if name in self.ballast:
            self.ballast.pop(name).close()
            os.unlink(self.path(name, 'ballast'))

    def step_clock(self, seconds):
        """Moves the wall clock of vgpud and of the programs that it starts."""
        struct.pack_into('<q', self.faults, OFFSET, seconds * 10**9)

    def slow_disk(self, milliseconds):
        """Makes each sync of vgpud take `milliseconds` longer."""
        struct.pack_into('<q', self.faults, DELAY, milliseconds * 10**6)

    def ctl(self, *words, seconds=20):
        """Runs vgpuctl; returns its exit status, None if it did not end, and its output."""
        command = [self.program('vgpuctl'), '--bus', self.address, '--json', '--timeout', str(seconds), *words]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=3 * seconds, check=False)
        except subprocess.TimeoutExpired:
            return None, {}
        try:
            return done.returncode, json.loads(done.stdout or done.stderr or '{}')
        except ValueError:
            return done.returncode, {'error': done.stdout + done.stderr}

    def uapi(self, operation, body, descriptor=None, seconds=30):
        """Returns error and body of vgpu-pf's reply to a request; OSError if there is no reply."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(seconds)
            connection.connect(self.socket_of('uapi'))
            message = REQUEST.pack(int(UAPI_MAGIC.rstrip('uU'), 16), 1, operation, len(body), 1) + body
            socket.send_fds(connection, [message], [] if descriptor is None else [descriptor])
            answer = connection.recv(1 << 16)
        if len(answer) < REPLY.size:
            raise OSError('vgpu-pf closed the connection')
        return REPLY.unpack_from(answer)[1], answer[REPLY.size:]

    def stream(self, operation, vf, descriptor):
        return self.uapi(operation, STREAM.pack(STREAM.size, vf, 0, -1, 0), descriptor)[0]

    def control(self, request):
        """Returns softgpu's answer to a request at its control socket."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(30)
            connection.connect(self.socket_of('control'))
            connection.sendall(json.dumps(request).encode() + b'\n')
            return json.loads(connection.makefile().readline())

    def sample(self):
        """Records descriptors, memory and logs of all programs."""
        for name in PROGRAMS:
            pid = self.pid(name)
            if not pid:
                continue
            with open(f'/proc/{pid}/status', encoding='utf-8') as file:
                memory = int(re.search(r'RssAnon:\s+(\d+)', file.read()).group(1))
            self.history.add('sample', program=name, pid=pid, descriptors=len(os.listdir(f'/proc/{pid}/fd')),
                             memory_kb=memory)
        self.history.add('logs', bytes=sum(os.path.getsize(file) for file in self.logs()))

    def logs(self):
        return [file for file in glob.glob(self.path('*.log')) + glob.glob(self.path('run', 'gpu0', '*.log'))
                if os.path.exists(file)]

    def state(self):
        """Returns the VFs that the state file defines now, or a text if the file is damaged."""
        try:
            with open(self.path('state', 'gpus', 'gpu0.json'), encoding='utf-8') as file:
                defined = definitions(file.read())
        except FileNotFoundError:
            defined = {}
        except (ValueError, KeyError, OSError) as error:
            defined = f'damaged: {error}'
        return defined

    def close(self):
        for child in self.children.values():
            child.kill()
        for name in ('softgpu', 'vgpu-pf'):
            self.signal(name, signal.SIGKILL)
        for child in self.children.values():
            child.wait()
        time.sleep(0.2)
        self.faults.close()
        for name in SIZES:
            self.empty(name)
            subprocess.run(['umount', '-l', self.path(name)], check=True)
        subprocess.run(['umount', '-l', self.directory], check=True)
