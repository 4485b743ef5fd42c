"""Counts what one forward pass holds, of classes that were run whole: the truth for tables/facts/forward_pass.csv.

    pip install -e '.[oracle]' chronos-forecasting einops timm torchvision    # and the sources of UniDepth and Kronos on the path
    python tests/oracle/count_forward_passes.py                 # all rows of forward_passes.csv that have no peak yet
    python tests/oracle/count_forward_passes.py --again chronos # rows of models whose id or type holds this, anew

Configs are those of the snapshot, a row's `tokens` what the class makes of its input (patches of a series, text), its `height` and `width` those of
a picture. Peaks are bytes of live storage beside the parameters, with what convolutions work in (hollow.Convolving): what is fed in and
what comes out count, too. tests/oracle/fit_forward_passes.py makes the table of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pass_packages
from count_sound_classes import _empty
from rows import Row, configs, count_rows

ROWS = Path(__file__).with_name("forward_passes.csv")
Run = tuple  # the class, what runs it, and what it is given


def said(model_id: str) -> dict:
    return {k: v for k, v in configs()[model_id].items() if k not in ("model_type", "architectures", "dtype")}


def chronos(row: Row, dtype) -> Run:
    """As its pipeline calls it: numbers in fp32, the whole horizon that it was made for at once."""
    import torch
    import transformers
    from chronos.chronos2.config import Chronos2CoreConfig
    from chronos.chronos2.model import Chronos2Model
    from chronos.chronos_bolt import ChronosBoltModelForForecasting

    is_second = "Chronos2Model" in configs()[row["model_id"]]["architectures"]
    kind, settings = (
        (Chronos2Model, Chronos2CoreConfig) if is_second else (ChronosBoltModelForForecasting, transformers.T5Config)
    )
    model = _empty(kind, settings(**said(row["model_id"])), dtype)
    told = model.config.chronos_config
    steps = (int(row["tokens"]) - 1) * told["input_patch_size"]
    more = {"num_output_patches": told["max_output_patches"]} if is_second else {}
    return model, lambda: model(torch.zeros(int(row["sequences"]), steps), **more).quantile_preds.float()


def _words(row: Row) -> dict:
    """A text whose letters all count."""
    import torch

    text = torch.zeros(int(row["sequences"]), int(row["tokens"]), dtype=torch.long)
    return {"input_ids": text, "attention_mask": torch.ones_like(text)}


def _picture(row: Row, dtype, channels: int = 3) -> dict:
    import torch

    sides = int(row["height"]), int(row["width"])
    return {"pixel_values": torch.zeros(int(row["sequences"]), channels, *sides, dtype=dtype)}


def _with_words(row: Row, dtype) -> dict:
    return _picture(row, dtype) | _words(row)


def _with_queries(row: Row, dtype) -> dict:
    """Each picture is searched for as many names as are asked, here sixteen of as many tokens."""
    import torch

    words = torch.zeros(int(row["sequences"]) * QUERIES, QUERIES, dtype=torch.long)
    return _picture(row, dtype) | {"input_ids": words, "attention_mask": torch.ones_like(words)}


def _laid_out(row: Row, dtype) -> dict:
    import torch

    words = _words(row)
    places = torch.zeros(*words["input_ids"].shape, 4, dtype=torch.long)
    return _picture(row, dtype) | words | {"bbox": places}


def _sound(row: Row, dtype) -> dict:
    import torch

    return {"input_values": torch.zeros(int(row["sequences"]), int(row["height"]), int(row["width"]), dtype=dtype)}


def _of_person(row: Row, dtype) -> dict:
    """Which of its experts: those of a data set."""
    import torch

    return _picture(row, dtype) | {"dataset_index": torch.zeros(int(row["sequences"]), dtype=torch.long)}


QUERIES = 16
# what classes of Transformers are given
GIVEN: dict[str, Callable[..., dict]] = {
    "audio-spectrogram-transformer": _sound,
    "clipseg": _with_words,
    "depth_anything": _picture,
    "esm": lambda row, _: _words(row),
    "fnet": lambda row, _: {"input_ids": _words(row)["input_ids"]},
    "grounding-dino": _with_words,
    "layoutlmv3": _laid_out,
    "mobilebert": lambda row, _: _words(row),
    "mobilevit": _picture,
    "owlv2": _with_queries,
    "rt_detr_v2": _picture,
    "table-transformer": _picture,
    "uvdoc": _picture,
    "vitmatte": lambda row, dtype: _picture(row, dtype, channels=4),
    "vitpose": _of_person,
    "yolos": _picture,
}


def library(row: Row, dtype) -> Run:
    import torch
    import transformers

    config = configs()[row["model_id"]]
    settings = transformers.AutoConfig.for_model(config["model_type"], **said(row["model_id"]))
    for field, value in vars(settings).items():
        if isinstance(value, tuple):  # which a config that was read has as a list
            setattr(settings, field, list(value))
    name = (config.get("architectures") or [transformers.AutoModel._model_mapping[type(settings)].__name__])[0]
    model = _empty(getattr(transformers, name), settings, dtype)
    with torch.no_grad():
        given = GIVEN[config["model_type"]](row, dtype)
    return model, lambda: model(**given), *given.values()


CLASSES: dict[str, Callable[..., Run]] = dict.fromkeys(GIVEN, library) | {"t5": chronos, "kronos": pass_packages.kronos}


def _type(row: Row) -> str:
    """Configs of Kronos name none."""
    return configs()[row["model_id"]].get("model_type", "kronos")


def hollowed(row: Row) -> tuple[int, int, str]:
    """Parameters of the class, its peak beside them, and what made that."""
    import hollow
    import torch

    dtype = {"2": torch.bfloat16, "4": torch.float32}[row["element_bytes"]]
    model, run, *given = CLASSES[_type(row)](row, dtype)
    count = sum({id(parameter): parameter.numel() for parameter in model.parameters()}.values())
    hollow.install_attention()
    with torch.no_grad(), hollow.Convolving() as tracker:
        for tensor in (*model.parameters(), *model.buffers(), *given):
            tracker.track(tensor)
        tracker.reset_peak()
        run()
        return count, tracker.peak - count * int(row["element_bytes"]), tracker.at


def counted(row: Row) -> Row:
    import torch

    own = {"unidepth": pass_packages.unidepth}.get(_type(row), hollowed)
    count, peak, at = own(row)
    print(*(row[name] for name in ("model_id", "element_bytes", "sequences", "tokens")), peak, at, flush=True)
    return {
        "parameter_count": str(count),
        "peak_bytes": str(peak),
        "stage": at.partition(" ")[0].removeprefix("aten.").removesuffix(".default"),
        "versions": f"torch {torch.__version__.split('+')[0]}",
    }


if __name__ == "__main__":
    count_rows(ROWS, __doc__, lambda row: f"{row['model_id']} {_type(row)}", counted)
