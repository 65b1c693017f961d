# SPDX-License-Identifier: MIT
"""A fleet that a schedule disturbs. Each act of schedules.ACTS is a method, which returns whether
it did anything: a host may be off, or the controller away."""
import glob
import os
import re
import signal
import subprocess
import time

import fleet
from fleet import FleetError
from observer import ask_controller

FOREIGN = 'pcmk:guest'
HEAL_S = 300    # when its link is back, slurmd may take 70 s to notice that its jobs run elsewhere
END_S = 90
OVER = ('COMPLETED', 'CANCELLED', 'FAILED', 'NODE_FAIL', 'TIMEOUT', 'BOOT_FAIL', 'OUT_OF_MEMORY', 'DEADLINE', 'PREEMPTED')
ASK_THE_CONTROLLER = ('submit', 'cancel', 'requeue', 'drain', 'resume')
WAITS = ('Resources', 'Priority')
ALONE = re.compile(r'.*(?:is not empty|another guest wrote).*')
# the last line of a guest that lost its device, or started while the device restarted
LOST = re.compile(r'(?:host\.)?(?:HostError|(?:ConnectionRefused|ConnectionReset|BrokenPipe|Permission|FileNotFound|Timeout)Error)\b')


class World:
    def __init__(self, directory, **options):
        self.fleet = fleet.Fleet(directory, **options)
        self.is_linked = {host.name: True for host in self.fleet.hosts}
        self.drained, self.short = set(), set()

    def __enter__(self):
        for host in self.fleet.hosts:
            host.boot = self.booting(host, host.boot)
        self.fleet.__enter__()
        return self

    def __exit__(self, *_):
        self.fleet.stop()

    @staticmethod
    def booting(host, boot):
        """Returns a function that boots the host and lets guests write to /var/log/guests."""
        def with_guests():
            boot()
            path = os.path.join(host.disk, 'log', 'guests')
            os.makedirs(path, exist_ok=True)
            os.chmod(path, 0o1777)
        return with_guests

    def facts(self, host):
        """Members of a record of this host besides its claims; 'space' is its PID namespace."""
        is_on = host.is_on()
        try:
            space = os.readlink(f'/proc/{host.init}/ns/pid') if is_on else ''
        except OSError:
            is_on, space = False, ''
        return {'is_on': is_on, 'is_linked': self.is_linked[host.name], 'has_slurmd': host.runs('slurmd'), 'space': space}

    def host(self, name):
        return self.fleet.hosts[int(name[1:]) - 1]

    def act(self, name, words):
        """Performs an act; returns whether it was done. The controller may be away."""
        if name in ASK_THE_CONTROLLER and not self.fleet.controller.runs('slurmctld'):
            return False
        try:
            return bool(getattr(self, name)(*words))
        except (FleetError, subprocess.TimeoutExpired):
            return False

    # --- jobs

    def submit(self, wants, seconds):
        job = self.fleet.submit(wants, *[str(seconds)] * bool(seconds), output='/var/log/guests/%j')
        if seconds:
            self.short.add(job)
        return job

    def cancel(self, number):
        jobs = sorted(self.fleet.queue())
        if jobs:
            self.fleet.slurm('scancel', jobs[number % len(jobs)])
        return bool(jobs)

    def requeue(self, number):
        jobs = sorted(job for job, (state, _) in self.fleet.queue().items() if state == 'R')
        if jobs:
            self.fleet.slurm('scontrol', 'requeue', jobs[number % len(jobs)])
        return bool(jobs)

    # --- programs

    def kill_program(self, name, program):
        host = self.host(name)
        pids = host.pids(program) if host.is_on() else []
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return bool(pids)

    def kill_slurmd(self, name):
        return self.kill_program(name, 'slurmd')

    def start_slurmd(self, name):
        host = self.host(name)
        if not host.is_on() or host.runs('slurmd'):
            return False
        host.start_slurmd()
        return True

    def kill_vgpud(self, name):
        return self.kill_program(name, 'vgpud')

    def start_vgpud(self, name):
        host = self.host(name)
        if not host.is_on() or host.runs('vgpud'):
            return False
        host.start_vgpud()
        return True

    def kill_softgpu(self, name):
        return self.kill_program(name, 'softgpu')

    def kill_vgpu_pf(self, name):
        return self.kill_program(name, 'vgpu-pf')

    def stop_slurmctld(self):
        """Ends slurmctld by SIGTERM. A killed one would forget the latest jobs and give their
        numbers to others."""
        pids = self.fleet.controller.pids('slurmctld')
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        return bool(pids)

    def start_slurmctld(self):
        if self.fleet.controller.runs('slurmctld'):
            return False
        self.fleet.start_controller()
        return True

    # --- hosts and links

    def cut(self, name):
        host = self.host(name)
        if not host.is_on():
            return False
        self.is_linked[name] = False
        host.cut()
        return True

    def heal(self, name):
        host = self.host(name)
        if not host.is_on() or self.is_linked[name]:
            return False
        host.heal()
        self.is_linked[name] = True
        return True

    def kill_host(self, name):
        host = self.host(name)
        if not host.is_on():
            return False
        host.kill()
        return True

    def boot_host(self, name):
        host = self.host(name)
        if host.is_on():
            return False
        host.boot()
        self.is_linked[name] = True
        host.start_all()
        return True

    # --- the operator

    def drain(self, name):
        self.fleet.slurm('scontrol', 'update', f'nodename={name}', 'state=drain', 'reason=operator')
        self.drained.add(name)
        return True

    def resume(self, name):
        if name not in self.drained:
            return False
        self.fleet.slurm('scontrol', 'update', f'nodename={name}', 'state=resume')
        self.drained.remove(name)
        return True

    def claim(self, name):
        """Claims a free VF for an owner that is not Slurm."""
        host = self.host(name)
        if not host.is_on():
            return False
        free = [vf['target'] for vf in host.vfs() if not vf['owner']]
        if free:
            host.ctl('claim', free[0], '--owner', FOREIGN)
        return bool(free)

    def release(self, name):
        host = self.host(name)
        if not host.is_on():
            return False
        owned = [vf for vf in host.vfs() if vf['owner'] == FOREIGN]
        for vf in owned:
            host.ctl('release', vf['target'], '--owner', FOREIGN, '--generation', str(vf['owner_generation']))
        return bool(owned)

    # --- the calm

    def calm(self):
        """Ends all disturbances and then all jobs; returns what is left of them after a while."""
        self.act('start_slurmctld', ())
        for name in sorted(host.name for host in self.fleet.hosts):
            for act in ('boot_host', 'heal', 'start_vgpud', 'start_slurmd'):
                self.act(act, (name,))
        left = self.settle(self.unsettled, HEAL_S)
        if left:
            return left
        self.fleet.slurm('scancel', '--user=nobody')
        return self.settle(self.remains, END_S)

    @staticmethod
    def settle(left, seconds):
        """Waits until nothing is left, for at most `seconds`; returns what is left."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                found = left()
            except (FleetError, subprocess.TimeoutExpired) as error:
                found = [str(error)]
            if not found or time.monotonic() > deadline:
                return found
            time.sleep(0.5)

    def unsettled(self):
        """Short jobs that have not ended, long jobs that could run and do not, and hosts not fully
        in service."""
        for host in self.fleet.hosts:
            self.act('resume', (host.name,))
            self.act('release', (host.name,))
        jobs, _ = ask_controller(self.fleet)
        jobs = {job: known for job, known in jobs.items() if known['state'] not in OVER}
        running = {job for job, known in jobs.items() if known['state'] == 'RUNNING'}
        found = [f'job {job} is {known["state"]} ({known["reason"]})' for job, known in jobs.items()
                 if job in self.short or job not in running and known['reason'] not in WAITS]
        if set(self.fleet.claims()) != running:
            found.append(f'jobs {sorted(running)} run, the claims are {self.fleet.claims()}')
        return found + self.out_of_service()

    def remains(self):
        found = [f'job {job} is {state}' for job, (state, _) in self.fleet.queue().items()]
        found += [f'{host.name} has claims of {sorted(host.claims())}' for host in self.fleet.hosts if host.claims()]
        return found + self.out_of_service()

    def out_of_service(self):
        lines = self.fleet.slurm('sinfo', '-h', '-N', '-o', '%N %t %G %E').splitlines()
        return [line for line in lines if line.split()[1] not in ('idle', 'mix', 'alloc') or line.split()[2] != self.fleet.full_gres()]

    def outputs(self):
        """Yields (host, job, text) for the output of each guest."""
        for host in self.fleet.hosts:
            for path in sorted(glob.glob(os.path.join(host.disk, 'log', 'guests', '*'))):
                with open(path, errors='replace') as file:
                    yield host.name, os.path.basename(path), file.read()

    def conclude(self, history):
        """Records how jobs ended and what their guests printed."""
        last = {}
        for host, job, text in self.outputs():
            for line in ALONE.findall(text):
                history.add('words', host=host, text=f'job {job}: {line}')
            last.setdefault(job, []).extend(text.splitlines()[-1:])
        for job, known in ask_controller(self.fleet)[0].items():
            said = last.get(job, [])
            history.add('ended', job=job, state=known['state'], said=said,
                        has_lost_device=any(map(LOST.search, said)))
