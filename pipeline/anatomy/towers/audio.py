"""Audio towers: Whisper's encoder and its relatives, the convolutional front of Wav2Vec 2.0, Gemma's conformer."""

from __future__ import annotations

from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import sizes
from pipeline.anatomy.rows import ContradictoryConfig, UnknownAnatomy
from pipeline.anatomy.towers import hearing
from pipeline.anatomy.towers.part import Part

WHISPER = {
    "voxtral_encoder": {
        "hidden_size": 1280,
        "intermediate_size": 5120,
        "num_hidden_layers": 32,
        "num_attention_heads": 20,
    },
    "qwen2_audio_encoder": {
        "d_model": 1280,
        "encoder_ffn_dim": 5120,
        "encoder_layers": 32,
        "encoder_attention_heads": 20,
    },
    "moss_transcribe_diarize_audio": {
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "num_mel_bins": 80,
    },
}
WHISPER["audioflamingo3_encoder"] = WHISPER["voxtral_encoder"]
WHISPER["qwen2_5_omni_audio_encoder"] = WHISPER["qwen2_audio_encoder"]


@hearing(*WHISPER)
def whisper_tower(fields: Fields) -> list[Part]:
    part = Part("audio", "audio-tower")
    whisper_encoder(part, fields.filled())
    # Positions are computed; there are two learned marks, and a projection.
    if fields.text("model_type") == "qwen2_5_omni_audio_encoder":
        part.tensors = [t for t in part.tensors if t.role != "position_embedding"]
        outputs = fields.size("output_dim")
        part.embedding("mark_embedding", 2, outputs)
        projection = Part("projector", "projector")
        projection.linear("projector", part.hidden, outputs)
        return [part, projection]
    return [part]


@hearing("qwen3_omni_moe_audio_encoder", "qwen3_asr_encoder", "qwen3_asr_audio_encoder")
def qwen3_omni_audio(fields: Fields) -> list[Part]:
    """Three convolutions over mel bins and time, Whisper's layers with biased keys, two matrices out."""
    fields = fields.filled()
    hidden, layers, channels = (
        fields.count("d_model"),
        fields.repeats("encoder_layers"),
        fields.count("downsample_hidden_size"),
    )
    part, bins = Part("audio", "audio-tower"), fields.count("num_mel_bins")
    for inputs in (1, channels, channels):
        part.conv(channels, inputs, 3, 3)
        bins = (bins + 1) // 2
    part.linear("patch_embedding", channels * bins, hidden, bias=False)
    part.block(layers, hidden, fields.count("encoder_ffn_dim"), fields.count("encoder_attention_heads"))
    part.norm(hidden)
    projection, outputs = Part("projector", "projector"), fields.count("output_dim")
    projection.linear("projector_up", hidden, hidden)
    projection.linear("projector_down", hidden, outputs)
    part.hidden, part.layers = hidden, layers
    return [part, projection]


def whisper_encoder(part: Part, fields: Fields) -> None:
    """Two convolutions over mel bins, a table of positions, layers whose keys have no bias, a norm."""
    hidden = fields.count("d_model", "hidden_size")
    layers = fields.repeats("encoder_layers", "num_hidden_layers")
    heads, width = (
        fields.count("encoder_attention_heads", "num_attention_heads"),
        fields.count("encoder_ffn_dim", "intermediate_size"),
    )
    part.conv(hidden, fields.size("num_mel_bins"), 3)
    part.conv(hidden, hidden, 3)
    part.embedding("position_embedding", fields.size("max_source_positions"), hidden)
    part.block(layers, hidden, width, heads, key_bias=False)
    part.norm(hidden)
    part.hidden, part.layers = hidden, layers


@hearing("voxtral_realtime_encoder")
def voxtral_realtime(fields: Fields) -> list[Part]:
    fields = fields.filled()
    hidden, layers = fields.count("hidden_size"), fields.repeats("num_hidden_layers")
    heads, width = fields.count("num_attention_heads"), fields.count("intermediate_size")
    part = Part("audio", "audio-tower")
    part.conv(hidden, fields.count("num_mel_bins"), 3)
    part.conv(hidden, hidden, 3)
    part.mixer(
        layers,
        hidden,
        heads,
        head_dim=fields.count("head_dim"),
        key_bias=False,
        mechanism="sliding",
        window=fields.count("sliding_window"),
    )
    part.mlp(layers, hidden, width, gated=True, bias=False)
    part.vector(hidden, "bias", layers=layers)
    part.norm(hidden, count=2 * layers + 1, bias=False)
    return part.finished(hidden, layers)


def gemmas_conformer(part: Part, layers: int, hidden: int, heads: int, kernel: int) -> None:
    """Its layers: feed-forward, attention with relative keys, a depthwise convolution, feed-forward."""
    part.mixer(layers, hidden, heads, bias=False)
    part.linear("attention_position", hidden, hidden, bias=False, layers=layers)
    part.vector(hidden // heads, layers=layers)
    for _ in range(2):
        part.mlp(layers, hidden, 4 * hidden, bias=False)
    part.linear("conv_in", hidden, 2 * hidden, bias=False, layers=layers)
    part.linear("conv_out", hidden, hidden, bias=False, layers=layers)
    part.conv(hidden, 1, kernel, bias=False, layers=layers)
    part.norm(hidden, layers=layers, count=9, bias=False)


@hearing("gemma4_audio")
def gemma4_audio(fields: Fields) -> list[Part]:
    """Two convolutions over time and bins, and a conformer."""
    fields = fields.filled()
    hidden, layers, heads = (
        fields.count("hidden_size"),
        fields.repeats("num_hidden_layers"),
        fields.count("num_attention_heads"),
    )
    part, outputs = Part("audio", "audio-tower"), fields.count("output_proj_dims")
    first, second = [*sizes(fields, "subsampling_conv_channels", least=1), 1, 1][:2]
    part.conv(first, 1, 3, 3, bias=False)
    part.conv(second, first, 3, 3, bias=False)
    part.norm(first, bias=False)
    part.norm(second, bias=False)
    part.linear("patch_embedding", first * second // 4, hidden, bias=False)  # 128 mel bins, halved twice
    gemmas_conformer(part, layers, hidden, heads, fields.size("conv_kernel_size"))
    part.linear("projector", hidden, outputs)
    return part.finished(outputs, layers)


@hearing("wav2vec2", "hubert", "wavlm", "unispeech", "unispeech-sat", "data2vec-audio", "sew")
def wav2vec(fields: Fields) -> list[Part]:
    """Convolutions over the waveform, a projection, a positional convolution, encoder layers."""
    kind, fields = fields.text("model_type"), fields.filled()
    hidden, layers = fields.count("hidden_size"), fields.repeats("num_hidden_layers")
    heads, width = fields.count("num_attention_heads"), fields.count("intermediate_size")
    channels, kernels = sizes(fields, "conv_dim", least=1), sizes(fields, "conv_kernel", least=1)
    if not len(channels) == len(kernels) == len(sizes(fields, "conv_stride", least=1)) or not channels:
        raise ContradictoryConfig(f"{fields.where}: conv_dim, conv_kernel and conv_stride do not agree")
    part = Part("audio", "audio-tower")
    if fields.flag("add_adapter"):
        raise UnknownAnatomy(f"{fields.where}: adapters over the encoder are not described yet")
    every_norm = kind == "data2vec-audio" or fields.text("feat_extract_norm") == "layer"
    for i, (outputs, kernel) in enumerate(zip(channels, kernels, strict=True)):
        part.conv(outputs, channels[i - 1] if i else 1, kernel, bias=fields.flag("conv_bias"))
        part.norm(outputs if every_norm or not i else 0)
    last = channels[-1]
    part.norm(last if fields.flag("feat_proj_layer_norm", default=True) else 0)
    if kind != "sew" or last != hidden:
        part.linear("patch_embedding", last, hidden)
    positions(part, fields, kind, hidden)
    part.norm(hidden)
    part.block(layers, hidden, width, heads)
    adapter = fields.count("adapter_attn_dim", default=None)
    if adapter and fields.flag("do_stable_layer_norm"):
        part.norm(hidden, layers=layers)
        part.linear("adapter_up", hidden, adapter, layers=layers)
        part.linear("adapter_down", adapter, hidden, layers=layers)
    if kind == "wavlm":
        head_dim = fields.divide(hidden, heads, "hidden_size")
        part.vector(heads, layers=layers)
        part.linear("attention_gate", head_dim, 8, layers=layers)
        part.embedding("position_embedding", fields.size("num_buckets"), heads)
    if fields.number("mask_time_prob") > 0 or fields.number("mask_feature_prob", default=0.0) > 0:
        part.vector(hidden, "mask_embedding")
    if kind == "sew":
        part.linear("upsample", hidden, hidden * fields.size("squeeze_factor"))
    return part.finished(hidden, layers)


def positions(part: Part, fields: Fields, kind: str, hidden: int) -> None:
    """A grouped convolution, its weight split into direction and length (two tensors), or several plain ones."""
    inner = fields.divide(hidden, fields.size("num_conv_pos_embedding_groups"), "hidden_size")
    if kind == "data2vec-audio":
        count, kernel = (fields.times("num_conv_pos_embeddings"), fields.size("conv_pos_kernel_size"))
        part.conv(hidden, inner, kernel, count=count)
        return
    kernel = fields.size("num_conv_pos_embeddings")
    part.conv(hidden, inner, kernel)
    if fields.flag("conv_pos_batch_norm"):
        part.norm(hidden)
    else:
        part.vector(kernel)


@hearing("wav2vec2-bert")
def wav2vec_bert(fields: Fields) -> list[Part]:
    """A conformer over mel features with relative keys."""
    fields = fields.filled()
    hidden, layers = fields.count("hidden_size"), fields.repeats("num_hidden_layers")
    heads, width = fields.count("num_attention_heads"), fields.count("intermediate_size")
    part, inputs = Part("audio", "audio-tower"), fields.count("feature_projection_input_dim")
    if fields.flag("add_adapter"):
        raise UnknownAnatomy(f"{fields.where}: adapters over a conformer are not described yet")
    part.norm(inputs)
    part.linear("patch_embedding", inputs, hidden)
    part.mixer(layers, hidden, heads)
    silent = "none" if fields.is_null("position_embeddings_type") else "relative_key"
    kind = fields.text("position_embeddings_type", default=silent)
    if kind == "relative_key":
        rows = fields.size("left_max_position_embeddings") + fields.size("right_max_position_embeddings") + 1
        part.embedding("position_embedding", rows, hidden // heads, layers=layers)
    elif kind == "relative":
        part.linear("attention_position", hidden, hidden, bias=False, layers=layers)
        part.parameter(hidden, layers=layers, count=2)
    part.mlp(layers, hidden, width)
    part.mlp(layers, hidden, width)
    part.conv(2 * hidden, hidden, 1, bias=False, layers=layers)
    part.conv(hidden, hidden, 1, bias=False, layers=layers)
    part.conv(hidden, 1, fields.size("conv_depthwise_kernel_size"), bias=False, layers=layers)
    part.norm(hidden, layers=layers, count=6)
    if fields.number("mask_time_prob") > 0 or fields.number("mask_feature_prob", default=0.0) > 0:
        part.vector(hidden, "mask_embedding")
    return part.finished(hidden, layers)


@hearing("granite_speech_encoder")
def granite_speech(fields: Fields) -> list[Part]:
    """A conformer whose middle layer reads what it would write: letters, put back into the stream."""
    fields = fields.filled()
    hidden, layers = fields.count("hidden_dim", "hidden_size"), fields.repeats("num_layers", "num_hidden_layers")
    heads = fields.count("num_heads", "num_attention_heads")
    dim = fields.count("dim_head", default=None) or hidden // heads
    part, letters = Part("audio", "audio-tower"), fields.count("output_dim")
    part.linear("patch_embedding", fields.count("input_dim", "num_mel_bins"), hidden)
    part.mixer(layers, hidden, heads, head_dim=dim, bias=False, output_bias=True)
    part.embedding("position_embedding", 2 * fields.count("max_pos_emb") + 1, dim, layers=layers)
    for _ in range(2):
        part.mlp(layers, hidden, hidden * fields.count("feedforward_mult"))
    inner = hidden * fields.count("conv_expansion_factor")
    part.conv(2 * inner, hidden, 1, layers=layers)
    part.conv(inner, 1, fields.count("conv_kernel_size"), bias=False, layers=layers)
    part.norm(inner, layers=layers)
    part.conv(hidden, inner, 1, layers=layers)
    part.norm(hidden, layers=layers, count=5)
    part.linear("head_transform", hidden, letters)
    part.linear("head_transform", letters, hidden)
    return part.finished(hidden, layers)
