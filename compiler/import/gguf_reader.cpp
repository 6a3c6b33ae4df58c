// The GGUF parser: a buffered cursor that refuses to pass the end of the file, and a walk over key-value
// pairs and tensor infos.
#include "compiler/import/gguf_reader.h"

#include "compiler/import/words.h"
#include "compiler/support/error.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_set>

namespace llmc {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is read in place, as little-endian");

constexpr uint64_t kMaxHeaderBytes = 1u << 30; // metadata and tensor infos; real ones have 20 MB at most
constexpr uint64_t kMaxKeyBytes = 65535;       // the format's own limit
constexpr uint64_t kMaxNameBytes = 256;        // ggml itself allows 64
constexpr uint64_t kMaxKeptItems = 1u << 22;   // of a tokenizer's array; vocabularies have 0.3 million
constexpr uint64_t kMaxOtherItems = 4096;      // of any other array
constexpr int kMaxNesting = 4;

enum Type : uint32_t { U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64 };

// Fewest bytes that a value of the type takes; 0 for a type that does not exist.
uint64_t leastBytes(uint32_t type) {
  static constexpr uint64_t table[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
  return type < std::size(table) ? table[type] : 0;
}

class Cursor {
public:
  Cursor(const GgufSource &source, const std::string &name) : source_(source), name_(name) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return source_.size() - position_; }

  [[noreturn]] void fail(const std::string &message) const {
    throw Error(name_ + ": GGUF header, byte " + std::to_string(position_) + ": " + message);
  }

  void need(uint64_t bytes, const char *what) const {
    if (bytes > remaining())
      fail(std::string(what) + " needs " + std::to_string(bytes) + " bytes, the file has " +
           std::to_string(remaining()) + " left; it is truncated or damaged, download it again");
    if (position_ > kMaxHeaderBytes || bytes > kMaxHeaderBytes - position_)
      fail("the metadata is longer than " + humanBytes(kMaxHeaderBytes));
  }

  void take(void *to, uint64_t bytes, const char *what) {
    need(bytes, what);
    char *out = static_cast<char *>(to);
    while (bytes > 0) {
      if (position_ < bufferStart_ || position_ >= bufferStart_ + buffer_.size())
        refill();
      uint64_t at = position_ - bufferStart_, part = std::min<uint64_t>(bytes, buffer_.size() - at);
      std::memcpy(out, buffer_.data() + at, part);
      out += part;
      bytes -= part;
      position_ += part;
    }
  }

  template <class T> T scalar(const char *what) {
    T value;
    take(&value, sizeof value, what);
    return value;
  }

  std::string string(uint64_t most, const char *what) {
    uint64_t length = scalar<uint64_t>(what);
    if (length > most)
      fail(std::string(what) + " of " + std::to_string(length) + " bytes; at most " + std::to_string(most) +
           " are allowed");
    need(length, what);
    std::string text(length, '\0');
    take(text.data(), length, what);
    return text;
  }

  void skip(uint64_t bytes, const char *what) {
    need(bytes, what);
    position_ += bytes;
  }

private:
  void refill() {
    constexpr uint64_t kChunk = 1u << 18;
    bufferStart_ = position_;
    buffer_.resize(std::min(kChunk, remaining()));
    source_.read(bufferStart_, buffer_.data(), buffer_.size());
  }

  const GgufSource &source_;
  const std::string &name_;
  uint64_t position_ = 0, bufferStart_ = 0;
  std::vector<char> buffer_;
};

constexpr uint64_t kMaxText = 64u << 20;

// A scalar number as the widest form of its kind.
void readNumber(Cursor &in, uint32_t type, GgufValue &value) {
  auto integer = [&](int64_t number) {
    value.kind = GgufValue::Kind::Int;
    value.integer = number;
    value.number = static_cast<double>(number);
  };
  switch (type) {
  case U8:
    return integer(in.scalar<uint8_t>("a number"));
  case I8:
    return integer(in.scalar<int8_t>("a number"));
  case U16:
    return integer(in.scalar<uint16_t>("a number"));
  case I16:
    return integer(in.scalar<int16_t>("a number"));
  case U32:
    return integer(in.scalar<uint32_t>("a number"));
  case I32:
    return integer(in.scalar<int32_t>("a number"));
  case I64:
    return integer(in.scalar<int64_t>("a number"));
  case U64: {
    uint64_t number = in.scalar<uint64_t>("a number");
    if (number <= static_cast<uint64_t>(INT64_MAX))
      return integer(static_cast<int64_t>(number));
    value.kind = GgufValue::Kind::Float;
    value.number = static_cast<double>(number);
    return;
  }
  case F32:
  case F64:
    value.kind = GgufValue::Kind::Float;
    value.number = type == F32 ? in.scalar<float>("a number") : in.scalar<double>("a number");
    return;
  case Bool: {
    uint8_t flag = in.scalar<uint8_t>("a boolean");
    if (flag > 1)
      in.fail("a boolean of value " + std::to_string(flag));
    integer(flag);
    value.kind = GgufValue::Kind::Bool;
    return;
  }
  default:
    in.fail("value type " + std::to_string(type) + " does not exist");
  }
}

void skipArray(Cursor &in, uint32_t type, uint64_t count, int depth);

void arrayHead(Cursor &in, uint32_t &type, uint64_t &count) {
  type = in.scalar<uint32_t>("an array's type");
  count = in.scalar<uint64_t>("an array's length");
  uint64_t least = leastBytes(type);
  if (least == 0)
    in.fail("array of type " + std::to_string(type) + ", which does not exist");
  if (count > in.remaining() / least)
    in.fail("an array of " + std::to_string(count) + " items, each of at least " + std::to_string(least) +
            " bytes, where " + std::to_string(in.remaining()) + " bytes are left");
}

void skipArray(Cursor &in, uint32_t type, uint64_t count, int depth) {
  if (depth > kMaxNesting)
    in.fail("arrays nested deeper than " + std::to_string(kMaxNesting) + " levels");
  if (type != String && type != Array)
    return in.skip(count * leastBytes(type), "an array");
  for (uint64_t i = 0; i < count; ++i) {
    if (type == String) {
      in.skip(in.scalar<uint64_t>("a string"), "a string");
    } else {
      uint32_t inner;
      uint64_t innerCount;
      arrayHead(in, inner, innerCount);
      skipArray(in, inner, innerCount, depth + 1);
    }
  }
}

void readArray(Cursor &in, const std::string &key, GgufValue &value) {
  uint32_t type;
  uint64_t count;
  arrayHead(in, type, count);
  const bool ofTokenizer = key.compare(0, 10, "tokenizer.") == 0;
  if (ofTokenizer && count > kMaxKeptItems)
    in.fail(quote(key) + " has " + std::to_string(count) + " items; at most " +
            std::to_string(kMaxKeptItems) + " are read");
  if (type == Array || (!ofTokenizer && count > kMaxOtherItems))
    return skipArray(in, type, count, 1);
  if (type == String) {
    value.kind = GgufValue::Kind::Strings;
    value.strings.reserve(count);
    for (uint64_t i = 0; i < count; ++i)
      value.strings.push_back(in.string(kMaxText, "a string"));
    return;
  }
  const bool real = type == F32 || type == F64;
  value.kind = real ? GgufValue::Kind::Floats : GgufValue::Kind::Ints;
  GgufValue item;
  for (uint64_t i = 0; i < count; ++i) {
    readNumber(in, type, item);
    if (real)
      value.floats.push_back(static_cast<float>(item.number));
    else
      value.ints.push_back(item.kind == GgufValue::Kind::Float ? INT64_MAX : item.integer);
  }
}

void readMetadata(Cursor &in, uint64_t count, GgufHeader &header) {
  for (uint64_t i = 0; i < count; ++i) {
    std::string key = in.string(kMaxKeyBytes, "a key");
    GgufValue value;
    switch (uint32_t type = in.scalar<uint32_t>("a value's type")) {
    case String:
      value.kind = GgufValue::Kind::String;
      value.text = in.string(kMaxText, "a string");
      break;
    case Array:
      readArray(in, key, value);
      break;
    default:
      readNumber(in, type, value);
    }
    if (!header.metadata.emplace(key, std::move(value)).second)
      in.fail("the key " + quote(key) + " stands twice");
  }
}

void readTensors(Cursor &in, uint64_t count, GgufHeader &header) {
  std::unordered_set<std::string> names;
  for (uint64_t i = 0; i < count; ++i) {
    GgufTensor tensor;
    tensor.name = in.string(kMaxNameBytes, "a tensor's name");
    if (!names.insert(tensor.name).second)
      in.fail("tensor " + quote(tensor.name) + " stands twice");
    uint32_t rank = in.scalar<uint32_t>("a tensor's rank");
    if (rank < 1 || rank > 4)
      in.fail("tensor " + quote(tensor.name) + " has " + std::to_string(rank) +
              " dimensions; 1 to 4 are allowed");
    for (uint32_t d = 0; d < rank; ++d) {
      uint64_t dim = in.scalar<uint64_t>("a dimension");
      if (dim < 1 || dim > static_cast<uint64_t>(INT64_MAX))
        in.fail("tensor " + quote(tensor.name) + " has a dimension of " + std::to_string(dim));
      tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(dim));
    }
    if (elementCount(tensor.shape) > static_cast<uint64_t>(INT64_MAX) / 8)
      in.fail("tensor " + quote(tensor.name) + " has an impossible shape " + shapeText(tensor.shape));
    tensor.type = in.scalar<uint32_t>("a tensor's type");
    tensor.offset = in.scalar<uint64_t>("a tensor's offset");
    header.tensors.push_back(std::move(tensor));
  }
}

void checkVersion(Cursor &in, GgufHeader &header) {
  char magic[4];
  in.take(magic, 4, "the magic");
  if (std::memcmp(magic, "GGUF", 4) != 0)
    throw Error(header.name + " is not a GGUF file: it begins with " + quote(std::string_view(magic, 4)) +
                ", not \"GGUF\"");
  header.version = in.scalar<uint32_t>("the version");
  if (header.version == 2 || header.version == 3)
    return;
  uint32_t swapped = __builtin_bswap32(header.version);
  if (swapped >= 1 && swapped <= 16)
    throw Error(header.name + " is a big-endian GGUF file (version " + std::to_string(swapped) +
                "); convert it with gguf-convert-endian, or take the little-endian one");
  throw Error(header.name + " is GGUF version " + std::to_string(header.version) +
              "; versions 2 and 3 are read: convert the model again with a present llama.cpp");
}

} // namespace

GgufHeader parseGguf(const GgufSource &source, const std::string &name) {
  GgufHeader header;
  header.name = name;
  Cursor in(source, header.name);
  checkVersion(in, header);
  const uint64_t tensorCount = in.scalar<uint64_t>("the tensor count");
  const uint64_t keyCount = in.scalar<uint64_t>("the key count");
  // Smallest pair: key length, type, one byte. Smallest tensor: name length, rank, one dimension, type,
  // offset.
  if (keyCount > in.remaining() / 13 || tensorCount > in.remaining() / 32)
    in.fail(std::to_string(keyCount) + " keys and " + std::to_string(tensorCount) +
            " tensors cannot fit in the " + std::to_string(in.remaining()) + " bytes that are left");
  readMetadata(in, keyCount, header);
  readTensors(in, tensorCount, header);
  header.headerBytes = in.position();

  const int64_t alignment = header.integer("general.alignment").value_or(32);
  if (alignment < 8 || alignment > (1 << 20) || alignment % 8 != 0)
    throw Error(name + ": general.alignment is " + std::to_string(alignment) +
                "; it must be a multiple of 8 between 8 and 1048576");
  const uint64_t unit = static_cast<uint64_t>(alignment);
  header.dataStart = (header.headerBytes + unit - 1) / unit * unit;
  for (GgufTensor &tensor : header.tensors) {
    if (tensor.offset % unit != 0)
      throw Error(name + ": tensor " + quote(tensor.name) + " lies at offset " +
                  std::to_string(tensor.offset) + ", not a multiple of the alignment " +
                  std::to_string(alignment));
    if (__builtin_add_overflow(tensor.offset, header.dataStart, &tensor.offset))
      throw Error(name + ": tensor " + quote(tensor.name) + " has an offset that overflows 64 bits");
  }
  return header;
}

std::string ggufTypeName(uint32_t type) {
  // Numbers that ggml has given out and not taken back.
  static const std::map<uint32_t, const char *> names = {
      {0, "F32"},     {1, "F16"},    {2, "Q4_0"},     {3, "Q4_1"},    {6, "Q5_0"},     {7, "Q5_1"},
      {8, "Q8_0"},    {9, "Q8_1"},   {10, "Q2_K"},    {11, "Q3_K"},   {12, "Q4_K"},    {13, "Q5_K"},
      {14, "Q6_K"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"},
      {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},   {23, "IQ4_XS"}, {24, "I8"},      {25, "I16"},
      {26, "I32"},    {27, "I64"},   {28, "F64"},     {29, "IQ1_M"},  {30, "BF16"},    {34, "TQ1_0"},
      {35, "TQ2_0"},  {39, "MXFP4"}, {40, "NVFP4"},   {41, "Q1_0"},
  };
  auto at = names.find(type);
  return at == names.end() ? "type " + std::to_string(type) : at->second;
}

const GgufValue *GgufHeader::find(std::string_view key) const {
  auto at = metadata.find(key);
  return at == metadata.end() ? nullptr : &at->second;
}

static std::string wrongKind(const GgufHeader &header, std::string_view key, const char *wanted) {
  return header.name + ": the key " + quote(key) + " should hold " + wanted;
}

std::optional<int64_t> GgufHeader::integer(std::string_view key) const {
  const GgufValue *value = find(key);
  if (!value)
    return std::nullopt;
  if (value->kind != GgufValue::Kind::Int)
    throw Error(wrongKind(*this, key, "an integer"));
  return value->integer;
}

std::optional<double> GgufHeader::number(std::string_view key) const {
  const GgufValue *value = find(key);
  if (!value)
    return std::nullopt;
  if (value->kind != GgufValue::Kind::Int && value->kind != GgufValue::Kind::Float)
    throw Error(wrongKind(*this, key, "a number"));
  return value->number;
}

std::optional<bool> GgufHeader::boolean(std::string_view key) const {
  const GgufValue *value = find(key);
  if (!value)
    return std::nullopt;
  if (value->kind != GgufValue::Kind::Bool)
    throw Error(wrongKind(*this, key, "a boolean"));
  return value->integer != 0;
}

std::optional<std::string> GgufHeader::string(std::string_view key) const {
  const GgufValue *value = find(key);
  if (!value)
    return std::nullopt;
  if (value->kind != GgufValue::Kind::String)
    throw Error(wrongKind(*this, key, "a string"));
  return value->text;
}

} // namespace llmc
