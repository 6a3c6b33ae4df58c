// The JSON form walks the schema's reflection tables, so that a field added to plan.fbs appears without more ado.
#include "runtime/plan/dump.h"
#include "runtime/plan/hash.h"

#include <flatbuffers/minireflect.h>

#include <charconv>
#include <cmath>

namespace llmrt::plan {

void append_json_string(std::string &out, std::string_view text) {
  const char *data = text.data();
  const size_t size = text.size();
  static const char digits[] = "0123456789abcdef";
  auto byte = [&](size_t i) { return i < size ? uint8_t(data[i]) : uint8_t(0); };
  auto continues = [&](size_t i, uint8_t lo = 0x80, uint8_t hi = 0xbf) { return i < size && byte(i) >= lo && byte(i) <= hi; };
  out += '"';
  for (size_t i = 0; i < size;) {
    uint8_t c = byte(i);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += char(c);
      ++i;
    } else if (c < 0x20 || c == 0x7f) {
      out += "\\u00";
      out += digits[c >> 4];
      out += digits[c & 15];
      ++i;
    } else if (c < 0x80) {
      out += char(c);
      ++i;
    } else {
      size_t length = 0;
      if (c >= 0xc2 && c <= 0xdf && continues(i + 1))
        length = 2;
      else if (c >= 0xe0 && c <= 0xef && continues(i + 1, c == 0xe0 ? 0xa0 : 0x80, c == 0xed ? 0x9f : 0xbf) &&
               continues(i + 2))
        length = 3;
      else if (c >= 0xf0 && c <= 0xf4 && continues(i + 1, c == 0xf0 ? 0x90 : 0x80, c == 0xf4 ? 0x8f : 0xbf) &&
               continues(i + 2) && continues(i + 3))
        length = 4;
      if (length == 0) {
        out += "\\ufffd";
        length = 1;
      } else {
        out.append(data + i, length);
      }
      i += length;
    }
  }
  out += '"';
}

namespace {

constexpr size_t kLong = 256;

template <typename T> void append_number(std::string &out, T value) {
  char text[64];
  auto end = std::to_chars(text, text + sizeof text, value).ptr;
  out.append(text, end);
}

struct JsonVisitor : flatbuffers::IterationVisitor {
  explicit JsonVisitor(bool long_strings) : long_strings_(long_strings) {}
  std::string out;

  void StartSequence() override { open('{'); }
  void EndSequence() override { close('}'); }
  void StartVector() override { open('['); }
  void EndVector() override { close(']'); }
  void Field(size_t, size_t set_index, flatbuffers::ElementaryType, bool, const flatbuffers::TypeTable *,
             const char *name, const uint8_t *value) override {
    if (!value)
      return;
    separate(set_index);
    append_json_string(out, name);
    out += ": ";
  }
  void Element(size_t index, flatbuffers::ElementaryType type, const flatbuffers::TypeTable *, const uint8_t *) override {
    // Numbers of a vector stand on one line, tables on lines of their own.
    if (type == flatbuffers::ET_SEQUENCE || type == flatbuffers::ET_STRING)
      separate(index);
    else if (index)
      out += ", ";
  }
  void UType(uint8_t value, const char *name) override { named(value, name); }
  void Bool(bool value) override { out += value ? "true" : "false"; }
  void Char(int8_t value, const char *name) override { named(value, name); }
  void UChar(uint8_t value, const char *name) override { named(value, name); }
  void Short(int16_t value, const char *name) override { named(value, name); }
  void UShort(uint16_t value, const char *name) override { named(value, name); }
  void Int(int32_t value, const char *name) override { named(value, name); }
  void UInt(uint32_t value, const char *name) override { named(value, name); }
  void Long(int64_t value) override { append_number(out, value); }
  void ULong(uint64_t value) override { append_number(out, value); }
  void Float(float value) override { real(value); }
  void Double(double value) override { real(value); }
  void Unknown(const uint8_t *) override { out += "null"; }
  void String(const flatbuffers::String *text) override {
    if (text->size() <= kLong || long_strings_) {
      append_json_string(out, {text->data(), text->size()});
      return;
    }
    out += "{\"bytes\": ";
    append_number(out, text->size());
    out += ", \"xxh64\": \"" + hash_hex(hash_bytes(text->data(), text->size())) + "\"}";
  }

private:
  void open(char bracket) {
    out += bracket;
    ++depth_;
  }
  void close(char bracket) {
    --depth_;
    if (out.back() != '{' && out.back() != '[' && (bracket == '}' || out.back() == '}' || out.back() == '"'))
      line();
    out += bracket;
  }
  void separate(size_t index) {
    if (index)
      out += ',';
    line();
  }
  void line() {
    out += '\n';
    out.append(depth_, ' ');
  }
  template <typename T> void named(T value, const char *name) {
    if (name)
      append_json_string(out, name);
    else
      append_number(out, value);
  }
  // JSON has no infinities; a plan that holds one is refused by verify(), but must still print.
  template <typename T> void real(T value) {
    if (std::isfinite(value))
      append_number(out, value);
    else
      out += "null";
  }

  bool long_strings_;
  size_t depth_ = 0;
};

} // namespace

std::string dump_json(const Plan &plan, const DumpOptions &options) {
  JsonVisitor visitor(options.long_strings);
  flatbuffers::IterateObject(reinterpret_cast<const uint8_t *>(&plan), PlanTypeTable(), &visitor);
  return visitor.out + "\n";
}

} // namespace llmrt::plan
