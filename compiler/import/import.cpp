// Decides which importer a path is for.
#include "compiler/import/import.h"

#include "compiler/import/files.h"
#include "compiler/import/hf_import.h"
#include "compiler/import/words.h"
#include "compiler/support/error.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace llmc {
namespace {

namespace fs = std::filesystem;

bool endsIn(const std::string &text, std::string_view suffix) {
  return text.size() >= suffix.size() &&
         text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

// The .gguf files of a folder that may be models: the later parts of a split file and image projectors are
// not.
std::vector<std::string> ggufModels(const std::string &folder) {
  std::vector<std::string> out;
  for (const auto &entry : fs::directory_iterator(folder)) {
    std::string name = entry.path().filename().string();
    if (!endsIn(name, ".gguf") || name.compare(0, 6, "mmproj") == 0 || !fileExists(entry.path().string()))
      continue;
    size_t of = name.rfind("-of-");
    bool laterPart = of != std::string::npos && of >= 6 && endsIn(name.substr(0, of), "00001") == false &&
                     name.find_first_not_of("0123456789", of - 5) == of;
    if (!laterPart)
      out.push_back(name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

// The newest snapshot in a repository of a hub's cache (models--ORG--NAME), "" where there is none.
std::string snapshotIn(const fs::path &repository) {
  std::error_code ignored;
  fs::path newest;
  fs::file_time_type when{};
  for (const auto &entry : fs::directory_iterator(repository / "snapshots", ignored))
    if (auto time = entry.last_write_time(ignored); entry.is_directory(ignored) && (newest.empty() || time > when))
      newest = entry.path(), when = time;
  return newest.string();
}

// What to say to somebody who gave a hub's name of a model, ORG/NAME, in place of its folder; "" where it is no such name.
std::string hubRemedy(const std::string &name) {
  const size_t slash = name.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 >= name.size() || name.find('/', slash + 1) != std::string::npos ||
      name.front() == '.' || name.front() == '~')
    return "";
  const char *home = std::getenv("HF_HOME"), *user = std::getenv("HOME");
  const fs::path cache = home ? fs::path(home) / "hub" : fs::path(user ? user : "") / ".cache/huggingface/hub";
  std::string folder = snapshotIn(cache / ("models--" + name.substr(0, slash) + "--" + name.substr(slash + 1)));
  if (!folder.empty())
    return "; models are read from folders, and this one's is " + folder;
  return "; models are read from folders: download it, for example with \"hf download " + name +
         "\", and name the folder that this prints";
}

} // namespace

static ModelSpec importPath(const std::string &path, LoadFormat format) {
  std::error_code failure;
  fs::path absolute = fs::absolute(path, failure).lexically_normal();
  if (failure || !fs::exists(absolute, failure))
    throw Error("no such model folder or file: " + path + hubRemedy(path));
  std::string where = absolute.string();
  while (where.size() > 1 && where.back() == '/')
    where.pop_back();

  if (!fs::is_directory(absolute)) {
    if (endsIn(where, ".gguf") && format == LoadFormat::Auto)
      return importGguf(where);
    throw Error(path + (format == LoadFormat::Dummy
                            ? " is a file; --load-format dummy needs the folder of a config.json"
                            : " is neither a folder nor a .gguf file; name the model's folder"));
  }
  const bool config = fileExists(where + "/config.json");
  std::vector<std::string> gguf = ggufModels(where);
  if (std::string snapshot = config || !gguf.empty() ? "" : snapshotIn(absolute); !snapshot.empty())
    throw Error(path + " is a repository of a hub's cache; name the snapshot in it, " + snapshot);
  if (format == LoadFormat::Dummy)
    return importHfFolder(where, format);

  if (config && (gguf.empty() || hasSafetensors(where)))
    return importHfFolder(where, format);
  if (gguf.size() == 1)
    return importGguf(where + "/" + gguf.front());
  if (gguf.size() > 1) {
    for (std::string &name : gguf)
      name = quote(name);
    throw Error(path + " holds " + std::to_string(gguf.size()) + " GGUF models (" + listText(gguf) +
                "); name one of them with --model");
  }
  return importHfFolder(where, format);
}

ModelSpec importModel(const std::string &path, LoadFormat format) {
  try {
    return importPath(path, format);
  } catch (const fs::filesystem_error &error) { // a folder without permission to list it, for one
    throw Error("cannot read the model at " + path + ": " + error.code().message());
  }
}

} // namespace llmc
