// HttpServer: short answers to GET over HTTP/1.1, from one thread that waits for nobody.
//
// Whoever can reach it may be slow or hostile: a request has its time to arrive and an answer its time to be taken, a
// connection that takes longer is closed, and when there are too many, or too much waits to be taken, the one that was
// opened first goes. So a thousand clients that send a byte now and then cost memory for their few bytes, and the next
// request is answered at once. One request per connection.
//
// Thread-safety: all functions may be called from any thread, except that Start and Stop do not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <thread>

#include "base/status.h"
#include "base/time.h"
#include "host/address.h"

namespace muster::host {

struct HttpResponse {
  int status = 200;
  std::string type;  // of the content
  std::string body;
};

class HttpServer {
 public:
  static constexpr size_t kMostConnections = 512;
  static constexpr size_t kMostWaiting = 16 << 20;  // bytes of answers that are not taken yet
  static constexpr size_t kMostHead = 8 << 10;      // bytes of a request
  static constexpr Duration kRequestTime = 2s;
  static constexpr Duration kAnswerTime = 10s;

  // `answer` gets the path of a GET, without what follows a question mark, and is called on the server's thread; it
  // returns soon, for everybody else waits.
  using Answer = std::function<HttpResponse(std::string_view path)>;
  explicit HttpServer(Answer answer) : answer_(std::move(answer)) {}
  ~HttpServer();  // stops
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Listens when it returns OK, at the port that is returned; the error says why the address cannot be had.
  Result<uint16_t> Start(const Address& address);
  // Idempotent; what was answered and can be sent at once is, everything else is cut off.
  void Stop();

 private:
  struct Connection {
    enum class State : uint8_t { kReceiving, kSending, kDraining };
    int fd = -1;
    MonoTime until;
    State state = State::kReceiving;
    std::string in = {};
    std::string out = {};
    size_t sent = 0;
  };
  using Connections = std::list<Connection>;

  void Run();
  void Accept();
  void Receive(Connections::iterator connection);
  void Take(Connection& connection) const;
  void Send(Connections::iterator connection);
  void Drain(Connections::iterator connection);
  Connections::iterator Close(Connections::iterator connection);
  void CloseOverdue();
  void Shed();
  int PollMillis() const;

  const Answer answer_;
  int listener_ = -1;
  int wake_ = -1;            // readable once it shall stop
  bool starved_ = false;     // of descriptors: nothing is accepted until one is free
  Connections connections_;  // the oldest first
  std::jthread thread_;
};

}  // namespace muster::host
