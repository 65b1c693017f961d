# SPDX-License-Identifier: MIT
# Sourced last by the /init of a test machine (busybox): answers commands from the second serial port.
# Each line is a command; serve() writes its output and then a line "#rc N".
#
# Lines are read by a program, not by the shell's `read`: a background child that ends while a line comes
# in interrupts `read`, and busybox begins again without the characters that it had read
# (tests/host/test_serve.py).

serve() {
    while command=$(head -n 1) && [ "$command" ]; do
        eval "$command"
        echo "#rc $?"
    done
}
