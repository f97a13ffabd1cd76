// GenericClient: a gRPC client that knows nothing but an address: it asks the server by reflection what its messages
// look like, and writes requests and replies in protobuf's text format.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/empty.pb.h>
#include <google/protobuf/text_format.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace muster::scheduler {

class GenericClient {
 public:
  explicit GenericClient(const std::string& address)
      : stub_(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())) {}

  // "package.Service", "Method" and the request as text; the reply as text, or "CODE message".
  std::string Call(const std::string& service, const std::string& method, const std::string& request) {
    const google::protobuf::MethodDescriptor* found = FindMethod(service, method);
    EXPECT_NE(found, nullptr) << service << " " << method;
    if (found == nullptr) return "";
    const auto sent = Make(*found->input_type());
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(request, sent.get())) << request;
    std::string bytes;
    const grpc::Status status = Send("/" + service + "/" + method, sent->SerializeAsString(), bytes);
    if (!status.ok()) return std::to_string(status.error_code()) + " " + status.error_message();
    const auto reply = Make(*found->output_type());
    EXPECT_TRUE(reply->ParseFromString(bytes));
    return reply->ShortDebugString();
  }

 private:
  std::unique_ptr<google::protobuf::Message> Make(const google::protobuf::Descriptor& type) {
    return std::unique_ptr<google::protobuf::Message>(factory_.GetPrototype(&type)->New());
  }

  grpc::Status Send(const std::string& path, const std::string& request, std::string& reply) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    grpc::CompletionQueue queue;
    const grpc::Slice slice(request);
    const grpc::ByteBuffer sent(&slice, 1);
    const auto call = stub_.PrepareUnaryCall(&context, path, sent, &queue);
    call->StartCall();
    grpc::ByteBuffer got;
    grpc::Status status;
    call->Finish(&got, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    if (status.ok()) reply = Text(got);
    return status;
  }

  const google::protobuf::MethodDescriptor* FindMethod(const std::string& service, const std::string& method) {
    if (pool_.FindServiceByName(service) == nullptr) Describe(service);
    const auto* found = pool_.FindServiceByName(service);
    return found == nullptr ? nullptr : found->FindMethodByName(method);
  }

  // ServerReflectionRequest and its response by their numbers, since gRPC installs no header for them:
  // file_containing_symbol is 4; of the response file_descriptor_response is 4, and its files are 1.
  void Describe(const std::string& symbol) {
    google::protobuf::Empty request;
    auto& fields = *request.GetReflection()->MutableUnknownFields(&request);
    fields.AddLengthDelimited(4, symbol);
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    grpc::CompletionQueue queue;
    const auto next = [&] {
      void* tag = nullptr;
      bool ok = false;
      EXPECT_TRUE(queue.Next(&tag, &ok) && ok);
    };
    const auto call =
        stub_.PrepareCall(&context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
    call->StartCall(nullptr);
    next();
    const grpc::Slice slice(request.SerializeAsString());
    call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    next();
    grpc::ByteBuffer bytes;
    call->Read(&bytes, nullptr);
    next();
    context.TryCancel();
    grpc::Status status;
    call->Finish(&status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    AddFiles(Text(bytes));
  }

  void AddFiles(const std::string& response) {
    google::protobuf::Empty outer;
    EXPECT_TRUE(outer.ParseFromString(response));
    const auto& fields = outer.GetReflection()->GetUnknownFields(outer);
    std::vector<google::protobuf::FileDescriptorProto> files;
    for (int i = 0; i < fields.field_count(); ++i) {
      if (fields.field(i).number() != 4) continue;
      google::protobuf::Empty list;
      EXPECT_TRUE(list.ParseFromString(fields.field(i).length_delimited()));
      const auto& rows = list.GetReflection()->GetUnknownFields(list);
      for (int row = 0; row < rows.field_count(); ++row) {
        if (rows.field(row).number() != 1) continue;
        EXPECT_TRUE(files.emplace_back().ParseFromString(rows.field(row).length_delimited()));
      }
    }
    // Those that others import come first.
    for (size_t round = 0; round < files.size(); ++round) {
      for (const auto& file : files) {
        if (pool_.FindFileByName(file.name()) != nullptr) continue;
        bool ready = true;
        for (const std::string& import : file.dependency()) ready = ready && pool_.FindFileByName(import) != nullptr;
        if (ready) pool_.BuildFile(file);
      }
    }
  }

  static std::string Text(grpc::ByteBuffer& bytes) {
    grpc::Slice whole;
    EXPECT_TRUE(bytes.DumpToSingleSlice(&whole).ok());
    return {reinterpret_cast<const char*>(whole.begin()), whole.size()};
  }

  grpc::GenericStub stub_;
  google::protobuf::DescriptorPool pool_;
  google::protobuf::DynamicMessageFactory factory_{&pool_};
};

}  // namespace muster::scheduler
