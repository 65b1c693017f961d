# SPDX-License-Identifier: MIT
# Installs files other than programs. Components: host (vgpud, vgpuctl), softgpu, exporter, slurm,
# pacemaker, kubernetes, agent (for guests), dkms (sources of the kernel module), doc. debian/ makes
# a package of each.
#
# D-Bus, polkit and systemd search only /usr and /etc, so install with the prefix /usr.
set(VGPU_SYSTEMD_UNIT_DIR lib/systemd/system CACHE STRING "where systemd looks for units")
set(VGPU_UDEV_RULES_DIR lib/udev/rules.d CACHE STRING "where udev looks for rules")

set(SBINDIR ${CMAKE_INSTALL_FULL_SBINDIR})
set(SYSCONFDIR ${CMAKE_INSTALL_FULL_SYSCONFDIR})

# vgpu_configured(FILE VARIABLE): configures data/FILE.in with the directories of this build;
# VARIABLE gets the path of the result.
function(vgpu_configured file variable)
    configure_file(data/${file}.in ${CMAKE_CURRENT_BINARY_DIR}/data/${file} @ONLY)
    set(${variable} ${CMAKE_CURRENT_BINARY_DIR}/data/${file} PARENT_SCOPE)
endfunction()

# vgpu_install_unit(UNIT COMPONENT): configures data/UNIT.in and installs it as a systemd unit.
function(vgpu_install_unit unit component)
    vgpu_configured(${unit} configured)
    install(FILES ${configured} DESTINATION ${VGPU_SYSTEMD_UNIT_DIR} COMPONENT ${component})
endfunction()

# Installs documents, schemas and D-Bus interfaces.
function(vgpu_install_documents)
    install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc
            FILES_MATCHING PATTERN *.md PATTERN *.json PATTERN man EXCLUDE)
    install(DIRECTORY schemas/examples/valid/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples
            COMPONENT doc FILES_MATCHING PATTERN *.json)
    install(DIRECTORY schemas/ DESTINATION ${CMAKE_INSTALL_DATADIR}/vgpu/schemas COMPONENT host
            FILES_MATCHING PATTERN *.schema.json PATTERN *.rng PATTERN examples EXCLUDE PATTERN dbus EXCLUDE)
    file(GLOB interfaces CONFIGURE_DEPENDS schemas/dbus/org.vgpu1.*.xml)
    install(FILES ${interfaces} DESTINATION ${CMAKE_INSTALL_DATADIR}/dbus-1/interfaces
            COMPONENT host)
endfunction()
