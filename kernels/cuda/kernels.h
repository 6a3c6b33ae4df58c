// Every CUDA kernel of llmrt, as functions that launch on a stream and return at once. Raw device pointers and sizes;
// shapes in comments, row-major, strides in elements. No function allocates, synchronises or keeps state, so all may be
// captured into graphs. A launch that fails throws std::runtime_error; arguments are the caller's to check.
//
// T tokens of the step, R rows that want logits, S sequences. Activations have one type `act` throughout a call.
#pragma once

#include "kernels/cuda/dtype.h"

#include <cuda_runtime_api.h>

#include <cstdint>
#include <optional>

namespace llmrt::cuda {

// --- a step's inputs ------------------------------------------------------------------------------------------------

// What the kernels of a step read of it, as it was uploaded and where they look for it. P is what the step is padded to.
struct BeginStep {
  const int64_t *slots;        // [T]
  const int32_t *ids, *positions; // [T]
  const int32_t *from_rows;    // [T] or null: where >= 0, the token is drawn[from_rows] instead of ids
  const int32_t *drawn;        // tokens of the step before
  const int32_t *seq_starts;   // [S+1]
  const int32_t *context_lens; // [S]
  const int32_t *logits_rows;  // [R]
  const int32_t *page_starts;  // [S+1] ranges of `pages`
  const int32_t *pages;
  int64_t T, R, P_T, P_R;
  int S, P_S;
  int64_t *to_slots;           // [P_T], -1 beyond T
  int32_t *to_ids, *to_positions; // [P_T], 0 beyond T
  int32_t *to_seq_starts;      // [P_S+1], a token each beyond S
  int32_t *to_context_lens;    // [P_S], 0 beyond S
  int32_t *to_logits_rows;     // [P_R], 0 beyond R
  int32_t *to_page_table;      // [S, page_table_stride]
  int64_t page_table_stride;
};
void begin_step(const BeginStep &p, cudaStream_t stream);

// How a row's token is drawn; device memory, one entry a logits row.
struct SampleRow {
  float temperature;    // 0: greedy
  float top_p;          // 1: off
  float min_p;          // 0: off
  int32_t top_k;        // 0: off
  uint64_t seed;        // of the request
  uint64_t counter;     // index of the token in the request: the same (seed, counter) draws the same number
};

// What begin_step() laid out, for a step of the same sequences, a token each, one token further: the one drawn for each.
struct FollowStep {
  const int32_t *drawn;     // [S] tokens of the step before
  const int32_t *new_pages; // [num_new_pages, 2] host memory: sequence and page, ascending by sequence; of each whose new token is the
  int num_new_pages;        // first of a page
  int S, page_size;
  int32_t *ids, *positions, *context_lens; // [S]
  int64_t *slots;           // [S]
  int32_t *page_table;      // [S, page_table_stride]
  int64_t page_table_stride;
  SampleRow *rows;          // [S] or null: their counters go up by one
};
void follow_step(const FollowStep &p, cudaStream_t stream);

// --- rows -----------------------------------------------------------------------------------------------------------

struct Embedding {
  void *out;            // [T, H] act, row stride ld_out
  int64_t ld_out;
  const void *table;    // [vocab_count, H] of `weight`
  const int32_t *ids;   // [T]
  int64_t T, H;
  int64_t vocab_begin, vocab_count; // rows outside give zeros
  float scale;
  DType act, weight;
};
void embedding(const Embedding &p, cudaStream_t stream);

struct RmsNorm {
  void *out;            // [T, H] act
  int64_t ld_out;
  const void *input;    // [T, H] act
  int64_t ld_input;
  const void *weight;   // [H] f32
  int64_t T, H;
  float eps, weight_offset;
  DType act;
};
// out = input / rms(input) * (weight + weight_offset); sums in f32.
void rms_norm(const RmsNorm &p, cudaStream_t stream);

struct AddRmsNorm {
  void *out;            // [T, H] act
  int64_t ld_out;
  void *residual;       // [T, H] act, += input
  int64_t ld_residual;
  const void *input;    // [T, H] act
  int64_t ld_input;
  const void *weight;   // [H] f32
  int64_t T, H;
  float eps, weight_offset;
  DType act;
};
// residual += input; out = rms_norm of the sum as it was before rounding to `act`.
void add_rms_norm(const AddRmsNorm &p, cudaStream_t stream);

struct Add {
  void *residual;       // [T, H] act, += input
  int64_t ld_residual;
  const void *input;    // [T, H] act
  int64_t ld_input;
  int64_t T, H;
  DType act;
};
void add(const Add &p, cudaStream_t stream);

enum class Activation { silu, gelu_tanh, gelu };

struct GatedAct {
  void *out;            // [T, F] act
  int64_t ld_out;
  const void *gate, *up; // [T, F] act each
  int64_t ld_gate, ld_up;
  int64_t T, F;
  Activation kind;
  DType act;
};
void gated_act(const GatedAct &p, cudaStream_t stream);

struct SelectRows {
  void *out;            // [R, H] act
  int64_t ld_out;
  const void *input;    // [T, H] act
  int64_t ld_input;
  const int32_t *rows;  // [R] indices into T
  int64_t R, H;
  DType act;
};
void select_rows(const SelectRows &p, cudaStream_t stream);

// --- products -------------------------------------------------------------------------------------------------------

struct Linear {
  void *out;            // [M, N] of `out_type`, row stride ld_out
  int64_t ld_out;
  const void *input;    // [M, K] act, row stride ld_input
  int64_t ld_input;
  const void *weight;   // [N, K] of `weight_type`, dense, 16-byte aligned
  const float *bias;    // [N] or null
  int64_t M, N, K;
  DType act, weight_type, out_type;
};
// Products of few rows (decode): read the weight once at memory speed, or once for each 32 rows. Any M, N, K; f32
// accumulation. Beyond kSkinnyMaxRows rows others are faster (exec-select-kernels chooses). In f32 a row's result does not depend
// on M.
inline constexpr int kSkinnyMaxRows = 16;
void skinny_linear(const Linear &p, cudaStream_t stream);

// Products of up to kWideMaxRows rows on Hopper, for weights so large that every multiprocessor has enough of them
// (exec-select-kernels chooses); smaller ones, and more rows, are cuBLASLt's. `gate`: the first N / 2 columns gate the others,
// as gated_act() of the product rounded to `act`, and out is [M, N / 2].
inline constexpr int kWideMaxRows = 64, kWideFlags = 256;
struct WideScratch {
  void *parts;     // wide_parts_bytes(), 16-byte aligned, free for others between products
  uint32_t *flags; // [kWideFlags], zeroed once, and this function's for ever
};
size_t wide_parts_bytes();
// Whether device, types and alignment are such that wide_linear() takes them: 16-bit types throughout, rows of 16 bytes.
bool wide_linear_applies(const Linear &p, bool gated);
void wide_linear(const Linear &p, std::optional<Activation> gate, const WideScratch &scratch, cudaStream_t stream);

// Gated products of any number of rows on Hopper, for weights of several tiles for each multiprocessor: out [M, N / 2] =
// kind(first N / 2 columns) * the others. Neither half is rounded before. For 16-bit types throughout, N / 2 a multiple of 8, rows of
// 16 bytes.
bool gated_linear_applies(const Linear &p);
void gated_linear(const Linear &p, Activation kind, cudaStream_t stream);

// Adds bias[N] (f32) to rows of `out` [M, N]; for products whose library call has no fitting epilogue.
void add_bias(void *out, int64_t ld_out, const float *bias, int64_t M, int64_t N, DType type, cudaStream_t stream);

// --- attention ------------------------------------------------------------------------------------------------------

struct Rope {
  void *q;              // [T, q_heads, head_dim] act, in place, row stride ld
  void *k;              // [T, kv_heads, head_dim] act, in place
  int64_t ld_q, ld_k;
  const int32_t *positions; // [T]
  const float *inv_freq;    // [rotary_dim / 2]
  const float *q_norm, *k_norm; // [head_dim] f32 or null: RMS norm of each head first
  float attention_factor, eps;
  int64_t T;
  int q_heads, kv_heads, head_dim, rotary_dim;
  bool interleaved;     // pairs (2i, 2i+1); otherwise (i, i + rotary_dim/2)
  DType act;
};
// Angles position * inv_freq are reduced in double where float would lose bits (positions up to 2^20).
void rope(const Rope &p, cudaStream_t stream);

// One layer's pages: page p at base + p * page_stride_bytes holds [2 (k, v)][kv_heads][page_size][head_dim] of `type`.
struct KvPool {
  void *base;
  int64_t page_stride_bytes;
  DType type;
  int kv_heads, page_size, head_dim;
};

struct KvAppend {
  KvPool pool;
  const void *k, *v;    // [T, kv_heads, head_dim] act
  int64_t ld_k, ld_v;
  const int64_t *slot_mapping; // [T] page * page_size + offset; negative: skip
  int64_t T;
  DType act;
};
void kv_append(const KvAppend &p, cudaStream_t stream);

// rope(), then kv_append() of the rotated keys, in one launch: `append` has the k, T and act of `rope`. It reads positions
// and slot_mapping while the kernels launched before it still run: none of those may write them.
void rope_append(const Rope &rope, const KvAppend &append, cudaStream_t stream);

// What a product of few rows does besides, where a launch of its own would cost more. Of add, gated and rope at most one.
struct LinearFusion {
  // [K], 16-byte aligned: the input counts as rms_norm() of it. bf16 only, since what is not yet divided by its norm has no room
  // in f16.
  const float *norm = nullptr;
  float eps = 0, norm_offset = 0;
  bool add = false;             // out += the product, as add() would; the input must be apart from `out`
  bool gated = false;           // out [M, N / 2] = gated_act() of the product's first and second half
  Activation kind = Activation::silu;
  const Rope *rope = nullptr;   // rope_append() of the product, whose columns are the heads of q, k and v
  const KvAppend *append = nullptr;
};
// False: for more than kSkinnyMaxRows rows, types that differ or are f32, rows that are not aligned, rotations of other than
// whole heads in halves.
bool fused_linear_applies(const Linear &p, const LinearFusion &f);
// Products are rounded to their type before they are added, activated or rotated.
void fused_linear(const Linear &p, const LinearFusion &f, cudaStream_t stream);

struct Attention {
  void *out;            // [T, q_heads, head_dim] act
  int64_t ld_out;
  const void *q;        // [T, q_heads, head_dim] act
  int64_t ld_q;
  KvPool pool;
  const uint16_t *kv_head_of_q; // [q_heads], device: any grouping in which equal entries are neighbours
  const int32_t *seq_starts;    // [S + 1], device
  const int32_t *context_lens;  // [S], device: tokens in the pages, this step's included; 0: a padded row
  const int32_t *page_table;    // [S, page_table_stride], device
  int64_t page_table_stride;
  int64_t T;
  int S, q_heads;
  int max_group;        // largest number of query heads on one KV head
  int max_query;        // largest number of new tokens of a sequence in this step, known to the host
  int max_context;      // largest context length, or a bound on it (graphs: max_model_len)
  float scale;
  int window;           // 0: none; else a token sees the last `window` tokens, itself included
  float softcap;        // 0: none
  DType act;
  void *workspace;      // attention_workspace_bytes() bytes, zeroed once before the first call
};
// Causal attention of ragged batches over pages; online softmax in f32. Any head_dim that is a multiple of 4 up to 256.
// It reads seq_starts, context_lens, page_table and the keys and values of tokens before this step's while the kernels
// launched before it still run: none of those may write them, other than kv_append() at this step's tokens.
void attention(const Attention &p, cudaStream_t stream);

// Workspace for any step of at most max_tokens tokens and max_seqs sequences. Its first kAttentionKept bytes are zero between
// calls; the others are free for whoever wants them then.
inline constexpr size_t kAttentionKept = 10240;
size_t attention_workspace_bytes(int64_t max_tokens, int max_seqs, int q_heads, int head_dim);

// --- sampling -------------------------------------------------------------------------------------------------------

struct Sample {
  int32_t *tokens;      // [R] out
  float *logprobs;      // [R] out or null: log-softmax of the raw logits at the token
  const float *logits;  // [R, V] f32, row stride ld
  int64_t ld;
  const SampleRow *rows; // [R]
  int64_t R, V;
  bool greedy;          // every row has temperature 0: known to the host, `rows` is not read unless logprobs are wanted
  int32_t *host_tokens; // [R] out or null: the same, where the host reads them (pinned)
};
// Temperature, min-p, top-k, top-p (in this order), then one draw; greedy ties go to the lowest id. Tokens that tie with
// the last one kept are kept too. A row without a best token (NaN) gives -1.
void sample(const Sample &p, cudaStream_t stream);

// --- ranks of one machine -------------------------------------------------------------------------------------------

inline constexpr int kMaxPeers = 16;

struct PeerSum {
  void *data;           // [T, H] act: out
  int64_t ld;
  const void *parts[kMaxPeers]; // each rank's [T, H], in group order, readable from this device
  int64_t ld_parts[kMaxPeers];
  int count;
  int64_t T, H;
  DType act;
};
// data = sum of parts in order, in f32: the same bits on every rank. `data` must be none of the parts.
void peer_sum(const PeerSum &p, cudaStream_t stream);

// In place sum over a group whose members can write each other's memory: the same bits on every rank. With norm.out:
// residual += sum, out = RMSNorm(residual) · (weight + offset), and data is left as it was. Every member must make the same
// calls in the same order, each with inboxes of the same shape; inboxes and state begin as zeros. The kernels of the
// members wait for each other: each must be able to start whatever the others do, so every member needs its own device.
struct RankSum {
  void *data; // [T, H] act, rows ld apart, 16-byte aligned
  int64_t ld, T, H;
  DType act;
  int rank, count;        // position in the group, members
  void *inbox[kMaxPeers]; // of each member, written by all
  uint32_t *state;        // two words of device memory of this rank and group
  uint32_t number;        // told to the host while the sum is under way
  struct {
    void *out, *residual;
    const float *weight;
    int64_t ld_out, ld_residual;
    float eps, weight_offset;
  } norm;
  struct { // pinned host memory
    uint32_t *at;                      // `number` of the last sum begun
    const volatile uint32_t *given_up; // not 0: stop waiting for the others; the sum is then worthless
  } host;
};

// Whether rows of H elements, ld apart, are of a form that these sums carry.
bool one_shot_takes(int64_t H, int64_t ld, DType act);

// In one shot: every member pushes its rows to all others. Where messages lie in a rank's inbox: two turns of `turn_bytes`; in
// each, `source_bytes` from every member of the group. A source has the pairs of short messages, lines (at lines_offset), the rows
// of long messages (at data_offset) and their flags (at flags_offset).
struct InboxShape {
  int64_t lines_offset = 0, data_offset = 0, flags_offset = 0, source_bytes = 0, turn_bytes = 0;
  int64_t bytes() const { return 2 * turn_bytes; }
};
// Messages of up to so much to all others carry their signal with them: in pairs, or in lines where the links keep those whole;
// the shortest in pairs all the same.
inline constexpr int64_t kPairsBytes = 512 << 10, kLinesBytes = 2 << 20, kShortBytes = 64 << 10;
// Whether 128 bytes that a warp of one device stores at once to the other's memory arrive at once: so they do over NVLink, which is
// known by its atomics, and within a device.
bool whole_lines_between(int a, int b);

// An inbox for messages of up to `most_bytes` and `most_rows` from each of `count` members.
InboxShape one_shot_inbox(int count, int64_t most_bytes, int64_t most_rows);
struct OneShot : RankSum {
  InboxShape box;
  bool whole_lines; // between all members; the same on every member
};
void one_shot_all_reduce(const OneShot &p, cudaStream_t stream);

// In two shots: row t is summed by member t % count, to which the others push theirs, and pushed by it to all. An inbox has two
// turns; in each, what every member sends for the rows that this one sums (source_bytes each: rows, then their flags at
// flags_offset), and from results_offset on the sums of all rows, with their flags at result_flags_offset.
struct TwoShotShape {
  int64_t flags_offset = 0, source_bytes = 0, results_offset = 0, result_flags_offset = 0, turn_bytes = 0;
  int64_t bytes() const { return 2 * turn_bytes; }
};
// For messages of up to `most_bytes` in rows of up to `most_row_bytes`, and up to `most_rows`.
TwoShotShape two_shot_inbox(int count, int64_t most_bytes, int64_t most_row_bytes, int64_t most_rows);
struct TwoShot : RankSum {
  TwoShotShape box;
};
void two_shot_all_reduce(const TwoShot &p, cudaStream_t stream);

// Tokens of R rows that all members of a group are to have; every member makes the same calls in the same order, numbered from
// 1 on, on a device of its own. Boxes begin as zeros.
struct TokenRound {
  int32_t *tokens;       // [R]
  int64_t R;
  int rank, count;       // position in the group, members (32 at most)
  void *box[kMaxPeers];  // of each member, written by all: token_box_bytes()
  int64_t most_rows;     // that the boxes are for
  uint32_t call;         // its number
  uint32_t number, *at;  // told to the host while the round is under way, as in OneShot
  const volatile uint32_t *given_up;
};
inline constexpr int64_t kTokenMessage = 16; // bytes
int64_t token_box_bytes(int count, int64_t most_rows);
// Each member has the logits [R, V] f32, row stride ld, of the tokens from `first` on; tokens become the best of all members'
// on all of them, the lowest id where they tie, -1 for a row without one (NaN).
void sample_greedy_of_ranks(const TokenRound &p, const float *logits, int64_t ld, int64_t V, int64_t first, cudaStream_t stream);
// Tokens of member `root` become those of all. Between two of these calls the members must have waited for each other.
void hand_round_tokens(const TokenRound &p, int root, cudaStream_t stream);

// *word = value, in pinned host memory, once the stream has come here.
void tell_host(uint32_t *word, uint32_t value, cudaStream_t stream);

// Copies rows of [rows, bytes] between pitched buffers.
void copy_rows(void *to, int64_t to_stride_bytes, const void *from, int64_t from_stride_bytes, int64_t rows, int64_t bytes,
               cudaStream_t stream);

// `height` rows of `width` elements of 1, 2 or 4 bytes, `pitch_bytes` apart, become `value`.
struct Fill {
  void *to;
  int64_t pitch_bytes, width, height;
  uint32_t value;
  int element_bytes;
};
// A kernel that does so, as a node of a graph behind these others.
cudaGraphNode_t add_fill(cudaGraph_t graph, const cudaGraphNode_t *after, size_t count, const Fill &p);

// --- measuring ------------------------------------------------------------------------------------------------------

// Reads every byte (a multiple of 4096) and leaves a checksum of 4 bytes: what plain reads can reach.
void read_all(void *checksum, const void *data, int64_t bytes, cudaStream_t stream);
// n elements of random numbers in [-0.5, 0.5): zeros would flatter a product.
void fill_random(void *data, int64_t n, DType type, uint32_t seed, cudaStream_t stream);

} // namespace llmrt::cuda
