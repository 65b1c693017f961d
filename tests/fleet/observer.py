# SPDX-License-Identifier: MIT
"""Observes hosts and controller five times a second, and records what it sees (see rules.py)."""
import json
import os
import re
import subprocess
import threading
import time

from fleet import BIN, FleetError

PERIOD_S = 0.2
ANSWER_S = 8
SQUEUE = ('squeue -h -a -t all -O JobID:15,RestartCnt:10,State:20,NodeList:20,Reason:30,tres-per-node:80 && echo nodes && '
          'sinfo -h -a -N -o "%N|%T|%G|%E"')


class History:
    """Records in the order in which their looks ended, also as lines of a file. The checker judges
    each record at once."""

    def __init__(self, path, checker):
        self.lock, self.checker = threading.Lock(), checker
        self.begin = time.monotonic()
        self.file = open(path, 'w', encoding='utf-8', buffering=1)

    def now(self):
        return round(time.monotonic() - self.begin, 3)

    def add(self, kind, t=None, **members):
        with self.lock:
            record = {'kind': kind, 't': self.now() if t is None else t, **members}
            self.file.write(json.dumps(record) + '\n')
            known = len(self.checker.violations)
            self.checker.add(record)
            for rule, text in self.checker.violations[known:]:
                self.file.write(json.dumps({'kind': 'violation', 't': self.now(), 'rule': rule, 'text': text}) + '\n')

    def close(self):
        self.file.close()


def processes():
    """{(pid, start): (name, PID namespace)} of the guests and steps of all hosts."""
    found = {}
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/stat') as file:
                head, _, tail = file.read().rpartition(')')
            name, fields = head.partition('(')[2], tail.split()
            if name in ('slurm_script', 'slurmstepd') and fields[0] not in 'ZX':
                found[pid, fields[19]] = name, os.readlink(f'/proc/{pid}/ns/pid')
        except OSError:
            continue
    return found


def job_of(pid, name):
    """The job whose guest or step the process is; None if it is none, or not yet or no longer."""
    try:
        with open(f'/proc/{pid}/{"environ" if name == "slurm_script" else "cmdline"}', 'rb') as file:
            text = file.read().decode(errors='replace')
    except OSError:
        return None
    found = re.search(r'(?:^|\0)SLURM_JOB_ID=(\d+)\0' if name == 'slurm_script' else r'slurmstepd: \[(\d+)\.', text)
    return found and found.group(1)


def jobs_of(seen, space, name):
    """The jobs that have a process called `name` in the PID namespace `space`."""
    jobs = {job_of(pid, name) for (pid, _), what in seen.items() if what == (name, space)}
    return sorted(jobs - {None})


def read_queue(text):
    """(jobs, nodes) of what SQUEUE prints."""
    queue, _, sinfo = text.partition('nodes\n')
    jobs, nodes = {}, {}
    for line in queue.splitlines():
        job, life, state, host, reason = (line[begin:end].strip() for begin, end in
                                          ((0, 15), (15, 25), (25, 45), (45, 65), (65, 95)))
        wants = {profile: int(number) for profile, number in re.findall(r'vgpu:(\w+):(\d+)', line[95:])}
        jobs[job] = {'state': state, 'life': int(life), 'host': host, 'reason': reason, 'wants': wants}
    for line in sinfo.splitlines():
        name, state, gres, reason = line.split('|', 3)
        nodes[name] = {'state': state, 'gres': gres, 'reason': reason}
    return jobs, nodes


def ask_controller(fleet):
    """(jobs, nodes) as Slurm has them now; FleetError without an answer."""
    return read_queue(fleet.controller.run('timeout', str(ANSWER_S), 'sh', '-c', SQUEUE))


class Observer:
    """Observes until it is closed. `world` knows which hosts are on and linked."""

    def __init__(self, world, history):
        self.world, self.history = world, history
        self.is_over = threading.Event()
        self.threads = [threading.Thread(target=self.repeat, args=(look,), daemon=True)
                        for look in (self.look_at_hosts, self.look_at_queue)]
        for thread in self.threads:
            thread.start()

    def close(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join()

    def repeat(self, look):
        while not self.is_over.is_set():
            begin = time.monotonic()
            look()
            self.is_over.wait(max(0.0, PERIOD_S - (time.monotonic() - begin)))

    def look_at_queue(self):
        begin = self.history.now()
        try:
            jobs, nodes = ask_controller(self.world.fleet)
        except FleetError:
            jobs, nodes = None, {}
        self.history.add('queue', begin, jobs=jobs, nodes=nodes)

    def look_at_hosts(self):
        begin, before = self.history.now(), processes()
        asked = [(host, self.world.facts(host), self.ask(host)) for host in self.world.fleet.hosts]
        answers = [(host, facts, self.answer(program)) for host, facts, program in asked]
        after = processes()
        lived = {key: what for key, what in before.items() if after.get(key) == what}
        for host, facts, claims in answers:
            if not self.world.facts(host) == facts:  # switched off or on meanwhile
                continue
            space = facts.pop('space')
            self.history.add('host', begin, name=host.name, claims=claims, guests=jobs_of(lived, space, 'slurm_script'),
                             steps=jobs_of(before | after, space, 'slurmstepd'), **facts)

    @staticmethod
    def ask(host):
        """Starts vgpuctl on the bus of a host; None if the host is off."""
        if not host.is_on():
            return None
        bus = f'unix:path=/proc/{host.init}/root/run/dbus/system_bus_socket'
        return subprocess.Popen(['timeout', str(ANSWER_S), os.path.join(BIN, 'vgpuctl'), '--bus', bus, '--json', 'list'],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    @staticmethod
    def answer(program):
        """The claims that vgpuctl reports: {owner: {profile: number of VFs}}. None without an
        answer or while a GPU is not in service."""
        if program is None:
            return None
        text, _ = program.communicate()
        if program.returncode != 0:
            return None
        state, claims = json.loads(text), {}
        if any(gpu['state'] != 'ok' for gpu in state['gpus']):
            return None
        for vf in state['vfs']:
            if vf['owner']:
                profiles = claims.setdefault(vf['owner'], {})
                profiles[vf['profile']] = profiles.get(vf['profile'], 0) + 1
        return claims
