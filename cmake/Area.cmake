# trn3sim_area(name SOURCES ... PUBLIC ... PRIVATE ...): one library per folder of src/.
function(trn3sim_area area)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(trn3sim_${area} STATIC ${ARG_SOURCES})
  add_library(trn3sim::${area} ALIAS trn3sim_${area})
  target_include_directories(trn3sim_${area} PUBLIC ${PROJECT_SOURCE_DIR}/include
                                             PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(trn3sim_${area} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} trn3sim::warnings)
endfunction()

# trn3sim_test(name LABEL unit SOURCES ... LINK ...): a GoogleTest program; ctest runs each TEST in a
# process of its own.
function(trn3sim_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;LINK" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest trn3sim::warnings)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(${name} PRIVATE TRN3SIM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} DISCOVERY_TIMEOUT 60)
endfunction()
