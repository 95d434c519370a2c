# `cmake --install build/release --prefix DIR`: DIR/bin/trn3sim, which finds the configurations and
# traces in DIR/share/trn3sim/configs from wherever it is called. The pages keep their places beside
# each other, so that their links hold. Rules of targets stand with their targets.
foreach(folder configs docs)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/ DESTINATION share/trn3sim/${folder})
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/trn3sim)
