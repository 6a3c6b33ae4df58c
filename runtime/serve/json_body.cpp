// Bounded JSON parsing (see json_body.h).
#include "runtime/serve/json_body.h"

#include "runtime/serve/api_error.h"

#include <vector>

namespace llmrt::serve {

using Json = nlohmann::ordered_json;

namespace {

constexpr int kMaxDepth = 100;
constexpr size_t kMaxValues = 4'000'000;
// Objects keep their order in a list, so the cost of a key grows with the keys before it.
constexpr size_t kMaxKeyWork = 50'000'000;

class Bounds {
public:
  bool operator()(int depth, Json::parse_event_t event, Json &) {
    switch (event) {
    case Json::parse_event_t::object_start:
    case Json::parse_event_t::array_start:
      if (depth >= kMaxDepth)
        throw ApiError(400, "the request's JSON is nested deeper than " + std::to_string(kMaxDepth) + " levels");
      if (keys_.size() <= static_cast<size_t>(depth) + 1)
        keys_.resize(static_cast<size_t>(depth) + 2);
      keys_[static_cast<size_t>(depth) + 1] = 0;
      count_value();
      break;
    case Json::parse_event_t::key:
      if (keys_.size() <= static_cast<size_t>(depth))
        keys_.resize(static_cast<size_t>(depth) + 1);
      key_work_ += ++keys_[static_cast<size_t>(depth)];
      if (key_work_ > kMaxKeyWork)
        throw ApiError(400, "the request's JSON has objects with too many keys");
      break;
    case Json::parse_event_t::value:
      count_value();
      break;
    default:
      break;
    }
    return true;
  }

private:
  void count_value() {
    if (++values_ > kMaxValues)
      throw ApiError(400, "the request's JSON has more than " + std::to_string(kMaxValues) + " values");
  }

  size_t values_ = 0, key_work_ = 0;
  std::vector<size_t> keys_; // of the object open at each depth
};

} // namespace

Json parse_body(std::string_view body) {
  Json json;
  try {
    Bounds bounds;
    json = Json::parse(body.begin(), body.end(),
                       [&bounds](int depth, Json::parse_event_t event, Json &value) { return bounds(depth, event, value); });
  } catch (const Json::exception &e) {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: ..." without the library's own name.
    std::string what = e.what();
    if (size_t end = what.find("] "); end != std::string::npos)
      what = what.substr(end + 2);
    if (what.size() > 300)
      what.resize(300);
    throw ApiError(400, "the request's body is not valid JSON: " + what);
  }
  if (!json.is_object())
    throw ApiError(400, std::string("the request's body must be a JSON object, not ") + json.type_name());
  return json;
}

} // namespace llmrt::serve
