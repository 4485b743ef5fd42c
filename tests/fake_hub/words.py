"""What the Hub may be asked for, and the words in which it refuses."""

from __future__ import annotations

# Fields of `expand` for one model: ExpandModelProperty_T in huggingface_hub 2.4.0, hf_api.py.
ONE = [
    "author",
    "baseModels",
    "cardData",
    "childrenModelCount",
    "config",
    "createdAt",
    "disabled",
    "downloads",
    "downloadsAllTime",
    "evalResults",
    "gated",
    "gguf",
    "inference",
    "inferenceProviderMapping",
    "lastModified",
    "library_name",
    "likes",
    "mask_token",
    "model-index",
    "pipeline_tag",
    "private",
    "resourceGroup",
    "safetensors",
    "sha",
    "siblings",
    "spaces",
    "tags",
    "transformersInfo",
    "trendingScore",
    "usedStorage",
    "widgetData",
]
# Lists know three fewer: github.com/huggingface/huggingface_hub, pull request 3182, whose review names the server's own two lists.
LISTED = [name for name in ONE if name not in ("baseModels", "childrenModelCount", "usedStorage")]
# The Hub's words by status and code. 401 without a code is what it says of a repository that is gone or private to whoever sends no
# token, and `Invalid credentials …` of a token that it does not know: hf_raise_for_status in huggingface_hub 2.4.0, utils/_http.py.
SAID = {
    (401, ""): "Invalid username or password.",
    (401, "RepoNotFound"): "Repository not found",
    (404, "RepoNotFound"): "Repository not found",
    (404, "EntryNotFound"): "Entry not found",
    (404, "RevisionNotFound"): "Invalid rev id",
    (401, "GatedRepo"): "Access to this model is restricted. You must be authenticated to access it.",
    (403, "GatedRepo"): "Access to this model is restricted and you are not in the authorized list.",
}
UNKNOWN_TOKEN = "Invalid credentials in Authorization header"
