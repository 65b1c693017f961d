# SPDX-License-Identifier: MIT
"""One host of a cluster: a private bus, vgpud with a softgpu, vgpu-dra, and a client in the kubelet's place."""
import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time

import grpc

import dra_v1_pb2
import dra_v1_pb2_grpc
import dra_v1beta1_pb2
import dra_v1beta1_pb2_grpc
import registration_pb2
import registration_pb2_grpc

from api_server import DRIVER, NODE

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get('VGPU_BIN', os.path.join(ROOT, 'build', 'release', 'bin'))
DRA = os.environ.get('VGPU_DRA', os.path.join(ROOT, 'build', 'kubernetes', 'bin', 'vgpu-dra'))
LOGS = os.path.join(ROOT, 'build', 'kubernetes-test')
SMALL, LARGE = 4, 2
SECONDS = 30


class HostError(Exception):
    """A program failed; the message has its output."""


def wait_for(what, condition, seconds=SECONDS):
    """Returns the first true value of `condition`; HostError after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise HostError(f'{what}: not within {seconds} s')
        time.sleep(0.02)


class Kubelet:
    """The kubelet's side of the sockets below its directory."""

    def __init__(self, directory):
        self.registry = os.path.join(directory, 'plugins_registry', DRIVER + '-reg.sock')

    def registration(self):
        return registration_pb2_grpc.RegistrationStub(grpc.insecure_channel('unix:' + self.registry))

    def info(self):
        return self.registration().GetInfo(registration_pb2.InfoRequest(), timeout=SECONDS, wait_for_ready=True)

    def notify(self, error=''):
        self.registration().NotifyRegistrationStatus(
            registration_pb2.RegistrationStatus(plugin_registered=not error, error=error), timeout=SECONDS)

    def prepare(self, *claims, messages=dra_v1_pb2, stubs=dra_v1_pb2_grpc):
        """Prepares claims (namespace, uid, name); returns {uid: answer}."""
        stub = stubs.DRAPluginStub(grpc.insecure_channel('unix:' + self.info().endpoint))
        request = messages.NodePrepareResourcesRequest(claims=[self.claim(messages, one) for one in claims])
        return stub.NodePrepareResources(request, timeout=SECONDS).claims

    def unprepare(self, *claims, messages=dra_v1_pb2, stubs=dra_v1_pb2_grpc):
        stub = stubs.DRAPluginStub(grpc.insecure_channel('unix:' + self.info().endpoint))
        request = messages.NodeUnprepareResourcesRequest(claims=[self.claim(messages, one) for one in claims])
        return stub.NodeUnprepareResources(request, timeout=SECONDS).claims

    @staticmethod
    def claim(messages, claim):
        namespace, uid, name = claim
        return messages.Claim(namespace=namespace, uid=uid, name=name)


OLDER = {'messages': dra_v1beta1_pb2, 'stubs': dra_v1beta1_pb2_grpc}


class Host:
    def __init__(self, name):
        os.makedirs(LOGS, exist_ok=True)
        self.log_prefix = os.path.join(LOGS, name)
        self.temporary = tempfile.TemporaryDirectory(prefix='vgpu-k8s-')
        self.directory = self.temporary.name
        self.cdi, self.kubelet_dir = (os.path.join(self.directory, name) for name in ('cdi', 'kubelet'))
        self.bus = 'unix:path=' + os.path.join(self.directory, 'bus')
        self.kubelet = Kubelet(self.kubelet_dir)
        self.programs = {}

    def __enter__(self):
        self.start('bus', 'dbus-daemon', '--session', '--nofork', '--nopidfile', '--address=' + self.bus)
        wait_for('the bus', lambda: os.path.exists(os.path.join(self.directory, 'bus')))
        self.write('vgpud.json', {
            'state_dir': os.path.join(self.directory, 'state'), 'run_dir': os.path.join(self.directory, 'run'),
            'programs': {'softgpu': os.path.join(BIN, 'softgpu'), 'vgpu_pf': os.path.join(BIN, 'vgpu-pf')},
            'gpus': [{'id': 'gpu0', 'softgpu': {'vfs': SMALL + LARGE, 'vram_mb': 1024, 'aperture_mb': 256, 'cus': 4,
                                               'threads': 1}}]})
        self.write('profiles.json', {
            'profiles': {'small': {'resources': {'vram': '64MiB'}}, 'large': {'resources': {'vram': '256MiB'}}},
            'configs': {'k8s': [{'gpu': 'gpu0', 'vfs': [{'profile': 'small', 'count': SMALL, 'name': 'small-{n}'},
                                                       {'profile': 'large', 'count': LARGE, 'name': 'large-{n}'}]}]}})
        os.makedirs(os.path.join(self.directory, 'state'))
        os.makedirs(os.path.join(self.directory, 'run'))
        self.start_vgpud()
        self.ctl('apply', os.path.join(self.directory, 'profiles.json'))
        return self

    def __exit__(self, *_):
        gpu = self.ctl('list', '--gpus')['gpus'][0]
        for name in ('dra', 'vgpud', 'bus'):
            if name in self.programs:
                self.stop(name)
        # softgpu and vgpu-pf outlive vgpud
        for pid in (gpu['pf_pid'], gpu['softgpu_pid']):
            os.kill(pid, signal.SIGKILL)
            wait_for('its end', lambda pid=pid: not os.path.exists(f'/proc/{pid}') or self.is_zombie(pid))
        self.temporary.cleanup()

    @staticmethod
    def is_zombie(pid):
        with contextlib.suppress(FileNotFoundError), open(f'/proc/{pid}/stat', encoding='utf-8') as file:
            return file.read().rpartition(')')[2].split()[0] == 'Z'
        return True

    def write(self, name, document):
        with open(os.path.join(self.directory, name), 'w', encoding='utf-8') as file:
            json.dump(document, file)

    def start(self, name, *words):
        with open(f'{self.log_prefix}.{name}.log', 'ab') as log:
            self.programs[name] = subprocess.Popen(words, stdout=log, stderr=log, env={
                **os.environ, 'DBUS_SESSION_BUS_ADDRESS': self.bus, 'NODE_NAME': NODE})

    def stop(self, name):
        """Ends a program by SIGTERM; returns its exit status."""
        self.programs[name].terminate()
        return self.programs.pop(name).wait(SECONDS)

    def kill(self, name):
        self.programs[name].kill()
        self.programs.pop(name).wait(SECONDS)

    def start_vgpud(self):
        self.start('vgpud', os.path.join(BIN, 'vgpud'), '--config', os.path.join(self.directory, 'vgpud.json'),
                   '--no-polkit', '--supervise', '--bus', self.bus)
        wait_for('the GPU', lambda: self.gpu_state() == 'ok')

    def ctl(self, *words):
        """vgpuctl's JSON answer, or None if it has none."""
        done = subprocess.run([os.path.join(BIN, 'vgpuctl'), '--bus', self.bus, '--json', *words], capture_output=True,
                              text=True, timeout=SECONDS, check=False)
        if done.returncode != 0:
            raise HostError(f'vgpuctl {" ".join(words)}: {done.stdout}{done.stderr}')
        return json.loads(done.stdout) if done.stdout.strip().startswith(('{', '[')) else None

    def gpu_state(self):
        try:
            return self.ctl('list', '--gpus')['gpus'][0]['state']
        except (HostError, IndexError):
            return None

    def release_all(self):
        """Ends the claims of all VFs."""
        for vf in self.ctl('list', '--vfs')['vfs']:
            if vf['owner']:
                self.ctl('release', vf['target'], '--owner', vf['owner'], '--generation', str(vf['owner_generation']))

    def owners(self):
        """{device: owner} of VFs that have one."""
        return {vf['target'].replace('/', '-'): vf['owner'] for vf in self.ctl('list', '--vfs')['vfs'] if vf['owner']}

    # --- vgpu-dra

    def dra_words(self, server, *options):
        return [DRA, '--bus', self.bus, '--kubelet-dir', self.kubelet_dir, '--cdi-dir', self.cdi, '--cluster', 'lab',
                *server.options(), *options]

    def start_dra(self, server, *options):
        self.start('dra', *self.dra_words(server, *options))

    def log(self, name='dra'):
        with open(f'{self.log_prefix}.{name}.log', encoding='utf-8', errors='replace') as file:
            return file.read()

    def spec(self, uid):
        """The CDI specification of a claim; None if there is none."""
        try:
            with open(os.path.join(self.cdi, f'vgpu.org-vf-{uid}.json'), encoding='utf-8') as file:
                return json.load(file)
        except FileNotFoundError:
            return None
