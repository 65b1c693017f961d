// SPDX-License-Identifier: MIT
// CMake requires a source file, also for targets that have none: level binaries, which consist of
// object libraries, and holders of precompiled headers.
