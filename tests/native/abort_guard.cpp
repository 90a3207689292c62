// What abort_guard.h promises. Exits with the number of broken promises, and names them.

#include <atomic>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>

#include "abort_guard.h"

using namespace horovod::common;

int broken = 0;

void expect(const char* promise, bool kept) {
  if (!kept) {
    std::printf("broken: %s\n", promise);
    ++broken;
  }
}

std::string failure(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

int main() {
  const auto nothing = [] {};
  {
    AbortGuard guard;
    int polls = 0;
    expect("an event that completes is a success", failure([&] {
             AwaitCompletion([&] { return ++polls == 3; }, [&] { guard.Run(nothing); });
           }) == "" && polls == 3);
  }
  {
    AbortGuard guard;
    expect("an event that the abort completes is a failure, at whatever moment it comes", failure([&] {
             AwaitCompletion([&] { guard.Abort(); return true; }, [&] { guard.Run(nothing); });
           }) == "the communicator was aborted");
    expect("what is asked after the abort is a failure, too", failure([&] {
             AwaitCompletion([] { return true; }, [&] { guard.Run(nothing); });
           }) != "");
    bool asked = false;
    failure([&] { guard.Run([&] { asked = true; }); });
    expect("an aborted communicator is not looked at", !asked);
    guard.Reset();
    expect("new communicators begin anew", failure([&] { guard.Run(nothing); }) == "");
  }
  {
    AbortGuard guard;
    int polls = 0, checks = 0;
    const auto error = failure([&] {
      AwaitCompletion([&] { return ++polls == 3; },
                      [&] { guard.Run([&] { ++checks; throw std::runtime_error("network"); }); });
    });
    expect("an error is reported once the kernel has ended", error == "network" && polls == 3 && checks == 1);
  }
  expect("a broken event is a failure", failure([&] {
           AwaitCompletion([]() -> bool { throw std::runtime_error("device"); }, nothing);
         }) == "device");
  {
    AbortGuard guard;
    std::atomic<bool> polling{false}, left{false};
    std::thread poller([&] {
      guard.Run([&] {
        polling = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        left = true;
      });
    });
    while (!polling) {
      std::this_thread::yield();
    }
    guard.Abort();
    expect("nobody polls when Abort() returns", left);
    poller.join();
  }
  expect("a call's result is returned",
         CallUnless([] { return false; }, [] { return 7; }) == 7);
  auto hangs = std::make_shared<std::promise<int>>();
  int looks = 0;
  expect("a call that hangs is left behind", failure([&] {
           CallUnless([&] { return ++looks == 3; }, [hangs] { return hangs->get_future().get(); });
         }) == "aborted");
  hangs->set_value(0);
  return broken;
}
