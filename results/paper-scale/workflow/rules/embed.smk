# Language models into local folders, once; posts to vectors or to tokens, once.
rule language_model:
    output:
        "data/models/{model}/config.json",
    log:
        "logs/data/language_model/{model}.log",
    benchmark:
        "logs/data/benchmarks/language_model/{model}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    resources:
        mem_mb=3000,
        runtime=60,
    params:
        spec=lambda wildcards: canonical_json(CONFIG.language_models[wildcards.model].brought()),
        code=fingerprint("ensemblepp.text.language_models"),
        folder=subpath(output[0], parent=True),
    message:
        "bring language model {wildcards.model} to data/models"
    shell:
        "python -m ensemblepp language-model --spec {params.spec:q} --code {params.code} --folder {params.folder:q} 2> {log:q}"


rule embed:
    input:
        posts="data/prepared/{dataset}.nc",
        model="data/models/{model}/config.json",
    output:
        "data/embeddings/{model}/{dataset}-{posts}.nc",
    log:
        "logs/data/embed/{model}/{dataset}-{posts}.log",
    benchmark:
        "logs/data/benchmarks/embed/{model}/{dataset}-{posts}.tsv"
    # what waits for it takes longest to come
    priority: 2
    conda:
        "../../environment.yml"
    resources:
        mem_mb=lambda wildcards, threads: 3000 + 500 * (threads - 1),
        runtime=240,
        gpu=1 if CONFIG.device == "cuda" else 0,
    params:
        folder=subpath(input.model, parent=True),
        pooling=lambda wildcards: CONFIG.language_models[wildcards.model].pooling,
        max_tokens=lambda wildcards: CONFIG.language_models[wildcards.model].max_tokens,
        precision=lambda wildcards: precision.resolve(CONFIG.language_models[wildcards.model].precision, CONFIG.device),
        device=CONFIG.device,
        code=fingerprint("ensemblepp.text.embedding"),
    message:
        "embed {wildcards.posts} posts of {wildcards.dataset} with {wildcards.model}"
    shell:
        "python -m ensemblepp --threads {threads} embed --prepared {input.posts:q} --folder {params.folder:q}"
        " --posts {wildcards.posts} --pooling {params.pooling} --max-tokens {params.max_tokens}"
        " --precision {params.precision} --device {params.device} --code {params.code} --output {output:q} 2> {log:q}"


rule tokenise:
    input:
        posts="data/prepared/{dataset}.nc",
        model="data/models/{model}/config.json",
    output:
        "data/tokens/{model}/{dataset}-{posts}.nc",
    log:
        "logs/data/tokenise/{model}/{dataset}-{posts}.log",
    benchmark:
        "logs/data/benchmarks/tokenise/{model}/{dataset}-{posts}.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        folder=subpath(input.model, parent=True),
        max_tokens=lambda wildcards: CONFIG.language_models[wildcards.model].max_tokens,
        code=fingerprint("ensemblepp.text.tokens"),
    message:
        "tokenise {wildcards.posts} posts of {wildcards.dataset} for {wildcards.model}"
    shell:
        "python -m ensemblepp tokenise --prepared {input.posts:q} --folder {params.folder:q} --posts {wildcards.posts}"
        " --max-tokens {params.max_tokens} --code {params.code} --output {output:q} 2> {log:q}"
