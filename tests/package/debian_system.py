# SPDX-License-Identifier: MIT
"""A fresh Debian 12 system for tests: an overlay over build/package/base, commands in namespaces of its own.

    with DebianSystem('life') as system:
        system.boot()
        system.install('vgpu', 'vgpu-softgpu')
        print(system.check('vgpuctl list'))

It has processes, mounts and a (silent) network of its own; all of it ends with the `with`. After boot()
systemd is process 1, in a control group (v2) of its own; before, only the test's commands run.
`shares` are directories of this machine that the system sees, read-only: {'/srv/images': path}.
"""
import ctypes
import glob
import os
import re
import shlex
import shutil
import signal
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUT = os.path.join(ROOT, 'build', 'package')
ENVIRONMENT = {'DEBIAN_FRONTEND': 'noninteractive', 'LC_ALL': 'C.UTF-8', 'HOME': '/root',
               'PATH': '/usr/sbin:/usr/bin:/sbin:/bin'}

# pid 1 of the system: mounts, and then only reaps orphans
MOUNTS = r'''
cd "$2"
mount -t overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" overlay root
cd root
mount -t tmpfs -o mode=755 dev dev
# new nodes, so that a change of their modes does not change those of this machine
mknod -m 666 dev/null c 1 3
mknod -m 666 dev/zero c 1 5
mknod -m 666 dev/full c 1 7
mknod -m 666 dev/random c 1 8
mknod -m 666 dev/urandom c 1 9
mknod -m 666 dev/tty c 5 0
mkdir dev/shm dev/pts && mount -t tmpfs shm dev/shm
mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts dev/pts && ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t proc proc proc
mount -t tmpfs -o mode=755 run run && mkdir run/lock
mount -t tmpfs tmp tmp
shift 2
while [ $# -gt 0 ]; do
    mkdir -p ".$1"
    mount --bind "$2" ".$1"
    mount -o remount,bind,ro ".$1"
    shift 2
done
'''
# pivot_root, not chroot, so that /proc/PID/exe has the same paths as on a machine
ENTER = r'''
pivot_root . .
umount -l .
cd /
'''
INIT = MOUNTS + ENTER + r'''
exec /bin/bash -c 'echo ready; while :; do sleep 1000 & wait $!; done'
'''

# the same with systemd, which must see only the control groups below its own
SYSTEMD = MOUNTS + r'''
# a null
mknod -m 600 dev/console c 1 3
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mkdir -p sys/fs/cgroup/vgpu-package-test
echo 0 >sys/fs/cgroup/vgpu-package-test/cgroup.procs
umount sys/fs/cgroup
''' + ENTER + r'''
exec unshare --cgroup sh -euc '
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    echo ready
    exec env -i container=test PATH=/usr/sbin:/usr/bin /lib/systemd/systemd --show-status=no'
'''
REMOVE_CONTROL_GROUPS = r'''
mount -t cgroup2 cgroup2 /mnt
# killed processes take some time to end
for try in $(seq 300); do
    [ -d /mnt/vgpu-package-test ] || exit 0
    find /mnt/vgpu-package-test -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.1
done
exit 1
'''


def packages(place='first'):
    """The built packages: {name: path of the .deb}."""
    found = {}
    for path in glob.glob(os.path.join(OUT, place, '*.deb')):
        found[os.path.basename(path).split('_')[0]] = path
    return found


def older():
    """Makes the same packages with an earlier version in build/package/older, for the start of an upgrade."""
    place = os.path.join(OUT, 'older')
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(place)
    for name, path in packages().items():
        if name.endswith('-dbgsym'):
            continue
        tree = os.path.join(place, 'tree')
        subprocess.run(['dpkg-deb', '-R', path, tree], check=True)
        control = os.path.join(tree, 'DEBIAN', 'control')
        with open(control, encoding='utf-8') as file:
            text = re.sub(r'^(Version: .*)$', r'\1~previous', file.read(), flags=re.M)
        with open(control, 'w', encoding='utf-8') as file:
            file.write(text)
        subprocess.run(['dpkg-deb', '-b', '-Zgzip', '-z1', '--root-owner-group', tree, place],
                       check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(tree)
    return 'older'


def wait_for(what, seconds, is_so):
    """Polls until is_so() is true; returns its value."""
    deadline = time.monotonic() + seconds
    while True:
        value = is_so()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f'{what}: not within {seconds} s')
        time.sleep(0.1)


def die_with_the_test():
    """Runs in the child, so that a killed test leaves no system behind."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


class DebianSystem:
    def __init__(self, name, shares=None):
        self.shares = shares or {}
        self.directory = os.path.join(OUT, 'systems', name)
        self.init = None
        self.pid = None

    def __enter__(self):
        shutil.rmtree(self.directory, ignore_errors=True)
        for name in ('upper', 'work', 'root'):
            os.makedirs(os.path.join(self.directory, name))
        self.start(INIT)
        return self

    def start(self, script):
        self.init = subprocess.Popen(
            ['unshare', '--mount', '--propagation', 'private', '--net', '--pid', '--fork',
             '--kill-child', 'bash', '-euc', script, 'init', os.path.join(OUT, 'base'), self.directory,
             *(word for share in self.shares.items() for word in share)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, preexec_fn=die_with_the_test)
        if self.init.stdout.readline() != 'ready\n':
            raise RuntimeError('the system does not start')
        with open(f'/proc/{self.init.pid}/task/{self.init.pid}/children') as children:
            self.pid = int(children.read().split()[0])

    def stop(self):
        """Ends all processes of the system; what was in memory (/run, /tmp) is gone."""
        self.init.kill()  # unshare blocks SIGTERM
        self.init.wait(timeout=60)
        self.init.stdout.close()

    def boot(self):
        """Restarts the system with systemd as process 1; returns when multi-user.target is active."""
        self.check('rm -f /usr/sbin/policy-rc.d')  # services may start now
        self.stop()
        self.start(SYSTEMD)
        wait_for('systemd', 120, lambda: self.run('systemctl is-active multi-user.target')[0] == 0)

    def __exit__(self, *_):
        self.stop()
        subprocess.run(['unshare', '--mount', '--propagation', 'private', 'sh', '-euc',
                        REMOVE_CONTROL_GROUPS], check=True)
        shutil.rmtree(self.directory)

    def exists(self, name):
        return os.path.lexists(f'/proc/{self.pid}/root/{name.lstrip("/")}')

    def read(self, name):
        with open(f'/proc/{self.pid}/root/{name.lstrip("/")}', encoding='utf-8') as file:
            return file.read()

    def write(self, name, text):
        with open(f'/proc/{self.pid}/root/{name.lstrip("/")}', 'w', encoding='utf-8') as file:
            file.write(text)

    def command(self, script):
        inside = ['nsenter', f'--target={self.pid}', '--mount', '--pid', '--net', '--root', '--wd']
        return [*inside, 'bash', '-c', script]

    def run(self, script, seconds=300):
        """Runs a shell script as root; returns (exit status, both streams)."""
        done = subprocess.run(self.command(script), env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds,
                              check=False)
        return done.returncode, done.stdout.decode('utf-8', 'replace')

    def check(self, script, seconds=300):
        """Like run(), but returns the text; AssertionError if the script fails."""
        status, text = self.run(script, seconds)
        if status != 0:
            raise AssertionError(f'{script}: exit status {status}:\n{text}')
        return text

    def need_real_time(self, test):
        """Skips a test if this machine does not allow real-time scheduling."""
        if self.run('chrt -f 1 true')[0] != 0:
            test.skipTest('no real-time scheduling in this control group')

    # --- packages

    def bring(self, *paths):
        """Copies .deb files into /packages."""
        directory = f'/proc/{self.pid}/root/packages'
        os.makedirs(directory, exist_ok=True)
        for path in paths:
            shutil.copy(path, directory)

    def install_dependencies(self, *names):
        """Installs what these packages of vgpu depend on, from the system's cache, but not the packages."""
        wanted = ', '.join(subprocess.run(['dpkg-deb', '-f', packages()[name], 'Depends'], check=True,
                                          stdout=subprocess.PIPE, text=True).stdout.strip()
                           for name in names)
        self.check(f'apt-get satisfy -qy --no-install-recommends {shlex.quote(wanted)}', 900)

    def install(self, *names, place='first', more=''):
        """Installs packages of vgpu with their dependencies, from the system's cache."""
        paths = [packages(place)[name] for name in names]
        self.bring(*paths)
        files = ' '.join('/packages/' + os.path.basename(path) for path in paths)
        return self.check('apt-get install -qy --no-install-recommends '
                          f'--allow-downgrades {files} {more}', 900)

    # --- services

    def show(self, unit, setting):
        """A setting of a unit, as systemd sees it."""
        return self.check(f'systemctl show -P {setting} {unit}').strip()

    def has_gpu(self):
        return '"ok"' in self.run('vgpuctl list --gpus --json')[1]

    def wait_for_gpu(self):
        wait_for('gpu0 to be in service', 120, self.has_gpu)

    def processes(self, program):
        """Pids (in the system) of the processes that run /usr/sbin/PROGRAM."""
        text = self.run(f'for p in /proc/[0-9]*; do case $(readlink $p/exe) in /usr/sbin/{program}*) '
                        'echo ${p#/proc/} ;; esac; done')[1]
        return [int(pid) for pid in text.split()]
