# SPDX-License-Identifier: MIT
# Manual pages and completion scripts, made by the programs themselves, so that they agree with
# --help. The target documentation_pages makes all of them.
find_program(HELP2MAN help2man)
add_custom_target(documentation_pages ALL)
set(VGPU_PAGES_DIR ${CMAKE_BINARY_DIR}/pages)

# vgpu_page(FILE PROGRAM ARGUMENTS...): writes the output of PROGRAM ARGUMENTS to FILE.
function(vgpu_page file program)
    set(page ${VGPU_PAGES_DIR}/${file})
    add_custom_command(
        OUTPUT ${page}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${VGPU_PAGES_DIR}
        COMMAND ${program} ${ARGN} > ${page}
        DEPENDS ${program}
        COMMENT "${file}")
    string(MAKE_C_IDENTIFIER page_${file} target)
    add_custom_target(${target} DEPENDS ${page})
    add_dependencies(documentation_pages ${target})
endfunction()

# vgpu_man_page(PROGRAM SECTION COMPONENT "SUMMARY"): makes and installs a manual page from --help,
# with help2man and the additional text docs/man/PROGRAM.h2m.
function(vgpu_man_page program section component summary)
    if(NOT HELP2MAN)
        message(STATUS "no manual page of ${program}: help2man is not installed")
        return()
    endif()
    set(file ${program}.${section})
    set(page ${VGPU_PAGES_DIR}/${file})
    set(more ${CMAKE_SOURCE_DIR}/docs/man/${program}.h2m)
    add_custom_command(
        OUTPUT ${page}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${VGPU_PAGES_DIR}
        COMMAND ${HELP2MAN} --no-info --section=${section} --name=${summary} --manual=vgpu
                --source=vgpu\ ${PROJECT_VERSION} --version-string=${PROJECT_VERSION}
                --include=${more} --output=${page} $<TARGET_FILE:${program}>
        DEPENDS ${program} ${more}
        COMMENT "${file}"
        VERBATIM)
    string(MAKE_C_IDENTIFIER page_${file} target)
    add_custom_target(${target} DEPENDS ${page})
    add_dependencies(documentation_pages ${target})
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT ${component})
endfunction()
