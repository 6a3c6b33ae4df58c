"""In which layouts of ranks, (tp, pp), the tests try a model."""
import gguf_models
import specs

# Those of machines with three to eight devices, for a few models: 8 query heads over 2 KV heads, which lie on two ranks and more, in 4
# layers; 24 over 4, of which six ranks cannot have whole ones either, in 3; and at real size 28 over 4.
ON_MANY = ("llama3-rope-f16", "mistral-24-heads", "Qwen2.5-7B")
MANY = ((3, 1), (4, 1), (6, 1), (8, 1), (2, 4))


def shape(name):
    """(query heads, layers) of a golden model."""
    if name in specs.BY_NAME:
        config = specs.BY_NAME[name].config
        return config["num_attention_heads"], config["num_hidden_layers"]
    return gguf_models.BY_NAME[name].heads, gguf_models.BY_NAME[name].layers


def legal(name, wanted, heads, layers):
    """Those wanted, and those of many ranks where the model is tried in them, but for more ranks than heads or more stages than layers."""
    return [(tp, pp) for tp, pp in (*wanted, *(MANY if name in ON_MANY else ())) if tp <= heads and pp <= layers]
