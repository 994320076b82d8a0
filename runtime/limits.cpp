// Masks that remove capabilities, so that one device stands in for lesser ones.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>

#include "mulciber/error.h"
#include "runtime/capabilities.h"

namespace mulciber {
namespace {

struct Mask {
  const char* word;  // "no-fp16", or "shared" for shared=N
  const char* help;
  std::function<void(Capabilities&, uint64_t)> apply;
};

template <typename T>
void lower(T& limit, uint64_t to) {
  limit = static_cast<T>(std::min<uint64_t>(limit, to));
}

// Words with a number: "shared=16384", "storage=1M".
const std::vector<Mask>& numbered_masks() {
  static const std::vector<Mask> masks = {
      {"shared", "bytes of shared memory per workgroup",
       [](Capabilities& c, uint64_t n) { lower(c.max_shared_memory, n); }},
      {"invocations", "invocations per workgroup",
       [](Capabilities& c, uint64_t n) {
         lower(c.max_invocations, n);
         lower(c.max_local_size, n);
       }},
      {"subgroup", "invocations per subgroup, where the device has several sizes",
       [](Capabilities& c, uint64_t n) {
         require_subgroup_size(c, static_cast<uint32_t>(std::min<uint64_t>(n, 1024)));
       }},
      {"storage", "bytes one storage buffer binding may cover",
       [](Capabilities& c, uint64_t n) { lower(c.max_storage_range, n); }},
      {"buffers", "storage buffers per shader",
       [](Capabilities& c, uint64_t n) { lower(c.max_storage_buffers, n); }},
      {"groups", "workgroups per axis",
       [](Capabilities& c, uint64_t n) {
         for (auto& g : c.max_groups) lower(g, n);
       }},
      {"memory", "bytes of device memory",
       [](Capabilities& c, uint64_t n) {
         for (auto& h : c.heaps) {
           lower(h.size, n);
           lower(h.budget, n);
         }
       }},
  };
  return masks;
}

// Vulkan's required minimum, as phones of Khronos' "Android Baseline 2021" profile offer it.
constexpr const char* kAndroid2021 =
    "no-fp16,no-16bit-storage,no-8bit-storage,no-texels,no-subgroup,no-shuffle,"
    "no-address,no-coopmat,no-subgroup-size,no-integer-dot,shared=16384,invocations=128,storage="
    "128M,buffers="
    "4,"
    "groups=65535";

std::optional<uint64_t> parse_size(std::string_view text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  std::string_view unit(end, text.data() + text.size() - end);
  if (unit == "K") return value << 10;
  if (unit == "M") return value << 20;
  if (unit == "G") return value << 30;
  if (!unit.empty()) return std::nullopt;
  return value;
}

bool apply_one(Capabilities& c, std::string_view word) {
  if (word == "android-2021") {
    const std::vector<std::string> named = c.applied_limits;
    apply_limits(c, kAndroid2021);
    c.applied_limits = named;  // the preset's name stands for its masks
    return true;
  }
  if (word == "no-host-visible") {
    c.host_visible_device_memory = false;
    return true;
  }
  for (const FeatureName& name : feature_names()) {
    if (!name.mask || word != name.mask) continue;
    c.features &= ~name.feature;
    if (name.feature == kCooperativeMatrix || name.feature == kFloat16 ||
        name.feature == kStorage16) {
      c.features &= ~(kCooperativeMatrix | kFlexibleMatrices | kMatrixUnits);
    }
    if (name.feature == kWorkgroupMatrix256 || name.feature == kBufferAddress)
      c.features &= ~kWorkgroupMatrices;
    if (name.feature == kMatrix16x16x16BF16) c.features &= ~kBF16Operands;
    if (name.feature == kMatrix16x16x16I8) c.features &= ~kIntegerMatrices;
    if (name.feature == kSubgroupArithmetic) c.features &= ~kSubgroupShuffle;
    if (name.feature == kIntegerDot) c.features &= ~(kFastIntegerDot | kFastMixedDot);
    if (name.feature == kBufferAddress) c.features &= ~(kFastAddress | kUniformLoads);
    return true;
  }
  size_t equals = word.find('=');
  if (equals == std::string_view::npos) return false;
  for (const Mask& mask : numbered_masks()) {
    if (word.substr(0, equals) != mask.word) continue;
    std::optional<uint64_t> number = parse_size(word.substr(equals + 1));
    if (!number || *number == 0) return false;
    mask.apply(c, *number);
    return true;
  }
  return false;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> known_limits() {
  std::vector<std::pair<std::string, std::string>> list;
  for (const FeatureName& name : feature_names()) {
    if (name.mask) list.push_back({name.mask, std::string("without ") + name.name});
  }
  for (const Mask& mask : numbered_masks())
    list.push_back({std::string(mask.word) + "=N[K|M|G]", mask.help});
  list.push_back(
      {"no-host-visible", "device memory that the CPU cannot see: uploads go through staging"});
  list.push_back({"android-2021", "the least of Android phones since 2021"});
  return list;
}

void apply_limits(Capabilities& capabilities, std::string_view limits, const char* where) {
  while (!limits.empty()) {
    size_t comma = std::min(limits.find(','), limits.size());
    std::string_view word = limits.substr(0, comma);
    limits.remove_prefix(std::min(comma + 1, limits.size()));
    if (word.empty()) continue;
    if (!apply_one(capabilities, word)) {
      std::string known;
      for (const auto& [name, help] : known_limits()) known += (known.empty() ? "" : ", ") + name;
      throw SettingError(where, fmt::format("'{}' is not a limit", word), "known are: " + known);
    }
    capabilities.applied_limits.emplace_back(word);
  }
}

}  // namespace mulciber
