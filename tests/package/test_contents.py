# SPDX-License-Identifier: MIT
"""What is in the packages: every file where it belongs, readable, and of one version."""
import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from debian_system import OUT, ROOT, packages

GOLDEN = os.path.join(ROOT, 'tests', 'golden', 'packages')
PROGRAMS = {'vgpu': ('vgpud.8', 'vgpuctl.1'), 'vgpu-softgpu': ('softgpu.8', 'vgpu-pf.8'),
            'vgpu-exporter': ('vgpu-exporter.8',), 'vgpu-slurm': ('vgpu-slurm.8',), 'vgpu-pacemaker': (),
            'vgpu-dra': ('vgpu-dra.8',),
            'vgpu-agent': ('vgpu-agent.8',)}


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


def field(package, name):
    return run('dpkg-deb', '-f', packages()[package], name).stdout.strip()


def listing(package):
    """["-rwxr-xr-x root/root ./usr/bin/…"], directories left out."""
    lines = []
    for line in run('dpkg-deb', '-c', packages()[package]).stdout.splitlines():
        mode, owner, _, _, _, path = line.split(maxsplit=5)
        if not mode.startswith('d'):
            lines.append(f'{mode} {owner} {path}')
    return lines


def files_below(directory):
    """Paths of all files below a directory, relative to it."""
    return {os.path.relpath(os.path.join(place, name), directory)
            for place, _, names in os.walk(directory) for name in names}


class Contents(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        for name, path in packages().items():
            if not name.endswith('-dbgsym'):
                subprocess.run(['dpkg-deb', '-x', path, os.path.join(cls.directory, name)], check=True)

    def path(self, package, name):
        return os.path.join(self.directory, package, name)

    def test_there_is_a_package_for_each_role(self):
        self.assertEqual({name for name in packages() if not name.endswith('-dbgsym')},
                         {'vgpu', 'vgpu-softgpu', 'vgpu-exporter', 'vgpu-slurm', 'vgpu-pacemaker', 'vgpu-dra', 'vgpu-agent',
                          'vgpu-pf-dkms', 'vgpu-doc'})

    def test_every_file_is_where_it_belongs(self):
        for package in PROGRAMS:
            with self.subTest(package=package):
                golden = os.path.join(GOLDEN, package + '.txt')
                seen = '\n'.join(listing(package)) + '\n'
                if os.environ.get('VGPU_UPDATE_GOLDEN'):
                    with open(golden, 'w', encoding='utf-8') as file:
                        file.write(seen)
                with open(golden, encoding='utf-8') as file:
                    self.assertEqual(seen, file.read(), f'(VGPU_UPDATE_GOLDEN=1 writes {golden})')

    def test_what_an_administrator_may_edit_is_a_conffile(self):
        conffiles = run('dpkg-deb', '-I', packages()['vgpu'], 'conffiles').stdout.split()
        self.assertEqual(sorted(conffiles), ['/etc/apparmor.d/abstractions/libvirt-qemu.d/vgpu',
                                             '/etc/libvirt/hooks/qemu.d/50-vgpu',
                                             '/etc/vgpu/vgpud.json'])

    def test_the_module_package_has_all_sources_of_the_module(self):
        version = field('vgpu-pf-dkms', 'Version')
        base = self.path('vgpu-pf-dkms', f'usr/src/vgpu-pf-{version}')
        for area in ('hw', 'uapi', 'core', 'linux'):
            wanted = {name for name in files_below(os.path.join(ROOT, 'pf-driver', area))
                      if name.endswith(('.c', '.h', '.def'))}
            self.assertTrue(wanted)
            self.assertEqual(files_below(os.path.join(base, 'pf-driver', area)), wanted)
        for name in ('dkms.conf', 'pf-driver/Kbuild'):
            self.assertTrue(os.path.isfile(os.path.join(base, name)), name)

    def test_all_documents_and_schemas_are_installed(self):
        documents = self.path('vgpu-doc', 'usr/share/doc/vgpu')
        for path in glob.glob(os.path.join(ROOT, 'docs', '**', '*.md'), recursive=True):
            name = os.path.relpath(path, os.path.join(ROOT, 'docs'))
            self.assertTrue(os.path.isfile(os.path.join(documents, name)), name)
        schemas = {os.path.basename(path) for pattern in ('*.json', '*.rng')
                   for path in glob.glob(os.path.join(ROOT, 'schemas', pattern))}
        self.assertEqual(set(os.listdir(self.path('vgpu', 'usr/share/vgpu/schemas'))), schemas)

    def test_links_between_installed_documents_lead_somewhere(self):
        documents = self.path('vgpu-doc', 'usr/share/doc/vgpu')
        for path in glob.glob(os.path.join(documents, '**', '*.md'), recursive=True):
            with open(path, encoding='utf-8') as file:
                links = re.findall(r'\]\(([^)#:]+\.md)(?:#[^)]*)?\)', file.read())
            for link in links:
                target = os.path.normpath(os.path.join(os.path.dirname(path), link))
                if target.startswith(documents):
                    self.assertTrue(os.path.exists(target), f'{path}: {link}')

    def test_every_program_has_a_manual_page_that_man_reads_without_complaint(self):
        for package, pages in PROGRAMS.items():
            for page in pages:
                program, section = page.rsplit('.', 1)
                path = self.path(package, f'usr/share/man/man{section}/{page}.gz')
                shown = run('man', '--warnings=w', '-l', path, env={**os.environ, 'MANWIDTH': '80',
                                                                    'LC_ALL': 'C.UTF-8'})
                self.assertEqual((shown.returncode, shown.stderr), (0, ''), page)
                self.assertRegex(shown.stdout, rf'NAME\n\s+{program} - ')

    def test_completion_of_bash_loads_and_completes(self):
        path = self.path('vgpu', 'usr/share/bash-completion/completions/vgpuctl')
        script = f'''. {path}; complete -p vgpuctl || exit 1
            COMP_WORDS=(vgpuctl cre) COMP_CWORD=1; _vgpuctl; echo "${{COMPREPLY[@]}}"'''
        done = run('bash', '--norc', '-c', script)
        self.assertEqual(done.stderr, '')
        self.assertEqual(done.stdout.splitlines()[-1], 'create')

    def test_completion_of_zsh_loads(self):
        directory = self.path('vgpu', 'usr/share/zsh/vendor-completions')
        script = f'fpath=({directory} $fpath); autoload -U compinit; compinit -D -u; echo $_comps[vgpuctl]'
        done = run('zsh', '-f', '-c', script)
        self.assertEqual((done.stdout, done.stderr), ('_vgpuctl\n', ''))

    def test_the_hook_ends_well_without_vgpuctl(self):
        hook = self.path('vgpu', 'etc/libvirt/hooks/qemu.d/50-vgpu')
        with open(hook, encoding='utf-8') as file:
            text = file.read()
        # the hook on a machine without the package
        absent = text.replace('/usr/bin/vgpuctl', os.path.join(self.directory, 'nothing'))
        done = run('sh', '-c', absent, 'hook', 'guest', 'prepare', 'begin', '-')
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, '', ''))
        self.assertIn('exec /usr/bin/vgpuctl hook -- "$@"', text)

    def test_the_agent_needs_nothing_but_the_c_library(self):
        depends = [part.split()[0] for part in field('vgpu-agent', 'Depends').split(',')]
        self.assertEqual(depends, ['libc6'])

    def test_there_is_one_version(self):
        with open(os.path.join(ROOT, 'CMakeLists.txt'), encoding='utf-8') as file:
            version = re.search(r'project\(vgpu VERSION ([\d.]+)', file.read()).group(1)
        for package in packages():
            self.assertEqual(field(package, 'Version'), version, package)
        for package, program in (('vgpu', 'sbin/vgpud'), ('vgpu', 'bin/vgpuctl'),
                                 ('vgpu-softgpu', 'sbin/softgpu'), ('vgpu-softgpu', 'sbin/vgpu-pf'),
                                 ('vgpu-exporter', 'sbin/vgpu-exporter'),
                                 ('vgpu-agent', 'sbin/vgpu-agent')):
            done = run(self.path(package, 'usr/' + program), '--version')
            self.assertIn(version, done.stdout + done.stderr, program)

    def test_nothing_tells_where_it_was_built(self):
        for name, path in packages().items():
            tree = os.path.join(self.directory, name)
            if name.endswith('-dbgsym'):
                tree = os.path.join(self.directory, 'symbols', name)
                os.makedirs(tree)
                subprocess.run(['dpkg-deb', '-x', path, tree], check=True)
            found = run('grep', '-rlF', OUT, tree)
            self.assertEqual(found.stdout, '', name)


if __name__ == '__main__':
    unittest.main()
