# SPDX-License-Identifier: MIT
"""Runs in the machine: executes scripts that come through a pipe, so that none of them waits for Python to start.

    mkfifo ask reply; uapi_shell.py ask reply &
    echo BASE64 > ask; cat reply        what the script printed, or its exception after "failed:"
"""
import base64
import contextlib
import io
import json
import sys
import time
from concurrent import futures

import uapi

NAMES = {'futures': futures, 'json': json, 'time': time, 'uapi': uapi, 'pf': uapi.Pf()}


def execute(script):
    """Runs a script; returns its output."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(script, dict(NAMES))  # pylint: disable=exec-used
    except Exception as error:  # pylint: disable=broad-except
        return f'failed: {error!r}'
    return printed.getvalue()


while True:
    with open(sys.argv[1]) as ask:
        answer = execute(base64.b64decode(ask.read()))
    with open(sys.argv[2], 'w') as reply:
        reply.write(answer + '\n')
