// `mulciber kernels`: compiles every row that runs on the device, and prints the driver's
// statistics.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/cli/command.h"
#include "apps/cli/standard_error.h"
#include "apps/kernels/compile_rows.h"
#include "apps/kernels/executable.h"
#include "runtime/op.h"

namespace mulciber::apps {
namespace {

struct KernelsOptions : CommonOptions {
  RowSelection rows{.weight = ""};
  bool chosen = false;
  std::string disassembly;
};

std::string number(double value) { return value < 0 ? "" : fmt::format("{:.0f}", value); }

std::string types_of(const CompiledRow& pipeline) {
  return fmt::format("{}, {}", name_of(pipeline.types.activation), name_of(pipeline.types.weight));
}

std::string shapes_of(const CompiledRow& pipeline) {
  std::string text;
  for (const std::vector<uint64_t>& shape : pipeline.shapes)
    text += fmt::format("{}{}", text.empty() ? "" : " ", fmt::join(shape, ","));
  return text;
}

void print_device(const Capabilities& c) {
  fmt::print("{} ({} {}), subgroups of {}", c.name, c.driver_name, c.driver_info, c.subgroup_size);
  if (c.min_subgroup_size != c.max_subgroup_size)
    fmt::print(" ({} to {})", c.min_subgroup_size, c.max_subgroup_size);
  fmt::print("\n");
  if (!c.pipeline_statistics) {
    fmt::print(
        "The driver lacks VK_KHR_pipeline_executable_properties: it says nothing but how long it "
        "took.\n");
  }
}

void print_heading() {
  fmt::print(
      "\n  {:<42} {:<10} {:>8} {:>6} {:>9} {:>6} {:>13} {:>8} {:>7} {:>6} {:>7} {:>6} {:>6} {:>5}  "
      "{}\n",
      "row", "types", "seconds", "lanes", "registers", "instr.", "spills:fills", "scratch",
      "shared", "waves", "bytes", "loop", "FMAs", "ratio", "shapes");
}

void print_row(const CompiledRow& pipeline) {
  const auto line = [&](const PipelineExecutable& executable) {
    const PipelineFigures f = figures_of(executable.statistics);
    const uint32_t lanes = executable.subgroup_size;
    const std::optional<InnerLoop> loop = inner_loop_of(executable);
    fmt::print(
        "{} {:<42} {:<10} {:>8.3f} {:>6} {:>9} {:>6} {:>13} {:>8} {:>7} {:>6} {:>7} {:>6} {:>6} "
        "{:>5}  {}\n",
        pipeline.chosen_for.empty() ? ' ' : '*', pipeline.row->id, types_of(pipeline),
        pipeline.compiled.seconds, lanes == 0 ? "" : std::to_string(lanes), number(f.registers),
        number(f.instructions),
        f.spills < 0  ? ""
        : f.fills < 0 ? number(f.spills)
                      : number(f.spills) + " : " + number(f.fills),
        number(f.scratch), number(f.shared), number(f.occupancy), number(f.code_bytes),
        loop ? std::to_string(loop->instructions) : "",
        loop ? fmt::format("{:g}", loop->multiply_adds) : "",
        loop ? fmt::format("{:.2f}", loop->instructions / loop->multiply_adds) : "",
        shapes_of(pipeline));
  };
  if (!pipeline.failure.empty()) {
    fmt::print("! {:<42} {:<10} {}\n", pipeline.row->id, types_of(pipeline), pipeline.failure);
  } else if (pipeline.compiled.executables.empty()) {
    line({});
  }
  for (const PipelineExecutable& e : pipeline.compiled.executables) line(e);
  std::fflush(stdout);
}

nlohmann::json to_json(const CompiledRow& pipeline, const Capabilities& device) {
  nlohmann::json executables = nlohmann::json::array(), constants = nlohmann::json::object();
  for (const PipelineExecutable& e : pipeline.compiled.executables)
    executables.push_back(json_of(e));
  for (const auto& [id, value] : specialization(pipeline.key, device))
    constants[std::to_string(id)] = value;
  nlohmann::json row = {{"op", name_of(pipeline.row->op)},
                        {"row", pipeline.row->id},
                        {"activation", name_of(pipeline.types.activation)},
                        {"weight", name_of(pipeline.types.weight)},
                        {"shape_format", pipeline.shape_format},
                        {"shapes", pipeline.shapes},
                        {"groups", pipeline.groups},
                        {"constants", constants},
                        {"local_size", local_size(*pipeline.row, device)},
                        {"made_for_this_device", (pipeline.row->made_for & ~device.features) == 0},
                        {"chosen_for", pipeline.chosen_for},
                        {"compile_seconds", pipeline.compiled.seconds},
                        {"executables", executables}};
  if (!pipeline.failure.empty()) row["failure"] = pipeline.failure;
  return row;
}

/// Writes a file for each text that the compiler gives for a pipeline.
void write_representations(const CompiledRow& pipeline, const std::string& folder, size_t index) {
  for (const PipelineExecutable& executable : pipeline.compiled.executables) {
    for (const auto& [name, text] : executable.representations) {
      std::string file = fmt::format("{}.{}.{}.{}.{}", pipeline.row->id,
                                     name_of(pipeline.types.weight), index, executable.name, name);
      for (char& c : file) {
        if (c == '/' || c == ' ') c = '_';
      }
      std::ofstream out(std::filesystem::path(folder) / (file + ".txt"), std::ios::binary);
      out << text;
      if (!out.flush())
        throw ModelError(folder, "a file in it cannot be written", "give a folder with room");
    }
  }
}

int run_kernels(const KernelsOptions& options) {
  const std::unique_ptr<Device> device = open_device(options);
  const Capabilities& c = device->capabilities();
  const std::vector<const Kernel*> rows = selected_rows(options.rows, c);
  if (rows.empty()) return finish(*device, options, kBadInput);
  if (std::error_code error;
      !options.disassembly.empty() &&
      (std::filesystem::create_directories(options.disassembly, error), error))
    throw ModelError(options.disassembly, error.message(), "name a folder that can be written");
  std::vector<CompiledRow> pipelines = pipelines_of(rows, c, options.rows);
  if (options.chosen)
    std::erase_if(pipelines, [](const CompiledRow& p) { return p.chosen_for.empty(); });
  if (pipelines.empty() && !interrupted()) {
    tell("mulciber: no row that matches \"{}\" {}\n", options.rows.kernel,
         options.chosen ? "is what selection takes for these shapes and types of weights"
                        : "serves these shapes and types of weights");
    return finish(*device, options, kBadInput);
  }
  if (!options.json) {
    print_device(c);
    print_heading();
  }
  nlohmann::json list = nlohmann::json::array();
  bool failed = false;
  double seconds = 0;
  size_t done = 0;
  for (; done < pipelines.size() && !interrupted(); ++done) {
    CompiledRow& pipeline = pipelines[done];
    try {
      pipeline.compiled = device->pipelines().compile(pipeline.key);
    } catch (const KernelError& error) {
      pipeline.failure = error.what();
      failed = true;
    }
    seconds += pipeline.compiled.seconds;
    if (!options.disassembly.empty()) write_representations(pipeline, options.disassembly, done);
    if (options.json) {
      list.push_back(to_json(pipeline, c));
    } else {
      print_row(pipeline);
    }
    pipeline.compiled.executables.clear();  // texts of hundreds of pipelines would fill memory
  }
  if (options.json) {
    fmt::print("{}\n", nlohmann::json({{"device", c.name},
                                       {"driver", c.driver_name},
                                       {"driver_info", c.driver_info},
                                       {"subgroup_size", c.subgroup_size},
                                       {"pipelines", list}})
                           .dump(2));
  } else {
    fmt::print(
        "\n{} pipelines in {:.1f} s. * is what selection takes for one of the shapes at least.\n",
        done, seconds);
  }
  return finish(*device, options,
                interrupted() ? kInterrupted
                : failed      ? kOverTolerance
                              : kSuccess);
}

}  // namespace

void add_kernels(Command& app, int& code) {
  auto options = std::make_shared<KernelsOptions>();
  Command command = app.add_subcommand(
      "kernels", "What the driver's compiler makes of each kernel row: registers, spills, time");
  add_row_options(command, options->rows, "compile",
                  "types of weights to compile rows for: a glob (default: of block types q4_0, "
                  "q8_0, q4_k, q6_k and iq3_s)");
  command.add_flag("--chosen", options->chosen,
                   "only what selection takes on this device for the shapes");
  command
      .add_option("--disassembly", options->disassembly,
                  "write what the compiler gives of each pipeline to files in this folder")
      .type_name("DIR");
  add_common_options(command, *options);
  command.remove_option("--profile");  // nothing is dispatched
  command.footer(
      "Nothing is dispatched. Each row that runs here is compiled for the shapes that `mulciber "
      "bench` measures,\n"
      "once for each set of constants, without a cache. Registers are those of one invocation, "
      "scratch is bytes\n"
      "of each invocation, shared bytes of a workgroup, waves as the driver counts them; blank is "
      "what it does not\n"
      "say. Loop is the instructions of one pass through the loop with the most multiply-adds, "
      "FMAs those that it\n"
      "does for each lane, ratio instructions to one of them; --json says of what kind they are "
      "(of drivers that\n"
      "give their disassembly). Exit code 1 when the driver refuses a row.\n\n"
      "Example: mulciber kernels --kernel 'matmul_tiled*' --disassembly asm");
  command.callback([options, &code] {
    options->device_options.pipeline_statistics = true;
    // A self-test's verdicts do not matter to a compiler, and nothing may run.
    options->device_options.cache_folder.clear();
    options->device_options.ignore_verdicts = true;
    code = run_kernels(*options);
  });
}

}  // namespace mulciber::apps
