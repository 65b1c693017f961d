# SPDX-License-Identifier: MIT
# What is installed beside programs. Components: host (vgpud, vgpuctl), softgpu, exporter, slurm, pacemaker,
# kubernetes, agent (for guests), dkms (sources of the kernel module), doc. debian/ makes a package of each.
#
# bus policy, polkit actions and units are found only below /usr and /etc: install with the prefix /usr.
set(VGPU_SYSTEMD_UNIT_DIR lib/systemd/system CACHE STRING "where systemd looks for units")
set(VGPU_UDEV_RULES_DIR lib/udev/rules.d CACHE STRING "where udev looks for rules")

set(SBINDIR ${CMAKE_INSTALL_FULL_SBINDIR})
set(SYSCONFDIR ${CMAKE_INSTALL_FULL_SYSCONFDIR})

# vgpu_configured(FILE VARIABLE): VARIABLE is data/FILE.in with the directories of this build in it.
function(vgpu_configured file variable)
    configure_file(data/${file}.in ${CMAKE_CURRENT_BINARY_DIR}/data/${file} @ONLY)
    set(${variable} ${CMAKE_CURRENT_BINARY_DIR}/data/${file} PARENT_SCOPE)
endfunction()

# vgpu_install_unit(UNIT COMPONENT): data/UNIT.in as a unit of systemd.
function(vgpu_install_unit unit component)
    vgpu_configured(${unit} configured)
    install(FILES ${configured} DESTINATION ${VGPU_SYSTEMD_UNIT_DIR} COMPONENT ${component})
endfunction()

# Documents, schemas, D-Bus interfaces.
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
