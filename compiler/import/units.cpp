// Number-with-unit parsing; every refusal names the place in the file and an example of what is accepted.
#include "compiler/import/units.h"

#include "compiler/import/words.h"

#include <cmath>
#include <cstdlib>

namespace llmc {
namespace {

struct Unit {
  const char *name;
  double scale;
};

constexpr Unit kBytes[] = {
    {"B", 1},     {"kB", 1e3},     {"KB", 1e3},        {"MB", 1e6},           {"GB", 1e9},
    {"TB", 1e12}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0}};
constexpr Unit kBits[] = {{"kbit", 125.0}, {"Mbit", 125e3}, {"Gbit", 125e6}, {"Tbit", 125e9},
                          {"kb", 125.0},   {"Mb", 125e3},   {"Gb", 125e6},   {"Tb", 125e9}};
constexpr Unit kTimes[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
constexpr Unit kFlops[] = {{"FLOPS", 1},    {"kFLOPS", 1e3},  {"MFLOPS", 1e6},
                           {"GFLOPS", 1e9}, {"TFLOPS", 1e12}, {"PFLOPS", 1e15}};

// Splits "80 GiB" into 80 and "GiB". Only digits, one point and an exponent: no hexadecimal, no "inf".
bool splitNumber(const std::string &text, double &number, std::string &unit) {
  size_t end = 0;
  while (end < text.size() && (std::isdigit(static_cast<unsigned char>(text[end])) || text[end] == '.'))
    ++end;
  if (end > 0 && end + 1 < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    size_t digits = end + 1 + (text[end + 1] == '+' || text[end + 1] == '-');
    if (digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits])))
      for (end = digits; end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]));)
        ++end;
  }
  if (end == 0 || end > 32)
    return false;
  const std::string digits = text.substr(0, end);
  char *stop = nullptr;
  number = std::strtod(digits.c_str(), &stop);
  if (*stop != '\0')
    return false;
  size_t from = text.find_first_not_of(' ', end);
  unit = from == std::string::npos ? "" : text.substr(from);
  return true;
}

template <size_t N> const Unit *findUnit(const Unit (&units)[N], const std::string &name) {
  for (const Unit &unit : units)
    if (name == unit.name)
      return &unit;
  return nullptr;
}

double checked(const Json &value, double number) {
  if (!std::isfinite(number) || number < 0)
    value.fail("must not be negative or infinite, found " + value.text());
  return number;
}

double parseQuantity(const Json &value, const char *example, const Unit *(*find)(const std::string &)) {
  if (value.isNumber())
    return checked(value, value.asDouble());
  double number = 0;
  std::string unit;
  if (!value.isString())
    value.fail(std::string("expected a number or a string such as ") + example + ", found " + value.text());
  if (!splitNumber(value.asString(), number, unit))
    value.fail("cannot read " + value.text() + " as a quantity; write it like " + example);
  if (unit.empty())
    return checked(value, number);
  const Unit *known = find(unit);
  if (!known)
    value.fail("unknown unit " + quote(unit) + " in " + value.text() + "; write it like " + example);
  return checked(value, number * known->scale);
}

} // namespace

uint64_t parseBytes(const Json &value) {
  if (value.kind() == JsonNode::Kind::Int && value.asInt() >= 0)
    return static_cast<uint64_t>(value.asInt());
  double bytes =
      parseQuantity(value, "\"80GiB\"", [](const std::string &unit) { return findUnit(kBytes, unit); });
  if (bytes >= 9e18)
    value.fail("more bytes than 64 bits hold: " + value.text());
  return static_cast<uint64_t>(std::llround(bytes));
}

double parseBandwidth(const Json &value) {
  return parseQuantity(value, "\"900GB/s\" or \"400Gbit/s\"", [](const std::string &unit) -> const Unit * {
    std::string name = unit;
    if (name.size() > 2 && name.compare(name.size() - 2, 2, "/s") == 0)
      name.resize(name.size() - 2);
    else
      return nullptr;
    const Unit *bytes = findUnit(kBytes, name);
    return bytes ? bytes : findUnit(kBits, name);
  });
}

double parseSeconds(const Json &value) {
  return parseQuantity(value, "\"5us\"", [](const std::string &unit) { return findUnit(kTimes, unit); });
}

double parseFlops(const Json &value) {
  return parseQuantity(value, "\"989TFLOPS\"",
                       [](const std::string &unit) { return findUnit(kFlops, unit); });
}

int64_t parseCapability(const Json &value) {
  double number = 0;
  std::string rest;
  if (value.isNumber())
    number = value.asDouble();
  else if (!splitNumber(value.asString(), number, rest) || !rest.empty())
    value.fail("cannot read " + value.text() + " as a compute capability; write it like \"9.0\"");
  const int64_t tenfold = number >= 20 ? std::llround(number) : std::llround(number * 10);
  if (!(number >= 0) || number > 1000)
    value.fail("no such compute capability: " + value.text() + "; write it like \"9.0\"");
  return tenfold;
}

} // namespace llmc
