// Reading and the first, structural defence: identifier, version, flatbuffers' own verifier, and a bound on how
// much a plan may unfold to, so that offsets shared many times over cannot make later walks take forever.
#include "runtime/plan/loaded_plan.h"

#include "runtime/plan/access.h"
#include "runtime/plan/version.h"
#include "runtime/support/error.h"

#include <flatbuffers/minireflect.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace llmrt::plan {

namespace {

// Adds up the bytes of strings and vectors as often as they are reached, and stops once there are too many. It also
// stops at elements that are not aligned, which flatbuffers' verifier does not look at.
struct UnfoldedSize : flatbuffers::IterationVisitor {
  struct TooLarge {};
  struct Misaligned {};
  explicit UnfoldedSize(uint64_t limit) : left(limit) {}
  uint64_t left;
  void take(uint64_t bytes) {
    if (bytes > left)
      throw TooLarge();
    left -= bytes;
  }
  void String(const flatbuffers::String *text) override { take(text->size() + sizeof(flatbuffers::uoffset_t)); }
  void Element(size_t, flatbuffers::ElementaryType type, const flatbuffers::TypeTable *table,
               const uint8_t *at) override {
    size_t size = flatbuffers::InlineSize(type, table);
    if (type != flatbuffers::ET_SEQUENCE && reinterpret_cast<uintptr_t>(at) % size != 0)
      throw Misaligned();
    take(size);
  }
};

[[noreturn]] void refuse(const std::string &name, const std::string &why) {
  throw Error("'" + name + "' " + why);
}

// The version fields alone, before the rest of the buffer is trusted: a plan of another major version need not
// pass this version's verifier.
void check_version(const std::vector<uint8_t> &bytes, const std::string &name) {
  flatbuffers::Verifier verifier(bytes.data(), bytes.size());
  uint64_t offset = flatbuffers::ReadScalar<flatbuffers::uoffset_t>(bytes.data());
  if (offset < sizeof(flatbuffers::uoffset_t) || offset > bytes.size())
    return;
  const uint8_t *at = bytes.data() + offset;
  auto *table = reinterpret_cast<const flatbuffers::Table *>(at);
  if (!verifier.VerifyTableStart(at) || !table->VerifyField<uint32_t>(verifier, Plan::VT_VERSION_MAJOR, 4) ||
      !table->VerifyField<uint32_t>(verifier, Plan::VT_VERSION_MINOR, 4))
    return;
  uint32_t major = table->GetField<uint32_t>(Plan::VT_VERSION_MAJOR, 0);
  uint32_t minor = table->GetField<uint32_t>(Plan::VT_VERSION_MINOR, 0);
  if (major != kVersionMajor)
    refuse(name, "is written in plan format " + std::to_string(major) + "." + std::to_string(minor) +
                     ", and this program reads format " + std::to_string(kVersionMajor) + ".x (up to " +
                     std::to_string(kVersionMajor) + "." + std::to_string(kVersionMinor) +
                     "); compile the model again with this release's llmc, or run the llmrt that belongs to the plan.");
}

} // namespace

std::shared_ptr<const LoadedPlan> LoadedPlan::load(const std::string &path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    refuse(path, "is a folder; give the plan file inside it, which llmc compile calls plan.fb.");
  std::ifstream in(path, std::ios::binary);
  if (!in)
    refuse(path, std::string("cannot be opened: ") + std::strerror(errno) +
                     "; write a plan with llmc compile, or correct the path.");
  std::vector<uint8_t> bytes;
  // Read in pieces: the size a file system reports is not to be trusted with an allocation.
  constexpr size_t kPiece = 1 << 20;
  while (in) {
    size_t have = bytes.size();
    if (have > FLATBUFFERS_MAX_BUFFER_SIZE)
      refuse(path, "is larger than 2147483647 bytes, the most a plan can have; it is not a plan.");
    bytes.resize(have + kPiece);
    in.read(reinterpret_cast<char *>(bytes.data() + have), kPiece);
    bytes.resize(have + size_t(in.gcount()));
    if (have == 0 && bytes.size() >= 8 && !flatbuffers::BufferHasIdentifier(bytes.data(), PlanIdentifier()))
      break; // from_bytes says what is wrong; no need to read gigabytes of something else
  }
  if (in.bad())
    refuse(path, "cannot be read to its end (" + std::to_string(bytes.size()) + " bytes came); check the disk.");
  return from_bytes(std::move(bytes), path);
}

std::shared_ptr<const LoadedPlan> LoadedPlan::from_bytes(std::vector<uint8_t> bytes, const std::string &name) {
  constexpr size_t kSmallest = 12;
  if (bytes.size() < kSmallest)
    refuse(name, "has " + std::to_string(bytes.size()) + " bytes, and the smallest plan has " +
                     std::to_string(kSmallest) + "; it is not a plan, or it was cut short: write it again.");
  if (bytes.size() >= FLATBUFFERS_MAX_BUFFER_SIZE)
    refuse(name, "has " + std::to_string(bytes.size()) + " bytes, and a plan has at most " +
                     std::to_string(FLATBUFFERS_MAX_BUFFER_SIZE) + "; it is not a plan.");
  if (!flatbuffers::BufferHasIdentifier(bytes.data(), PlanIdentifier())) {
    std::string identifier;
    for (int i = 4; i < 8; ++i)
      identifier += bytes[i] >= 0x20 && bytes[i] < 0x7f ? char(bytes[i]) : '?';
    refuse(name, "is not a plan: its identifier is '" + identifier + "', and a plan's is '" + PlanIdentifier() +
                     "'; give the file that llmc compile wrote.");
  }
  check_version(bytes, name);

  flatbuffers::Verifier::Options options;
  options.max_depth = 16;
  // A table takes at least 4 bytes, and 4 more for the offset that leads to it: a plan that reaches more tables
  // than this holds the same one many times over, which llmc never writes.
  options.max_tables = flatbuffers::uoffset_t(bytes.size() / 8 + 1);
  flatbuffers::Verifier verifier(bytes.data(), bytes.size(), options);
  if (!VerifyPlanBuffer(verifier))
    refuse(name, "is damaged: its " + std::to_string(bytes.size()) +
                     " bytes are not a well-formed plan (an offset leads outside, or the file was cut short or "
                     "changed); compile the model again.");
  // An op that has a table and yet is of no kind: the verifier lets it pass, and reflection would follow it astray.
  for (const Program *program : each(GetPlan(bytes.data())->programs()))
    for (const Op *op : each(program->ops()))
      if (op->op() && op->op_type() == OpKind::NONE)
        refuse(name, "is damaged: an op of one of its programs has operands and no kind; compile the model again.");

  const uint64_t limit = 4 * uint64_t(bytes.size()) + 65536;
  try {
    UnfoldedSize unfolded(limit);
    flatbuffers::IterateFlatBuffer(bytes.data(), PlanTypeTable(), &unfolded);
  } catch (UnfoldedSize::Misaligned) {
    refuse(name, "is damaged: the elements of one of its lists are not aligned; compile the model again.");
  } catch (UnfoldedSize::TooLarge) {
    refuse(name, "is damaged: its " + std::to_string(bytes.size()) + " bytes unfold to more than " +
                     std::to_string(limit) +
                     " bytes of data, because parts are shared many times over; compile the model again.");
  }

  std::shared_ptr<LoadedPlan> plan(new LoadedPlan());
  plan->bytes_ = std::move(bytes);
  plan->path_ = name;
  plan->root_ = GetPlan(plan->bytes_.data());
  return plan;
}

std::string LoadedPlan::folder() const {
  std::string folder = std::filesystem::path(path_).parent_path().string();
  return folder.empty() ? "." : folder;
}

uint32_t LoadedPlan::num_ranks() const { return size_of(root_->programs()); }

const Program &LoadedPlan::program(uint32_t rank) const { return *root_->programs()->Get(rank); }

const Program &LoadedPlan::output_program() const { return program(root_->output_rank()); }

const Weight &LoadedPlan::weight(uint32_t rank, uint32_t index) const {
  return *program(rank).weights()->Get(index);
}

const Buffer &LoadedPlan::buffer(uint32_t rank, const View &view) const {
  return *program(rank).buffers()->Get(view.buffer());
}

const Tensor &LoadedPlan::tensor(const WeightPart &part) const { return *root_->tensors()->Get(part.tensor()); }

std::string LoadedPlan::file_path(uint32_t file) const {
  std::filesystem::path path(root_->files()->Get(file)->path()->str());
  return path.is_absolute() ? path.string() : (std::filesystem::path(folder()) / path).string();
}

uint32_t LoadedPlan::max_rows(Rows rows) const {
  const Limits &limits = *root_->limits();
  return rows == Rows::Tokens ? limits.max_batched_tokens() : limits.max_logits_rows();
}

} // namespace llmrt::plan
