#include "apps/cli/whole_file.h"

#include <string>

#include "base/replace_file.h"
#include "mulciber/error.h"

namespace mulciber::apps {

void write_whole_file(const std::filesystem::path& path, std::string_view content) {
  if (const std::string reason = replace_file(path, content); !reason.empty())
    throw Error(path.string(), reason,
                "no file was changed; choose a file in a folder that can be written and has room");
}

}  // namespace mulciber::apps
