# SPDX-License-Identifier: MIT
"""One test guest: stock QEMU (TCG) with VFs attached by vfio-user-pci, and a command channel.

    with Vm(sockets=['run/vf1.sock'], log_dir=...) as vm:
        vm.run('load_amdgpu ip_block_mask=0xdf', timeout=180)
        print(vm.run('in_root rocminfo').text)

Console and command channel are serial ports on unix sockets; both are kept as files in log_dir.
Times are generous: a guest under TCG is 10-50 times slower than silicon.
"""
import json
import os
import socket
import subprocess
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GUEST = os.path.join(ROOT, 'build', 'guest')


class GuestError(Exception):
    """The guest failed; the message names the log to read."""


class Answer:
    def __init__(self, status, text):
        self.status = status
        self.text = text


class Qmp:
    """QEMU's own socket, for commands of its monitor."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(path)
        self.lines = self.socket.makefile('r')
        self.lines.readline()  # its greeting
        self.ask('qmp_capabilities')

    def ask(self, command, **arguments):
        self.socket.sendall(json.dumps({'execute': command, 'arguments': arguments}).encode() + b'\n')
        while True:
            answer = json.loads(self.lines.readline())
            if 'event' not in answer:
                return answer.get('return', answer.get('error'))

    def monitor(self, words):
        return self.ask('human-monitor-command', **{'command-line': words})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lines.close()
        self.socket.close()


class Vm:
    # where KERNEL/vmlinuz and KERNEL/initrd.gz are
    images = GUEST
    slowness = 1  # factor for every time limit
    command_line = 'console=ttyS0 panic=-1 loglevel=7 mitigations=off sysrq_always_enabled'

    def __init__(self, sockets, log_dir, name='guest', memory='2G', cpus=1, share=None, kernel='6.12',
                 agent_socket=None, agent_share=None):
        self.sockets = [os.path.abspath(s) for s in sockets]
        self.log_dir = os.path.abspath(log_dir)
        self.name = name
        self.memory = memory
        self.cpus = cpus
        self.kernel = kernel
        self.share = share or os.path.join(GUEST, 'programs')
        # vgpud's socket for the guest's agent, and a directory that the guest may mount as 'agent'
        self.agent_socket = agent_socket
        self.agent_share = agent_share
        self.process = None
        self.channel = None
        self.pending = b''

    def path(self, what):
        return os.path.join(self.log_dir, f'{self.name}.{what}')

    def arguments(self):
        qemu = os.path.join(GUEST, 'qemu', 'root')
        libraries = os.path.join(qemu, 'usr/lib/x86_64-linux-gnu')
        command = [os.path.join(qemu, 'lib64/ld-linux-x86-64.so.2'), '--library-path', libraries,
                   '--argv0', 'qemu-system-x86_64',
                   os.path.join(qemu, 'usr/bin/qemu-system-x86_64'),
                   '-L', os.path.join(qemu, 'usr/share/qemu'),
                   '-L', os.path.join(qemu, 'usr/share/seabios'),
                   '-accel', 'tcg,thread=multi', '-machine', 'q35,memory-backend=mem0',
                   # TCG makes atomics of the guest atomic for the host only if there can be two CPUs
                   '-cpu', 'max', '-m', self.memory,
                   '-smp', f'{self.cpus},maxcpus={max(2, self.cpus)}',
                   '-object', f'memory-backend-memfd,id=mem0,size={self.memory},share=on',
                   '-nodefaults', '-display', 'none',
                   '-kernel', os.path.join(self.images, self.kernel, 'vmlinuz'),
                   '-initrd', os.path.join(self.images, self.kernel, 'initrd.gz'),
                   '-append', self.command_line,
                   '-chardev', f'socket,id=con,path={self.path("con")},server=on,wait=off,'
                               f'logfile={self.path("console.log")}',
                   '-serial', 'chardev:con',
                   '-qmp', f'unix:{self.path("qmp")},server=on,wait=off',
                   '-chardev', f'socket,id=ch,path={self.path("ch")},server=on,wait=off',
                   '-serial', 'chardev:ch']
        for tag, directory in self.shares():
            command += ['-virtfs', f'local,path={directory},mount_tag={tag},security_model=none,'
                        'readonly=on,multidevs=remap']
        if self.agent_socket:
            command += ['-chardev', f'socket,id=agent,path={self.agent_socket},reconnect-ms=1000',
                        '-device', 'virtio-serial-pci',
                        '-device', 'virtserialport,chardev=agent,name=org.vgpu.agent.0']
        for device in self.devices():
            command += ['-device', json.dumps(device)]
        return command

    def shares(self):
        """Directories that the guest may mount: (tag, path)."""
        shares = [('system', os.path.join(GUEST, 'system', 'root')), ('tests', self.share)]
        if self.agent_share:
            shares.append(('agent', self.agent_share))
        return shares

    def devices(self):
        """QEMU's devices for `sockets`."""
        return [{'driver': 'vfio-user-pci', 'id': f'vf{number}',
                 'socket': {'type': 'unix', 'path': path}}
                for number, path in enumerate(self.sockets)]

    def __enter__(self):
        os.makedirs(self.log_dir, exist_ok=True)
        os.makedirs(self.share, exist_ok=True)
        if os.path.exists(self.path('ch')):
            os.unlink(self.path('ch'))
        with open(self.path('qemu.log'), 'wb') as log:
            self.process = subprocess.Popen(self.arguments(), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)
        try:
            self.connect(time.monotonic() + 30)
            self.wait_for(b'#ready', 180)
        except BaseException:
            self.kill()
            raise
        return self

    def connect(self, deadline):
        while True:
            channel = socket.socket(socket.AF_UNIX)
            try:
                channel.connect(self.path('ch'))
                self.channel = channel
                return
            except OSError:
                channel.close()
            # a QEMU of libvirt is not a child of this process
            has_ended = self.process is not None and self.process.poll() is not None
            if has_ended or time.monotonic() > deadline:
                raise GuestError(f'no channel to {self.name}; see {self.path("qemu.log")}, '
                                 'if the test started QEMU')
            time.sleep(0.05)

    def wait_for(self, mark, timeout):
        """Text up to a line that starts with `mark`, and the rest of that line."""
        timeout *= self.slowness
        deadline = time.monotonic() + timeout
        while True:
            for start in (0, self.pending.find(b'\n' + mark) + 1):
                if self.pending.startswith(mark, start) and b'\n' in self.pending[start:]:
                    end = self.pending.index(b'\n', start)
                    text, line = self.pending[:start], self.pending[start + len(mark):end]
                    self.pending = self.pending[end + 1:]
                    return text.decode(errors='replace'), line.decode(errors='replace').strip()
            left = deadline - time.monotonic()
            if left <= 0:
                self.describe_silence()
                raise GuestError(f'no answer in {timeout} s; see {self.path("console.log")}; '
                                 f'so far: {self.pending[-400:]!r}')
            self.channel.settimeout(left)
            try:
                data = self.channel.recv(65536)
            except socket.timeout:
                continue
            if not data:
                raise GuestError(f'the guest is gone; see {self.path("console.log")}')
            with open(self.path('channel.log'), 'ab') as log:
                log.write(data)
            self.pending += data.replace(b'\r', b'')

    def describe_silence(self):
        """Writes what a guest that does not answer is doing to console.log (by sysrq) and
        silence.log."""
        try:
            with Qmp(self.path('qmp')) as qmp, socket.socket(socket.AF_UNIX) as console:
                with open(self.path('silence.log'), 'a') as log:
                    for words in ('info registers -a', 'info pic', 'info irq', 'info network'):
                        log.write(f'--- {words}\n{qmp.monitor(words)}\n')
                console.connect(self.path('con'))
                for request in b'lwtq':  # all processors, blocked tasks, all tasks, timers
                    qmp.monitor('chardev-send-break con')
                    console.sendall(bytes([request]))
                    time.sleep(3)
        except (OSError, ValueError) as error:
            with open(self.path('silence.log'), 'a') as log:
                log.write(f'QEMU does not answer either: {error}\n')

    def run(self, command, timeout=60):
        """Runs one shell command in the guest's init; returns Answer(status, text)."""
        self.start(command)
        return self.finish(timeout)

    def start(self, command):
        """Starts a command; finish() returns its answer. Only one command may run at a time."""
        self.channel.sendall(command.encode() + b'\n')

    def finish(self, timeout):
        text, status = self.wait_for(b'#rc', timeout)
        return Answer(int(status or -1), text)

    def reboot(self):
        """Reboots the guest; returns when it takes commands again."""
        self.start('reboot -f')
        self.wait_for(b'#ready', 180)

    def dmesg(self):
        with open(self.path('console.log'), errors='replace') as log:
            return log.read()

    def kill(self):
        if self.channel:
            self.channel.close()
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait(timeout=30)

    def __exit__(self, *_):
        self.kill()
