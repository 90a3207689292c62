# Downloads Horovod's source package, adapts it, and builds a wheel of it for the torch of PYTHON.
#   cmake -DPYTHON=... -DREQUIREMENT=... -DBUILD_DIR=... -DWHEEL_DIR=... -P build_horovod.cmake
cmake_minimum_required(VERSION 3.26)

if(BUILD_DIR MATCHES " ")
  message(FATAL_ERROR "Horovod's build cannot stand spaces in its path: '${BUILD_DIR}'. "
                      "Set -DEDT_HOROVOD_BUILD_DIR to a directory without.")
endif()

# Replaces `old` by `new` in a file of the source; exactly `count` places, or the source is not the one we know.
function(replace file old new count)
  file(READ "${SOURCE}/${file}" text)
  string(REPLACE "${old}" "" without "${text}")
  string(LENGTH "${text}" length)
  string(LENGTH "${without}" length_without)
  string(LENGTH "${old}" length_old)
  math(EXPR found "(${length} - ${length_without}) / ${length_old}")
  if(NOT found EQUAL count)
    message(FATAL_ERROR "${file} of Horovod has '${old}' ${found} times, expected ${count}: "
                        "this is not the Horovod that cmake/build_horovod.cmake was written for.")
  endif()
  string(REPLACE "${old}" "${new}" text "${text}")
  file(WRITE "${SOURCE}/${file}" "${text}")
endfunction()

file(REMOVE_RECURSE "${BUILD_DIR}")
file(MAKE_DIRECTORY "${BUILD_DIR}" "${WHEEL_DIR}")
execute_process(
  COMMAND "${PYTHON}" -m pip download --no-deps --no-binary :all: --no-build-isolation
          --dest "${BUILD_DIR}" --requirement "${REQUIREMENT}"
  COMMAND_ERROR_IS_FATAL ANY)
file(GLOB archive "${BUILD_DIR}/horovod-*.tar.gz")
file(ARCHIVE_EXTRACT INPUT "${archive}" DESTINATION "${BUILD_DIR}/source")
file(GLOB SOURCE "${BUILD_DIR}/source/horovod-*")

# torch's headers are C++20 nowadays. The library is found from where it is installed, not from where it was
# linked, so that the wheel serves every environment: MPI in <environment>/lib, torch beside horovod.
replace(CMakeLists.txt "set(CMAKE_CXX_STANDARD 14)" "set(CMAKE_CXX_STANDARD 20)
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH \"\\$ORIGIN/../../../..;\\$ORIGIN/../../torch/lib\")" 1)
replace(horovod/torch/CMakeLists.txt "set(CMAKE_CXX_STANDARD 14)" "set(CMAKE_CXX_STANDARD 20)" 1)

# Open MPI 5 knows these options with two dashes only; Open MPI 4 knows both forms.
replace(horovod/runner/mpi_run.py "'-bind-to " "'--bind-to " 2)
replace(horovod/runner/mpi_run.py "'-map-by " "'--map-by " 2)
replace(horovod/runner/mpi_run.py "'-rank-by " "'--rank-by " 1)

# Gloo does not tell who waits for a send that has failed: it sits there until the timeout of thirty seconds.
replace(third_party/gloo/gloo/transport/tcp/pair.cc "      op.buf->signalException(ex);
    }" "      op.buf->signalException(ex);
    }
    NonOwningPtr<UnboundBuffer> ubuf(op.ubuf);
    if (ubuf) {
      ubuf->signalException(ex);
    }" 1)

# A world that cannot be formed, because a member dies on the way, is an error in Python and may be tried again;
# as it is, it ends the process.
set(operations horovod/common/operations.cc)
replace(${operations} "    global_gloo_context.Initialize(ParseGlooIface());" "    try {
      global_gloo_context.Initialize(ParseGlooIface());
    } catch (const std::exception& ex) {
      LOG(WARNING) << \"Horovod could not be initialized: \" << ex.what();
      global_gloo_context.Finalize();
      state.initialization_failed = true;
      return;
    }" 1)
replace(${operations} "    state.process_set_table.Initialize(global_gloo_context);" "    try {
      state.process_set_table.Initialize(global_gloo_context);
    } catch (const std::exception& ex) {
      LOG(WARNING) << \"Horovod could not be initialized: \" << ex.what();
      state.process_set_table.Finalize(global_gloo_context, SHUT_DOWN_ERROR);
      global_gloo_context.Finalize();
      state.initialization_failed = true;
      return;
    }" 1)
replace(${operations} "    horovod_global.initialize_flag.clear();
" "    horovod_global.initialize_flag.clear();
    horovod_global.initialization_failed = false;
" 1)

execute_process(
  COMMAND "${CMAKE_COMMAND}" -E env
    HOROVOD_WITH_PYTORCH=1 HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1
    HOROVOD_WITH_GLOO=1 HOROVOD_WITH_MPI=1
    "${PYTHON}" -m pip wheel --verbose --no-deps --no-build-isolation --wheel-dir "${WHEEL_DIR}" "${SOURCE}"
  COMMAND_ERROR_IS_FATAL ANY)
