# SPDX-License-Identifier: MIT
# One test binary per level, made of areas. Each area also gets a small binary of its own
# (not built by default) for work on one area: ninja unit_isa && bin/unit_isa.

# vgpu_tests(LEVEL AREA SOURCES... [LINK LIBS...])
function(vgpu_tests level area)
    cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
    set(objects tests_${level}_${area})
    add_library(${objects} OBJECT ${ARG_UNPARSED_ARGUMENTS})
    vgpu_options(${objects})
    target_link_libraries(${objects} PUBLIC GTest::gmock ${ARG_LINK})
    add_executable(${level}_${area} EXCLUDE_FROM_ALL)
    vgpu_options(${level}_${area})
    target_link_libraries(${level}_${area} PRIVATE ${objects} GTest::gmock_main)
    set_property(GLOBAL APPEND PROPERTY VGPU_TEST_LEVELS ${level})
    set_property(GLOBAL APPEND PROPERTY VGPU_TESTS_${level} ${objects})
endfunction()

# After all areas are known: the binary of each level, registered with ctest under its name.
function(vgpu_finish_tests)
    get_property(levels GLOBAL PROPERTY VGPU_TEST_LEVELS)
    list(REMOVE_DUPLICATES levels)
    foreach(level ${levels})
        get_property(areas GLOBAL PROPERTY VGPU_TESTS_${level})
        add_executable(${level}_tests ${CMAKE_SOURCE_DIR}/tests/support/empty.cpp)
        vgpu_options(${level}_tests)
        target_link_libraries(${level}_tests PRIVATE ${areas} GTest::gmock_main)
        add_test(NAME ${level} COMMAND ${level}_tests)
        set_tests_properties(${level} PROPERTIES LABELS ${level} TIMEOUT 600)
    endforeach()
endfunction()
