// Debug labels: the names of layers around their dispatches, in the order in which commands were
// recorded. The application's loader functions note the commands.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ops/elementwise.h"
#include "runtime/device.h"
#include "runtime/recorder.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/small_marian.h"
#include "tests/support.h"
#include "tests/vulkan_application.h"

#include "mulciber/embedding.h"

using namespace mulciber;
using namespace mulciber::tests;

namespace {

using Commands = std::vector<std::string>;

// The driver's own functions, and the commands that were recorded.
PFN_vkGetInstanceProcAddr g_labelled_instance = nullptr;
PFN_vkGetDeviceProcAddr g_labelled_device = nullptr;
PFN_vkCmdDispatch g_dispatch = nullptr;
PFN_vkCmdPipelineBarrier g_barrier = nullptr;
Commands g_commands;

VKAPI_ATTR void VKAPI_CALL note_begin(VkCommandBuffer, const VkDebugUtilsLabelEXT* label) {
  CHECK(label->sType == VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT);
  CHECK(label->pNext == nullptr);
  g_commands.push_back(std::string("begin ") + label->pLabelName);
}
VKAPI_ATTR void VKAPI_CALL note_end(VkCommandBuffer) { g_commands.emplace_back("end"); }
VKAPI_ATTR void VKAPI_CALL note_dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y,
                                         uint32_t z) {
  g_commands.emplace_back("dispatch");
  g_dispatch(commands, x, y, z);
}
VKAPI_ATTR void VKAPI_CALL note_barrier(VkCommandBuffer commands, VkPipelineStageFlags from,
                                        VkPipelineStageFlags to, VkDependencyFlags flags,
                                        uint32_t barriers, const VkMemoryBarrier* memory,
                                        uint32_t buffers, const VkBufferMemoryBarrier* buffer,
                                        uint32_t images, const VkImageMemoryBarrier* image) {
  g_commands.emplace_back("barrier");
  g_barrier(commands, from, to, flags, barriers, memory, buffers, buffer, images, image);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL labelled_device(VkDevice device, const char* name) {
  const PFN_vkVoidFunction own = g_labelled_device(device, name);
  if (std::string_view(name) == "vkCmdDispatch") {
    g_dispatch = reinterpret_cast<PFN_vkCmdDispatch>(own);
    return reinterpret_cast<PFN_vkVoidFunction>(note_dispatch);
  }
  if (std::string_view(name) == "vkCmdPipelineBarrier") {
    g_barrier = reinterpret_cast<PFN_vkCmdPipelineBarrier>(own);
    return reinterpret_cast<PFN_vkVoidFunction>(note_barrier);
  }
  return own;
}
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL labelled_instance(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction own = g_labelled_instance(instance, name);
  if (std::string_view(name) == "vkCmdBeginDebugUtilsLabelEXT")
    return reinterpret_cast<PFN_vkVoidFunction>(note_begin);
  if (std::string_view(name) == "vkCmdEndDebugUtilsLabelEXT")
    return reinterpret_cast<PFN_vkVoidFunction>(note_end);
  if (std::string_view(name) != "vkGetDeviceProcAddr") return own;
  g_labelled_device = reinterpret_cast<PFN_vkGetDeviceProcAddr>(own);
  return reinterpret_cast<PFN_vkVoidFunction>(labelled_device);
}

/// The device of an application whose commands are noted.
ApplicationDevice noted(const VulkanApplication& application, bool labels) {
  g_commands.clear();
  ApplicationDevice lent = application.lent();
  g_labelled_instance = lent.physical.get_instance_proc_addr;
  lent.physical.get_instance_proc_addr = labelled_instance;
  lent.debug_labels = labels;
  return lent;
}

/// Six sums, each of which reads the one before: one ahead of two layers of two, and one behind.
Program sums_in_layers(Device& device, const Buffer& values) {
  ProgramBuilder builder(device, "sums");
  const Tensor x = values.tensor({values.size() / 4}, DataType::kF32);
  Tensor sum = add(builder, x, x);
  {
    const auto encoder = builder.scope("encoder");
    for (const char* name : {"layers.0", "layers.1"}) {
      const auto layer = builder.layer(name);
      const auto inner = builder.scope("fc1");
      sum = add(builder, sum, x);
      sum = add(builder, sum, x);
    }
  }
  sum = add(builder, sum, x);
  builder.keep(sum);
  return builder.build();
}

bool is_label(const std::string& command) {
  return command == "end" || command.starts_with("begin ");
}

/// Checks that labels do not nest, and that every dispatch is inside of one. Returns their names.
std::set<std::string> names_of_labels(const Commands& commands) {
  std::set<std::string> names;
  bool open = false;
  for (const std::string& command : commands) {
    if (command == "end") {
      CHECK(open);
      open = false;
    } else if (command.starts_with("begin ")) {
      CHECK_FALSE(open);
      open = true;
      names.insert(command.substr(6));
    } else if (command == "dispatch") {
      CHECK(open);
    }
  }
  CHECK_FALSE(open);
  return names;
}

void run_a_frame_each(const VulkanApplication& application, FrameTask& task, double budget_us) {
  ApplicationCommands commands(application);
  while (!task.done()) {
    FrameSlice slice;
    commands.run([&](VkCommandBuffer buffer) { slice = task.record(buffer, budget_us); });
    task.completed(slice.number);
  }
}

}  // namespace

TEST_CASE("The dispatches of a layer are recorded between the begin and the end of its label") {
  const VulkanApplication application;
  const auto device = adopt_device(noted(application, true));
  REQUIRE(device->options().debug_labels);
  const Buffer values = device->memory().allocate(4096, MemoryUsage::kActivations);
  Program program = sums_in_layers(*device, values);
  REQUIRE(program.nodes().size() == 6);
  ApplicationCommands commands(application);
  g_commands.clear();
  commands.run([&](VkCommandBuffer buffer) { program.record(buffer); });
  const Commands layer = {"barrier", "dispatch", "barrier", "dispatch", "end"};
  Commands expected = {"barrier", "begin sums", "dispatch", "end", "begin sums: encoder.layers.0"};
  expected.insert(expected.end(), layer.begin(), layer.end());
  expected.emplace_back("begin sums: encoder.layers.1");
  expected.insert(expected.end(), layer.begin(), layer.end());
  for (const char* last : {"begin sums", "barrier", "dispatch", "end"}) expected.emplace_back(last);
  CHECK(g_commands == expected);

  // A slice that begins inside of a layer has its label too.
  g_commands.clear();
  commands.run([&](VkCommandBuffer buffer) { program.recording().record(buffer, 2, 4); });
  CHECK(g_commands == Commands{"barrier", "begin sums: encoder.layers.0", "dispatch", "end",
                               "begin sums: encoder.layers.1", "barrier", "dispatch", "end"});
}

TEST_CASE("Labels are those of a model's layers, and change no dispatch and no barrier") {
  const VulkanApplication application;
  const TranslateOptions options = {.max_new_tokens = 3};
  Commands recorded[2];
  std::vector<uint32_t> ids[2];
  for (const bool labels : {false, true}) {
    const auto device = adopt_device(noted(application, labels));
    Translator translator(device, small_marian().string());
    TranslationTask task(translator, "hello", options);
    g_commands.clear();
    run_a_frame_each(application, task, 1e9);
    recorded[labels] = g_commands;
    ids[labels] = task.result().ids;
  }
  CHECK(ids[0] == ids[1]);
  CHECK(std::ranges::none_of(recorded[0], is_label));
  const std::set<std::string> names = names_of_labels(recorded[1]);
  CHECK(names.contains("encode: encoder.layers.0"));
  CHECK(names.contains("decode step: decoder.layers.0"));
  std::erase_if(recorded[1], is_label);
  CHECK(recorded[0] == recorded[1]);
  CHECK(std::ranges::count(recorded[0], "dispatch") > 10);
}

TEST_CASE("Every slice of a task closes the labels that it opens") {
  const VulkanApplication application;
  const auto device = adopt_device(noted(application, true));
  Translator translator(device, small_marian().string());
  TranslationTask task(translator, "hello", {.max_new_tokens = 2});
  ApplicationCommands commands(application);
  while (!task.done()) {
    FrameSlice slice;
    g_commands.clear();
    commands.run([&](VkCommandBuffer buffer) { slice = task.record(buffer, 0); });
    task.completed(slice.number);
    CHECK(names_of_labels(g_commands).size() == (slice.dispatches > 0 ? 1 : 0));
  }
}

TEST_CASE("Without the extension there are no labels, and everything else works") {
  const VulkanApplication application;  // whose instance has enabled no extension
  ApplicationDevice lent = application.lent();
  lent.debug_labels = true;
  const auto device = adopt_device(lent);
  CHECK_FALSE(device->options().debug_labels);
  const Buffer values = device->memory().allocate(4096, MemoryUsage::kActivations);
  Program program = sums_in_layers(*device, values);
  ApplicationCommands commands(application);
  commands.run([&](VkCommandBuffer buffer) { program.record(buffer); });
}

TEST_CASE("A device that the library opens has labels where it is asked for them") {
  for (const bool labels : {false, true}) {
    const auto device = Device::open(options_from_environment({.debug_labels = labels}));
    if (!labels) CHECK_FALSE(device->options().debug_labels);
    const Buffer values = device->memory().allocate(4096, MemoryUsage::kActivations);
    sums_in_layers(*device, values).run();
    if (labels && !device->options().debug_labels)
      MULCIBER_SKIP("the Vulkan loader has no VK_EXT_debug_utils");
  }
}

TEST_CASE("Labels are asked for in C as in C++") {
  const VulkanApplication application;
  const ApplicationDevice wrapped = noted(application, true);
  Lent lent(application);
  lent.physical.get_instance_proc_addr = wrapped.physical.get_instance_proc_addr;
  const Context context;
  for (const MulciberBool labels : {0u, 1u}) {
    lent.info.debug_labels = labels;
    MulciberDevice* device = nullptr;
    MulciberModel* model = nullptr;
    MulciberTranslator* translator = nullptr;
    MulciberTask* task = nullptr;
    REQUIRE(mulciber_adopt_device(context.handle, &lent.info, &device) == MULCIBER_OK);
    REQUIRE(mulciber_open_model(context.handle, small_marian().c_str(), &model) == MULCIBER_OK);
    REQUIRE(mulciber_load_translator(context.handle, device, model, nullptr, &translator) ==
            MULCIBER_OK);
    REQUIRE(mulciber_begin_translation(context.handle, translator, "hello", nullptr, &task) ==
            MULCIBER_OK);
    g_commands.clear();
    MulciberSlice slice = {sizeof(slice)};
    ApplicationCommands commands(application);
    commands.run([&](VkCommandBuffer buffer) {
      REQUIRE(mulciber_record(context.handle, task, buffer, 1000, &slice) == MULCIBER_OK);
    });
    REQUIRE(mulciber_completed(context.handle, task, slice.number) == MULCIBER_OK);
    CHECK(std::ranges::any_of(g_commands, is_label) == (labels != 0));
    mulciber_destroy_task(task);
    mulciber_destroy_translator(translator);
    mulciber_destroy_model(model);
    mulciber_destroy_device(device);
  }
}
