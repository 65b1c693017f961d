# SPDX-License-Identifier: MIT
"""Runs codespell over the tree, and the kernel's script kernel-doc over headers."""
import glob
import re
import shutil
import subprocess

# Names and abbreviations that codespell takes for errors.
NAMES = {'dout', 'froms', 'hsa', 'kinf', 'nd', 'readby', 'renderd', 'uscaled'}
# Words that tests and examples misspell on purpose, to see what vgpu suggests.
MISSPELT = {'defaul', 'destory', 'forse', 'lsit', 'nmae', 'shwo', 'smal', 'trian', 'weigth', 'wieght'}
MISSPELLING = ('tests/', 'schemas/examples/invalid/', 'docs/vgpuctl.md')

# Headers whose structs and functions have kernel-doc.
KERNEL_DOC = re.compile(r'pf-driver/(uapi|core)/.*\.h')


class Skipped(Exception):
    """A tool is not on this machine; the text says which."""


def spelling(root, files):
    if not shutil.which('codespell'):
        raise Skipped('codespell is not installed')
    run = subprocess.run(['codespell', '--disable-colors', *files], cwd=root, capture_output=True, text=True)
    for where, number, word, better in re.findall(r'^(.+):(\d+): (\S+) ==> (.*)$', run.stdout, re.M):
        is_meant = word.lower() in MISSPELT and where.removeprefix('./').startswith(MISSPELLING)
        if word.lower() not in NAMES and not is_meant:
            yield f'{where}:{number}: {word}: write {better}, or add it to tests/style/documentation.py'


def kernel_doc(root, files):
    tools = sorted(glob.glob('/usr/lib/linux-kbuild-*/scripts/kernel-doc'))
    if not tools or not shutil.which('perl'):
        raise Skipped('no package linux-kbuild, which has the script kernel-doc')
    headers = [name for name in files if KERNEL_DOC.fullmatch(name)]
    run = subprocess.run([tools[-1], '-Werror', '-none', *headers], cwd=root, capture_output=True, text=True)
    complaints = [line for line in run.stderr.split('\n') if re.match(r'\S+:\d+: ', line)]
    yield from complaints
    if run.returncode and not complaints:
        yield f'kernel-doc failed: {run.stderr.strip()[:200]}'
