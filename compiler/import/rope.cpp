// Rotary frequencies. Every float below is a float32 tensor in transformers, every double a Python number:
// a Python number that meets a tensor is rounded to float32 first, and number / tensor is computed as
// number * (1 / tensor), two roundings.
#include "compiler/import/rope.h"

#include <algorithm>
#include <cmath>

namespace llmc {
namespace {

constexpr double kPi = 3.14159265358979323846;

// number / tensor, as torch does it.
float numberOver(double number, float tensor) {
  return (1.0f / tensor) * static_cast<float>(number);
}

// theta^(2i/dim)
float positionPeriod(double theta, int64_t i, int64_t dim) {
  float exponent = static_cast<float>(2 * i) / static_cast<float>(dim);
  return static_cast<float>(
      std::pow(static_cast<double>(static_cast<float>(theta)), static_cast<double>(exponent)));
}

float llama3(float invFreq, const RopeScaling &s) {
  const float factor = static_cast<float>(s.factor), low = static_cast<float>(s.lowFreqFactor);
  const float lowWavelength = static_cast<float>(s.originalMaxPositions / s.lowFreqFactor);
  const float highWavelength = static_cast<float>(s.originalMaxPositions / s.highFreqFactor);
  const float wavelength = numberOver(2 * kPi, invFreq);
  if (wavelength > lowWavelength)
    return invFreq / factor;
  if (wavelength < highWavelength)
    return invFreq;
  float smooth = (numberOver(s.originalMaxPositions, wavelength) - low) /
                 static_cast<float>(s.highFreqFactor - s.lowFreqFactor);
  return (1.0f - smooth) * invFreq / factor + smooth * invFreq;
}

// The dimension whose wavelength turns `rotations` times within the original context.
double rotationDimension(double rotations, double dim, double theta, double positions) {
  return dim * std::log(positions / (rotations * 2 * kPi)) / (2 * std::log(theta));
}

void yarn(RopeSpec &rope, const RopeScaling &s) {
  const double dim = static_cast<double>(rope.rotaryDim);
  double low = rotationDimension(s.betaFast, dim, rope.theta, s.originalMaxPositions);
  double high = rotationDimension(s.betaSlow, dim, rope.theta, s.originalMaxPositions);
  if (s.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high)
    high += 0.001;
  const float from = static_cast<float>(low), span = static_cast<float>(high - low);
  for (int64_t i = 0; i < rope.rotaryDim / 2; ++i) {
    const float period = positionPeriod(rope.theta, i, rope.rotaryDim);
    const float extrapolated = 1.0f / period;
    const float interpolated = 1.0f / (static_cast<float>(s.factor) * period);
    const float ramp = std::clamp((static_cast<float>(i) - from) / span, 0.0f, 1.0f);
    const float keep = 1.0f - ramp;
    rope.invFreq[static_cast<size_t>(i)] = interpolated * (1.0f - keep) + extrapolated * keep;
  }
  auto magnitude = [&](double scale) { return s.factor <= 1 ? 1.0 : 0.1 * scale * std::log(s.factor) + 1.0; };
  if (s.attentionFactor)
    rope.attentionFactor = *s.attentionFactor;
  else if (s.mscale.value_or(0) != 0 && s.mscaleAllDim.value_or(0) != 0)
    rope.attentionFactor = magnitude(*s.mscale) / magnitude(*s.mscaleAllDim);
  else
    rope.attentionFactor = magnitude(1);
}

} // namespace

void fillRope(RopeSpec &rope, const RopeScaling &scaling) {
  using Kind = RopeScaling::Kind;
  rope.invFreq.assign(static_cast<size_t>(rope.rotaryDim / 2), 0.0f);
  rope.attentionFactor = 1.0;
  rope.scaling = scaling.kind == Kind::Linear   ? "linear"
                 : scaling.kind == Kind::Llama3 ? "llama3"
                 : scaling.kind == Kind::Yarn   ? "yarn"
                                                : "default";
  if (scaling.kind == Kind::Yarn)
    return yarn(rope, scaling);
  for (int64_t i = 0; i < rope.rotaryDim / 2; ++i) {
    float invFreq = 1.0f / positionPeriod(rope.theta, i, rope.rotaryDim);
    if (scaling.kind == Kind::Linear)
      invFreq /= static_cast<float>(scaling.factor);
    else if (scaling.kind == Kind::Llama3)
      invFreq = llama3(invFreq, scaling);
    rope.invFreq[static_cast<size_t>(i)] = invFreq;
  }
}

} // namespace llmc
