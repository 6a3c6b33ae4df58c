// Passes over the llm dialect: fusions that need no knowledge of devices.
#ifndef LLMC_PASSES_LLM_PASSES_TD
#define LLMC_PASSES_LLM_PASSES_TD

include "mlir/Pass/PassBase.td"

def LLMFuseQkv : Pass<"llm-fuse-qkv", "::mlir::func::FuncOp"> {
  let summary = "Stacks the q, k and v projections of a layer into one product";
  let description = [{
    Three reads of the input and three launches become one. Before:

    ```mlir
    %q = llm.linear %x weights(%wq) : ...
    %k = llm.linear %x weights(%wk) : ...
    %v = llm.linear %x weights(%wv) : ...
    %o = llm.attention %q, %k, %v ...
    ```
    After:
    ```mlir
    %q, %k, %v = llm.linear %x weights(%wq, %wk, %wv) : ...
    %o = llm.attention %q, %k, %v ...
    ```
    Rotary embedding and head norms may stand between. Biases are stacked too; where only some of the three have
    one, the projections stay apart.
  }];
}

def LLMFuseGateUp : Pass<"llm-fuse-gate-up", "::mlir::func::FuncOp"> {
  let summary = "Stacks the gate and up projections of a feed-forward block into one product";
  let description = [{
    Before:
    ```mlir
    %g = llm.linear %x weights(%wg) : ...
    %u = llm.linear %x weights(%wu) : ...
    %h = llm.gated_act %g, %u {act = #llm.act<silu>} : ...
    ```
    After:
    ```mlir
    %g, %u = llm.linear %x weights(%wg, %wu) : ...
    %h = llm.gated_act %g, %u {act = #llm.act<silu>} : ...
    ```
  }];
}

def LLMFuseQkNorm : Pass<"llm-fuse-qk-norm", "::mlir::func::FuncOp"> {
  let summary = "Folds the norms of query and key heads into the rotary embedding";
  let description = [{
    Before:
    ```mlir
    %qn = llm.head_norm %q, %wq {...}
    %kn = llm.head_norm %k, %wk {...}
    %qr, %kr = llm.rope %qn, %kn, %positions {...}
    ```
    After:
    ```mlir
    %qr, %kr = llm.rope %q, %k, %positions norms(%wq, %wk : ...) {...}
    ```
  }];
}

def LLMFuseAddNorm : Pass<"llm-fuse-add-norm", "::mlir::func::FuncOp"> {
  let summary = "Joins a residual addition with the normalisation that follows it";
  let description = [{
    Before:
    ```mlir
    %s = llm.add %residual, %x
    %y = llm.rms_norm %s, %w {eps = 1.0e-5 : f32}
    ```
    After:
    ```mlir
    %s, %y = llm.add_rms_norm %residual, %x, %w {eps = 1.0e-5 : f32}
    ```
    The joint op belongs to the layer of the norm. `dist-split-stages` takes it apart again where a stage boundary
    falls between the two.
  }];
}

def LLMVerifyModel : Pass<"llm-verify-model", "::mlir::ModuleOp"> {
  let summary = "Checks the llm phase as a whole";
  let description = [{
    Closes the phase. There is exactly one function, `@forward`, of the agreed signature; each layer's attention
    appears once, layers rise from 0 without a gap along the function; heads and head_dim agree between rope and
    attention; each weight name is loaded once.
  }];
}

#endif // LLMC_PASSES_LLM_PASSES_TD
