#include "runtime/container_user.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "model/names.h"

namespace muster::runtime {

Result<ContainerUser> ParseContainerUser(std::string_view text) {
  if (text == "tenant") return ContainerUser::kTenant;
  if (text == "image") return ContainerUser::kImage;
  return InvalidArgument(fmt::format("{} is neither tenant nor image", model::Quoted(text)));
}

uid_t TenantUser(std::string_view agent, std::string_view tenant) {
  Hasher hasher;
  hasher.Add(agent);
  hasher.Add(tenant);
  return kFirstTenantUser + static_cast<uid_t>(hasher.value() % kTenantUsers);
}

// The group is always said: without one the engine takes it, and more groups, from the image's own files.
std::string UserOfContainer(std::string_view image_user, uid_t tenant_user) {
  constexpr size_t kMostDigits = 9;  // below the users of tenants, and far below where numbers wrap around to 0
  const auto is_number = [](std::string_view text) {
    return !text.empty() && text.size() <= kMostDigits &&
           text.find_first_not_of("0123456789") == std::string_view::npos &&
           text.find_first_not_of('0') != std::string_view::npos;
  };
  const size_t colon = image_user.find(':');
  const std::string_view user = image_user.substr(0, colon);
  if (!is_number(user)) return fmt::format("{0}:{0}", tenant_user);
  const std::string_view group = colon == std::string_view::npos ? "" : image_user.substr(colon + 1);
  return is_number(group) ? fmt::format("{}:{}", user, group) : fmt::format("{}:{}", user, tenant_user);
}

Result<DockerEngine::Refusal> ChooseUser(const DockerEngine& engine, const ContainerOptions& options,
                                         const std::string& tenant, ContainerSpec& spec) {
  if (options.user == ContainerUser::kImage) return std::nullopt;
  MUSTER_ASSIGN_OR_RETURN(DockerEngine::ImageUser image, engine.UserOf(spec.image));
  if (image.refusal) return std::move(image.refusal);
  spec.user = UserOfContainer(image.user, TenantUser(options.name, tenant));
  return std::nullopt;
}

}  // namespace muster::runtime
