#include "runtime/exec/cuda/rank.h"

#include "runtime/exec/cuda/ceilings.h"

#include "runtime/plan/access.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace llmrt::exec::cuda {

namespace {

constexpr size_t kProductWorkspace = 32 << 20; // what cuBLAS wants on Hopper

std::string purpose(const char *what, uint32_t rank) { return std::string(what) + " of rank " + std::to_string(rank); }

// Sequence counts that decode steps are padded to: fine steps while small, by a quarter of a power of two beyond.
int bucket_of(int seqs, int most) {
  int bucket = 1;
  while (bucket < seqs)
    bucket += bucket < 8 ? 1 : std::max(1, (1 << (31 - __builtin_clz(static_cast<unsigned>(bucket)))) / 4);
  return std::min(bucket, most);
}

// Context bounds of captured attention: powers of four from 512 on, so that a graph never splits far more than it must.
int context_bucket(int context, int most) {
  int bucket = 512;
  while (bucket < context)
    bucket *= 4;
  return std::min(bucket, most);
}

} // namespace

Rank::Rank(std::shared_ptr<const plan::LoadedPlan> plan, uint32_t rank, int device, std::shared_ptr<AlgorithmCache> cache)
    : plan_(std::move(plan)), limits_(StepLimits::of(plan_->root())), rank_(rank), device_(device) {
  LLMRT_CHECK(cudaSetDevice(device_));
  const plan::Program &program = plan_->program(rank);
  weights_ = DeviceMemory(program.weight_bytes(), purpose("the weights", rank));
  arena_ = DeviceMemory(program.arena_bytes(), purpose("the activations", rank));
  kv_ = DeviceMemory(program.kv() ? program.kv()->bytes() : 0, purpose("the KV pages", rank));
  stream_ = std::make_unique<Stream>();
  inputs_ = std::make_unique<StepInputs>(limits_);
  products_ = std::make_unique<Products>(kProductWorkspace, std::move(cache));
  results_ = std::make_unique<Stream>();
  computed_ = std::make_unique<Event>();
  const size_t rows = limits_.max_logits_rows;
  for (Turn &turn : turns_) {
    turn.finished = std::make_unique<Event>();
    turn.tokens = DeviceMemory(rows * sizeof(int32_t), purpose("sampled tokens", rank));
    if (program.logits())
      turn.host_tokens = PinnedMemory(rows * sizeof(int32_t));
  }
  if (program.logits())
    logits_[0] = PinnedMemory(rows * limits_.vocab * sizeof(float));
}

Rank::~Rank() {
  cudaSetDevice(device_);
  end_communication(); // the stream may wait for a rank that is lost
  cudaStreamSynchronize(*stream_);
  cudaStreamSynchronize(*results_);
}

// NCCL waits for the graphs that hold its operations, so they go first.
void Rank::end_communication() {
  if (!link_)
    return;
  graph_by_bucket_.clear();
  link_->give_up();
}

void Rank::ready() {
  LLMRT_CHECK(cudaSetDevice(device_));
  program_ = std::make_unique<Program>(*plan_, rank_, DeviceBases{weights_.data(), arena_.data(), kv_.data()});
}

void Rank::join(const RankLinkOptions &options, comm::HostWorld &world, bool eager) {
  LLMRT_CHECK(cudaSetDevice(device_));
  deadline_s_ = options.deadline_s;
  if (plan_->num_ranks() > 1)
    link_ = std::make_unique<RankLink>(*plan_, rank_, options, world);
  // What meets on the host cannot be captured; NCCL, which stays in the stream, can.
  graphs_ = !eager && !program_->has_transfers() && (!program_->has_collectives() || link_->stays_in_stream());
}

StepShape Rank::shape_of(const Step &step) const {
  const StepBatch &batch = *step.batch;
  StepShape shape;
  shape.tokens = step.tokens();
  shape.rows = step.logits_rows();
  shape.seqs = static_cast<int>(step.seqs());
  for (int s = 0; s < shape.seqs; ++s) {
    shape.max_query = std::max(shape.max_query, batch.seq_starts[s + 1] - batch.seq_starts[s]);
    shape.max_context = std::max(shape.max_context, batch.context_lens[s]);
  }
  return shape;
}

// Runs a pure decode step as a graph, captured when its bucket is first met. False where the step is of another kind.
bool Rank::replay(const Step &step, StepShape &shape, const int32_t *before, bool draws) {
  if (!graphs_ || shape.max_query != 1 || shape.rows != shape.tokens)
    return false;
  const int most = static_cast<int>(std::min(limits_.max_num_seqs, limits_.max_logits_rows));
  shape.seqs = bucket_of(shape.seqs, most);
  shape.tokens = shape.rows = shape.seqs;
  shape.max_context = context_bucket(shape.max_context, static_cast<int>(limits_.max_model_len));
  upload(step, shape, before, draws);
  std::unique_ptr<Graph> &graph = graph_by_bucket_[{shape.seqs, shape.max_context}];
  const OpContext context{shape, *inputs_, *products_, link_.get(), *stream_, step.batch->id, step.batch->observer};
  if (context.observer && context.observer->sees_ops()) {
    program_->run(context);
    return true;
  }
  if (!graph) {
    program_->run(context); // chooses algorithms, and is this step's own run
    cudaGraph_t captured = nullptr;
    LLMRT_CHECK(cudaStreamBeginCapture(*stream_, cudaStreamCaptureModeThreadLocal));
    try {
      program_->run(context);
    } catch (...) {
      cudaStreamEndCapture(*stream_, &captured);
      throw;
    }
    LLMRT_CHECK(cudaStreamEndCapture(*stream_, &captured));
    graph = std::make_unique<Graph>(captured);
    return true;
  }
  graph->launch(*stream_);
  return true;
}

void Rank::upload(const Step &step, const StepShape &shape, const int32_t *before, bool draws) {
  const ObservedSpan span(step.batch->observer, step.batch->id, rank_, kPhaseInputs);
  inputs_->upload(step, shape, before, draws, *stream_);
}

// The tokens of the step before, on this device, where `step` takes some; null where it takes none. They were drawn on the
// output rank, so with several ranks they are handed round first.
const int32_t *Rank::tokens_before(const Step &step) {
  if (step.batch->from_rows.empty())
    return nullptr;
  Turn &last = turns_[(launched_ + 1) % 2];
  if (launched_ == 0)
    throw Error("step " + std::to_string(step.batch->id) + " takes tokens from the step before, and there was none");
  int32_t *tokens = reinterpret_cast<int32_t *>(last.tokens.data());
  if (link_)
    link_->hand_round_tokens(tokens, last.rows, plan_->root().output_rank(), *stream_);
  return tokens;
}

// Where this step's logits go: not where the step that may still be under way has its own.
std::byte *Rank::logits_memory(const Turn &other) {
  const bool taken = launched_ != collected_ && other.logits == logits_[0].data();
  PinnedMemory &memory = logits_[taken ? 1 : 0];
  if (memory.size() == 0)
    memory = PinnedMemory(logits_[0].size());
  return memory.data();
}

void Rank::launch(const Step &step) {
  const StepBatch &batch = *step.batch;
  if (launched_ - collected_ >= 2)
    throw Error("step " + std::to_string(batch.id) + " was launched on rank " + std::to_string(rank_) +
                " while two steps are under way; this is a bug in llmrt");
  Turn &turn = turns_[launched_ % 2], &other = turns_[(launched_ + 1) % 2];
  if (batch.observer)
    batch.observer->begin(batch.id, rank_, kPhaseStep); // poll() ends it
  const ObservedSpan launching(batch.observer, batch.id, rank_, kPhaseLaunch);
  if (link_)
    link_->begin_step(batch.id);
  StepShape shape = shape_of(step);
  turn.rows = batch.logits_rows.size();
  const bool output = program_->logits() && turn.rows != 0;
  auto draws = [](const RowSampling &r) { return r.draw; };
  turn.drawn = output && std::any_of(batch.sampling.begin(), batch.sampling.end(), draws);
  const bool wanted = output && (!turn.drawn || !std::all_of(batch.sampling.begin(), batch.sampling.end(), draws));
  turn.logits = wanted ? logits_memory(other) : nullptr;
  const int32_t *before = tokens_before(step);
  if (!replay(step, shape, before, turn.drawn)) {
    upload(step, shape, before, turn.drawn);
    program_->run({shape, *inputs_, *products_, link_.get(), *stream_, batch.id, batch.observer});
  }
  collect(step, turn);
  if (launched_ == collected_)
    waiting_since_ = Clock::now();
  ++launched_;
}

// Draws tokens, and sends results to the host. Tokens go by a stream of their own, so that the next step need not wait until
// they have arrived; logits do not, since the next step overwrites them.
void Rank::collect(const Step &step, Turn &turn) {
  StepObserver *const observer = step.batch->observer;
  if (turn.drawn) {
    const ObservedSpan span(observer, step.batch->id, rank_, kPhaseSampling);
    llmrt::cuda::Sample call{};
    call.tokens = reinterpret_cast<int32_t *>(turn.tokens.data());
    call.logits = program_->logits();
    call.ld = call.V = static_cast<int64_t>(limits_.vocab);
    call.rows = inputs_->draws();
    call.R = static_cast<int64_t>(step.batch->sampling.size());
    call.greedy = std::none_of(step.batch->sampling.begin(), step.batch->sampling.end(),
                               [](const RowSampling &r) { return r.draw && r.temperature > 0; });
    llmrt::cuda::sample(call, *stream_);
  }
  if (turn.logits) {
    const ObservedSpan span(observer, step.batch->id, rank_, kPhaseResults);
    LLMRT_CHECK(cudaMemcpyAsync(turn.logits, program_->logits(), turn.rows * limits_.vocab * sizeof(float),
                                cudaMemcpyDeviceToHost, *stream_));
  }
  if (!turn.drawn) {
    LLMRT_CHECK(cudaEventRecord(*turn.finished, *stream_));
    return;
  }
  LLMRT_CHECK(cudaEventRecord(*computed_, *stream_));
  const ObservedSpan span(observer, step.batch->id, rank_, kPhaseSampling);
  LLMRT_CHECK(cudaStreamWaitEvent(*results_, *computed_, 0));
  LLMRT_CHECK(cudaMemcpyAsync(turn.host_tokens.data(), turn.tokens.data(), turn.rows * sizeof(int32_t), cudaMemcpyDeviceToHost,
                              *results_));
  LLMRT_CHECK(cudaEventRecord(*turn.finished, *results_));
}

// A device that never finishes (a lost peer inside a collective) becomes an error with a name.
bool Rank::poll(const Step &step, LogitsView &view) {
  Turn &turn = turns_[collected_ % 2];
  const cudaError_t status = cudaEventQuery(*turn.finished);
  if (status == cudaErrorNotReady) {
    check_deadline(step);
    return false;
  }
  if (status != cudaSuccess)
    check(status, ("step " + std::to_string(step.batch->id) + " on rank " + std::to_string(rank_)).c_str());
  if (step.batch->observer)
    step.batch->observer->end(step.batch->id, rank_, kPhaseStep);
  ++collected_;
  waiting_since_ = Clock::now();
  view = {};
  view.vocab = static_cast<size_t>(limits_.vocab);
  view.rows = program_->logits() ? turn.rows : 0;
  view.data = reinterpret_cast<const float *>(turn.logits);
  view.tokens = turn.drawn ? reinterpret_cast<const int32_t *>(turn.host_tokens.data()) : nullptr;
  return true;
}

// What the device waits for is over when the world has ended, or has taken too long.
void Rank::check_deadline(const Step &step) {
  const double waited = std::chrono::duration<double>(Clock::now() - waiting_since_).count();
  const bool ended = waited > 0.05 && link_ && link_->world_ended();
  if (!ended && waited <= deadline_s_)
    return;
  const std::string where = link_ ? link_->where() : std::string();
  end_communication();
  if (ended)
    throw comm::Aborted(link_->why_ended());
  throw Error("rank " + std::to_string(rank_) + " did not finish step " + std::to_string(step.batch->id) + " on CUDA device " +
              std::to_string(device_) + " within " + std::to_string(deadline_s_) + " s" +
              (where.empty() ? std::string() : ": it is " + where) +
              "; the device hangs, or a rank that it communicates with is lost");
}

LogitsView Rank::run(const Step &step) {
  LogitsView view;
  launch(step);
  while (!poll(step, view))
    if (Clock::now() - waiting_since_ > std::chrono::milliseconds(50))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return view;
}

Ceilings Rank::measure_ceilings() const {
  LLMRT_CHECK(cudaSetDevice(device_));
  const plan::DType type = plan_->root().model()->weight_dtype();
  const llmrt::cuda::DType device_type = type == plan::DType::F32   ? llmrt::cuda::DType::f32
                                         : type == plan::DType::F16 ? llmrt::cuda::DType::f16
                                                                    : llmrt::cuda::DType::bf16;
  return measure_device(device_type, weights_.data(), weights_.size());
}

RankMemory Rank::memory() const {
  RankMemory memory;
  memory.rank = rank_;
  memory.weights = weights_.size();
  memory.arena = arena_.size();
  memory.kv = kv_.size();
  memory.workspace =
      kProductWorkspace + inputs_->bytes() + program_->bytes() + turns_[0].tokens.size() + turns_[1].tokens.size();
  memory.communication = link_ ? link_->bytes() : 0;
  return memory;
}

} // namespace llmrt::exec::cuda
