// All CPU kernels of llmrt: raw pointers and sizes in, no framework types. See the headers for shapes.
// Every kernel gives each row the same bits whatever else is in the batch and however many threads run.
#pragma once

#include "kernels/cpu/attention.h"   // IWYU pragma: export
#include "kernels/cpu/convert.h"     // IWYU pragma: export
#include "kernels/cpu/dequant.h"     // IWYU pragma: export
#include "kernels/cpu/dtype.h"       // IWYU pragma: export
#include "kernels/cpu/elementwise.h" // IWYU pragma: export
#include "kernels/cpu/embedding.h"   // IWYU pragma: export
#include "kernels/cpu/isa.h"         // IWYU pragma: export
#include "kernels/cpu/linear.h"      // IWYU pragma: export
#include "kernels/cpu/norm.h"        // IWYU pragma: export
#include "kernels/cpu/rope.h"        // IWYU pragma: export
#include "kernels/cpu/team.h"        // IWYU pragma: export
