"""What a diffusion pipeline is made of: its denoiser, and the text encoders and autoencoder whose configs stand beside it.

Each component is counted by the family that reads its config. A pipeline that keeps all of them on the card needs their sum; one that
moves them there in turn (`enable_model_cpu_offload`) never more than the largest at a time. Activations come on top.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.anatomy.autoencoders import shape_of
from pipeline.anatomy.families import reader_for
from pipeline.anatomy.families.diffusion_video import sees_a_picture
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.model_classes import with_described_classes
from pipeline.anatomy.reading import architecture_of, sizes
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, Tensor, UnknownAnatomy, shown
from pipeline.anatomy.towers.part import Part
from pipeline.base.parts import BESIDE

_NOT_RECORDED = "the snapshot does not record the config of this component"

_ENCODERS = ("text_encoder", "image_encoder", "transformer_")  # a second denoiser has no config of its own here


@dataclass(frozen=True)
class Component:
    """One model of a pipeline; `parameter_count` is None where a reason says why."""

    pipeline_part: str  # denoiser, text_encoder, text_encoder_2, vae ... as the pipeline names it
    class_name: str | None
    parameter_count: int | None
    unknown_reason: str | None = None
    leaf_element_count: int | None = None  # of its largest module without parts
    # widths that its activations follow from: of its hidden states, its feed-forward blocks, the text it reads, what a token of it holds
    hidden_size: int | None = None
    width: int | None = None
    head_count: int | None = None
    text_width: int | None = None
    latent_elements: int | None = None
    token_pixels: int | None = None  # pixels of the picture behind one token
    plan: str | None = None  # what tells apart the layouts that one class can have
    tensors: tuple[Tensor, ...] = ()  # of a text encoder, which a format may pack


def components(fields: Fields, anatomy: Anatomy) -> list[Component]:
    """Of a denoiser's config; nothing of any other model."""
    if not any(t.component == "denoiser" for t in anatomy.tensors):
        return []
    kind = fields.text("_class_name", default=anatomy.architecture or anatomy.model_type)
    leaf = _leaf(anatomy.tensors)
    widths = denoiser_widths(fields) | {"width": _block_width(anatomy)}
    parts = [Component("denoiser", kind, anatomy.loaded_element_count, leaf_element_count=leaf, **widths)]
    encoders = fields.inner("text_encoder_configs") or Fields({})
    named = {n for n in {*fields.config, *encoders.config} if n.startswith(_ENCODERS) and n != "text_encoder_configs"}
    named = sorted(n for n in named if encoders.raw(n) is not None or _class(fields, n))
    parts += [_counted(name, encoders.raw(name), _class(fields, name)) for name in named]
    if not named:
        parts.append(Component("text_encoder", None, None, _NOT_RECORDED))
    parts.append(_counted("vae", fields.raw("_vae_config"), _class(fields, "vae")))
    beside = fields.inner("part_configs") or Fields({})
    parts += [
        _listed(n, beside.raw(n), _class(fields, n)) for n in BESIDE if _class(fields, n) or beside.raw(n) is not None
    ]
    return parts


def _listed(name: str, config: object, class_name: str | None) -> Component:
    """A part whose class the library lists, as it lists autoencoders of video."""
    if not isinstance(config, dict):
        return Component(name, class_name, None, _NOT_RECORDED)
    fields = Fields(config, name)
    try:
        shape = shape_of(fields)
        if shape is None:
            raise UnknownAnatomy(f"class '{shown(fields.text('_class_name') or class_name)}' is not described yet")
        return Component(name, class_name or fields.text("_class_name"), **shape, token_pixels=1, latent_elements=0)
    except (UnknownAnatomy, ContradictoryConfig) as reason:
        return Component(name, class_name, None, str(reason))


def _leaf(tensors: Iterable[Tensor]) -> int | None:
    return max((t.element_count // (t.layer_count * t.per_layer_count) for t in tensors), default=None)


def _block_width(anatomy: Anatomy) -> int | None:
    return max((f.width for f in anatomy.feed_forward), default=None)


def denoiser_widths(fields: Fields) -> dict[str, int | str | None]:
    """Of one step: tokens are patches of latents, an eighth of the picture each way or what the autoencoder says. Empty where the config does
    not say."""
    try:
        heads = fields.count("num_attention_heads", "n_heads", "num_heads", default=None)
        blocks = fields.items("down_block_types")
        if blocks:  # a U-Net, whose widest moment follows its first width
            first = _widths(fields)[0]
            facts = {"hidden_size": first, "text_width": fields.count("cross_attention_dim", default=0, least=0)}
            return facts | {"plan": str(blocks[0]), "latent_elements": 0, "token_pixels": 64}
        hidden = fields.count("hidden_size", "dim", default=None)
        hidden = hidden or fields.count("num_attention_heads") * fields.count("attention_head_dim")
        side = _patch(fields)
        channels = fields.count("in_channels", "in_dim")
        is_packed = channels >= 64  # patches of 2 × 2 come as one row
        text = fields.count(
            "joint_attention_dim",
            "caption_channels",
            "cap_feat_dim",
            "text_dim",
            "text_embed_dim",
            "text_hidden_dim",
            "cross_attention_dim",
            default=0,
            least=0,
        )
        facts = {"hidden_size": hidden, "head_count": heads, "text_width": text}
        facts |= {"latent_elements": channels * (1 if is_packed else side * side)}
        if fields.flag("expand_timesteps"):  # of the pipeline: every token has a time of its own, and modulations too
            facts |= {"plan": "times of tokens"}
        if sees_a_picture(fields):
            facts |= {"plan": "sees a picture"}
        if fields.flag("zero_cond_t"):  # a picture lies beside the latents, at a time of its own
            facts |= {"plan": "edits a picture"}
        if fields.items("dual_attention_layers"):  # blocks that attend to the picture alone, besides
            facts |= {"plan": "dual attention"}
        latent = (fields.inner("_vae_config") or Fields({})).count("scale_factor_spatial", default=8)
        return facts | {"token_pixels": 256 if is_packed else latent * latent * side * side}
    except (UnknownAnatomy, ContradictoryConfig):
        return {}


def _patch(fields: Fields) -> int:
    """The side of a patch of latents: one number, or the last of those for frames, height and width."""
    name = "patch_size" if fields.raw("patch_size") is not None else "all_patch_size"
    if not isinstance(fields.raw(name), list):
        return fields.count("patch_size", default=1)
    sides = sizes(fields, name, least=1)
    if not sides:
        raise ContradictoryConfig(f"{fields.where}.{name} is an empty list")
    return sides[-1]


def _class(fields: Fields, name: str) -> str | None:
    """['transformers', 'T5EncoderModel'] in a pipeline's index."""
    value = fields.raw(name)
    return value[1] if isinstance(value, list) and len(value) == 2 and isinstance(value[1], str) else None


def _counted(name: str, config: object, class_name: str | None) -> Component:
    if not isinstance(config, dict):
        return Component(name, class_name, None, _NOT_RECORDED)
    fields = Fields(config, name)
    try:
        if name == "vae":
            shape = shape_of(fields)
            if shape:
                facts = shape | {"token_pixels": 1, "latent_elements": 0}
                facts |= {"plan": "residual"} if fields.flag("is_residual") else {}
                return Component(name, class_name or fields.text("_class_name"), **facts)
            if fields.raw("base_dim") is not None:
                part, hidden = video_autoencoder(fields), fields.count("base_dim")
            else:
                part, widths = autoencoder(fields), _widths(fields)
                hidden = widths[:2][-1]
            facts = {"leaf_element_count": _leaf(part.tensors), "hidden_size": hidden}
            facts |= {"token_pixels": 1, "latent_elements": 0}
            return Component(name, class_name or fields.text("_class_name"), part.element_count, **facts)
        kind = fields.text("model_type", default=fields.text("_class_name"))
        reader = reader_for(kind) if kind else None
        if reader is None:
            raise UnknownAnatomy(f"architecture '{shown(kind)}' is not described yet")
        anatomy = reader(Fields(with_described_classes(config, kind), name))
        class_name = class_name or architecture_of(fields) or fields.text("_class_name")
        if any(t.component == "denoiser" for t in anatomy.tensors):  # a second one, for other steps
            facts = {"leaf_element_count": _leaf(anatomy.tensors), **denoiser_widths(fields)}
            facts["width"] = _block_width(anatomy)
            return Component(name, class_name, anatomy.loaded_element_count, **facts)
        facts = {"leaf_element_count": _leaf(anatomy.tensors), "hidden_size": anatomy.hidden_size}
        facts["width"] = _block_width(anatomy)
        facts["head_count"] = max((a.head_count for a in anatomy.attention), default=None)
        # (what it writes for every token, whether its pipeline reads it or not)
        writes = anatomy.is_head_tied or any(t.tensor_class == "head" for t in anatomy.tensors)
        facts["text_width"] = anatomy.vocab_size if writes else None
        # (a language model hands over the states of its layers, so that their number tells)
        facts["plan"] = f"{anatomy.layer_count} layers" if anatomy.layer_count else None
        return Component(name, class_name, anatomy.loaded_element_count, tensors=tuple(anatomy.tensors), **facts)
    except (UnknownAnatomy, ContradictoryConfig) as reason:
        return Component(name, class_name, None, str(reason))


def _widths(fields: Fields) -> list[int]:
    """Channels of each stage."""
    widths = sizes(fields, "block_out_channels", least=1)
    if not widths:
        raise ContradictoryConfig(f"{fields.where}.block_out_channels is an empty list")
    return widths


def autoencoder(fields: Fields) -> Part:
    """AutoencoderKL of Stable Diffusion and FLUX: residual blocks that halve and double the image, attention in the middle."""
    kind = fields.text("_class_name")
    if kind not in ("AutoencoderKL", "AutoencoderKLFlux2"):
        raise UnknownAnatomy(f"autoencoder '{shown(kind)}' is not described yet")
    widths, each = _widths(fields), fields.repeats("layers_per_block", default=2, least=1)
    latent, image = fields.count("latent_channels"), fields.count("in_channels", default=3)
    part = Part("vae", "other")
    part.conv(widths[0], image, 3, 3)
    for before, width, last in zip([widths[0], *widths], widths, [False] * (len(widths) - 1) + [True], strict=False):
        for block in range(each):
            _residual(part, width if block else before, width)
        if not last:
            part.conv(width, width, 3, 3)
    for first in (widths[-1], latent):
        if first == latent:
            part.conv(widths[-1], latent, 3, 3)
        _residual(part, widths[-1], widths[-1])
        _residual(part, widths[-1], widths[-1])
        if fields.flag("mid_block_add_attention", default=True):
            part.norm(widths[-1])
            part.linear("attention", widths[-1], widths[-1], count=4)
        if first != latent:
            part.norm(widths[-1])
            part.conv(2 * latent, widths[-1], 3, 3)
    rising = widths[::-1]
    for before, width, last in zip([rising[0], *rising], rising, [False] * (len(rising) - 1) + [True], strict=False):
        for block in range(each + 1):
            _residual(part, width if block else before, width)
        if not last:
            part.conv(width, width, 3, 3)
    part.norm(widths[0])
    part.conv(image, widths[0], 3, 3)
    if fields.flag("use_quant_conv", default=True):
        part.conv(2 * latent, 2 * latent, 1, 1)
    if fields.flag("use_post_quant_conv", default=True):
        part.conv(latent, latent, 1, 1)
    return part


def video_autoencoder(fields: Fields) -> Part:
    """AutoencoderKL of Wan and Qwen-Image: the same in three dimensions, where some steps halve the frames too."""
    kind = fields.text("_class_name")
    if kind not in ("AutoencoderKLWan", "AutoencoderKLQwenImage") or fields.flag("is_residual"):
        raise UnknownAnatomy(f"autoencoder '{shown(kind)}' is not described yet")
    base, latent = fields.count("base_dim"), fields.count("z_dim")
    image, blocks = (
        fields.count("in_channels", "input_channels", default=3),
        fields.repeats("num_res_blocks", default=2, least=1),
    )
    widths, halved = [base * m for m in sizes(fields, "dim_mult", least=1)], fields.items("temperal_downsample") or []
    if len(halved) != len(widths) - 1 or (fields.items("attn_scales") or []):
        raise UnknownAnatomy("the steps of this autoencoder are not described yet")
    part = Part("vae", "other")
    part.conv(base, image, 3, 3, 3)
    for before, width, step in zip([base, *widths], widths, [*halved, None], strict=False):
        for block in range(blocks):
            _residual_video(part, width if block else before, width)
        if step is not None:
            part.conv(width, width, 3, 3)
            if step:
                part.conv(width, width, 3, 1, 1)
    for _ in range(2):  # the middle of the encoder and of the decoder
        for _ in range(2):
            _residual_video(part, widths[-1], widths[-1])
        part.vector(widths[-1])
        part.conv(3 * widths[-1], widths[-1], 1, 1)
        part.conv(widths[-1], widths[-1], 1, 1)
    part.vector(widths[-1])
    part.conv(2 * latent, widths[-1], 3, 3, 3)
    part.conv(2 * latent, 2 * latent, 1, 1, 1)
    part.conv(latent, latent, 1, 1, 1)
    part.conv(widths[-1], latent, 3, 3, 3)
    before = widths[-1]
    for width, step in zip(widths[::-1], [*halved[::-1], None], strict=True):
        for block in range(blocks + 1):
            _residual_video(part, width if block else before, width)
        before = width // 2
        if step is not None:
            part.conv(before, width, 3, 3)
            if step:
                part.conv(2 * width, width, 3, 1, 1)
    part.vector(widths[0])
    part.conv(image, widths[0], 3, 3, 3)
    return part


def _residual_video(part: Part, inputs: int, outputs: int) -> None:
    part.vector(inputs)
    part.conv(outputs, inputs, 3, 3, 3)
    part.vector(outputs)
    part.conv(outputs, outputs, 3, 3, 3)
    if inputs != outputs:
        part.conv(outputs, inputs, 1, 1, 1)


def _residual(part: Part, inputs: int, outputs: int) -> None:
    """Two norms and two convolutions, and a third where the width changes."""
    part.norm(inputs)
    part.conv(outputs, inputs, 3, 3)
    part.norm(outputs)
    part.conv(outputs, outputs, 3, 3)
    if inputs != outputs:
        part.conv(outputs, inputs, 1, 1)
