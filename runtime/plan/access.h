// What every reader of a plan needs to look at it safely: null-proof vectors and strings, sizes of data types,
// snake_case names of enums, and each op's operands in one uniform form.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace llmrt::plan {

// flatbuffers writes no vector at all for an empty one; these treat both alike.
template <typename Vector> uint32_t size_of(const Vector *vector) { return vector ? vector->size() : 0; }

template <typename T> struct Range {
  const flatbuffers::Vector<T> *vector;
  auto begin() const { return vector ? vector->begin() : typename flatbuffers::Vector<T>::const_iterator(); }
  auto end() const { return vector ? vector->end() : typename flatbuffers::Vector<T>::const_iterator(); }
};
template <typename T> Range<T> each(const flatbuffers::Vector<T> *vector) { return {vector}; }

inline std::string_view view_of(const flatbuffers::String *text) {
  return text ? std::string_view(text->data(), text->size()) : std::string_view();
}

// A name from a plan, fit for a message: at most 80 bytes, everything unprintable as '?', quotes around it.
std::string quoted(const flatbuffers::String *text);

// Elements and bytes of a block (1 element for plain types).
uint64_t block_elements(DType dtype);
uint64_t block_bytes(DType dtype);
bool is_plain_float(DType dtype); // f32, f16, bf16
// Bytes of `rows` rows of `cols` elements in a file or in row-major layout. False: too large for 64 bits, or cols
// is not a whole number of blocks.
bool row_major_bytes(DType dtype, uint64_t rows, uint64_t cols, uint64_t &bytes);
// Bytes of a weight in device memory, padding of the layout included. Packed16 takes plain floats, Q8_0 and Q4_1.
bool weight_bytes(DType dtype, Layout layout, uint64_t rows, uint64_t cols, uint64_t &bytes);

const char *name_of(DType dtype);           // "bf16", "q4_1"
const char *name_of(DeviceKind kind);       // "cpu"
const char *name_of(Rows rows);             // "tokens"
const char *name_of(Layout layout);         // "packed16"
const char *name_of(RopeStyle style);       // "neox"
const char *name_of(Activation activation); // "gelu_tanh"
const char *name_of(Comm comm);             // "host"
const char *name_of(Algorithm algorithm);   // "one_shot"
const char *name_of(Fill fill);             // "from_file"
const char *name_of(OpKind op);             // "add_rms_norm"

// --- operands ----------------------------------------------------------------------------------------------------

enum class Access : uint8_t { Read, Write, ReadWrite };

struct ViewOperand {
  const char *name = nullptr; // the field's name
  const View *view = nullptr; // null: absent
  Access access = Access::Read;
  bool optional = false;
};

struct WeightOperand {
  const char *name = nullptr;
  int64_t index = -1; // into Program.weights; -1: absent
  bool optional = false;
};

// The operands of one op, in the order of its table. Views: what is read comes with what is written.
struct Operands {
  std::array<ViewOperand, 3> views;
  std::array<WeightOperand, 2> weights;
  uint32_t num_views = 0;
  uint32_t num_weights = 0;
  const ViewOperand *begin() const { return views.data(); }
  const ViewOperand *end() const { return views.data() + num_views; }
};

// An op whose table is absent or unknown has no operands.
Operands operands_of(const Op &op);

// What a communication op has in common with others; `is_comm` is false for every other op.
struct CommInfo {
  bool is_comm = false;
  bool is_transfer = false; // send, recv: `peer` counts, `group` does not
  uint32_t group = 0;
  uint32_t peer = 0;
  uint32_t seq = 0;
  uint32_t root = 0; // gather only
  Comm comm = Comm::Host;
  Algorithm algorithm = Algorithm::Ring; // collectives only
  uint64_t one_shot_bytes = 0, two_shot_bytes = 0; // all-reduce only
  const flatbuffers::Vector<uint64_t> *counts = nullptr;
  const View *payload = nullptr; // what this rank puts in (recv: what it takes out)
};
CommInfo comm_of(const Op &op);

} // namespace llmrt::plan
