# SPDX-License-Identifier: MIT
"""How the test machines read their commands (tests/support/serve.sh), in the busybox that they run."""
import os
import subprocess
import time
import unittest

from machine import HOST, ROOT

BUSYBOX = os.path.join(HOST, 'system', 'root', 'usr', 'bin', 'busybox')
SERVE = os.path.join(ROOT, 'tests', 'support', 'serve.sh')
BYTE_SECONDS = 0.0003  # a byte at a time, as a serial port brings them
ROUNDS = 40


class Serve(unittest.TestCase):
    def setUp(self):
        self.shell = subprocess.Popen(
            [BUSYBOX, 'sh', '-c', 'alias head="$1 head"; . "$2"; serve', 'sh', BUSYBOX, SERVE],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(self.shell.stdout.close)
        self.addCleanup(self.shell.wait, 10)
        self.addCleanup(self.shell.stdin.close)

    def answer(self, command):
        for byte in f'{command}\n'.encode():
            os.write(self.shell.stdin.fileno(), bytes([byte]))
            time.sleep(BYTE_SECONDS)
        lines = []
        while not lines or not lines[-1].startswith('#rc'):
            line = self.shell.stdout.readline().decode()
            self.assertTrue(line, f'the shell is gone; it said {lines}')
            lines.append(line.strip())
        return lines

    def test_no_byte_is_lost_when_a_background_child_ends(self):
        text = 'abcdefghij' * 10
        for _ in range(ROUNDS):
            self.assertEqual(self.answer('sleep 0.02 > /dev/null 2>&1 &'), ['#rc 0'])
            self.assertEqual(self.answer(f'echo {text}'), [text, '#rc 0'])

    def test_status_of_a_command_is_notified(self):
        self.assertEqual(self.answer('(exit 7)'), ['#rc 7'])
        self.assertEqual(self.answer(r"printf 'a\\b\n'"), [r'a\b', '#rc 0'])

    def test_commands_share_one_shell(self):
        self.answer('kept=5')
        self.assertEqual(self.answer('echo $kept'), ['5', '#rc 0'])
