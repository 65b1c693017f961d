# SPDX-License-Identifier: MIT
"""Runs a vgpud on a private bus, with only the PFs of the report. Both end with the `with` block."""
import json
import os
import shutil
import subprocess
import tempfile
import time

BUILT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../build/release/bin')


def program(directory, name):
    for folder in [directory] if directory else [BUILT]:
        if os.access(os.path.join(folder, name), os.X_OK):
            return os.path.join(folder, name)
    return shutil.which(name) or name


class PrivateVgpud:
    def __init__(self, directory, pfs, manage):
        self.bin = directory
        self.gpus = [{'id': f'card{i}', 'pci': {'address': pf, 'manage': manage, 'contracts': 'approximate'}}
                     for i, pf in enumerate(pfs)]
        self.programs = []

    def __enter__(self):
        self.home = tempfile.TemporaryDirectory()
        place = self.home.name
        config = {'gpus': self.gpus, 'state_dir': f'{place}/state', 'run_dir': f'{place}/run'}
        self.config = f'{place}/vgpud.json'
        with open(self.config, 'w', encoding='utf-8') as file:
            json.dump(config, file)
        self.bus = f'unix:path={place}/bus'
        self.log = f'{place}/vgpud.log'
        self.start(['dbus-daemon', '--session', '--nofork', f'--address={self.bus}'], f'{place}/bus.log')
        self.wait_for(lambda: os.path.exists(f'{place}/bus'), 'dbus-daemon')
        self.start_vgpud()
        return self

    @staticmethod
    def wait_for(is_true, what, seconds=30):
        deadline = time.monotonic() + seconds
        while not is_true():
            if time.monotonic() > deadline:
                raise RuntimeError(f'{what} does not answer after {seconds} s')
            time.sleep(0.1)

    def __exit__(self, *_):
        for one in reversed(self.programs):
            one.terminate()
            try:
                one.wait(timeout=20)
            except subprocess.TimeoutExpired:
                one.kill()
        self.home.cleanup()

    def start(self, command, log):
        with open(log, 'a', encoding='utf-8') as file:
            self.programs.append(subprocess.Popen(command, stdout=file, stderr=file))

    def start_vgpud(self):
        self.start([program(self.bin, 'vgpud'), '--config', self.config, '--bus', self.bus, '--no-polkit'], self.log)
        self.wait_for(lambda: self.ctl('list').returncode == 0, f'vgpud (its log: {self.text_of_log()})')

    def restart_vgpud(self):
        self.programs[-1].terminate()
        self.programs.pop().wait(timeout=20)
        self.start_vgpud()

    def command(self, *words):
        return [program(self.bin, 'vgpuctl'), '--bus', self.bus, *words]

    def ctl(self, *words, stdin=None):
        return subprocess.run(self.command(*words), input=stdin, capture_output=True, text=True, timeout=120,
                              check=False)

    def state_of(self, gpu):
        """Returns the state of the GPU, once vgpud has tried to reach it."""
        def state():
            return self.ctl('list', '--gpus', '--noheadings', '-o', 'GPU,STATE').stdout
        self.wait_for(lambda: f'{gpu} ' in state() and 'starting' not in state(), gpu)
        return next(line.split()[1] for line in state().splitlines() if line.startswith(f'{gpu} '))

    def text_of_log(self):
        with open(self.log, encoding='utf-8') as file:
            return file.read()
