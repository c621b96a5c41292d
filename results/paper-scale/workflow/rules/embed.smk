# Language models into local folders, once; posts to vectors, once.
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
        spec=lambda wildcards: canonical_json(CONFIG.language_models[wildcards.model].model_dump()),
        code=fingerprint("ensemblepp.language_models"),
        folder=subpath(output[0], parent=True),
    message:
        "bring language model {wildcards.model} to data/models"
    shell:
        "python -m ensemblepp language-model --spec {params.spec:q} --folder {params.folder:q} 2> {log:q}"


rule embed:
    input:
        posts="data/prepared/{dataset}.nc",
        model="data/models/{model}/config.json",
    output:
        "data/embeddings/{model}/{dataset}-{first}-{last}.nc",
    log:
        "logs/data/embed/{model}/{dataset}-{first}-{last}.log",
    benchmark:
        "logs/data/benchmarks/embed/{model}/{dataset}-{first}-{last}.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=3000,
        runtime=60,
        gpu=1 if CONFIG.device == "cuda" else 0,
    params:
        folder=subpath(input.model, parent=True),
        pooling=lambda wildcards: CONFIG.language_models[wildcards.model].pooling,
        max_tokens=lambda wildcards: CONFIG.language_models[wildcards.model].max_tokens,
        device=CONFIG.device,
        code=fingerprint("ensemblepp.embed"),
    message:
        "embed posts {wildcards.first}-{wildcards.last} with {wildcards.model}"
    shell:
        "python -m ensemblepp --threads {threads} embed --prepared {input.posts:q} --folder {params.folder:q}"
        " --first {wildcards.first} --last {wildcards.last} --pooling {params.pooling} --max-tokens {params.max_tokens}"
        " --device {params.device} --output {output:q} 2> {log:q}"
