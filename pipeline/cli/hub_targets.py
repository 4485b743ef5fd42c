"""What a person sees of a release that goes to the Hub."""

from __future__ import annotations

from huggingface_hub.utils import get_token_to_send

from pipeline.base.failures import Failure, say
from pipeline.base.progress import bar
from pipeline.cli import releases
from pipeline.press.publish import alone
from pipeline.release import build, cards
from pipeline.release.hub import Target


def send(command: str, repo: str) -> None:
    """Brings a data set (`to-hub-dataset`) or a Space (`to-space`) up to date."""
    if get_token_to_send(None) is None:
        raise Failure("no token: put one that may write into HF_TOKEN, or sign in with `hf auth login`")
    is_space = command == "to-space"
    target = Target(repo, "space" if is_space else "dataset", progress=bar)
    with alone(releases.BUILD):
        whole = build.whole(releases.BUILD, bar)
        files = whole.of_site() if is_space else whole.of_tables()
        card = cards.of_space(whole) if is_space else cards.of_dataset(whole, repo)
        done = target.send(files, card, whole.data_version)
    if not done.commit_count:
        say(f"{repo} is {whole.data_version} already")
        return
    how = "one commit" if done.commit_count == 1 else f"a pull request of {done.commit_count} commits, merged"
    say(
        f"{repo} is {whole.data_version}: {done.file_count:,} files sent ({done.byte_count:,} bytes), {done.deleted_count:,} deleted, in {how}"
    )
