# SPDX-License-Identifier: MIT
# One test binary per level, made of areas. Each area also has a separate small binary, which is
# not built by default: ninja unit_isa && bin/unit_isa.

# vgpu_tests(LEVEL AREA SOURCES... [LINK LIBS...])
function(vgpu_tests level area)
    cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
    set(objects tests_${level}_${area})
    set(VGPU_IS_TEST ON)
    add_library(${objects} OBJECT ${ARG_UNPARSED_ARGUMENTS})
    vgpu_options(${objects})
    target_link_libraries(${objects} PUBLIC GTest::gmock ${ARG_LINK})
    vgpu_precompiled(${objects} <gmock/gmock.h> LINK GTest::gmock)
    add_executable(${level}_${area} EXCLUDE_FROM_ALL)
    vgpu_options(${level}_${area})
    vgpu_asan_defaults(${level}_${area})
    target_link_libraries(${level}_${area} PRIVATE ${objects} GTest::gmock_main)
    set_property(GLOBAL APPEND PROPERTY VGPU_TEST_LEVELS ${level})
    set_property(GLOBAL APPEND PROPERTY VGPU_TESTS_${level} ${objects})
endfunction()

# Makes the binary of each level, and registers it with ctest under the level's name. Call after the
# last vgpu_tests().
function(vgpu_finish_tests)
    get_property(levels GLOBAL PROPERTY VGPU_TEST_LEVELS)
    list(REMOVE_DUPLICATES levels)
    foreach(level ${levels})
        get_property(areas GLOBAL PROPERTY VGPU_TESTS_${level})
        add_executable(${level}_tests ${CMAKE_SOURCE_DIR}/cmake/empty.cpp)
        vgpu_options(${level}_tests)
        vgpu_asan_defaults(${level}_tests)
        target_link_libraries(${level}_tests PRIVATE ${areas} GTest::gmock_main)
        add_test(NAME ${level} COMMAND ${level}_tests)
        set_tests_properties(${level} PROPERTIES LABELS ${level} TIMEOUT 600)
    endforeach()
endfunction()

# vgpu_fuzz(NAME SOURCES... [LINK LIBS...]): a libFuzzer program fuzz_<NAME>, built only with
# -DVGPU_FUZZ=ON (clang). The target fuzz_targets builds all of them.
function(vgpu_fuzz name)
    if(NOT VGPU_FUZZ)
        return()
    endif()
    cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
    if(NOT TARGET fuzz_targets)
        add_custom_target(fuzz_targets)
    endif()
    add_executable(fuzz_${name} EXCLUDE_FROM_ALL ${ARG_UNPARSED_ARGUMENTS})
    vgpu_options(fuzz_${name})
    target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    target_link_libraries(fuzz_${name} PRIVATE ${ARG_LINK})
    add_dependencies(fuzz_targets fuzz_${name})
endfunction()
