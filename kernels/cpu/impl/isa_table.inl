// One instruction set's table; included last by each isa_*.cpp.

namespace llmrt::cpu::LLMRT_ISA_NS {

extern const KernelTable table = {
    .block_rows = kMaxRows,
    .quant_block_rows = kMaxQuantRows,
    .pack_rows = pack_rows,
    .linear_panels = linear_panels,
    .attention_item_scratch = attention_item_scratch,
    .attention_item = attention_item,
    .attention_merge = attention_merge,
    .rms_norm_row = rms_norm_row,
    .add_rms_norm_row = add_rms_norm_row,
    .rope_rows = rope_rows,
    .gated_act_row = gated_act_row,
    .add_row = add_row,
    .scale_row = scale_row,
    .exp_row = exp_row,
    .to_f32 = to_f32_row,
    .from_f32 = from_f32_row,
};

} // namespace llmrt::cpu::LLMRT_ISA_NS
