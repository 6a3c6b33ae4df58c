// Inverse frequencies of rotary embeddings with the scalings that transformers calls default, linear, llama3
// and yarn, rounded in float32 in the same order as transformers' modeling_rope_utils.py.
#pragma once

#include "compiler/import/model_spec.h"

namespace llmc {

// linear: position interpolation (https://arxiv.org/abs/2306.15595): every frequency / factor.
// llama3: the Llama 3.1 rule: long wavelengths / factor, short ones kept, a ramp between them.
// yarn:   NTK-by-parts with an attention factor (https://arxiv.org/abs/2309.00071).
struct RopeScaling {
  enum class Kind { Default, Linear, Llama3, Yarn };
  Kind kind = Kind::Default;
  double factor = 1;
  double originalMaxPositions = 0;              // llama3, yarn
  double lowFreqFactor = 1, highFreqFactor = 4; // llama3
  double betaFast = 32, betaSlow = 1;           // yarn
  bool truncate = true;                         // yarn: whole dimensions as ramp ends
  std::optional<double> attentionFactor;        // yarn: given outright …
  std::optional<double> mscale, mscaleAllDim;   // … or computed from these and the factor
};

// Fills invFreq, attentionFactor and scaling of a spec whose style, theta and rotaryDim are set. The numbers
// in `scaling` must be finite and positive; callers check them where they can name the key.
// pow() is rounded correctly here; torch's vectorised one is off by one unit in the last place now and then.
void fillRope(RopeSpec &rope, const RopeScaling &scaling);

} // namespace llmc
