# SPDX-License-Identifier: MIT
"""The machine of the host level: softgpu as the card, and a VM whose stock kernel finds it on PCIe.

    with Card(directory) as card, Machine(card.path('host.sock'), directory) as vm:
        vm.run('insmod /built/vgpu_test_bridge.ko')
        print(vm.run('in_root lspci -D').text)

Everything runs under TCG; consoles and logs stay in `directory`. Programs come from
build/release/bin, or from VGPU_BIN.
"""
import os
import subprocess
import sys
import time

from kernel_log import LOG_BYTES

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'guest'))
from vm import Vm  # noqa: E402  pylint: disable=wrong-import-position

GUEST = os.path.join(ROOT, 'build', 'guest')
HOST = os.path.join(ROOT, 'build', 'host')
BIN = os.environ.get('VGPU_BIN', os.path.join(ROOT, 'build', 'release', 'bin'))
# ids of the endpoint: pf-driver/hw/pci.h
DOMAINS = {'bridge': '0001', 'vmd': '10000'}
# on a busy machine, QEMU may have to wait long for softgpu's answer
MESSAGE_TIMEOUT_MS = 60000


def prepare_guest():
    """The guest level's system, programs and stock amdgpu; builds what is missing."""
    subprocess.run([os.path.join(ROOT, 'tests/guest/image')], check=True, timeout=1800)


class Card:
    """One softgpu with a host view."""

    def __init__(self, directory, view='bridge', vfs=16, vram_mb=1024, aperture_mb=64, threads=1):
        self.directory = os.path.abspath(directory)
        # the VM needs a CPU while the engine works
        self.arguments = [f'--host-view={view}', f'--vfs={vfs}', f'--vram-mb={vram_mb}',
                          f'--aperture-mb={aperture_mb}', f'--threads={threads}', '--control']
        self.process = None

    def path(self, name):
        return os.path.join(self.directory, 'card', name)

    def __enter__(self):
        os.makedirs(self.path(''), exist_ok=True)
        with open(os.path.join(self.directory, 'softgpu.log'), 'ab') as log:
            self.process = subprocess.Popen(
                [os.path.join(BIN, 'softgpu'), '--socket-dir', self.path(''), *self.arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 20
        while not os.path.exists(self.path('host.sock')):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f'softgpu does not start; see {self.directory}/softgpu.log')
            time.sleep(0.05)
        return self

    def log(self):
        with open(os.path.join(self.directory, 'softgpu.log'), errors='replace') as log:
            return log.read()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(timeout=10)

    def __exit__(self, *_):
        self.stop()


class Machine(Vm):
    """A VM with the whole card (none, if there is no socket). `share` of Vm is not used: the VM sees this machine's own /."""
    images = HOST
    command_line = f'{Vm.command_line} log_buf_len={LOG_BYTES}'

    def __init__(self, host_socket, log_dir, name='host', memory='1G', cpus=2, kernel='6.12',
                 has_guest=False):
        self.has_guest = has_guest  # `open_guest` works: programs of the guest level, stock amdgpu
        if kernel == 'debug':
            # With page tables of five levels, KASAN may report valid addresses as wild if an
            # interrupt comes while the kernel detects the features of its CPU (LKML, "kasan: Fix
            # false-positive wild-memory-access", June 2026).
            self.command_line += ' no5lvl'
            self.slowness = 4  # because of KASAN and lockdep
        super().__init__([host_socket] if host_socket else [], log_dir, name=name, memory=memory, cpus=cpus, kernel=kernel,
                         share=log_dir)

    def shares(self):
        shares = [('system', '/'), ('vgpu', BIN),
                  ('built', os.path.join(HOST, 'modules', self.kernel)),
                  ('tests', os.path.join(ROOT, 'tests', 'host'))]
        if self.has_guest:
            shares += [('guest', os.path.join(GUEST, 'system', 'root')),
                       ('programs', os.path.join(GUEST, 'programs')),
                       ('amdgpu', os.path.join(HOST, self.kernel, 'amdgpu'))]
        return shares

    def devices(self):
        return [{'driver': 'vfio-user-pci', 'id': f'card{number}', 'x-msg-timeout': MESSAGE_TIMEOUT_MS,
                 'socket': {'type': 'unix', 'path': path}}
                for number, path in enumerate(self.sockets)]

    def check(self, command, timeout=60):
        """Runs a command that must succeed; returns its output."""
        answer = self.run(command, timeout)
        if answer.status != 0:
            raise AssertionError(f'{command}: status {answer.status}: {answer.text}\n'
                                 f'{self.dmesg()[-3000:]}')
        return answer.text.strip()
