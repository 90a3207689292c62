// Horovod's waits for NCCL, compiled as they are, with a device whose kernels wait for a lost peer: they end
// when their communicator is aborted. Exits with the number of broken promises, and names them.

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "horovod/common/ops/nccl_operations.h"

// The device.

std::atomic<bool> kernel_runs{false};
std::atomic<int> queries{0};

extern "C" {
const char* cudaGetErrorString(cudaError_t) { return "no error"; }
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t*, unsigned) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) {
  ++queries;
  return kernel_runs ? cudaErrorNotReady : cudaSuccess;
}

// NCCL. A communicator that was destroyed is never looked at.

struct ncclComm {
  std::atomic<bool> exists{true};
  std::atomic<ncclResult_t> error{ncclSuccess};
};

void must_exist(ncclComm_t comm, const char* what) {
  if (!comm->exists) {
    std::printf("broken: %s of a communicator that was destroyed\n", what);
    std::exit(100);
  }
}

const char* ncclGetErrorString(ncclResult_t) { return "the peer is lost"; }
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  must_exist(comm, "ncclCommGetAsyncError()");
  return *error = comm->error, ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  must_exist(comm, "ncclCommAbort()");
  comm->exists = false;
  kernel_runs = false;
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  must_exist(comm, "ncclCommDestroy()");
  return ncclSuccess;
}

int aborts = 0;
int horovod_abort_count() { return aborts; }
}

using namespace horovod::common;

// Without a timeline, none of it is called.
void Timeline::ActivityStartAll(const std::vector<TensorTableEntry>&, const std::string&) {}
void Timeline::ActivityEndAll(const std::vector<TensorTableEntry>&) {}

int broken = 0;

void expect(const char* promise, bool kept) {
  if (!kept) {
    std::printf("broken: %s\n", promise);
    ++broken;
  }
}

// One communicator, and an operation on it that is under way.
struct World {
  GPUContext gpu;
  NCCLContext nccl{};
  ncclComm comm;
  std::vector<char> zeros = std::vector<char>(sizeof(HorovodGlobalState) + sizeof(Timeline));
  HorovodGlobalState* state = reinterpret_cast<HorovodGlobalState*>(zeros.data());
  Timeline& timeline = *reinterpret_cast<Timeline*>(zeros.data() + sizeof(HorovodGlobalState));
  NCCLOpContext op{&nccl, state, Communicator::GLOBAL};

  World() {
    setenv("EDT_ELASTIC_NCCL", "1", 1);
    nccl.Begin();
    nccl.nccl_comms.resize(1);
    auto& entry = nccl.nccl_comms[0][std::make_tuple(0, std::vector<int32_t>{0})];
    entry = &comm;
    op.nccl_comm_ = &entry;
    kernel_runs = true;
    queries = 0;
  }

  std::string wait() {
    std::queue<std::pair<std::string, Event>> events;
    cudaStream_t stream = nullptr;
    gpu.RecordEvent(events, "", stream);
    try {
      gpu.WaitForEventsElastic(events, {}, timeline, op.error_check_callback_);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "OK";
  }
};

void await_queries(int count) {
  while (queries < count) {
    std::this_thread::yield();
  }
}

int main() {
  {
    World world;
    std::string outcome;
    std::thread finalizer([&] { outcome = world.wait(); });
    await_queries(3);
    world.nccl.ShutDown();
    finalizer.join();
    expect("EDT_ELASTIC_NCCL has communicators aborted", !world.comm.exists);
    expect("an operation that was aborted fails", outcome != "OK");
    expect("so does one that is asked about later", world.wait() != "OK");
  }
  {
    World world;
    std::string outcome;
    std::thread finalizer([&] { outcome = world.wait(); });
    await_queries(3);
    world.comm.error = ncclRemoteError;
    const int before = queries;
    await_queries(before + 3);
    expect("an error ends the background loop, which aborts", world.state->shut_down);
    expect("it is not reported while the kernel runs", outcome.empty());
    world.nccl.ShutDown();
    finalizer.join();
    expect("it is reported", outcome.find("the peer is lost") != std::string::npos);
  }
  {
    World world;
    try {
      world.nccl.ErrorCheck("ncclAllReduce", ncclSystemError, *world.op.nccl_comm_);
    } catch (const std::exception&) {
    }
    expect("operations before one that could not be begun fail", world.wait() != "OK");
    world.nccl.ShutDown();  // and does not abort again
  }
  {
    World world;
    expect("a world begins without an abort", !world.nccl.MustGiveUp());
    ++aborts;
    expect("forming communicators is given up on horovod_abort_collectives()", world.nccl.MustGiveUp());
    world.nccl.ShutDown();
  }
  {
    ThreadPool finalizers;
    std::atomic<int> answered{0};
    std::atomic<bool> is_first_running{false}, may_end{false};
    finalizers.create(1);
    finalizers.execute([&] {
      is_first_running = true;
      while (!may_end) {
        std::this_thread::yield();
      }
      ++answered;
    });
    finalizers.execute([&] { ++answered; });
    finalizers.execute([&] { ++answered; });
    while (!is_first_running) {
      std::this_thread::yield();
    }
    std::thread end([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      may_end = true;
    });
    finalizers.reset();
    end.join();
    expect("all operations that were queued are answered at shutdown", answered == 3);
  }
  return broken;
}
