// Parsing of nvidia-smi's tables. The text is whatever people pasted into a file, so each row is checked against the
// header and each link against its mirror image.
#include "compiler/import/nvidia_smi.h"

#include "compiler/import/gpu_models.h"
#include "compiler/import/words.h"
#include "compiler/support/error.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <map>
#include <optional>
#include <sstream>

namespace llmc {
namespace {

constexpr size_t kMostGpus = 64;

// Without carriage returns and terminal codes (ESC [ … letter).
std::string plain(const std::string &text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b' && i + 1 < text.size() && text[i + 1] == '[') {
      i += 2;
      while (i < text.size() && !std::isalpha(static_cast<unsigned char>(text[i])))
        ++i;
    } else if (text[i] != '\r') {
      out += text[i];
    }
  }
  return out;
}

std::vector<std::string> linesOf(const std::string &text) {
  std::istringstream in(plain(text));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

std::vector<std::string> wordsOf(const std::string &line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;)
    words.push_back(word);
  return words;
}

std::string trimmed(const std::string &text) {
  const size_t from = text.find_first_not_of(" \t"), to = text.find_last_not_of(" \t");
  return from == std::string::npos ? "" : text.substr(from, to - from + 1);
}

std::vector<std::string> cellsOf(const std::string &line) {
  std::vector<std::string> cells(1);
  for (char c : line)
    if (c == ',')
      cells.emplace_back();
    else
      cells.back() += c;
  for (std::string &cell : cells)
    cell = trimmed(cell);
  return cells;
}

std::optional<int64_t> numberAt(std::string_view text, std::string_view &rest) {
  int64_t number = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || number < 0)
    return std::nullopt;
  rest = text.substr(static_cast<size_t>(end - text.data()));
  return number;
}

// "GPU7" -> 7
std::optional<int64_t> gpuNumber(std::string_view word) {
  std::string_view rest;
  if (word.substr(0, 3) != "GPU")
    return std::nullopt;
  auto number = numberAt(word.substr(3), rest);
  return rest.empty() ? number : std::nullopt;
}

bool isLinkKind(std::string_view word) {
  std::string_view rest = "?";
  if (word.substr(0, 2) == "NV")
    if (auto count = numberAt(word.substr(2), rest); count && rest.empty())
      return *count >= 1 && *count <= 99;
  static constexpr std::string_view kinds[] = {"PIX", "PXB", "PHB", "NODE", "SYS"};
  return std::find(std::begin(kinds), std::end(kinds), word) != std::end(kinds);
}

uint64_t readMemory(const std::string &cell, const std::string &where) {
  std::string_view rest;
  auto number = numberAt(cell, rest);
  if (!number || (!rest.empty() && rest != " MiB") || *number < 1 || *number > int64_t{1} << 30)
    throw Error(where + ": memory.total is " + quote(cell) + "; expected mebibytes, such as 81559 MiB");
  return static_cast<uint64_t>(*number);
}

} // namespace

std::vector<SmiGpu> parseSmiGpus(const std::string &text, const std::string &file) {
  const char *command = "nvidia-smi --query-gpu=index,name,uuid,pci.bus_id,memory.total,compute_cap --format=csv";
  std::vector<std::string> lines = linesOf(text);
  std::erase_if(lines, [](const std::string &line) { return trimmed(line).empty(); });
  std::map<std::string, size_t> columns;
  if (!lines.empty()) {
    const std::vector<std::string> header = cellsOf(lines.front());
    for (size_t i = 0; i < header.size(); ++i)
      columns[header[i].substr(0, header[i].find(" ["))] = i;
  }
  for (const char *needed : {"name", "memory.total", "compute_cap"})
    if (!columns.count(needed))
      throw Error(file + " has no column " + quote(needed) + " in its first line; write it with: " + command);
  std::vector<SmiGpu> gpus;
  for (size_t row = 1; row < lines.size(); ++row) {
    const std::vector<std::string> cells = cellsOf(lines[row]);
    const std::string where = file + ": GPU " + std::to_string(row - 1);
    for (const std::string &one : cells)
      if (!isPlainText(one))
        throw Error(where + " has " + quote(one) + ", which is no text; has the file been damaged?");
    auto cell = [&](const char *column) {
      auto at = columns.find(column);
      return at != columns.end() && at->second < cells.size() ? cells[at->second] : std::string();
    };
    SmiGpu gpu;
    std::string_view rest;
    gpu.index = columns.count("index") ? numberAt(cell("index"), rest).value_or(-1) : static_cast<int64_t>(row - 1);
    gpu.name = cell("name");
    gpu.uuid = cell("uuid");
    gpu.pciId = cell("pci.bus_id");
    gpu.memoryMib = readMemory(cell("memory.total"), where);
    gpu.capability = cell("compute_cap");
    auto major = numberAt(gpu.capability, rest);
    if (gpu.name.empty() || !major || rest.size() < 2 || rest[0] != '.' || !numberAt(rest.substr(1), rest) || !rest.empty())
      throw Error(where + ": " + (gpu.name.empty() ? "it has no name" : "compute_cap is " + quote(gpu.capability) + ", not as 9.0"));
    if (gpu.index != static_cast<int64_t>(gpus.size()))
      throw Error(where + " has index " + quote(cell("index")) + "; rows must count from 0 without a gap");
    gpus.push_back(gpu);
  }
  if (gpus.empty() || gpus.size() > kMostGpus)
    throw Error(file + " lists " + std::to_string(gpus.size()) + " GPUs; between 1 and " + std::to_string(kMostGpus) +
                " are allowed");
  return gpus;
}

SmiLinks parseSmiLinks(const std::string &text, const std::string &file, size_t gpus) {
  const std::vector<std::string> lines = linesOf(text);
  size_t at = 0;
  std::vector<std::string> header;
  for (; at < lines.size() && header.empty(); ++at)
    if (std::vector<std::string> words = wordsOf(lines[at]); !words.empty() && words.front() == "GPU0")
      header = words;
  // The devices of the columns end where the affinities begin.
  header.erase(std::find(header.begin(), header.end(), "CPU"), header.end());
  std::map<int64_t, size_t> columns;
  for (size_t i = 0; i < header.size(); ++i)
    if (auto number = gpuNumber(header[i]))
      columns[*number] = i;
  if (columns.size() != gpus)
    throw Error(file + " has columns for " + std::to_string(columns.size()) + " GPUs, the list of GPUs has " +
                std::to_string(gpus) + "; both must be of one machine, and the first written with: nvidia-smi topo -m");
  SmiLinks kinds(gpus, std::vector<std::string>(gpus));
  for (; at < lines.size(); ++at) {
    const std::vector<std::string> words = wordsOf(lines[at]);
    const std::optional<int64_t> row = words.empty() ? std::nullopt : gpuNumber(words.front());
    if (!row)
      continue; // NICs, the legend
    const std::string who = file + ": the row of GPU" + std::to_string(*row);
    if (*row >= static_cast<int64_t>(gpus) || !kinds[static_cast<size_t>(*row)].front().empty())
      throw Error(who + (*row >= static_cast<int64_t>(gpus) ? " has no column" : " stands twice"));
    for (size_t to = 0; to < gpus; ++to) {
      auto column = columns.find(static_cast<int64_t>(to));
      if (column == columns.end())
        throw Error(file + ": there is no column for GPU" + std::to_string(to));
      const size_t place = column->second + 1;
      if (place >= words.size())
        throw Error(who + " ends before the column of GPU" + std::to_string(to));
      const std::string &kind = words[place];
      const bool self = to == static_cast<size_t>(*row);
      if (self ? kind != "X" : !isLinkKind(kind))
        throw Error(who + " has " + quote(kind) + " for GPU" + std::to_string(to) +
                    (self ? "; expected X" : "; expected NV#, PIX, PXB, PHB, NODE or SYS"));
      kinds[static_cast<size_t>(*row)][to] = kind;
    }
  }
  for (size_t a = 0; a < gpus; ++a) {
    if (kinds[a].front().empty())
      throw Error(file + ": there is no row for GPU" + std::to_string(a));
    for (size_t b = 0; b < a; ++b)
      if (kinds[a][b] != kinds[b][a])
        throw Error(file + ": GPU" + std::to_string(b) + " and GPU" + std::to_string(a) + " are joined by " + kinds[b][a] +
                    " in one row and by " + kinds[a][b] + " in the other; has the text been changed?");
  }
  return kinds;
}

namespace {

std::string withUnit(double number, const char *unit) {
  char text[48];
  std::snprintf(text, sizeof text, "%.10g%s", number, unit);
  return text;
}

using Object = nlohmann::ordered_json;

Object describe(const SmiGpu &gpu, const std::string &memoryBandwidth, const std::string &peakFlops) {
  const GpuModel *model = findGpuModel(gpu.name);
  if (!model && (memoryBandwidth.empty() || peakFlops.empty()))
    throw Error("the speed of " + quote(gpu.name) + " is not known: give its --memory-bandwidth, such as 936GB/s, and its --peak-flops "
                "(dense bf16), such as 71TFLOPS");
  // As the examples have it: what a context and the driver take of a large GPU and of a small one.
  const char *reserved = gpu.memoryMib >= 64 << 10 ? "1GiB" : "768MiB";
  return {{"name", gpu.name},
          {"memory", std::to_string(gpu.memoryMib) + "MiB"},
          {"reserved", reserved},
          {"capability", gpu.capability},
          {"memory_bandwidth", model ? withUnit(model->memoryGBps, "GB/s") : memoryBandwidth},
          {"peak_flops", model ? withUnit(model->tflops, "TFLOPS") : peakFlops}};
}

// The slower of two GPUs counts; a model that is not known, or has no NVLink in the table, counts as the least of its kind.
Object describeLink(const std::string &kind, const SmiGpu &a, const SmiGpu &b) {
  const GpuModel *one = findGpuModel(a.name), *two = findGpuModel(b.name);
  auto least = [&](double GpuModel::*speed, double unknown) {
    auto of = [&](const GpuModel *model) { return model && model->*speed > 0 ? model->*speed : unknown; };
    return std::min(of(one), of(two));
  };
  double bandwidth = least(&GpuModel::pcieGBps, 12);
  if (kind.compare(0, 2, "NV") == 0)
    bandwidth = least(&GpuModel::nvlinkGBps, 14) * std::stoi(kind.substr(2));
  else if (kind == "NODE" || kind == "SYS")
    bandwidth /= 2; // across bridges and sockets
  return {{"kind", kind}, {"bandwidth", withUnit(bandwidth, "GB/s")}};
}

} // namespace

std::string smiTopology(const std::vector<SmiGpu> &gpus, const SmiLinks &links, const std::string &memoryBandwidth,
                        const std::string &peakFlops) {
  std::vector<Object> all;
  for (const SmiGpu &gpu : gpus)
    all.push_back(describe(gpu, memoryBandwidth, peakFlops));
  const bool alike = std::all_of(all.begin(), all.end(), [&](const Object &one) { return one == all.front(); });
  Object root = {{"name", std::to_string(gpus.size()) + "x " + gpus.front().name}};
  if (!alike)
    root["name"] = std::to_string(gpus.size()) + " GPUs";
  root["description"] = "From nvidia-smi; speeds are those of data sheets, better measured";
  if (alike)
    root["device_defaults"] = all.front();
  for (size_t i = 0; i < gpus.size(); ++i) {
    Object device = {{"id", "gpu" + std::to_string(i)}};
    if (!gpus[i].uuid.empty())
      device["uuid"] = gpus[i].uuid;
    if (!gpus[i].pciId.empty())
      device["pci_id"] = gpus[i].pciId;
    if (!alike)
      device.update(all[i]);
    root["devices"].push_back(device);
  }
  std::vector<Object> pairs;
  for (size_t a = 0; a < gpus.size(); ++a)
    for (size_t b = a + 1; b < gpus.size(); ++b) {
      Object link = {{"a", "gpu" + std::to_string(a)}, {"b", "gpu" + std::to_string(b)}};
      link.update(describeLink(links[a][b], gpus[a], gpus[b]));
      pairs.push_back(link);
    }
  auto body = [](Object link) { return link.erase("a"), link.erase("b"), link; };
  if (pairs.size() > 1 && std::all_of(pairs.begin(), pairs.end(), [&](const Object &p) { return body(p) == body(pairs.front()); }))
    root["default_link"] = body(pairs.front());
  else if (!pairs.empty())
    root["links"] = pairs;

  // One line a device or link, as people write them.
  auto line = [](const Object &value) {
    if (!value.is_object())
      return value.dump();
    std::string members;
    for (const auto &[key, member] : value.items())
      members += (members.empty() ? "" : ", ") + Object(key).dump() + ": " + member.dump();
    return "{" + members + "}";
  };
  std::string out = "{";
  for (const auto &[key, value] : root.items()) {
    out += (out == "{" ? "\n  " : ",\n  ") + Object(key).dump() + ": ";
    if (!value.is_array()) {
      out += line(value);
      continue;
    }
    for (size_t i = 0; i < value.size(); ++i)
      out += (i ? ",\n    " : "[\n    ") + line(value[i]);
    out += "\n  ]";
  }
  return out + "\n}\n";
}

} // namespace llmc
