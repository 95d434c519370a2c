# One INTERFACE target with the warnings and code generation flags of every target.
add_library(trn3sim_warnings INTERFACE)
add_library(trn3sim::warnings ALIAS trn3sim_warnings)
target_compile_options(trn3sim_warnings INTERFACE -Wall -Wextra -Wconversion -Wshadow -ffp-contract=off)
if(TRN3SIM_WERROR)
  target_compile_options(trn3sim_warnings INTERFACE -Werror)
endif()
