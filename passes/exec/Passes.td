// Passes over the exec dialect: from a rank's function to a program with every byte placed.
#ifndef LLMC_PASSES_EXEC_PASSES_TD
#define LLMC_PASSES_EXEC_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertDistToExec : Pass<"convert-dist-to-exec", "::mlir::ModuleOp"> {
  let summary = "Turns each rank's function into a program over buffers";
  let description = [{
    Values become buffers, stacked products one weight and one buffer whose columns are the results, residual sums and
    collectives work in place, and attention becomes an append to the KV pages and the attention proper.

    ```mlir
    %q, %k, %v = llm.linear %x weights(%wq, %wk, %wv)       %qkv = exec.buffer "layer.0.qkv"
    %o = llm.attention %q, %k, %v {layer = 0}          =>   exec.linear %x, %w into %qkv
                                                            %q = exec.columns %qkv {begin = 0} ...
                                                            exec.kv_append %k, %v {kv_layer = 0}
                                                            exec.attention %q into %o {kv_layer = 0}
    ```
  }];
  let dependentDialects = ["::llmc::exec::ExecDialect"];
}

def ExecSelectKernels : Pass<"exec-select-kernels", "::mlir::ModuleOp"> {
  let summary = "Names the kernel of each op, the layout of each weight, the communicator of each collective";
  let description = [{
    The choice follows from shapes and from the rank's device, so it is made once, here, and stands in the plan. CPU
    products want weights in panels of 16 rows; an embedding table stays row-major unless a product shares it.

    ```mlir
    exec.linear %x, %w into %y : ..., !exec.weight<960, 576, bf16, row_major>, ...
    ```
    becomes
    ```mlir
    exec.linear %x, %w into %y {kernel = "cpu.linear.packed16"} : ..., !exec.weight<960, 576, bf16, packed16>, ...
    ```
    A sum between GPUs that can all write each other's memory gets `one_shot_bytes`, the size up to which a push to all
    members is the fastest, and, among three and more, `two_shot_bytes`, up to which two pushes are: by the links' bandwidth and
    latency.

    Head dimensions, hidden sizes and steps that the CUDA kernels do not take are refused.

    With `keep-quantized`, a CPU weight all of whose tensors are of one block format that a kernel multiplies as it is
    (Q8_0; Q4_1 and Q4_0), in whole blocks, keeps that format: `!exec.weight<960, 576, !exec.quant<q4_1>, packed16>`.
  }];
  let options = [
    Option<"keepQuantized", "keep-quantized", "bool", "false", "Keep block formats that kernels multiply as they are">
  ];
}

def ExecPlanMemory : Pass<"exec-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Places weights and buffers: offsets from liveness";
  let description = [{
    Weights stand one behind the other. A buffer lives from its first to its last op; buffers that do not live together
    may share bytes (greedy by size, each at the lowest offset that is free for its whole life). Sizes are those at
    `max_batched_tokens` and `max_logits_rows`. Workspace and communication bytes follow from the kernels' own formulas;
    CPU ranks get scratch for 16 cores of their machine, shared by the ranks on it.

    ```mlir
    %a = exec.buffer "a" {offset = 0 : i64, first_op = 0 : i64, last_op = 1 : i64}
    %c = exec.buffer "c" {offset = 0 : i64, first_op = 2 : i64, last_op = 3 : i64}
    ```
  }];
}

def ExecPlanKvPages : Pass<"exec-plan-kv-pages", "::mlir::ModuleOp"> {
  let summary = "Fills the rest of each device with KV pages, and writes the ledger";
  let description = [{
    A page is page_size tokens over all layers of the rank. One page table serves all ranks, so their number
    (`exec.num_pages`) is the least over ranks. Fails, naming the device, what it is short of and the largest value that
    fits, when weights and buffers leave no room or a sequence of max_model_len has too few pages. With
    `shorten-model-len` a length that does not fit is lowered to the largest that does, with a warning.
  }];
  let options = [
    Option<"shortenModelLen", "shorten-model-len", "bool", "false", "Lower max_model_len to what fits">
  ];
}

def ExecVerify : Pass<"exec-verify", "::mlir::ModuleOp"> {
  let summary = "Checks the exec phase as a whole";
  let description = [{
    Closes the phase. Every executed op has a kernel, every buffer and weight an offset inside its region, no two
    buffers that live together share a byte, every program has its KV geometry and ledger, and the ledger fits the
    budget. (`llmc verify` proves this and more again, on the plan.)
  }];
}

#endif // LLMC_PASSES_EXEC_PASSES_TD
