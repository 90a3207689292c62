# Builds a wheel of Horovod, with the patches beside this file, for the torch that PYTHON imports.
#   cmake -DPYTHON=... -DREQUIREMENT=horovod==... -DBUILD_DIR=... -DWHEEL_DIR=... -DCUDA=ON|OFF -P build.cmake
cmake_minimum_required(VERSION 3.26)

if(BUILD_DIR MATCHES " ")
  message(FATAL_ERROR "Horovod's build cannot stand spaces in its path: '${BUILD_DIR}'. "
                      "Set -DEDT_HOROVOD_BUILD_DIR to a directory without.")
endif()
file(REMOVE_RECURSE "${BUILD_DIR}")
file(MAKE_DIRECTORY "${BUILD_DIR}" "${WHEEL_DIR}")

if(CUDA)
  find_program(NVCC nvcc)
  file(REAL_PATH "${NVCC}/../.." beside_nvcc)
  find_path(CUDA_HOME include/cuda_runtime.h HINTS ENV CUDA_HOME PATHS "${beside_nvcc}" /usr/local/cuda NO_DEFAULT_PATH)
  if(NOT EXISTS "${CUDA_HOME}/bin/nvcc")
    message(FATAL_ERROR "error: torch here is built for CUDA, but the CUDA compiler nvcc is missing. Install the CUDA "
                        "toolkit and set CUDA_HOME to it, or set EDT_CUDA=0 to build Horovod for the CPU.")
  endif()
  # NCCL comes with torch's packages, without the link that linkers look for, or with the system.
  execute_process(COMMAND "${PYTHON}" -c "import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])"
                  OUTPUT_VARIABLE NCCL_HOME OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  find_path(NCCL_INCLUDE nccl.h HINTS "${NCCL_HOME}/include" "${CUDA_HOME}/include" PATHS /usr/include /usr/local/include)
  if(NOT NCCL_INCLUDE)
    message(FATAL_ERROR "error: torch here is built for CUDA, but NCCL's header nccl.h is missing. Install NCCL's "
                        "development package (libnccl-dev; libnccl-devel), or set EDT_CUDA=0 to build Horovod for the CPU.")
  endif()
  set(GPU HOROVOD_GPU_OPERATIONS=NCCL HOROVOD_CUDA_HOME=${CUDA_HOME} CUDA_HOME=${CUDA_HOME}
          HOROVOD_NCCL_LINK=SHARED HOROVOD_NCCL_INCLUDE=${NCCL_INCLUDE})
  if(EXISTS "${NCCL_HOME}/lib/libnccl.so.2")
    file(CREATE_LINK "${NCCL_HOME}/lib/libnccl.so.2" "${BUILD_DIR}/libnccl.so" SYMBOLIC)
    list(APPEND GPU HOROVOD_NCCL_LIB=${BUILD_DIR})
  endif()
else()
  set(GPU HOROVOD_WITHOUT_CUDA=1)
endif()

execute_process(
  COMMAND "${PYTHON}" -m pip download --no-deps --no-binary :all: --no-build-isolation --dest "${BUILD_DIR}" ${REQUIREMENT}
  COMMAND_ERROR_IS_FATAL ANY)
file(GLOB archive "${BUILD_DIR}/horovod-*.tar.gz")
file(ARCHIVE_EXTRACT INPUT "${archive}" DESTINATION "${BUILD_DIR}/source")
file(GLOB source "${BUILD_DIR}/source/horovod-*")
file(GLOB patches "${CMAKE_CURRENT_LIST_DIR}/*.patch")
foreach(patch IN LISTS patches)
  message(STATUS "Applying ${patch}")
  execute_process(COMMAND "${PYTHON}" -m patch_ng "--directory=${source}" "${patch}" RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "error: ${patch} does not apply to ${REQUIREMENT}")
  endif()
endforeach()
execute_process(
  COMMAND "${CMAKE_COMMAND}" -E env
    HOROVOD_WITH_PYTORCH=1 HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1
    HOROVOD_WITH_GLOO=1 HOROVOD_WITH_MPI=1 HOROVOD_BUILD_TYPE=Release ${GPU}
    "${PYTHON}" -m pip wheel --verbose --no-deps --no-build-isolation --wheel-dir "${WHEEL_DIR}" "${source}"
  COMMAND_ERROR_IS_FATAL ANY)
