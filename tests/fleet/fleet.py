# SPDX-License-Identifier: MIT
"""A cluster on one machine: a controller n0 and hosts n1, n2 …, each in namespaces of its own. It
works only inside of tests/fleet/box.

    with Fleet(directory, hosts=3) as fleet:
        fleet.start()
        job = fleet.controller.run('sbatch', '--parsable', '--gres=vgpu:small:1', '--wrap', 'sleep 60').strip()
        fleet.hosts[0].kill()

Programs come from build/release/bin, or from VGPU_BIN; Debian's Slurm and munge from build/fleet/layer. Logs stay in
`directory`/NAME/log.
"""
import glob
import json
import os
import signal
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get('VGPU_BIN', os.path.join(ROOT, 'build', 'release', 'bin'))
LAYER = os.path.join(ROOT, 'build', 'fleet', 'layer')
DATA = os.path.join(ROOT, 'daemon', 'engines', 'slurm', 'data')
HOST = os.path.join(ROOT, 'tests', 'fleet', 'host')
NETWORK = '10.77.0.'
CLUSTER = 'lab'
SLURMD_TIMEOUT = 15


class FleetError(Exception):
    """A program of the fleet failed; the message has its output."""


def wait_for(what, seconds, condition, interval=0.05):
    """Returns the first true value of `condition`; FleetError if none came in `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise FleetError(f'{what}: not within {seconds} s')
        time.sleep(interval)


def command(*words, seconds=30):
    done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=False)
    if done.returncode != 0:
        raise FleetError(f'{" ".join(words)}: status {done.returncode}: {done.stdout}{done.stderr}')
    return done.stdout


class Host:
    """One host. It has the files of this machine, and its own processes, network and /run."""

    def __init__(self, fleet, number):
        self.name = f'n{number}'
        self.address = f'{NETWORK}{10 + number}'
        self.link = f'v-{self.name}'
        self.disk = os.path.join(fleet.directory, self.name)
        self.unshare = None
        self.init = None
        self.started = {}

    def boot(self):
        os.makedirs(self.disk, exist_ok=True)
        with open(os.path.join(self.disk, 'boot.log'), 'ab') as log:
            self.unshare = subprocess.Popen(
                ['unshare', '--mount', '--propagation', 'private', '--net', '--uts', '--ipc', '--pid', '--fork', '--kill-child',
                 HOST, self.name, self.disk, LAYER, ROOT], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True)
        if self.unshare.stdout.readline() != 'ready\n':
            raise FleetError(f'{self.name} did not boot')
        with open(f'/proc/{self.unshare.pid}/task/{self.unshare.pid}/children') as file:
            self.init = int(file.read().split()[0])
        # the kernel may not yet have removed the link of a host that died
        subprocess.run(['ip', 'link', 'del', self.link], capture_output=True, check=False)
        command('ip', 'link', 'add', self.link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', str(self.init))
        command('ip', 'link', 'set', self.link, 'master', 'lab', 'up')
        for words in (['addr', 'add', self.address + '/24', 'dev', 'eth0'], ['link', 'set', 'eth0', 'up']):
            command('nsenter', '-t', str(self.init), '-n', 'ip', *words)

    def inside(self, *words):
        return ['nsenter', '-t', str(self.init), '-a', *words]

    def run(self, *words, seconds=30):
        """Output of a program on this host; FleetError if it fails."""
        return command(*self.inside(*words), seconds=seconds)

    def start(self, name, *words):
        """Starts a program that stays, with output to log/NAME.log; waits for the end of an earlier
        one of this name."""
        if name in self.started:
            self.started[name].wait(timeout=30)
        with open(os.path.join(self.disk, 'log', name + '.log'), 'ab') as log:
            # nsenter leaves a child in the PID namespace and waits for it
            self.started[name] = subprocess.Popen(self.inside(*words), stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def pids(self, program):
        """Pids, as this machine counts them, of the programs called `program` on this host."""
        space = os.readlink(f'/proc/{self.init}/ns/pid')
        found = []
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                with open(f'/proc/{pid}/comm') as file:
                    if file.read().strip() == program[:15] and os.readlink(f'/proc/{pid}/ns/pid') == space:
                        found.append(int(pid))
            except OSError:
                continue
        return found

    def kill_program(self, program):
        for pid in self.pids(program):
            os.kill(pid, signal.SIGKILL)

    def is_on(self):
        return self.init is not None and self.unshare.poll() is None

    def runs(self, name):
        """True if the program that was started with this name still runs."""
        return self.is_on() and name in self.started and self.started[name].poll() is None

    def kill(self):
        """Ends the host as if its power failed: every process and the network are gone at once."""
        os.kill(self.init, signal.SIGKILL)
        self.unshare.wait(timeout=30)
        self.unshare.stdout.close()
        for child in self.started.values():
            child.wait(timeout=30)
        self.started = {}

    def cut(self):
        command('ip', 'link', 'set', self.link, 'down')

    def heal(self):
        command('ip', 'link', 'set', self.link, 'up')

    def write(self, path, text, mode=0o644):
        """Writes a file of this host, which is lost when the host ends."""
        full = f'/proc/{self.init}/root{path}'
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, 'w') as file:
            file.write(text)
        os.chmod(full, mode)

    # --- vgpu

    def start_bus(self):
        self.run('mkdir', '-p', '/run/dbus')
        self.write('/run/bus.conf', BUS_CONFIG)
        self.start('bus', 'dbus-daemon', '--nofork', '--config-file=/run/bus.conf')
        wait_for('the bus of ' + self.name, 10, lambda: os.path.exists(f'/proc/{self.init}/root/run/dbus/system_bus_socket'))

    def start_vgpud(self):
        self.start('vgpud', os.path.join(BIN, 'vgpud'), '--config', '/etc/fleet/vgpud.json', '--no-polkit', '--supervise')

    def ctl(self, *words):
        """vgpuctl's JSON answer, or None if it has none."""
        out = self.run(os.path.join(BIN, 'vgpuctl'), '--json', *words)
        return json.loads(out) if out.strip().startswith(('{', '[')) else None

    def vfs(self):
        return self.ctl('list', '--vfs')['vfs']

    def claims(self):
        """The claims of this host: {owner: [VF …]}"""
        owned = {}
        for vf in self.vfs():
            if vf['owner']:
                owned.setdefault(vf['owner'], []).append(vf)
        return owned

    def is_gpu_ok(self):
        try:
            return [gpu['state'] for gpu in self.ctl('list', '--gpus')['gpus']] == ['ok']
        except FleetError:
            return False

    # --- Slurm

    def start_munge(self):
        self.run('sh', '-c', 'mkdir -p /run/munge && cp /etc/slurm/munge.key /run/munge.key && chmod 400 /run/munge.key')
        self.run('munged', '--force', '--key-file=/run/munge.key', '--num-threads=1', '--log-file=/run/munged.log', '--pid-file=/run/munged.pid', '--seed-file=/run/munged.seed')

    def start_slurmd(self):
        self.start('slurmd', 'slurmd', '-D', '-N', self.name)

    def start_all(self):
        self.start_bus()
        self.start_vgpud()
        self.start_munge()
        wait_for(f'the GPU of {self.name}', 60, self.is_gpu_ok)
        self.start_slurmd()


BUS_CONFIG = '''<!DOCTYPE busconfig PUBLIC
 "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=/run/dbus/system_bus_socket</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
'''

SLURM_CONF = '''ClusterName={cluster}
SlurmctldHost=n0({network}10)
MinJobAge=3600
SlurmUser=root
StateSaveLocation=/var/spool/slurm/controller
SlurmdSpoolDir=/var/spool/slurm/d
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurmctld.log
SlurmdLogFile=/var/log/slurmd.log
SelectTypeParameters=CR_Core,CR_LLN
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
MailProg=/bin/true
SlurmdParameters=config_overrides
NodeName=n[1-{hosts}] NodeAddr={network}[11-{last}] CPUs=64 Gres={gres}
PartitionName=main Nodes=ALL Default=YES State=UP
{example}
'''
PROFILES = {'small': (8, '64MiB'), 'large': (4, '256MiB')}
GPU = {'vfs': 12, 'vram_mb': 2048, 'aperture_mb': 256, 'cus': 8, 'threads': 1}
# The program of a guest. It holds its VFs open and checks that the content that it wrote there
# stays. Its argument is the number of seconds that it runs (default: until it is killed).
GUEST = '''#!/usr/bin/python3
import os, sys, time
sys.path.insert(0, {guest!r})
from vfio_user_client import VfUserClient
vfs = [VfUserClient(os.environ[name]) for name in sorted(os.environ) if name.startswith('VGPU_SOCKET_')]
mark = ((os.environ.get('GUEST_NAME') or os.environ['SLURM_JOB_ID']).encode() + b'.' * 16)[:16]
for vf in vfs:
    if vf.read(0, 1 << 20, 16) != bytes(16):
        sys.exit('the VF is not empty')
    vf.write(0, 1 << 20, mark)
end = time.monotonic() + float(sys.argv[1]) if len(sys.argv) > 1 else float('inf')
while time.monotonic() < end:
    for vf in vfs:
        if vf.read(0, 1 << 20, 16) != mark:
            sys.exit('another guest wrote into this VF')
    time.sleep(1)
'''


class Fleet:
    """The controller, the hosts, and the network between them. `scripts`: scripts that replace
    vgpu's, by name; `profiles`: how many VFs each host has, and their VRAM; `gpu`: the softgpu of
    each host."""

    def __init__(self, directory, hosts=3, scripts=None, profiles=None, gpu=None, slurmd_timeout=SLURMD_TIMEOUT):
        self.directory = os.path.abspath(directory)
        self.etc = os.path.join(self.directory, 'etc')
        self.scripts = scripts or {}
        self.profiles, self.gpu, self.slurmd_timeout = profiles or PROFILES, gpu or GPU, slurmd_timeout
        self.controller = Host(self, 0)
        self.hosts = [Host(self, number) for number in range(1, hosts + 1)]

    def __enter__(self):
        command('rm', '-rf', self.directory)
        os.makedirs(self.etc)
        self.configure()
        command('ip', 'link', 'add', 'lab', 'type', 'bridge')
        command('ip', 'link', 'set', 'lab', 'up')
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        for host in (*self.hosts, self.controller):
            if host.is_on():
                host.kill()
        command('ip', 'link', 'del', 'lab')

    def file(self, name, text, mode=0o644):
        path = os.path.join(self.etc, name)
        with open(path, 'w') as file:
            file.write(text)
        os.chmod(path, mode)

    def full_gres(self):
        """The Gres of a host whose VFs are all for Slurm, as Slurm prints it."""
        return ','.join(f'vgpu:{name}:{count}' for name, (count, _) in sorted(self.profiles.items()))

    def configure(self):
        def example(name):
            with open(os.path.join(DATA, name)) as file:
                text = file.read()
            return text.replace('/usr/share/vgpu-slurm', '/etc/slurm').replace(
                '/usr/bin/vgpu-slurm', os.path.join(BIN, 'vgpu-slurm'))
        gres = self.full_gres()
        text = example('slurm.conf').replace('SlurmdTimeout=60', f'SlurmdTimeout={self.slurmd_timeout}').replace(
            'HealthCheckInterval=30', 'HealthCheckInterval=10')
        self.file('slurm.conf', SLURM_CONF.format(cluster=CLUSTER, network=NETWORK, hosts=len(self.hosts),
                                                  last=10 + len(self.hosts), gres=gres, example=text))
        self.file('gres.conf', ''.join(f'Name=vgpu Type={name} Count={count}\n' for name, (count, _) in self.profiles.items()))
        self.file('cgroup.conf', 'CgroupMountpoint=/sys/fs/cgroup\n')
        self.file('munge.key', 'k' * 64, 0o400)
        for name in ('prolog', 'epilog', 'taskprolog', 'health'):
            self.file(name, self.scripts.get(name) or example(name), 0o755)
        if 'prolog' not in self.scripts:
            self.file('plugstack.conf', f'required {BIN}/spank_vgpu.so {BIN}/vgpu-slurm\n')
        self.file('vgpud.json', json.dumps({
            'state_dir': '/var/lib/vgpu', 'run_dir': '/run/vgpu',
            'programs': {'softgpu': os.path.join(BIN, 'softgpu'), 'vgpu_pf': os.path.join(BIN, 'vgpu-pf')},
            'gpus': [{'id': 'gpu0', 'softgpu': self.gpu}]}))
        self.file('vgpu.json', json.dumps({
            'profiles': {name: {'resources': {'vram': vram}} for name, (_, vram) in self.profiles.items()},
            'configs': {'fleet': [{'gpu': 'gpu0', 'vfs': [
                {'profile': name, 'count': count, 'name': name + '-{n}'} for name, (count, _) in self.profiles.items()]}]}}))
        self.file('guest', GUEST.format(guest=os.path.join(ROOT, 'tests', 'guest')), 0o755)

    def start(self):
        self.controller.boot()
        self.controller.start_munge()
        self.controller.run('mkdir', '-p', '/var/spool/slurm/controller')
        self.start_controller()
        for host in self.hosts:
            host.boot()
            host.start_bus()
            host.start_vgpud()
            host.start_munge()
        for host in self.hosts:
            wait_for(f'the GPU of {host.name}', 60, host.is_gpu_ok)
            host.ctl('apply', '/etc/fleet/vgpu.json')
            host.start_slurmd()
        wait_for('all hosts in service', 60, lambda: self.states() == {'idle'}, 0.5)

    def start_controller(self):
        self.controller.start('slurmctld', 'slurmctld', '-D')

    def slurm(self, *words):
        return self.controller.run(*words)

    def states(self):
        """States of the hosts, as Slurm sees them; empty while the controller does not answer."""
        try:
            return set(self.slurm('sinfo', '-h', '-o', '%t').split())
        except FleetError:
            return set()

    def submit(self, wants, *words, output='/dev/null', script='guest'):
        """Submits a job of a user without privileges, with the VFs `wants` by profile, and `words`
        as the script's arguments; returns its number."""
        gres = ','.join(f'vgpu:{profile}:{number}' for profile, number in wants.items())
        return self.slurm('sbatch', '--parsable', '--uid=65534', '--gid=65534', '--chdir=/tmp', f'--output={output}',
                          '--open-mode=append', f'--gres={gres}', f'/etc/slurm/{script}', *words).strip()

    def queue(self):
        """The jobs that Slurm knows: {job: (state, host or '')}"""
        jobs = {}
        for line in self.slurm('squeue', '-h', '-o', '%A %t %N').splitlines():
            job, state, *host = line.split()
            jobs[job] = (state, host[0] if host else '')
        return jobs

    def claims(self, but=()):
        """{job: [(host, VF, life) …]} over all hosts."""
        found = {}
        for host in self.hosts:
            if host in but:
                continue
            for owner, vfs in host.claims().items():
                engine, cluster, name = owner.split(':')
                if (engine, cluster) != ('slurm', CLUSTER):
                    raise FleetError(f'{host.name}: foreign owner {owner}')
                job, life = name.split('.')
                found.setdefault(job, []).extend((host.name, vf['name'], int(life)) for vf in vfs)
        return found

    def is_each_claimed_once(self, but=()):
        """True if every running job has exactly one VF, on its host, and no VF has another
        owner."""
        running = {job: host for job, (state, host) in self.queue().items() if state == 'R'}
        claims = self.claims(but)
        return {job: [(host, len(found))] for job, host in running.items() for found in [claims.get(job, [])]} == {
            job: [(found[0][0], len(found))] for job, found in claims.items()} and all(
                len(found) == 1 for found in claims.values())
