// Reads safetensors headers with an event parser: a header may have 100 MB, so no JSON tree is built of it.
#include "compiler/import/safetensors.h"

#include "compiler/import/files.h"
#include "compiler/import/json_sax.h"
#include "compiler/import/words.h"
#include "compiler/support/error.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <unordered_set>

namespace llmc {
namespace {

constexpr size_t kMaxRank = 8;

// A state machine over exactly the nesting that the format allows:
// { name: {dtype: s, shape: [n…], data_offsets: [a, b]} …, "__metadata__": {s: s …} }
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
public:
  HeaderReader(std::vector<SafetensorsEntry> &tensors, const std::string &name)
      : tensors_(tensors), name_(name) {}

  bool null() override { return scalar("null"); }
  bool boolean(bool) override { return scalar("a boolean"); }
  bool number_integer(number_integer_t value) override { return integer(value < 0 ? UINT64_MAX : value); }
  bool number_unsigned(number_unsigned_t value) override { return integer(value); }
  bool number_float(number_float_t, const string_t &) override { return scalar("a fraction"); }
  bool binary(binary_t &) override { return false; }

  bool string(string_t &value) override {
    if (place_ == Place::Metadata)
      return true;
    if (place_ != Place::Tensor || field_ != "dtype")
      return scalar("a string");
    entry_.dtype = value.substr(0, 32);
    seen_ |= kDtype;
    return true;
  }

  bool start_object(std::size_t) override {
    switch (place_) {
    case Place::Outside:
      place_ = Place::Top;
      return true;
    case Place::Top:
      if (topKey_ == "__metadata__") {
        place_ = Place::Metadata;
        return true;
      }
      place_ = Place::Tensor;
      entry_ = SafetensorsEntry{};
      entry_.name = topKey_;
      offsets_.clear();
      seen_ = 0;
      return true;
    default:
      return scalar("an object");
    }
  }

  bool key(string_t &value) override {
    if (place_ == Place::Tensor) {
      field_ = value.substr(0, 32);
      if (field_ != "dtype" && field_ != "shape" && field_ != "data_offsets")
        fail("tensor " + quote(entry_.name) + " has the unknown field " + quote(field_));
    } else if (place_ == Place::Top) {
      if (!names_.insert(value).second)
        fail("tensor " + quote(value) + " stands twice in the header");
      topKey_ = std::move(value);
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::Tensor) {
      if (seen_ != (kDtype | kShape | kOffsets) || offsets_.size() != 2)
        fail("tensor " + quote(entry_.name) + " needs dtype, shape and two data_offsets");
      entry_.begin = offsets_[0];
      entry_.end = offsets_[1];
      tensors_.push_back(std::move(entry_));
    }
    place_ = place_ == Place::Top ? Place::Outside : Place::Top;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::Tensor || field_ == "dtype")
      return scalar("a list");
    if (field_ == "shape") {
      place_ = Place::Shape;
      entry_.shape.clear();
      seen_ |= kShape;
    } else {
      place_ = Place::Offsets;
      offsets_.clear();
      seen_ |= kOffsets;
    }
    return true;
  }
  bool end_array() override {
    place_ = Place::Tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::detail::exception &error) override {
    fail("header is not valid JSON at byte " + std::to_string(position) + ": " +
         detail::shortSyntaxError(error.what()));
  }

private:
  enum class Place { Outside, Top, Metadata, Tensor, Shape, Offsets };
  static constexpr unsigned kDtype = 1, kShape = 2, kOffsets = 4;

  [[noreturn]] void fail(const std::string &message) const {
    throw Error(name_ + ": safetensors " + message);
  }

  bool scalar(const char *what) {
    fail(std::string("header holds ") + what + " where none may stand" +
         (place_ == Place::Outside ? "" : ", near " + quote(topKey_)));
  }

  bool integer(uint64_t value) {
    if (place_ == Place::Shape) {
      if (value > static_cast<uint64_t>(INT64_MAX) || entry_.shape.size() == kMaxRank)
        fail("tensor " + quote(entry_.name) + " has an impossible shape");
      entry_.shape.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (place_ == Place::Offsets && offsets_.size() < 2) {
      offsets_.push_back(value);
      return true;
    }
    return scalar("a number");
  }

  std::vector<SafetensorsEntry> &tensors_;
  const std::string &name_;
  Place place_ = Place::Outside;
  std::string topKey_, field_;
  SafetensorsEntry entry_;
  std::vector<uint64_t> offsets_;
  std::unordered_set<std::string> names_;
  unsigned seen_ = 0;
};

// Offsets in the header are relative to the data; makes them absolute after checking each on its own.
void placeEntry(SafetensorsEntry &entry, uint64_t dataStart, const std::string &name) {
  std::string who = name + ": tensor " + quote(entry.name);
  if (entry.end < entry.begin)
    throw Error(who + " ends at offset " + std::to_string(entry.end) + ", before its begin at " +
                std::to_string(entry.begin));
  uint64_t elementBytes = safetensorsElementBytes(entry.dtype);
  if (elementBytes != 0) {
    uint64_t elements = elementCount(entry.shape), needed;
    if (elements == UINT64_MAX || __builtin_mul_overflow(elements, elementBytes, &needed))
      throw Error(who + " has a shape " + shapeText(entry.shape) + " whose size overflows 64 bits");
    if (needed != entry.end - entry.begin)
      throw Error(who + ": " + entry.dtype + " " + shapeText(entry.shape) + " takes " +
                  std::to_string(needed) + " bytes, its data_offsets span " +
                  std::to_string(entry.end - entry.begin));
  }
  if (__builtin_add_overflow(entry.begin, dataStart, &entry.begin) ||
      __builtin_add_overflow(entry.end, dataStart, &entry.end))
    throw Error(who + " has offsets that overflow 64 bits");
}

} // namespace

uint64_t safetensorsElementBytes(std::string_view dtype) {
  static constexpr std::pair<std::string_view, uint64_t> table[] = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1},
      {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},     {"I32", 4},
      {"F32", 4},  {"U64", 8}, {"I64", 8}, {"F64", 8},
  };
  for (const auto &[known, bytes] : table)
    if (known == dtype)
      return bytes;
  return 0;
}

SafetensorsHeader parseSafetensorsHeader(std::string_view header, uint64_t fileSize,
                                         const std::string &name) {
  SafetensorsHeader out;
  out.dataStart = 8 + header.size();
  HeaderReader reader(out.tensors, name);
  nlohmann::json::sax_parse(header.begin(), header.end(), &reader);

  for (SafetensorsEntry &entry : out.tensors)
    placeEntry(entry, out.dataStart, name);
  std::sort(out.tensors.begin(), out.tensors.end(), [](const SafetensorsEntry &a, const SafetensorsEntry &b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t reached = out.dataStart;
  const SafetensorsEntry *before = nullptr;
  for (const SafetensorsEntry &entry : out.tensors) {
    if (entry.begin < reached && entry.begin != entry.end)
      throw Error(name + ": tensors " + quote(before->name) + " and " + quote(entry.name) +
                  " overlap: the second begins at byte " + std::to_string(entry.begin) +
                  ", the first ends at byte " + std::to_string(reached));
    if (entry.end > reached) {
      reached = entry.end;
      before = &entry;
    }
  }
  if (reached > fileSize)
    throw Error(name + " is truncated: its header describes " + std::to_string(reached) +
                " bytes, the file has " + std::to_string(fileSize) + ", so " +
                std::to_string(reached - fileSize) + " bytes are missing; download it again");
  return out;
}

SafetensorsHeader readSafetensorsHeader(const InputFile &file) {
  if (file.size() < 8)
    throw Error(file.path() + " has " + std::to_string(file.size()) +
                " bytes, too few for a safetensors header of at least 8; download it again");
  unsigned char raw[8];
  file.read(0, raw, 8);
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | raw[i];
  if (length > kMaxSafetensorsHeader)
    throw Error(file.path() + " is not a safetensors file: its first 8 bytes announce a header of " +
                std::to_string(length) + " bytes, the format allows " +
                std::to_string(kMaxSafetensorsHeader));
  if (length > file.size() - 8)
    throw Error(file.path() + " is truncated inside its header: the header has " + std::to_string(length) +
                " bytes, the file ends " + std::to_string(length - (file.size() - 8)) +
                " bytes earlier; download it again");
  std::string bytes = file.read(0, 8 + length);
  SafetensorsHeader header =
      parseSafetensorsHeader(std::string_view(bytes).substr(8), file.size(), file.path());
  header.headerHash = hashBytes(bytes);
  header.headerBytes = bytes.size();
  return header;
}

} // namespace llmc
