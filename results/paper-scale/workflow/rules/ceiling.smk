# What could be learnt of embedded posts, in every picture of moderation.
rule ceiling:
    input:
        "data/embeddings/{model}/{dataset}-{posts}.nc",
    output:
        "data/ceilings/{model}/{dataset}-{posts}-{scaling}.nc",
    log:
        "logs/data/ceiling/{model}/{dataset}-{posts}-{scaling}.log",
    benchmark:
        "logs/data/benchmarks/ceiling/{model}/{dataset}-{posts}-{scaling}.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        code=fingerprint("ensemblepp.environments.ceiling"),
    message:
        "supervised ceiling of {wildcards.posts} posts of {wildcards.dataset} by {wildcards.model}, scaling {wildcards.scaling}"
    shell:
        "python -m ensemblepp --threads {threads} ceiling --embeddings {input:q} --scaling {wildcards.scaling}"
        " --code {params.code} --output {output:q} 2> {log:q}"
