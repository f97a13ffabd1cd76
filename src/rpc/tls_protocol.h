// TLS 1.3 and nothing older, in every connection gRPC makes in this process.
//
// gRPC 1.51 has no setting for the oldest version that a program can reach; what it has is the list of cipher suites up
// to TLS 1.2. Ours holds only one that needs a key shared beforehand, which gRPC never has: TLS 1.2 finds no suite in
// common with anybody, and TLS 1.3, whose suites are chosen elsewhere, is what remains.
#pragma once

namespace muster::rpc {

// Must run before the first TLS connection; the second call changes nothing. Thread-safety: sets a variable of the
// environment, so no other thread may write the environment meanwhile.
void RequireTls13();

}  // namespace muster::rpc
