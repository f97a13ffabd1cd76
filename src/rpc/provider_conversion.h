// Between the messages of CapacityProvider and the contract's types.
//
// Reading validates; an error is INVALID_ARGUMENT and names the field by its path ("machines[3].price_per_hour: ...").
// Writing cannot fail. Identifiers, metadata, blobs and cursors pass as they are, byte for byte; prices, probabilities
// and quantities become the model's integers and come back in canonical form.
//
// Thread-safety: functions without state.
#pragma once

#include <span>
#include <string_view>

#include "base/status.h"
#include "contract/provider.h"
#include "model/machine.h"

namespace bigfleet::v1alpha1 {
class ConfigureRequest;
class CreateRequest;
class DeleteRequest;
class DrainRequest;
class ListFilter;
class Machine;
class MachineList;
class MachineRef;
class TransitionAck;
}  // namespace bigfleet::v1alpha1

namespace muster::rpc {

class SharedTexts;

// Requests, as a server reads them: the machine id must be given, and the states of a filter must exist.
Result<contract::CreateRequest> FromWire(const bigfleet::v1alpha1::CreateRequest& wire);
Result<contract::ConfigureRequest> FromWire(const bigfleet::v1alpha1::ConfigureRequest& wire);
Result<contract::DrainRequest> FromWire(const bigfleet::v1alpha1::DrainRequest& wire);
Result<contract::DeleteRequest> FromWire(const bigfleet::v1alpha1::DeleteRequest& wire);
Result<contract::GetRequest> FromWire(const bigfleet::v1alpha1::MachineRef& wire);
Result<contract::ListRequest> FromWire(const bigfleet::v1alpha1::ListFilter& wire);

void ToWire(const contract::CreateRequest& request, bigfleet::v1alpha1::CreateRequest& wire);
void ToWire(const contract::ConfigureRequest& request, bigfleet::v1alpha1::ConfigureRequest& wire);
void ToWire(const contract::DrainRequest& request, bigfleet::v1alpha1::DrainRequest& wire);
void ToWire(const contract::DeleteRequest& request, bigfleet::v1alpha1::DeleteRequest& wire);
void ToWire(const contract::GetRequest& request, bigfleet::v1alpha1::MachineRef& wire);
void ToWire(const contract::ListRequest& request, bigfleet::v1alpha1::ListFilter& wire);

// One record; `path` is where it stands ("machines[3]"). Takes the strings out of the message. Beyond the fields
// themselves it checks what the state demands of host, cluster and last_error (model::CheckStructure). Labels, metadata
// and resources are shared with earlier records by way of `texts`.
Result<model::Machine> TakeMachine(bigfleet::v1alpha1::Machine& wire, std::string_view path, SharedTexts& texts);

// Replies, as a client reads them, taken out of the message. A list leaves out records that are not fit, and the second
// of one id, and names them in `rejected`; it never fails. An acknowledgement without a record is taken as it is.
Result<contract::TransitionAck> TakeReply(bigfleet::v1alpha1::TransitionAck& wire, SharedTexts& texts);
Result<contract::GetReply> TakeReply(bigfleet::v1alpha1::Machine& wire, SharedTexts& texts);
Result<contract::ListReply> TakeReply(bigfleet::v1alpha1::MachineList& wire, SharedTexts& texts);

// A list in its bytes, with the same result, for a provider that is not trusted: it is read record after record, so
// that of the message no more than a few records are ever built. RESOURCE_EXHAUSTED, naming the bound, for a list that
// is larger than that of a fleet: a record of more than 64 KiB, a million records, or records that would keep more
// memory than machines do (the sum counts, so that one may have more). INVALID_ARGUMENT for bytes that are no list.
Result<contract::ListReply> ReadMachineList(std::span<const std::string_view> pieces, SharedTexts& texts);

void ToWire(const model::Machine& machine, bigfleet::v1alpha1::Machine& wire);
void ToWire(const contract::TransitionAck& reply, bigfleet::v1alpha1::TransitionAck& wire);
void ToWire(const contract::GetReply& reply, bigfleet::v1alpha1::Machine& wire);
void ToWire(const contract::ListReply& reply, bigfleet::v1alpha1::MachineList& wire);

}  // namespace muster::rpc
