# SPDX-License-Identifier: MIT
"""tests/demo --vm: two virtual machines with the stock amdgpu driver share the GPU 1:3.

Prints the table of the native demo and writes its picture; exit status 0 only if every claim held.
"""
import os
import subprocess
import sys
import tempfile

from host import BIN, Host, HostError, wait_for
from suite import LOAD, LOAD_SECONDS, run_at_once
from vm import Vm

WEIGHTS = {'vm1': 1, 'vm2': 3}
QUANTUM_US = 4000
# in units of 64 steps; enough for a measurement of 5 s and programs that start some seconds apart
ROUNDS = 60000
COMPUTES = 20_000_000  # wave instructions: far more than the start of a HIP program


def say(text):
    print(text, flush=True)


class Guests:
    def __init__(self, host, directory):
        self.host = host
        self.vms = {}
        for name, weight in WEIGHTS.items():
            socket = host.create_vf(name, vram='512M', weight=weight)
            self.vms[name] = Vm([socket], directory, name=name)

    def boot(self, name):
        vm = self.vms[name]
        vm.__enter__()
        answer = vm.run(LOAD, timeout=LOAD_SECONDS)
        if answer.status != 0:
            raise HostError(f'{name}: {answer.text}')
        wait_for('the render node', 60,
                 lambda: vm.run('test -e /dev/dri/renderD128').status == 0, 0.2)
        text = vm.run('in_root rocminfo', timeout=120).text
        agent = next(line for line in text.splitlines() if 'gfx900' in line)
        say(f'  {name}: {vm.run("uname -sr").text.strip()}, rocminfo says "{agent.split()[-1]}"')

    def at_once(self, action):
        run_at_once(*(lambda name=name: action(name) for name in self.vms))

    def retired(self):
        vfs = self.host.gpu_stats()['vfs']
        return [vfs[self.host.vf(name)['index'] - 1]['wave_instructions'] for name in self.vms]

    def compute(self, name):
        weight = WEIGHTS[name]
        self.vms[name].start(f'in_root /tests/long_kernel {ROUNDS * weight}')

    def finish(self, name):
        answer = self.vms[name].finish(300)
        ok = answer.status == 0 and answer.text.strip().endswith('ok long_kernel')
        say(f'  {"ok    " if ok else "FAILED"} {name}: result bit-exact: {answer.text.strip()}')
        return ok

    def kill(self):
        for vm in self.vms.values():
            vm.kill()


def show(directory, timeline):
    with Host(directory, quantum_us=QUANTUM_US) as host:
        say('== vgpuctl gives two VFs of one GPU the weights 1:3; two VMs boot on them')
        guests = Guests(host, directory)
        try:
            guests.at_once(guests.boot)
            say('== both run the same HIP kernel')
            before = guests.retired()
            guests.at_once(guests.compute)
            wait_for('both to compute', 180, lambda: all(
                now - then > COMPUTES for now, then in zip(guests.retired(), before)), 0.1)
            shown = subprocess.run(
                [os.path.join(BIN, 'vgpu-demo'), '--observe', host.path('run', 'gpu0', 'uapi.sock'),
                 '--weights', *map(str, WEIGHTS.values()), '--quantum-us', str(QUANTUM_US),
                 '--timeline', timeline], timeout=300, check=False)
            exact = [guests.finish(name) for name in guests.vms]
        finally:
            guests.kill()
    return shown.returncode == 0 and all(exact)


def main():
    timeline = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix='vgpu-demo-') as directory:
        held = show(directory, timeline)
    say('\neverything held' if held else '\nnot everything held')
    return 0 if held else 1


if __name__ == '__main__':
    sys.exit(main())
