#include "runtime/exec/cuda/rank.h"

#include "runtime/exec/cuda/ceilings.h"

#include "runtime/plan/access.h"

#include <algorithm>
#include <chrono>
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

Rank::Rank(std::shared_ptr<const plan::LoadedPlan> plan, uint32_t rank, int device)
    : plan_(std::move(plan)), limits_(StepLimits::of(plan_->root())), rank_(rank), device_(device) {
  LLMRT_CHECK(cudaSetDevice(device_));
  const plan::Program &program = plan_->program(rank);
  weights_ = DeviceMemory(program.weight_bytes(), purpose("the weights", rank));
  arena_ = DeviceMemory(program.arena_bytes(), purpose("the activations", rank));
  kv_ = DeviceMemory(program.kv() ? program.kv()->bytes() : 0, purpose("the KV pages", rank));
  stream_ = std::make_unique<Stream>();
  inputs_ = std::make_unique<StepInputs>(limits_);
  products_ = std::make_unique<Products>(kProductWorkspace);
  finished_ = std::make_unique<Event>();
  if (program.logits())
  {
    const size_t rows = limits_.max_logits_rows;
    logits_ = PinnedMemory(rows * limits_.vocab * sizeof(float));
    draws_ = PinnedMemory(rows * sizeof(llmrt::cuda::SampleRow));
    device_draws_ = DeviceMemory(rows * sizeof(llmrt::cuda::SampleRow), purpose("sampling parameters", rank));
    tokens_ = PinnedMemory(rows * sizeof(int32_t));
    device_tokens_ = DeviceMemory(rows * sizeof(int32_t), purpose("sampled tokens", rank));
  }
}

Rank::~Rank() {
  cudaSetDevice(device_);
  cudaStreamSynchronize(*stream_);
}

void Rank::ready() {
  LLMRT_CHECK(cudaSetDevice(device_));
  program_ = std::make_unique<Program>(*plan_, rank_, DeviceBases{weights_.data(), arena_.data(), kv_.data()});
}

void Rank::join(const std::vector<int> &devices, comm::Communicator &host, unsigned in_flight, double deadline_s, bool eager) {
  LLMRT_CHECK(cudaSetDevice(device_));
  deadline_s_ = deadline_s;
  if (plan_->num_ranks() > 1)
    link_ = std::make_unique<RankLink>(*plan_, rank_, devices, host, in_flight);
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
bool Rank::replay(const Step &step, StepShape &shape) {
  if (!graphs_ || shape.max_query != 1 || shape.rows != shape.tokens)
    return false;
  const int most = static_cast<int>(std::min(limits_.max_num_seqs, limits_.max_logits_rows));
  shape.seqs = bucket_of(shape.seqs, most);
  shape.tokens = shape.rows = shape.seqs;
  shape.max_context = context_bucket(shape.max_context, static_cast<int>(limits_.max_model_len));
  upload(step, shape);
  std::unique_ptr<Graph> &graph = graph_by_bucket_[{shape.seqs, shape.max_context}];
  const OpContext context{shape, *inputs_, *products_, link_.get(), *stream_, step.batch->id, step.batch->observer};
  if (context.observer) {
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

void Rank::upload(const Step &step, const StepShape &shape) {
  const ObservedSpan span(step.batch->observer, step.batch->id, rank_, kPhaseInputs);
  inputs_->upload(step, shape, *stream_);
}

LogitsView Rank::run(const Step &step) {
  StepObserver *const observer = step.batch->observer;
  const ObservedSpan whole(observer, step.batch->id, rank_, kPhaseStep);
  if (link_)
    link_->begin_step(step.batch->id);
  StepShape shape = shape_of(step);
  const int64_t rows = shape.rows;
  if (!replay(step, shape)) {
    upload(step, shape);
    program_->run({shape, *inputs_, *products_, link_.get(), *stream_, step.batch->id, observer});
  }
  const bool output = program_->logits() && rows != 0;
  const bool drawn = output && draw(step);
  const bool wanted = output && (!drawn || std::any_of(step.batch->sampling.begin(), step.batch->sampling.end(),
                                                       [](const RowSampling &r) { return !r.draw; }));
  if (wanted) {
    const ObservedSpan span(observer, step.batch->id, rank_, kPhaseResults);
    LLMRT_CHECK(cudaMemcpyAsync(logits_.data(), program_->logits(), static_cast<size_t>(rows) * limits_.vocab * sizeof(float),
                                cudaMemcpyDeviceToHost, *stream_));
  }
  LLMRT_CHECK(cudaEventRecord(*finished_, *stream_));
  wait(step);
  LogitsView view;
  view.vocab = static_cast<size_t>(limits_.vocab);
  view.rows = output ? static_cast<size_t>(rows) : 0;
  view.data = wanted ? reinterpret_cast<const float *>(logits_.data()) : nullptr;
  view.tokens = drawn ? reinterpret_cast<const int32_t *>(tokens_.data()) : nullptr;
  return view;
}

// Draws the tokens of all rows, those that want none too (their draw is not looked at). False where no row wants one.
bool Rank::draw(const Step &step) {
  const std::vector<RowSampling> &sampling = step.batch->sampling;
  if (std::none_of(sampling.begin(), sampling.end(), [](const RowSampling &r) { return r.draw; }))
    return false;
  const ObservedSpan span(step.batch->observer, step.batch->id, rank_, kPhaseSampling);
  auto *rows = reinterpret_cast<llmrt::cuda::SampleRow *>(draws_.data());
  for (size_t i = 0; i < sampling.size(); ++i)
    rows[i] = {sampling[i].draw ? sampling[i].temperature : 0, sampling[i].top_p, sampling[i].min_p, sampling[i].top_k,
               sampling[i].seed, sampling[i].counter};
  LLMRT_CHECK(cudaMemcpyAsync(device_draws_.data(), rows, sampling.size() * sizeof(*rows), cudaMemcpyHostToDevice, *stream_));
  llmrt::cuda::Sample call{};
  call.tokens = reinterpret_cast<int32_t *>(device_tokens_.data());
  call.logits = program_->logits();
  call.ld = call.V = static_cast<int64_t>(limits_.vocab);
  call.rows = reinterpret_cast<const llmrt::cuda::SampleRow *>(device_draws_.data());
  call.R = static_cast<int64_t>(sampling.size());
  llmrt::cuda::sample(call, *stream_);
  LLMRT_CHECK(cudaMemcpyAsync(tokens_.data(), device_tokens_.data(), sampling.size() * sizeof(int32_t), cudaMemcpyDeviceToHost,
                              *stream_));
  return true;
}

// Polls, so that a device that never finishes (a lost peer inside a collective) becomes an error with a name.
void Rank::wait(const Step &step) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  while (true) {
    const cudaError_t status = cudaEventQuery(*finished_);
    if (status == cudaSuccess)
      return;
    if (status != cudaErrorNotReady)
      check(status, ("step " + std::to_string(step.batch->id) + " on rank " + std::to_string(rank_)).c_str());
    const double waited = std::chrono::duration<double>(Clock::now() - start).count();
    if (waited > deadline_s_)
      throw Error("rank " + std::to_string(rank_) + " did not finish step " + std::to_string(step.batch->id) +
                  " on CUDA device " + std::to_string(device_) + " within " + std::to_string(deadline_s_) +
                  " s: the device hangs, or a rank that it communicates with is lost");
    if (waited > 0.05)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
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
      kProductWorkspace + inputs_->bytes() + program_->bytes() + device_draws_.size() + device_tokens_.size();
  memory.communication = link_ ? link_->bytes() : 0;
  return memory;
}

} // namespace llmrt::exec::cuda
