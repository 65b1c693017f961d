// SPDX-License-Identifier: MIT
// CMake wants a source in targets that have none of their own: level binaries, which consist of
// object libraries, and holders of precompiled headers.
