# SPDX-License-Identifier: MIT
"""vgpud on a private bus with one softgpu: the machine whose VFs the test guests get.

    with Host(directory) as host:
        socket = host.create_vf('a', vram='512M', weight=3)
        host.ctl('set', 'a', '--weight', '1')
        print(host.gpu_stats()['cp'])

Programs come from build/release/bin, or from VGPU_BIN. All logs stay in `directory`.
"""
import json
import os
import signal
import socket
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get('VGPU_BIN', os.path.join(ROOT, 'build', 'release', 'bin'))

BUS_CONFIG = '''<!DOCTYPE busconfig PUBLIC
 "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>{address}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
'''


class HostError(Exception):
    """vgpud or vgpuctl failed; the message has their output."""


def wait_for(what, seconds, condition, interval=0.05):
    """Returns the first true value of `condition`; HostError if none came in `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise HostError(f'{what}: not within {seconds} s')
        time.sleep(interval)


class Host:
    def __init__(self, directory, vfs=4, cus=8, threads=2, vram_mb=2048, aperture_mb=512,
                 quantum_us=4000, run_dir=None, bus_socket=None, libvirt=''):
        self.directory = os.path.abspath(directory)
        self.run_dir = run_dir or self.path('run')
        self.bus_socket = bus_socket or self.path('bus.sock')
        self.libvirt = libvirt
        self.gpu = {'id': 'gpu0', 'quantum_us': quantum_us,
                    'softgpu': {'vfs': vfs, 'vram_mb': vram_mb, 'aperture_mb': aperture_mb,
                                'cus': cus, 'threads': threads, 'args': ['--control'],
                                # guests under TCG answer late
                                'pf_args': ['--time-scale', '10']}}
        self.bus = 'unix:path=' + self.bus_socket
        self.children = []
        self.vgpud = None

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def start(self, name, arguments):
        log = open(self.path(name + '.log'), 'ab')
        child = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        self.children.append(child)
        return child

    def start_vgpud(self):
        self.vgpud = self.start('vgpud', [os.path.join(BIN, 'vgpud'), '--bus', self.bus,
                                          '--config', self.path('vgpud.json'), '--no-polkit',
                                          '--supervise'])
        wait_for('gpu0 in state ok', 20, self.gpu_is_ok)

    def gpu_is_ok(self):
        if self.vgpud.poll() is not None:
            raise HostError(f'vgpud ended; see {self.path("vgpud.log")}')
        try:
            gpus = self.ctl('list', '--gpus')['gpus']
        except HostError:
            return False
        return len(gpus) == 1 and gpus[0]['state'] == 'ok'

    def __enter__(self):
        for path in (self.run_dir, self.path('state')):
            os.makedirs(path, exist_ok=True)
        config = {'state_dir': self.path('state'), 'run_dir': self.run_dir,
                  'programs': {'softgpu': os.path.join(BIN, 'softgpu'),
                               'vgpu_pf': os.path.join(BIN, 'vgpu-pf'),
                               'vgpu_libvirt': os.path.join(BIN, 'vgpu-libvirt')},
                  'gpus': [self.gpu]}
        if self.libvirt:
            config['libvirt'] = self.libvirt
        with open(self.path('vgpud.json'), 'w') as file:
            json.dump(config, file, indent=2)
        with open(self.path('bus.conf'), 'w') as file:
            file.write(BUS_CONFIG.format(address=self.bus))
        try:
            self.start('bus', ['/usr/bin/dbus-daemon', '--nofork',
                               '--config-file=' + self.path('bus.conf')])
            wait_for('the bus', 10, lambda: os.path.exists(self.bus_socket))
            self.start_vgpud()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        for child in reversed(self.children):
            if child.poll() is None:
                child.terminate()
                try:
                    child.wait(timeout=20)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait(timeout=10)
        self.children = []
        for pid in self.helpers():
            os.kill(pid, signal.SIGTERM)

    def helpers(self):
        """Pids of softgpu and vgpu-pf, which outlive vgpud: those that name this host's directory."""
        pids = []
        for name in filter(str.isdigit, os.listdir('/proc')):
            try:
                with open(f'/proc/{name}/cmdline', 'rb') as file:
                    words = file.read().decode(errors='replace').split('\0')
            except OSError:
                continue
            program = os.path.basename(words[0])
            if program in ('softgpu', 'vgpu-pf') and any(
                    word.startswith(self.run_dir + '/') for word in words):
                pids.append(int(name))
        return pids

    def helper(self, program):
        """Pid of 'softgpu' or 'vgpu-pf'."""
        for pid in self.helpers():
            with open(f'/proc/{pid}/comm') as file:
                if file.read().strip() == program:
                    return pid
        raise HostError(f'{program} does not run')

    def ctl(self, *arguments):
        """The JSON document that `vgpuctl ARGUMENTS --json` prints (None if it prints nothing)."""
        done = subprocess.run([os.path.join(BIN, 'vgpuctl'), '--bus', self.bus, '--json',
                               *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise HostError(f'vgpuctl {" ".join(arguments)}: status {done.returncode}: '
                            f'{done.stdout}{done.stderr}')
        return json.loads(done.stdout) if done.stdout.strip() else None

    def create_vf(self, name, vram='512M', weight=100):
        """Creates a VF; returns the path of its vfio-user socket."""
        self.ctl('create', '--name', name, '--vram', vram, '--weight', str(weight))
        return wait_for(f'socket of {name}', 10, lambda: self.vf(name).get('socket'))

    def destroy_vf(self, name):
        """Destroys a VF whose client has just ended: it counts as open until softgpu has read what the client left."""
        wait_for(f'{name} to be closed', 20, lambda: not self.vf(name)['attached'])
        self.ctl('destroy', name)

    def vf(self, name):
        return next(v for v in self.ctl('list', '--vfs')['vfs'] if v['name'] == name)

    def control(self, request):
        """Sends one request to softgpu's control socket; returns the answer."""
        with socket.socket(socket.AF_UNIX) as channel:
            channel.settimeout(10)
            channel.connect(os.path.join(self.run_dir, 'gpu0', 'control.sock'))
            channel.sendall(json.dumps(request).encode() + b'\n')
            text = b''
            while not text.endswith(b'\n'):
                data = channel.recv(65536)
                if not data:
                    break
                text += data
        return json.loads(text)

    def gpu_stats(self):
        return self.control({'stats': {}})

    def vgpud_log(self):
        with open(self.path('vgpud.log'), errors='replace') as log:
            return log.read()

    def log_of(self, helper):
        """Log of softgpu or vgpu-pf."""
        with open(os.path.join(self.run_dir, 'gpu0', helper + '.log'), errors='replace') as log:
            return log.read()
