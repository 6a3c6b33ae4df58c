#include "runtime/exec/cuda/rank.h"

#include "runtime/exec/cuda/ceilings.h"

#include "runtime/plan/access.h"
#include "runtime/support/seconds.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace llmrt::exec::cuda {

namespace {

constexpr size_t kProductWorkspace = 32 << 20; // what cuBLAS wants on Hopper

std::string purpose(const char *what, uint32_t rank) { return std::string(what) + " of rank " + std::to_string(rank); }

// Sequence counts that decode steps are padded to: fine steps while small, by a quarter of a power of two beyond.
std::vector<int> seq_buckets(const StepLimits &limits) {
  const int most = static_cast<int>(std::min(limits.max_num_seqs, limits.max_logits_rows));
  std::vector<int> buckets;
  for (int bucket = 1; bucket < most;
       bucket += bucket < 8 ? 1 : std::max(1, (1 << (31 - __builtin_clz(static_cast<unsigned>(bucket)))) / 4))
    buckets.push_back(bucket);
  buckets.push_back(most);
  return buckets;
}

// Context bounds of captured attention: powers of four from 512 on, so that a graph never splits far more than it must.
std::vector<int> context_buckets(const StepLimits &limits) {
  std::vector<int> buckets;
  for (int64_t bucket = 512; bucket < limits.max_model_len; bucket *= 4)
    buckets.push_back(static_cast<int>(bucket));
  buckets.push_back(static_cast<int>(limits.max_model_len));
  return buckets;
}

// The first bucket that holds `value`.
int bucket_of(const std::vector<int> &buckets, int value) {
  return *std::lower_bound(buckets.begin(), buckets.end(), value);
}

} // namespace

Rank::Rank(std::shared_ptr<const plan::LoadedPlan> plan, uint32_t rank, int device, std::shared_ptr<AlgorithmCache> cache)
    : plan_(std::move(plan)), limits_(StepLimits::of(plan_->root())), seq_buckets_(seq_buckets(limits_)),
      context_buckets_(context_buckets(limits_)), rank_(rank), device_(device) {
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
  give_up_others(); // the stream may wait for a rank that is lost
  drain();
}

void Rank::stop_waiting() {
  if (link_)
    link_->stop_waiting();
}

// NCCL waits for the graphs that hold its operations, so they go before it.
void Rank::give_up_others() {
  if (!link_)
    return;
  cudaSetDevice(device_);
  stop_waiting();
  graph_by_bucket_.clear();
  link_->abort();
}

void Rank::drain() {
  cudaSetDevice(device_);
  cudaStreamSynchronize(*stream_);
  cudaStreamSynchronize(*results_);
}

void Rank::ready() {
  LLMRT_CHECK(cudaSetDevice(device_));
  program_ = std::make_unique<Program>(*plan_, rank_, DeviceBases{weights_.data(), arena_.data(), kv_.data()});
}

// What the device or a library refuses becomes an error that says what the rank did, where it runs, and the collective that the
// device had come to. Other errors know themselves.
template <typename F> void Rank::named(const std::string &what, F &&f) const {
  const auto say = [&](const char *why) {
    if (link_)
      link_->let_senders_speak();
    throw Error(what + " of " + whereabouts() + " failed: " + why);
  };
  try {
    f();
  } catch (const DeviceError &e) {
    say(e.what());
  } catch (const Error &) {
    throw;
  } catch (const std::exception &e) { // of a kernel
    say(e.what());
  }
}

std::string Rank::whereabouts() const {
  const std::string at = where();
  return "rank " + std::to_string(rank_) + " on CUDA device " + std::to_string(device_) +
         (at.empty() ? std::string() : ", last " + at + ",");
}

void Rank::join(const RankLinkOptions &options, comm::HostWorld &world, bool eager) {
  named("the start", [&] { join_others(options, world, eager); });
}

void Rank::capture(const std::function<void(size_t done)> &progress) {
  named("the capture of decode steps", [&] { capture_all(progress); });
}

void Rank::join_others(const RankLinkOptions &options, comm::HostWorld &world, bool eager) {
  LLMRT_CHECK(cudaSetDevice(device_));
  deadline_s_ = options.deadline_s;
  if (plan_->num_ranks() > 1)
    link_ = std::make_unique<RankLink>(*plan_, rank_, options, world);
  // Now, for two steps under way that both want them: to pin memory between launches may wait for what runs on any device, which
  // may wait for launches to come.
  if (link_ && program_->logits() && RankLink::has_everyone(*plan_))
    logits_[1] = PinnedMemory(logits_[0].size());
  products_->wait_by([this](cudaEvent_t event) { return wait_for(event, "the timing of a product"); });
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

size_t Rank::graphs() const { return graphs_ ? seq_buckets_.size() * context_buckets_.size() : 0; }

std::unique_ptr<Graph> Rank::capture(const OpContext &context) const {
  cudaGraph_t captured = nullptr;
  LLMRT_CHECK(cudaStreamBeginCapture(*stream_, cudaStreamCaptureModeThreadLocal));
  try {
    program_->run(context);
  } catch (...) {
    cudaStreamEndCapture(*stream_, &captured);
    cudaGraphDestroy(captured);
    throw;
  }
  LLMRT_CHECK(cudaStreamEndCapture(*stream_, &captured));
  return std::make_unique<Graph>(captured);
}

// The largest first, so that too little memory for them shows at once. Each sequence count runs once before, for algorithms
// are chosen by timing them, and what ranks tell each other once is told: one sequence of one token, whose key and value go
// nowhere.
void Rank::capture_all(const std::function<void(size_t done)> &progress) {
  if (!graphs_)
    return;
  auto batch = std::make_shared<StepBatch>();
  batch->ids = batch->positions = batch->logits_rows = batch->pages = {0};
  batch->seq_starts = batch->page_starts = {0, 1};
  batch->context_lens = {1};
  batch->slot_mapping = {-1};
  Step step;
  step.batch = std::move(batch);
  for (auto bucket = seq_buckets_.rbegin(); bucket != seq_buckets_.rend(); ++bucket) {
    StepShape shape;
    shape.tokens = shape.rows = shape.seqs = *bucket;
    shape.max_query = 1;
    shape.max_context = context_buckets_.front();
    const OpContext context{shape, *inputs_, *products_, link_.get(), *stream_, 0, nullptr};
    bring_inputs(step, shape, nullptr, {});
    program_->run(context);
    for (const int most : context_buckets_) {
      shape.max_context = most;
      graph_by_bucket_[{*bucket, most}] = capture(context);
    }
    const std::string what = "the run before graphs of " + std::to_string(*bucket) + " sequences are captured";
    LLMRT_CHECK(cudaEventRecord(*computed_, *stream_));
    if (const cudaError_t status = wait_for(*computed_, what); status != cudaSuccess)
      lost(status);
    progress(graph_by_bucket_.size());
  }
}

// Runs a pure decode step as the graph of its bucket. False where the step is of another kind.
bool Rank::replay(const Step &step, StepShape &shape, const int32_t *before, const Draws &draws) {
  if (!graphs_ || shape.max_query != 1 || shape.rows != shape.tokens)
    return false;
  shape.seqs = bucket_of(seq_buckets_, shape.seqs);
  shape.tokens = shape.rows = shape.seqs;
  shape.max_context = bucket_of(context_buckets_, shape.max_context);
  bring_inputs(step, shape, before, draws);
  const OpContext context{shape, *inputs_, *products_, link_.get(), *stream_, step.batch->id, step.batch->observer};
  if (context.observer && context.observer->sees_ops()) {
    program_->run(context);
    return true;
  }
  graph_by_bucket_.at({shape.seqs, shape.max_context})->launch(*stream_);
  return true;
}

void Rank::bring_inputs(const Step &step, const StepShape &shape, const int32_t *before, const Draws &draws) {
  const ObservedSpan span(step.batch->observer, step.batch->id, rank_, kPhaseInputs);
  if (step.batch->follows)
    inputs_->follow(step, before, *stream_);
  else
    inputs_->upload(step, shape, before, program_->logits() && draws.by_chance, *stream_);
}

// The tokens of the step before, on this device, where `step` takes some; null where it takes none. If they were drawn on the
// output rank alone, they are handed round first.
const int32_t *Rank::tokens_before(const Step &step) {
  if (step.batch->from_rows.empty() && !step.batch->follows)
    return nullptr;
  Turn &last = turns_[(launched_ + 1) % 2];
  if (launched_ == 0)
    throw Error("step " + std::to_string(step.batch->id) + " takes tokens from the step before, and there was none");
  int32_t *tokens = reinterpret_cast<int32_t *>(last.tokens.data());
  if (link_ && !last.together)
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
  named("step " + std::to_string(step.batch->id), [&] { queue(step); });
}

void Rank::queue(const Step &step) {
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
  if (batch.follows) {
    ++shape_.max_context;
  } else {
    shape_ = shape_of(step);
    draws_ = draws_of(batch);
  }
  StepShape shape = shape_; // padded by replay()
  const Draws draws = draws_;
  turn.rows = static_cast<size_t>(shape.rows);
  const bool output = program_->logits() && turn.rows != 0;
  turn.together = draws_together(draws);
  turn.drawn = output && draws.some;
  turn.logits = output && !draws.all ? logits_memory(other) : nullptr;
  const int32_t *before = tokens_before(step);
  if (!replay(step, shape, before, draws)) {
    bring_inputs(step, shape, before, draws);
    program_->run({shape, *inputs_, *products_, link_.get(), *stream_, batch.id, batch.observer});
  }
  if (!turn.together)
    program_->gather_logits({shape, *inputs_, *products_, link_.get(), *stream_, batch.id, batch.observer});
  collect(step, turn, draws);
  if (launched_ == collected_)
    waiting_since_ = Clock::now();
  ++launched_;
}

Rank::Draws Rank::draws_of(const StepBatch &batch) {
  size_t rows = 0;
  Draws draws;
  for (const RowSampling &row : batch.sampling) {
    rows += row.draw;
    draws.by_chance |= row.draw && row.temperature > 0;
  }
  draws.some = rows > 0;
  draws.all = rows > 0 && rows == batch.sampling.size();
  return draws;
}

// Whether all ranks find this step's tokens, without the logits being gathered. The same answer on all of them.
bool Rank::draws_together(const Draws &draws) const {
  return link_ && link_->draws_together() && program_->own_logits().data && draws.all && !draws.by_chance;
}

// Draws tokens, and sends results to the host. The kernel of one rank writes its tokens there itself. Those drawn together go by a
// stream of their own, so that the next step need not wait until they have arrived; logits do not, since the next step
// overwrites them.
void Rank::collect(const Step &step, Turn &turn, const Draws &draws) {
  StepObserver *const observer = step.batch->observer;
  if (turn.logits) {
    const ObservedSpan span(observer, step.batch->id, rank_, kPhaseResults);
    LLMRT_CHECK(cudaMemcpyAsync(turn.logits, program_->logits(), turn.rows * limits_.vocab * sizeof(float),
                                cudaMemcpyDeviceToHost, *stream_));
  }
  if (!turn.together && !turn.drawn) {
    LLMRT_CHECK(cudaEventRecord(*turn.finished, *stream_));
    return;
  }
  const ObservedSpan span(observer, step.batch->id, rank_, kPhaseSampling);
  int32_t *const tokens = reinterpret_cast<int32_t *>(turn.tokens.data());
  if (turn.together) {
    link_->sample_greedy(tokens, turn.rows, program_->own_logits(), *stream_);
  } else {
    llmrt::cuda::Sample call{};
    call.tokens = tokens;
    call.host_tokens = reinterpret_cast<int32_t *>(turn.host_tokens.data());
    call.logits = program_->logits();
    call.ld = call.V = static_cast<int64_t>(limits_.vocab);
    call.rows = inputs_->draws();
    call.R = static_cast<int64_t>(turn.rows);
    call.greedy = !draws.by_chance;
    llmrt::cuda::sample(call, *stream_);
  }
  if (!turn.together || !turn.drawn) {
    LLMRT_CHECK(cudaEventRecord(*turn.finished, *stream_));
    return;
  }
  LLMRT_CHECK(cudaEventRecord(*computed_, *stream_));
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
    if (is_late(waiting_since_))
      give_up("step " + std::to_string(step.batch->id));
    return false;
  }
  if (status != cudaSuccess)
    named("step " + std::to_string(step.batch->id), [&] { lost(status); });
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

// What a device reports once it has failed, it reports for as long as the process lives.
void Rank::lost(cudaError_t status) {
  throw DeviceError(std::string(cudaGetErrorString(status)) + "; this process can use the device no more (the kernel's log, dmesg, may "
                    "say why with an Xid of NVRM): start it again");
}

// What the device waits for is over when the world has ended, or has taken too long.
bool Rank::is_late(Clock::time_point since) const {
  const double waited = seconds_since(since);
  return waited > deadline_s_ || (waited > 0.05 && link_ && link_->world_ended());
}

// Before steps are under way, or beside them: the host waits for something on the device, which waits for other ranks.
cudaError_t Rank::wait_for(cudaEvent_t event, const std::string &what) {
  const Clock::time_point since = Clock::now();
  cudaError_t status;
  while ((status = cudaEventQuery(event)) == cudaErrorNotReady)
    if (is_late(since))
      give_up(what);
  return status;
}

void Rank::give_up(const std::string &what) {
  const std::string at = where();
  const bool ended = link_ && link_->world_ended();
  give_up_others();
  if (ended)
    throw comm::Aborted(link_->why_ended());
  throw Error("rank " + std::to_string(rank_) + " did not finish " + what + " on CUDA device " + std::to_string(device_) +
              " within " + std::to_string(deadline_s_) + " s" + (at.empty() ? std::string() : ": it is " + at) +
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
