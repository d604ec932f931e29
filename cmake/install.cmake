# Headers, targets and package files: find_package(reigen 0.1 [COMPONENTS mpi]).

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(reigen_package ${CMAKE_INSTALL_DATADIR}/cmake/reigen)

install(TARGETS reigen EXPORT reigenTargets FILE_SET HEADERS)
install(EXPORT reigenTargets NAMESPACE reigen:: DESTINATION ${reigen_package})
if(TARGET reigen_mpi)
  install(TARGETS reigen_mpi EXPORT reigenMpiTargets FILE_SET HEADERS)
  install(EXPORT reigenMpiTargets NAMESPACE reigen:: DESTINATION ${reigen_package})
endif()

configure_package_config_file(cmake/reigenConfig.cmake.in reigenConfig.cmake INSTALL_DESTINATION ${reigen_package})
write_basic_package_version_file(reigenConfigVersion.cmake COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/reigenConfig.cmake ${PROJECT_BINARY_DIR}/reigenConfigVersion.cmake
        DESTINATION ${reigen_package})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
