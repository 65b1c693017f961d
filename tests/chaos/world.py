# SPDX-License-Identifier: MIT
"""World: the programs, their guests and an operator, with a method for each action of a schedule.

The main thread ticks: it signals programs, reads answers of guests, and starts programs again as a
service manager does. The operator is a second thread, because its requests may wait long for a
stopped program; it makes one request at a time. calm() undoes every disturbance and records the
state that the checker judges.
"""
import json
import os
import queue
import random
import re
import signal
import socket
import threading
import time

import checker
import hostile
from guests import Guest
from stack import GET_INFO, QUANTUM_US, RESTORE, ROOT, SAVE, Stack

VRAM = 32 << 20
WEIGHTS = {'one': 100, 'two': 300, 'tenant': 100, 'hostile': 100}
WORKERS = ('one', 'two')
WINDOW_QUANTA = 60
STALL_S = 0.05
PATIENCE_S = 150  # real time: the machine may be busy with other work
REGISTERS = [f'{block}_{name}' for block, name in re.findall(
    r'^REG\((\w+), (\w+),', open(os.path.join(ROOT, 'pf-driver/hw/regs.def'), encoding='utf-8').read(), re.M)]


class Operator(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.tasks = queue.SimpleQueue()
        self.open = 0
        self.start()

    def add(self, task):
        self.open += 1
        self.tasks.put(task)

    def run(self):
        while True:
            task = self.tasks.get()
            try:
                task()
            finally:
                self.open -= 1


class World:
    def __init__(self, directory, binaries, history, device, plant=''):
        self.history, self.plant = history, plant
        self.stack = Stack(directory, binaries, history, device)
        self.operator = Operator()
        self.later = queue.SimpleQueue()  # functions that the operator passes to the main thread
        self.due = []                     # (time, function): ends of disturbances
        self.open_clients, self.planted = [], []
        self.possible = [{}]
        self.uuids = {}
        self.softgpu = None
        self.read_until = {}
        self.guests = {}
        self.hostile = Guest(self.stack, history, 'hostile', len(WEIGHTS))
        self.wait('vgpud to serve', self.is_in_service)
        for index, name in enumerate(WEIGHTS, 1):
            self.create(name)
            if name != 'hostile':
                self.guests[name] = Guest(self.stack, history, name, index, has_driver=name in WORKERS)
        self.softgpu = self.stack.pid('softgpu')

    # -- time

    def tick(self, seconds=0.0):
        end = time.monotonic() + seconds
        while True:
            now = time.monotonic()
            for entry in [entry for entry in self.due if entry[0] <= now]:
                self.due.remove(entry)
                entry[1]()
            while not self.later.empty():
                self.later.get()()
            for guest in (*self.guests.values(), self.hostile):
                guest.poll()
            self.stack.revive()
            self.watch_softgpu()
            if now >= end:
                return
            time.sleep(min(0.02, max(0.0, end - now)))
            if time.monotonic() - now > STALL_S:
                self.history.add('stall', seconds=round(time.monotonic() - now, 3))

    def watch_softgpu(self):
        pid = self.stack.pid('softgpu')
        if pid and self.softgpu and pid != self.softgpu:
            for guest in self.guests.values():
                guest.lose_vram()
                guest.kill()  # a VMM ends when its device is gone
        self.softgpu = pid or self.softgpu

    def wait(self, what, condition, seconds=PATIENCE_S):
        """Waits until `condition` holds; returns False, and adds an event, after `seconds`."""
        begin = time.monotonic()
        while not condition():
            if time.monotonic() - begin > seconds:
                self.history.add('answers', program=what, is_answered=False, text=f'not within {seconds} s')
                return False
            self.tick(0.1)
        return True

    def on_main(self, function):
        """Called by the operator: lets the main thread call `function`, and waits until it has."""
        is_done = threading.Event()
        self.later.put(lambda: (function(), is_done.set()))
        is_done.wait()

    # -- the operator's requests

    def change(self, become, *words):
        """Makes a request that changes each possible state by `become`, if it succeeds."""
        before = self.possible
        after = [become(dict(state)) for state in before]
        self.possible = before + [state for state in after if state not in before]
        status, answer = self.stack.ctl(*words)
        self.history.add('request', words=list(words), status=status, error=answer.get('error', ''))
        if status == 0:
            self.possible = after
        return status == 0

    def create(self, name):
        return self.change(lambda state: state | {name: [VRAM, WEIGHTS[name]]}, 'create', '--name', name,
                           '--vram', f'{VRAM >> 20}M', '--weight', str(WEIGHTS[name]))

    def destroy(self, name):
        return self.change(lambda state: {each: state[each] for each in state if each != name},
                           'destroy', name, '--force')

    def ask(self, *words):
        """Makes a request that changes no definition."""
        status, answer = self.stack.ctl(*words)
        self.history.add('request', words=list(words), status=status, error=answer.get('error', ''))
        return status == 0

    def vfs(self):
        status, answer = self.stack.ctl('list')
        return {vf['name']: vf for vf in answer['vfs']} if status == 0 and 'vfs' in answer else {}

    def is_in_service(self):
        status, answer = self.stack.ctl('list')
        if status != 0 or not answer.get('gpus') or answer['gpus'][0]['state'] != 'ok':
            return False
        return not os.path.exists(self.stack.path('state', 'apply.json'))

    def resets(self, name):
        """Returns a value that changes whenever the work of the VF's guest is lost."""
        vf = self.stack.ctl('show', name)[1].get('vf', {})
        return [self.softgpu, *(vf.get(counter) for counter in ('uuid', 'flrs', 'guest_flrs', 'hangs'))]

    def launch(self, name):
        """Starts the guest of a VF, which expects zeroed VRAM if the VF was created again."""
        vf = self.vfs().get(name)
        if not vf:
            return
        resets = self.resets(name)
        is_new = self.uuids.get(name) != vf['uuid']
        self.uuids[name] = vf['uuid']

        def start():
            guest = self.guests[name]
            guest.index = vf['index']
            guest.resets = resets
            if is_new:
                guest.get_new_vram()
            guest.start()
        self.later.put(start)

    # -- actions of the schedule (schedule.py)

    def kill(self, program, number):
        self.stack.signal(program, number)

    def stop(self, program, seconds):
        if program == 'softgpu':
            for guest in self.guests.values():
                guest.lose_vram()
        pid = self.stack.signal(program, signal.SIGSTOP)
        self.at_end(seconds, lambda: pid and self.stack.pid(program) == pid and os.kill(pid, signal.SIGCONT))

    def full_disk(self, name, seconds):
        self.stack.fill(name)
        self.at_end(seconds, lambda: self.stack.empty(name))

    def slow_disk(self, milliseconds, seconds):
        self.stack.slow_disk(milliseconds)
        self.at_end(seconds, lambda: self.stack.slow_disk(0))

    def clock(self, step):
        self.stack.step_clock(step)

    def at_end(self, seconds, function):
        self.due.append((time.monotonic() + seconds, function))

    def weigh(self, name, weight):
        def become(state):
            return state | {name: [VRAM, weight]} if name in state else state
        self.operator.add(lambda: self.change(become, 'set', name, '--weight', str(weight)))

    def apply(self, weights):
        names = list(WEIGHTS)
        profiles = {name: {'resources': {'vram': f'{VRAM >> 20}MiB'}, 'scheduler': {'weight': weight}}
                    for name, weight in zip(names, weights)}
        document = {'profiles': profiles, 'configs': {'chaos': [
            {'gpu': 'gpu0', 'vfs': [{'profile': name, 'name': name} for name in names]}]}}
        path = self.stack.path('chaos.json')
        state = {name: [VRAM, weight] for name, weight in zip(names, weights)}

        def task():
            with open(path, 'w', encoding='utf-8') as file:
                json.dump(document, file)
            self.change(lambda _: dict(state), 'apply', path, '--yes', '--force')
        self.operator.add(task)

    def replace_tenant(self):
        """Destroys the VF of a tenant who filled its VRAM, and creates one for another tenant."""
        def task():
            self.later.put(self.guests['tenant'].kill)
            if self.plant == 'scrub':
                self.uuids.pop('tenant')
            else:
                self.destroy('tenant')
                self.create('tenant')
            self.launch('tenant')
        self.operator.add(task)

    def reboot(self, name):
        self.operator.add(lambda: self.launch(name))

    def reset(self, name):
        def task():
            if self.ask('reset', name, '--force'):
                self.later.put(self.guests[name].kill)
        self.operator.add(task)

    def pause(self, name, seconds):
        def task():
            self.ask('pause', name, '--force')
            time.sleep(seconds)
            self.ask('resume', name)
        self.operator.add(task)

    def save_and_restore(self, name):
        """Saves the whole state of a paused VF to a file and restores it from there.

        As in a migration, the guest is stopped first: a restore takes back what it writes after the save.
        """
        def task():
            self.on_main(self.guests[name].freeze)
            if self.ask('pause', name, '--force'):
                self.save_then_restore(name)
                self.ask('resume', name)
            self.on_main(self.guests[name].thaw)
        self.operator.add(task)

    def save_then_restore(self, name):
        file = os.memfd_create('state')
        steps = []
        try:
            for operation in (SAVE, RESTORE):
                os.lseek(file, 0, os.SEEK_SET)
                steps.append(self.stack.stream(operation, self.guests[name].index, file))
                if steps[-1]:
                    break
        except OSError as error:
            steps.append(str(error))
        os.close(file)
        self.history.add('stream', vf=name, steps=steps)
        if steps[0] == 0 and steps != [0, 0]:  # the restore failed half-way
            self.later.put(self.forget(name))

    def forget(self, name):
        def task():
            self.guests[name].kill()
            self.guests[name].is_canary_known = False
        return task

    def attack_bus(self, client, seed):
        self.open_clients.append(hostile.attack_bus(self.stack.path('bus.sock'), client, seed))

    def attack_socket(self, name, seed):
        hostile.nonsense(self.stack.socket_of(name), random.Random(seed))

    def attack_device(self, kind, seed):
        """Starts the hostile guest: random registers, doorbells, resets, foreign VRAM, endless work."""
        rng = random.Random(seed)
        orders = {
            'registers': [(f'write {rng.choice(REGISTERS)} {rng.getrandbits(32)}', 'written') for _ in range(30)],
            'doorbells': [(f'ring {rng.randrange(512)}', 'rung') for _ in range(60)],
            'resets': [('flr', 'reset')] * 12,
            'beyond': [('boot', 'booted'), ('attack', 'stopped'), ('overwrite', 'stopped')],
            'endless': [('boot', 'booted'), ('endless', 'endless')],
        }[kind]
        self.hostile.is_canary_known = False
        self.hostile.start(orders)

    # -- the calm after an episode

    def heal(self):
        for _, function in self.due:
            function()
        self.due = []
        for client in self.open_clients:
            if client:
                client.close()
        self.open_clients = []
        self.stack.step_clock(0)
        self.hostile.kill()

    def calm(self):
        self.heal()
        self.wait('the operator\'s requests to end', lambda: self.operator.open == 0)
        if not self.wait('vgpud to serve', self.is_in_service):
            return
        self.ask_programs()
        self.plant_fault()
        self.look_at_state('the state file')
        self.wait('all VFs', self.have_all_vfs)
        for name, guest in self.guests.items():
            if guest.process and guest.resets != self.resets(name):
                guest.kill()  # its work is lost
        self.wait('guests to compute', self.all_work, PATIENCE_S)
        self.judge_shares()
        self.look_at_guests()
        self.stack.sample()
        self.look_at_logs()
        for name, guest in self.guests.items():
            if guest.has_driver and guest.is_idle:
                guest.order(('compute', 'computed'))

    def plant_fault(self):
        """For run --self-check: makes a real fault, which the checks that follow must report."""
        if self.plant == 'descriptor':
            for _ in range(4):
                client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                client.connect(self.stack.socket_of('uapi'))
                self.planted.append(client)
        elif self.plant == 'state':
            path = self.stack.path('state', 'gpus', 'gpu0.json')
            with open(path, encoding='utf-8') as file:
                text = file.read()
            with open(path, 'w', encoding='utf-8') as file:
                file.write(text.replace('33554432', '33554433', 1))

    def ask_programs(self):
        for program, ask in (('vgpu-pf', lambda: self.stack.uapi(GET_INFO, bytes(8))),
                             ('softgpu', lambda: self.stack.control({'op': 'stats'}))):
            try:
                self.history.add('answers', program=program, is_answered=bool(ask()), text='')
            except (OSError, ValueError) as error:
                self.history.add('answers', program=program, is_answered=False, text=str(error))

    def look_at_state(self, where):
        defined = self.stack.state()
        self.history.add('state', where=where, defined=defined, possible=list(self.possible))
        if isinstance(defined, dict):
            self.possible = [defined]

    def have_all_vfs(self):
        vfs = self.vfs()
        for name in WEIGHTS:
            if name not in vfs:
                self.create(name)
            elif vfs[name]['state'] in ('paused', 'stopped'):
                self.ask('resume', name)
            elif vfs[name]['state'] == 'quarantined':
                self.ask('resume', name, '--clear-quarantine')
        return all(vfs.get(name, {}).get('state') in ('provisioned', 'ready', 'running') for name in WEIGHTS)

    def all_work(self):
        for name, guest in self.guests.items():
            if guest.process is None:
                self.launch(name)
        self.tick()
        return all(guest.is_computing if guest.has_driver else guest.is_idle for guest in self.guests.values())

    def services(self):
        vfs = {name: self.stack.ctl('show', name)[1].get('vf', {}) for name in WORKERS}
        return {name: vf.get('service_ns', 0) for name, vf in vfs.items()}

    def judge_shares(self):
        """Measures up to three times, because a guest without CPU time may have had no work."""
        for _ in range(2):
            event = self.measure_shares()
            if not list(checker.shares_follow_weights([event])):
                break
        else:
            event = self.measure_shares()
        if all(self.guests[name].resets == self.resets(name) for name in WORKERS):
            self.history.add(**event)

    def measure_shares(self):
        before = self.services()
        weights = {name: self.possible[0].get(name, [0, 0])[1] for name in WORKERS}
        self.wait('the engine to be shared', lambda: sum(self.services().values()) - sum(before.values()) >
                  WINDOW_QUANTA * QUANTUM_US * 1000)
        after = self.services()
        return {'kind': 'shares', 'services': {name: after[name] - before[name] for name in WORKERS},
                'weights': weights, 'quantum_ns': QUANTUM_US * 1000}

    def look_at_guests(self):
        for guest in self.guests.values():
            guest.stop()
        end = time.monotonic() + PATIENCE_S / 2
        while time.monotonic() < end and not self.are_idle():
            self.tick(0.1)
        for name, guest in self.guests.items():
            if guest.is_idle:
                guest.look()
            elif guest.process:
                self.history.add('stuck', vf=name, orders=guest.orders, before=guest.resets, now=self.resets(name))
                guest.kill()
        self.wait('canaries', self.are_idle)

    def are_idle(self):
        return all(guest.is_idle or guest.process is None for guest in self.guests.values())

    def look_at_logs(self):
        for path in self.stack.logs():
            size, begin = os.path.getsize(path), self.read_until.get(path, 0)
            with open(path, encoding='utf-8', errors='replace') as file:
                file.seek(begin if begin <= size else 0)
                lines = file.read().splitlines()
            self.read_until[path] = size
            for line in lines:
                if checker.is_remarkable(line):
                    self.history.add('line', program=os.path.basename(path).removesuffix('.log'), text=line)

    def close(self):
        self.heal()
        for guest in self.guests.values():
            guest.kill()
        self.stack.close()
