# SPDX-License-Identifier: MIT
# How every library and program of this tree is built: one set of warnings, one include root.

# vgpu_options(TARGET): warnings, include root, sanitizers. With sanitizers, -O1 takes twice as long
# to compile as -O0. So builds with sanitizers optimize only folders that set VGPU_RUNS_HOT, in
# whose code the tests spend their time.
function(vgpu_options target)
    target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR})
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion)
    if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
        target_compile_options(${target} PRIVATE -Wdocumentation)
    endif()
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
        # gcc bug 105651: false alarms about std::string at -O3
        target_compile_options(${target} PRIVATE -Wno-restrict)
    endif()
    if(VGPU_WERROR)
        target_compile_options(${target} PRIVATE -Werror)
    endif()
    # coverage for libFuzzer, by inline counters without callbacks; no fuzz program runs the tests
    if(VGPU_FUZZ AND NOT VGPU_IS_TEST)
        target_compile_options(${target} PRIVATE
                               -fsanitize-coverage=inline-8bit-counters,pc-table)
    endif()
    if(VGPU_SANITIZE)
        if(VGPU_RUNS_HOT)
            target_compile_options(${target} PRIVATE -O1)
        endif()
        target_compile_options(${target} PRIVATE -fsanitize=${VGPU_SANITIZE} -fno-omit-frame-pointer
                               -fno-sanitize-recover=all)
        # a quarter of the time to compile tests; UBSan checks the product, not the tests
        if(VGPU_IS_TEST AND VGPU_SANITIZE MATCHES undefined)
            target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
        endif()
        target_link_options(${target} PUBLIC -fsanitize=${VGPU_SANITIZE})
        # gcc warns that TSan does not see stand-alone fences. Our fences order memory that a guest
        # or another process reads, which TSan does not watch; threads of one process use locks.
        if(VGPU_SANITIZE STREQUAL thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
            target_compile_options(${target} PRIVATE -Wno-tsan)
        endif()
    endif()
endfunction()

# vgpu_asan_defaults(PROGRAM): adds asan_options.cpp if the build uses AddressSanitizer.
function(vgpu_asan_defaults program)
    if(VGPU_SANITIZE MATCHES address)
        target_sources(${program} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/asan_options.cpp)
    endif()
endfunction()

# vgpu_precompiled(TARGET [HEADERS...] [LINK LIBS...]): with VGPU_PRECOMPILE, TARGET uses a
# precompiled header of the common headers and of HEADERS, which LIBS provide. Targets with the same
# HEADERS and the same options share it.
function(vgpu_precompiled target)
    if(NOT VGPU_PRECOMPILE)
        return()
    endif()
    cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
    set(holder precompiled ${ARG_UNPARSED_ARGUMENTS})
    if(VGPU_SANITIZE AND VGPU_RUNS_HOT)
        list(APPEND holder hot)
    endif()
    string(MAKE_C_IDENTIFIER "${holder}" holder)
    if(NOT TARGET ${holder})
        add_library(${holder} STATIC ${CMAKE_SOURCE_DIR}/cmake/empty.cpp)
        vgpu_options(${holder})
        target_link_libraries(${holder} PRIVATE fmt::fmt nlohmann_json::nlohmann_json ${ARG_LINK})
        target_precompile_headers(${holder} PRIVATE <algorithm> <array> <atomic> <chrono> <filesystem>
            <fstream> <functional> <map> <memory> <mutex> <optional> <set> <span> <string> <thread>
            <vector> <fmt/format.h> <nlohmann/json.hpp> ${ARG_UNPARSED_ARGUMENTS})
    endif()
    # the same libraries define the same macros; the compiler refuses the header if macros differ
    target_link_libraries(${target} PRIVATE fmt::fmt nlohmann_json::nlohmann_json)
    target_precompile_headers(${target} REUSE_FROM ${holder})
endfunction()

# vgpu_together(TARGET N): with VGPU_UNITY, compiles N files of TARGET as one. For targets whose
# files spend most of their compile time on the same templates (nlohmann/json).
function(vgpu_together target count)
    if(VGPU_UNITY)
        set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${count})
    endif()
endfunction()

# vgpu_library(NAME SOURCES... [LINK LIBS...]): a static library with the options above.
function(vgpu_library name)
    cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
    add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
    vgpu_options(${name})
    target_link_libraries(${name} PUBLIC ${ARG_LINK})
endfunction()

# vgpu_program(NAME SOURCES... [LINK LIBS...])
function(vgpu_program name)
    cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
    add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
    vgpu_options(${name})
    vgpu_asan_defaults(${name})
    target_link_libraries(${name} PRIVATE ${ARG_LINK})
endfunction()

# vgpu_uses_regex(TARGET): silences a false warning that gcc 12 gives with sanitizers, about
# uninitialised members of std::regex.
function(vgpu_uses_regex target)
    if(VGPU_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
    endif()
endfunction()
