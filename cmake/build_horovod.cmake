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

# GCC's headers bring std::string along no longer, from version 13 on.
replace(horovod/common/group_table.h "#include <queue>
" "#include <queue>
#include <string>
" 1)

# Open MPI 5 knows these options with two dashes only; Open MPI 4 knows both forms.
replace(horovod/runner/mpi_run.py "'-bind-to " "'--bind-to " 2)
replace(horovod/runner/mpi_run.py "'-map-by " "'--map-by " 2)
replace(horovod/runner/mpi_run.py "'-rank-by " "'--rank-by " 1)

# Gloo does not tell who waits for a send that has failed: it sits there until the timeout of thirty seconds.
set(pair third_party/gloo/gloo/transport/tcp/pair.cc)
replace(${pair} "      op.buf->signalException(ex);
    }" "      op.buf->signalException(ex);
    }
    NonOwningPtr<UnboundBuffer> ubuf(op.ubuf);
    if (ubuf) {
      ubuf->signalException(ex);
    }" 1)

# Nor who waits for the rest of a message that has come in part, or for what is sent in answer to a peer.
replace(${pair} "  // Store exception_ptr and signal any threads in the async path.
" "  // The receive operation that is under way is in no queue any more.
  NonOwningPtr<UnboundBuffer> receiving(rx_.ubuf);
  if (receiving) {
    receiving->signalException(ex);
  }

  // Store exception_ptr and signal any threads in the async path.
" 1)
replace(${pair} "  // Write may have resulted in an error.
" "  // Write may have resulted in an error.
  if (ex_ != nullptr) {
    NonOwningPtr<UnboundBuffer> sending(op.ubuf);
    if (sending) {
      sending->signalException(ex_);
    }
  }
" 1)

# Whatever goes wrong with a connection in Gloo's own thread is the failure of this connection; as it is, it ends
# the process. A connection that was never entered into epoll has nothing to be taken out of it.
replace(${pair} "  // State must be <= CONNECTED.
" "  try {
  // State must be <= CONNECTED.
" 1)
replace(${pair} "  GLOO_ENFORCE(false, \"Unexpected state: \", state_);
" "  GLOO_ENFORCE(false, \"Unexpected state: \", state_);
  } catch (const std::exception& ex) {
    if (ex_ == nullptr) {
      signalException(GLOO_ERROR_MSG(peer_.str(), \": \", ex.what()));
    }
  }
" 1)
replace(third_party/gloo/gloo/transport/tcp/loop.cc "  auto rv = epoll_ctl(fd_, EPOLL_CTL_DEL, fd, nullptr);
  GLOO_ENFORCE_NE(rv, -1, " "  auto rv = epoll_ctl(fd_, EPOLL_CTL_DEL, fd, nullptr);
  GLOO_ENFORCE(rv != -1 || errno == ENOENT, " 1)

# A loss does not show on every connection, that to a host without power for instance. So whoever is told of it ends
# what waits in this process: no connection reads on, as if its peer had closed it, and none is waited for.
replace(third_party/gloo/gloo/transport/tcp/pair.h "  void close() override;
" "  void close() override;

  void abort();
" 1)
replace(${pair} "constexpr size_t kMaxRecvBufferSize = 32 * 1024 * 1024;
" "constexpr size_t kMaxRecvBufferSize = 32 * 1024 * 1024;

// All pairs of this process. They are never destroyed, because pairs may be later than static variables.
std::mutex& pairsMutex = *new std::mutex;
std::unordered_set<Pair*>& pairs = *new std::unordered_set<Pair*>;
" 1)
replace(${pair} "#include <sstream>
" "#include <sstream>
#include <unordered_set>
" 1)
replace(${pair} "  listen();
}
" "  listen();
  std::lock_guard<std::mutex> guard(pairsMutex);
  pairs.insert(this);
}

void Pair::abort() {
  std::lock_guard<std::mutex> lock(m_);
  if (fd_ != FD_INVALID && state_ != CLOSED) {
    // Writing stays open: a write that failed would be known before those who wait to read are told.
    ::shutdown(fd_, SHUT_RD);
  }
}

extern \"C\" int horovod_abort_collectives() {
  std::lock_guard<std::mutex> guard(pairsMutex);
  for (auto each : pairs) {
    each->abort();
  }
  return static_cast<int>(pairs.size());
}
" 1)
replace(${pair} "Pair::~Pair() {
" "Pair::~Pair() {
  {
    std::lock_guard<std::mutex> guard(pairsMutex);
    pairs.erase(this);
  }
" 1)

# A message that is shorter than what is waited for is as wrong as a longer one: the peer is in another operation.
replace(${pair} "GLOO_ENFORCE_LE(op.preamble.length, op.nbytes)" "GLOO_ENFORCE_EQ(op.preamble.length, op.nbytes)" 1)

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

# Gloo tells messages apart by kind of operation and order alone. So who has failed in an operation must take part
# in no other with the same connections: its peers, still in the old one, would take the new one's numbers for
# those they wait for. As it is, it goes on with the next one.
replace(${operations} "            << \"InitializeBuffer Failed\";
        for (auto& e : entries) {
          timeline.End(e.tensor_name, nullptr);
          e.FinishWithCallback(status);
        }
        return;" "            << \"InitializeBuffer Failed\";
        for (auto& e : entries) {
          timeline.End(e.tensor_name, nullptr);
          e.FinishWithCallback(status);
        }
        throw std::runtime_error(status.reason());" 1)
replace(${operations} "      timeline.End(e.tensor_name, status.ok() ? e.output : nullptr);
      e.FinishWithCallback(status);
    }
  }
" "      timeline.End(e.tensor_name, status.ok() ? e.output : nullptr);
      e.FinishWithCallback(status);
    }
  }

  // An error response is one that all have agreed on: nobody has begun the operation.
  if (!status.ok() && !status.in_progress() &&
      response.response_type() != Response::ERROR) {
    throw std::runtime_error(status.reason());
  }
" 1)

# Its peers learn of it by its closing the connections. Those of process sets, the global one included, stay open as
# it is until the next world, because their contexts do not count as enabled.
replace(horovod/common/gloo/gloo_context.cc "void GlooContext::Finalize() {
  if (!enabled_) {
    return;
  }

" "void GlooContext::Finalize() {
" 1)

# What is enqueued while Horovod shuts down, just after its queue was emptied, would never be answered, and its
# name would be taken in the next world. And the queues are emptied without a lock: to give up a tensor, torch waits
# for Python's lock, whose holder may be about to enqueue another.
set(queue horovod/common/tensor_queue)
replace(${queue}.h "  void FinalizeTensorQueue(const Status& status);
" "  // Refuses all that comes from now on, until it is opened again.
  void FinalizeTensorQueue(const Status& status);

  void Open() {
    std::lock_guard<std::mutex> guard(mutex_);
    closed_ = false;
  }
" 1)
replace(${queue}.h "  mutable std::mutex mutex_;
" "  mutable std::mutex mutex_;

  bool closed_ = false;
" 1)
replace(${queue}.cc "  std::lock_guard<std::mutex> guard(mutex_);
  for (auto& e : tensor_table_) {
    e.second.FinishWithCallback(status);
  }
  tensor_table_.clear();
  while (!message_queue_.empty()) {
    message_queue_.pop();
  }
" "  decltype(tensor_table_) unfinished;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    closed_ = true;
    unfinished.swap(tensor_table_);
    while (!message_queue_.empty()) {
      message_queue_.pop();
    }
  }
  for (auto& e : unfinished) {
    e.second.FinishWithCallback(status);
  }
" 1)
replace(${queue}.cc "  if (tensor_table_.find(e.tensor_name)" "  if (closed_) {
    return SHUT_DOWN_ERROR;
  }
  if (tensor_table_.find(e.tensor_name)" 1)
replace(${queue}.cc "  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (tensor_table_.find(" "  if (closed_) {
    return SHUT_DOWN_ERROR;
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (tensor_table_.find(" 1)
replace(${operations} "  state.shut_down = true;

" "  state.shut_down = true;
  for (auto id : state.process_set_table.Ids()) {
    state.process_set_table.Get(id).tensor_queue.FinalizeTensorQueue(
        SHUT_DOWN_ERROR);
  }

" 1)
replace(horovod/common/process_set.cc "  initialization_done = true;
  return true;" "  tensor_queue.Open();
  initialization_done = true;
  return true;" 2)

# Its rendezvous believes whoever asks, and unpickles what workers put there. Who asks has to show the job's token:
# EDT's launcher and horovodrun make one and give it to their workers in the environment.
set(http_store horovod/common/gloo/http_store.cc)
replace(${http_store} "#include <cstring>
" "#include <cstdlib>
#include <cstring>
" 1)
replace(${http_store} "      http::Response response = request.send(method, body);
" "      std::vector<std::string> headers;
      if (const char* token = std::getenv(\"HOROVOD_RENDEZVOUS_TOKEN\")) {
        headers.push_back(std::string(\"Authorization: Bearer \") + token);
      }
      http::Response response = request.send(method, body, headers);
" 1)
set(http_client horovod/runner/http/http_client.py)
replace(${http_client} "from urllib.error import " "import os
from urllib.error import " 1)
replace(${http_client} "def read_data_from_kvstore(" "def _headers():
    token = os.environ.get('HOROVOD_RENDEZVOUS_TOKEN')
    return {} if token is None else {'Authorization': 'Bearer ' + token}


def read_data_from_kvstore(" 1)
replace(${http_client} "Request(url)" "Request(url, headers=_headers())" 1)
replace(${http_client} "data=codec.dumps_base64(value, to_ascii=False))" "data=codec.dumps_base64(value, to_ascii=False), headers=_headers())" 1)
set(http_server horovod/runner/http/http_server.py)
replace(${http_server} "import collections
import logging
" "import collections
import hmac
import logging
import os
" 1)
replace(${http_server} "    # Override GET handler
" "    def parse_request(self):
        if not super().parse_request():
            return False
        token = os.environ.get('HOROVOD_RENDEZVOUS_TOKEN')
        shown = self.headers.get('Authorization', '')
        if token is None or hmac.compare_digest(shown.encode(), ('Bearer ' + token).encode()):
            return True
        self.send_status_code(403)
        return False

    # Override GET handler
" 1)

# It listens where the workers ask, if that is known by then, not on all interfaces.
replace(${http_server} "    def __init__(self, verbose=0):
        self._httpd = None
" "    def __init__(self, verbose=0, address=''):
        self._address = address
        self._httpd = None
" 1)
replace(${http_server} "            lambda addr: RendezvousHTTPServer(
                addr, handler_cls" "            lambda addr: RendezvousHTTPServer(
                (self._address, addr[1]), handler_cls" 1)
set(gloo_run horovod/runner/gloo_run.py)
replace(${gloo_run} "import signal
" "import secrets
import signal
" 1)
replace(${gloo_run} "    rendezvous = RendezvousServer(settings.verbose)

    # allocate" "    rendezvous = RendezvousServer(settings.verbose, server_ip)

    # allocate" 1)
replace(${gloo_run} "    exec_command = _exec_command_fn(settings)
    rendezvous = RendezvousServer(settings.verbose)
" "    exec_command = _exec_command_fn(settings)
    address = network.get_driver_ip(settings.nics) if settings.nics else ''
    rendezvous = RendezvousServer(settings.verbose, address)
" 1)

# No command line shows the token: processes of this host inherit it, those of others read it from ssh. Kubeflow's
# kubectl passes no input on; its pods are by themselves, and have no token.
replace(${gloo_run} "    # Non-elastic gloo runs should terminate" "    os.environ.pop('HOROVOD_RENDEZVOUS_TOKEN', None)
    if not env_util.is_kubeflow_mpi():
        os.environ['HOROVOD_RENDEZVOUS_TOKEN'] = secrets.token_hex()

    # Non-elastic gloo runs should terminate" 1)
replace(${gloo_run} "quote('cd {pwd}" "quote('read -r HOROVOD_RENDEZVOUS_TOKEN ; export HOROVOD_RENDEZVOUS_TOKEN ; cd {pwd}" 1)
replace(${gloo_run} "                                         identity_file=settings.ssh_identity_file)

        if settings.verbose:" "                                         identity_file=settings.ssh_identity_file)
            command = 'echo \"$HOROVOD_RENDEZVOUS_TOKEN\" | ' + command

        if settings.verbose:" 1)
replace(horovod/runner/common/util/env.py "secret.HOROVOD_SECRET_KEY}" "secret.HOROVOD_SECRET_KEY, 'HOROVOD_RENDEZVOUS_TOKEN'}" 1)

execute_process(
  COMMAND "${CMAKE_COMMAND}" -E env
    HOROVOD_WITH_PYTORCH=1 HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1
    HOROVOD_WITH_GLOO=1 HOROVOD_WITH_MPI=1
    "${PYTHON}" -m pip wheel --verbose --no-deps --no-build-isolation --wheel-dir "${WHEEL_DIR}" "${SOURCE}"
  COMMAND_ERROR_IS_FATAL ANY)
