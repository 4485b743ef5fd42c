"""Files that hold the keys which llama.cpp's own converter writes of a config, and no tensors: of these llama.cpp makes them itself.

Wants llama.cpp's source and its gguf-py on the path, torch and transformers. A row of a Llama's kind is counted alike either way but where
a file may have one tensor or two for the same (Phi-3).
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

# what configs of the snapshot leave out and the graph does not depend on
LEFT_OUT = {"routed_scaling_factor": 1.0, "rms_norm_eps": 1e-6, "layer_norm_eps": 1e-5, "layer_norm_epsilon": 1e-5}
LEFT_OUT |= {"decoder_start_token_id": 0, "eos_token_id": 0, "scoring_func": "sigmoid"}
PREDICTING = ("num_nextn_predict_layers", "mtp_num_hidden_layers")


def architecture(config: dict) -> str:
    """The class that the converter knows the model by."""
    import conversion
    from transformers.models.auto import modeling_auto

    names = modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES | modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    kinds = [part.get("model_type") for part in (config, config.get("text_config") or {})]
    found = [*(config.get("architectures") or ()), *map(names.get, kinds), "DeepseekV3ForCausalLM"]
    return next(name for name in found if name in conversion.TEXT_MODEL_MAP)


def write(path: Path, config: dict) -> None:
    import conversion
    import gguf

    named = architecture(config)
    kind = conversion.get_model_class(named)
    kind.index_tensors = lambda self, remote_hf_model_id=None: {}
    kind.no_mtp = True
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(config | {"architectures": [named]}))
        read = conversion.base.ModelBase.load_hparams(Path(folder), False)
        for part in filter(None, (read, read.get("text_config"))):
            part |= {name: 0 for name in PREDICTING if name in part} | {"architectures": [named]}
            part |= {name: value for name, value in LEFT_OUT.items() if part.get(name) is None}
        model = kind(Path(folder), gguf.LlamaFileType.MOSTLY_F16, path, hparams=read, model_name="keys")
        model.set_gguf_parameters()
    file = getattr(model, "impl", model).gguf_writer
    file.add_tokenizer_model("none")
    arch = file.arch
    if f"{arch}.vocab_size" not in file.kv_data[0]:
        file.add_vocab_size((read.get("text_config") or read)["vocab_size"])
    if f"{arch}.context_length" not in file.kv_data[0]:
        file.add_context_length(1 << 20)
    file.write_header_to_file(path)
    file.write_kv_data_to_file()
    file.close()
