// SPDX-License-Identifier: MIT
// The level binaries consist of object libraries; CMake wants one source of their own.
