# SPDX-License-Identifier: MIT
"""vgpud in a machine of the host level, on a bus of its own; vgpuctl beside it."""
import base64
import json
import os

from host import BUS_CONFIG, wait_for

BUS = 'unix:path=/run/bus.sock'
COMMAND = f'in_root vgpud --bus {BUS} --config /tmp/vgpud.json --no-polkit'
STATE_DIR = '/var/lib/vgpu'


class VgpudInVm:
    """Runs vgpud in the test VM; a base of test classes with a machine `vm` and a `directory` for
    logs."""
    gpus = 'auto'

    @classmethod
    def put(cls, path, text):
        """Writes a file for programs of `in_root`."""
        packed = base64.b64encode(text.encode()).decode()
        cls.vm.check(f'echo {packed} | base64 -d > /r{path}')

    @classmethod
    def start_bus(cls):
        cls.put('/tmp/bus.conf', BUS_CONFIG.format(address=BUS))
        cls.vm.check('in_root dbus-daemon --nofork --config-file=/tmp/bus.conf '
                     '> /r/tmp/bus.log 2>&1 & echo $! > /tmp/bus.pid')
        wait_for('the bus', 60, lambda: cls.vm.run('test -S /r/run/bus.sock').status == 0, 0.2)

    @classmethod
    def start_vgpud(cls, gpus=None, state='ok'):
        """Starts vgpud with `gpus` (default: those of the class); returns when all GPUs have this
        state."""
        config = {'state_dir': STATE_DIR, 'run_dir': '/run/vgpu', 'gpus': gpus or cls.gpus}
        cls.put('/tmp/vgpud.json', json.dumps(config))
        cls.vm.check(f'{COMMAND} >> /r/tmp/vgpud.log 2>&1 &')
        cls.wait_for_state(state)

    @classmethod
    def wait_for_state(cls, state, gpu=None):
        wait_for(f'{gpu or "all GPUs"} to be {state}', 120, lambda: cls.states(gpu) == {state}, 0.5)

    @classmethod
    def states(cls, gpu=None):
        answer = cls.vm.run(f'in_root vgpuctl --bus {BUS} --json list --gpus')
        if answer.status != 0:
            return set()
        return {one['state'] for one in json.loads(answer.text)['gpus'] if gpu in (None, one['id'])}

    @classmethod
    def kill_vgpud(cls):
        cls.vm.check('kill -9 $(pidof vgpud)')

    @classmethod
    def save_logs(cls):
        with open(os.path.join(cls.directory, 'vgpud.log'), 'w') as log:
            log.write(cls.vm.run('cat /r/tmp/vgpud.log /r/tmp/bus.log').text)

    def run_ctl(self, arguments, timeout=60):
        """Answer(status, text) of a vgpuctl that may fail."""
        return self.vm.run(f'in_root vgpuctl --bus {BUS} {arguments} 2>&1', timeout)

    def ctl(self, arguments, timeout=60):
        text = self.vm.check(f'in_root vgpuctl --bus {BUS} --json {arguments}', timeout)
        return json.loads(text) if text else None

    def vf(self, name):
        return next(v for v in self.ctl('list --vfs')['vfs'] if v['name'] == name)
