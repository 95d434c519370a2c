# ccache speeds up repeated builds when it is there.
find_program(TRN3SIM_CCACHE ccache)
if(TRN3SIM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TRN3SIM_CCACHE})
endif()
