// Rules of the source tree itself: rooms, and the floors of a room, include only those below them,
// pages are files of their own, and tracked text contains neither host names of package registries
// nor anybody's home folder.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <regex>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/support.h"

namespace {

namespace fs = std::filesystem;

std::string first_folder(std::string_view path) {
  const size_t slash = path.find('/');
  return slash == std::string_view::npos ? "" : std::string(path.substr(0, slash));
}

/// A room of the house, and the rooms whose headers it may include besides its own and the public
/// ones.
struct Room {
  std::string_view name;
  std::vector<std::string_view> below;
};

// Rooms from the ground up. There is no exemption: a room declares itself what it needs of a higher
// one.
const std::vector<Room>& rooms() {
  static const std::vector<Room> kRooms = {
      {"include", {}},
      {"shaders", {}},
      {"base", {"shaders"}},
      {"runtime", {"base", "shaders"}},
      {"ops", {"runtime", "base", "shaders"}},
      {"layers", {"ops", "runtime", "base"}},
      {"checkpoints", {"base"}},
      {"text", {"checkpoints", "base"}},
      {"audio", {"checkpoints", "base"}},
      {"images", {"checkpoints", "base"}},
      {"models",
       {"layers", "ops", "runtime", "shaders", "checkpoints", "text", "audio", "images", "base"}},
      {"capi",
       {"models", "layers", "ops", "runtime", "checkpoints", "text", "audio", "images", "base"}},
      {"conformance", {"layers", "ops", "runtime", "shaders", "checkpoints", "base"}},
      {"apps",
       {"models", "conformance", "layers", "ops", "runtime", "checkpoints", "text", "audio",
        "images", "base"}},
  };
  return kRooms;
}

const Room* room_of(const std::string& folder) {
  for (const Room& room : rooms()) {
    if (room.name == folder) return &room;
  }
  return nullptr;
}

/// A folder and its floors, from the ground up: a file includes its own floor and those below.
/// Subfolders that are not named lie side by side above the floors, and files directly in the
/// folder lie on top.
struct Floors {
  std::string_view folder;
  std::vector<std::string_view> names;
};

const std::vector<Floors>& floors() {
  static const std::vector<Floors> kFloors = {
      {"models",
       {"core", "families", "networks", "adapters", "generation", "encoding", "translation",
        "speech", "vision", "attention", "loading"}},
      {"apps", {"cli", "attention"}},
      {"apps/serve", {"http", "engine", "api"}},
      {"apps/serve/api", {"requests"}},
  };
  return kFloors;
}

/// The floor of `folder` that `path` lies on: "" for a file directly in the folder, nothing for a
/// file elsewhere.
std::optional<std::string> floor_of(const std::string& path, std::string_view folder) {
  if (!path.starts_with(folder) || path[folder.size()] != '/') return {};
  return first_folder(std::string_view(path).substr(folder.size() + 1));
}

/// The folder whose floors forbid `file` to include `included`; empty if there is none.
std::string_view forbidding_folder(const std::string& file, const std::string& included) {
  for (const auto& [folder, names] : floors()) {
    const std::optional<std::string> from = floor_of(file, folder), to = floor_of(included, folder);
    if (!from || !to || from == to || from->empty()) continue;
    const auto own = std::find(names.begin(), names.end(), *from);
    if (std::find(names.begin(), own, *to) == own) return folder;
  }
  return {};
}

/// Why `file` may not include `included` (both from the repository root); empty if it may.
std::string include_problem(const std::string& file, const std::string& included) {
  const std::string from = first_folder(file), to = first_folder(included);
  const std::string arrow = file + " includes " + included + ": ";
  if (to == "tests" && from != "tests") return arrow + "only tests use tests";
  // The viewer is an example program on the public interface, and shares its graphics with the
  // examples.
  const std::string_view viewer = "apps/viewer/";
  const bool example = from == "examples" || file.starts_with(viewer);
  if (example && room_of(to) && !included.starts_with(viewer))
    return arrow + "examples and the viewer see public headers alone";
  if (to == "examples" && !example) return arrow + "only the viewer uses examples";
  if (included.starts_with(viewer) && !file.starts_with(viewer))
    return arrow + "the viewer is a program of its own";
  if (const std::string_view folder = forbidding_folder(file, included); !folder.empty())
    return arrow + "neither its own floor of " + std::string(folder) + " nor one below";
  const Room* room = room_of(from);
  if (!room || from == to || !room_of(to)) return {};
  if (std::find(room->below.begin(), room->below.end(), to) == room->below.end())
    return arrow + to + " is not below " + from;
  return {};
}

std::string_view after_spaces(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t");
  return start == std::string_view::npos ? std::string_view() : text.substr(start);
}

std::vector<std::string> quoted_includes(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::string_view rest = after_spaces(line);
    if (!rest.starts_with('#')) continue;
    rest = after_spaces(rest.substr(1));
    if (!rest.starts_with("include")) continue;
    rest = after_spaces(rest.substr(7));
    const size_t end = rest.find('"', 1);
    if (rest.starts_with('"') && end != std::string_view::npos)
      found.emplace_back(rest.substr(1, end - 1));
  }
  return found;
}

/// The first piece of `text` that does not belong in a public repository; empty if there is none.
std::string private_text(const std::string& text) {
  // Every name is split in two, so that this file passes its own check.
  static const std::vector<std::pair<std::string, std::string>> kRegistries = {
      {"deb.debian", ".org"},
      {"security.debian", ".org"},
      {"snapshot.debian", ".org"},
      {"archive.ubuntu", ".com"},
      {"pypi", ".org"},
      {"files.pythonhosted", ".org"},
      {"registry.npmjs", ".org"},
      {"crates", ".io"},
      {"proxy.golang", ".org"},
      {"conda.anaconda", ".org"}};
  for (const auto& [name, domain] : kRegistries)
    if (text.find(name + domain) != std::string::npos) return name + domain;
  static const std::vector<std::string> kHomes = {
      std::string("/ho") + "me/", std::string("/Us") + "ers/", std::string("/ro") + "ot/"};
  for (const std::string& home : kHomes) {
    for (size_t at = text.find(home); at != std::string::npos; at = text.find(home, at + 1)) {
      size_t end = at + home.size();
      while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) ||
                                   std::string_view("._-").find(text[end]) != std::string::npos))
        ++end;
      if (end > at + home.size()) return text.substr(at, end - at);
    }
  }
  return {};
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Files that git tracks; in a source archive without .git, every file outside build folders.
std::vector<std::string> tracked_files() {
  std::vector<std::string> files;
  const std::string command =
      "git -C '" + mulciber::tests::source_dir().string() + "' ls-files -z 2>/dev/null";
  if (std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose); pipe) {
    std::string name;
    for (int c = std::fgetc(pipe.get()); c != EOF; c = std::fgetc(pipe.get())) {
      if (c != '\0') {
        name.push_back(static_cast<char>(c));
        continue;
      }
      if (fs::is_regular_file(mulciber::tests::source_dir() / name)) files.push_back(name);
      name.clear();
    }
  }
  if (!files.empty()) return files;
  for (fs::recursive_directory_iterator it(mulciber::tests::source_dir()), end; it != end; ++it) {
    const std::string name = it->path().filename().string();
    if (it->is_directory() && (name.rfind("build", 0) == 0 || name[0] == '.'))
      it.disable_recursion_pending();
    else if (it->is_regular_file())
      files.push_back(fs::relative(it->path(), mulciber::tests::source_dir()).string());
  }
  return files;
}

bool is_source(const std::string& file) {
  static const std::array<std::string_view, 6> kEndings = {".h",    ".cpp", ".comp",
                                                           ".glsl", ".hpp", ".def"};
  for (std::string_view ending : kEndings)
    if (file.size() > ending.size() && file.ends_with(ending)) return true;
  return false;
}

}  // namespace

TEST_CASE("the layering check tells rooms below from rooms above", "[layering]") {
  CHECK(
      include_problem("apps/translate/translate.cpp", "models/families/decoder_config.h").empty());
  CHECK(include_problem("models/families/marian.cpp", "layers/linear.h").empty());
  CHECK(include_problem("layers/linear.cpp", "runtime/program.h").empty());
  CHECK(include_problem("ops/matmul.h", "shaders/matmul.h").empty());
  CHECK(include_problem("runtime/device.cpp", "mulciber/error.h").empty());
  CHECK(include_problem("apps/bench/bench.cpp", "conformance/cases.h").empty());
  CHECK(include_problem("conformance/cases.h", "layers/linear.h").empty());
  CHECK(include_problem("apps/viewer/main.cpp", "apps/viewer/viewer.h").empty());
  CHECK(include_problem("apps/viewer/session.h", "mulciber/embedding.h").empty());
  CHECK(include_problem("apps/viewer/frames.h", "examples/graphics/device.h").empty());

  CHECK(include_problem("capi/handles.h", "models/families/open_model.h").empty());
  CHECK(include_problem("models/generation/completion.h", "models/core/model.h").empty());
  CHECK_FALSE(include_problem("models/core/model.h", "models/generation/completion.h").empty());
  CHECK_FALSE(include_problem("models/loading/verify.cpp", "capi/handles.h").empty());

  CHECK_FALSE(include_problem("runtime/device.cpp", "layers/linear.h").empty());
  CHECK_FALSE(include_problem("layers/linear.cpp", "models/families/decoder_config.h").empty());
  CHECK_FALSE(include_problem("models/families/marian.cpp", "apps/translate/results.h").empty());
  CHECK_FALSE(include_problem("shaders/matmul.h", "runtime/tensor.h").empty());
  CHECK_FALSE(include_problem("models/families/marian.cpp", "conformance/reference.h").empty());
  CHECK(include_problem("conformance/vectors.cpp", "checkpoints/safetensors.h").empty());
  CHECK_FALSE(include_problem("conformance/vectors.cpp", "apps/translate/results.h").empty());
  CHECK_FALSE(include_problem("conformance/model_cases.cpp", "models/core/model.h").empty());
  CHECK_FALSE(include_problem("include/mulciber/mulciber.h", "runtime/device.h").empty());
  CHECK_FALSE(include_problem("runtime/device.cpp", "tests/support.h").empty());
  CHECK_FALSE(include_problem("text/tokenizer.cpp", "runtime/device.h").empty());
  CHECK_FALSE(include_problem("audio/log_mel.cpp", "ops/matmul.h").empty());
  CHECK_FALSE(include_problem("checkpoints/gguf.cpp", "runtime/tensor.h").empty());
  CHECK_FALSE(include_problem("layers/norm.cpp", "shaders/norm.h").empty());
  CHECK_FALSE(include_problem("apps/viewer/main.cpp", "apps/cli/command.h").empty());
  CHECK_FALSE(include_problem("apps/viewer/session.h", "runtime/device.h").empty());
  CHECK_FALSE(include_problem("apps/embed.cpp", "apps/viewer/options.h").empty());
  CHECK_FALSE(include_problem("apps/embed.cpp", "examples/graphics/device.h").empty());
  CHECK_FALSE(include_problem("examples/graphics/device.h", "runtime/device.h").empty());
  CHECK_FALSE(include_problem("examples/scene.h", "apps/viewer/frames.h").empty());
}

TEST_CASE("the layering check tells floors below from floors above", "[layering]") {
  CHECK(include_problem("apps/bench/bench.cpp", "apps/bench/model.h").empty());
  CHECK(include_problem("apps/bench/bench.cpp", "apps/cli/command.h").empty());
  CHECK(include_problem("apps/classify.cpp", "apps/images/images.h").empty());
  CHECK(include_problem("apps/serve/serve.cpp", "apps/serve/api/endpoints.h").empty());
  CHECK(include_problem("apps/serve/api/attention.cpp", "apps/attention/text_maps.h").empty());
  CHECK(include_problem("apps/serve/api/images.cpp", "apps/serve/http/api_error.h").empty());

  CHECK_FALSE(include_problem("apps/bench/bench.cpp", "apps/chat/chat.h").empty());
  CHECK_FALSE(include_problem("apps/cli/peaks.cpp", "apps/bench/model.h").empty());
  CHECK_FALSE(include_problem("apps/serve/http/log.cpp", "apps/serve/engine/engine.h").empty());
  CHECK_FALSE(include_problem("apps/serve/engine/engine.cpp", "apps/serve/stop_signal.h").empty());
  CHECK_FALSE(
      include_problem("apps/serve/api/requests/messages.cpp", "apps/serve/api/images.h").empty());

  for (const auto& [folder, names] : floors())
    for (std::string_view name : names)
      CHECK(fs::is_directory(mulciber::tests::source_dir() / folder / name));
}

TEST_CASE("includes are found wherever the preprocessor finds them", "[layering]") {
  const std::string text = "#include \"a/b.h\"\n  #  include \"c.h\"\n#include <vector>\n";
  CHECK(quoted_includes(text) == std::vector<std::string>{"a/b.h", "c.h"});
}

TEST_CASE("a room includes only those below it", "[layering]") {
  size_t checked = 0;
  std::string problems;
  for (const std::string& file : tracked_files()) {
    if (!is_source(file)) continue;
    for (const std::string& included :
         quoted_includes(read_text(mulciber::tests::source_dir() / file))) {
      ++checked;
      if (std::string problem = include_problem(file, included); !problem.empty())
        problems += problem + "\n";
    }
  }
  CHECK(problems == "");
  CHECK(checked > 50);
}

TEST_CASE("tracked text names no package registry and no home folder", "[layering]") {
  CHECK(private_text(std::string("see https://py") + "pi.org/project/x") ==
        std::string("py") + "pi.org");
  CHECK(private_text(std::string("cat /ho") + "me/ada/model.gguf") ==
        std::string("/ho") + "me/ada");
  CHECK(private_text("cmake -S . -B build && /usr/bin/true").empty());

  std::string problems;
  for (const std::string& file : tracked_files()) {
    const std::string text = read_text(mulciber::tests::source_dir() / file);
    if (text.find('\0') != std::string::npos) continue;  // binary
    if (std::string piece = private_text(text); !piece.empty())
      problems += file + ": " + piece + "\n";
  }
  CHECK(problems == "");
}

TEST_CASE("the library leaves environment, flags and exit codes to the command", "[layering]") {
  // Reports of conformance/, and generated pages, tell readers which command made them.
  const auto of_library = [](const std::string& folder) {
    return room_of(folder) && folder != "apps" && folder != "conformance" && folder != "shaders";
  };
  std::string problems;
  size_t checked = 0;
  for (const std::string& file : tracked_files()) {
    if (!is_source(file) || !of_library(first_folder(file))) continue;
    ++checked;
    std::istringstream lines(read_text(mulciber::tests::source_dir() / file));
    for (std::string line; std::getline(lines, line);) {
      line = line.substr(0, line.find("//"));
      const size_t flag = line.find("--"), quote = line.find('"');
      const bool names_flag = quote < flag && flag != line.npos && flag + 2 < line.size() &&
                              std::islower(static_cast<unsigned char>(line[flag + 2]));
      const bool asks = line.find("getenv") != line.npos && file != "runtime/public_devices.cpp";
      const bool exits = line.find("exit(") != line.npos || line.find("abort(") != line.npos;
      const bool page = line.find("Generated by `mulciber") != line.npos;
      if ((names_flag && !page) || asks || exits) problems += file + ": " + line + "\n";
    }
  }
  CHECK(problems == "");
  CHECK(checked > 50);
}

TEST_CASE("pages are files of their own", "[layering]") {
  // Texts that only a page has; tests look for some of them in generated pages.
  static const std::array<std::string_view, 4> kMarks = {"<!doctype", "<style", "<body",
                                                         "document.getElementById"};
  std::string problems;
  size_t checked = 0;
  for (const std::string& file : tracked_files()) {
    if (!is_source(file) || first_folder(file) == "tests") continue;
    const std::string text = read_text(mulciber::tests::source_dir() / file);
    ++checked;
    for (std::string_view mark : kMarks)
      if (text.find(mark) != std::string::npos) problems += file + ": " + std::string(mark) + "\n";
  }
  CHECK(problems == "");
  CHECK(checked > 50);
}

TEST_CASE("documents name files that exist", "[layering]") {
  // `folder/file`, with or without its extension, in the pages at the root and in docs.
  static const std::regex kPath("`([a-z_]+/[A-Za-z0-9_./-]+)`");
  const std::vector<std::string> files = tracked_files();
  std::string problems;
  size_t checked = 0;
  for (const std::string& file : files) {
    const std::string folder = first_folder(file);
    if (!file.ends_with(".md") || !(folder.empty() || folder == "docs")) continue;
    const std::string text = read_text(mulciber::tests::source_dir() / file);
    for (std::sregex_iterator it(text.begin(), text.end(), kPath), end; it != end; ++it) {
      const std::string path = (*it)[1];
      if (!fs::is_directory(mulciber::tests::source_dir() / first_folder(path)) ||
          first_folder(path).starts_with("build"))
        continue;
      ++checked;
      const bool found = std::ranges::any_of(files, [&](const std::string& name) {
        return name == path || name.starts_with(path + ".") ||
               name.starts_with(path.ends_with('/') ? path : path + "/");
      });
      if (!found) problems += file + ": " + path + "\n";
    }
  }
  CHECK(problems == "");
  CHECK(checked > 20);
}
