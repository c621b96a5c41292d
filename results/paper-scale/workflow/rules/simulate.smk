# Run blocks: consecutive seeds of one (environment, agent, ensemble size, horizon).
rule simulate:
    input:
        lambda wildcards: block(wildcards).inputs,
    output:
        run="results/{scale}/runs/{environment}/{agent}/M{ensemble_size}/T{horizon}/seeds{first}-{last}.nc",
        provenance="results/{scale}/runs/{environment}/{agent}/M{ensemble_size}/T{horizon}/seeds{first}-{last}.json",
    log:
        "logs/{scale}/simulate/{environment}/{agent}/M{ensemble_size}/T{horizon}/seeds{first}-{last}.log",
    benchmark:
        "logs/{scale}/benchmarks/simulate/{environment}/{agent}/M{ensemble_size}/T{horizon}/seeds{first}-{last}.tsv"
    priority: priority_of
    conda:
        "../../environment.yml"
    resources:
        mem_mb=memory_of,
        runtime=240,
        gpu=lambda wildcards: int(block(wildcards).spec["device"] == "cuda"),
    params:
        spec=lambda wildcards: canonical_json(block(wildcards).spec),
        code=lambda wildcards: fingerprint(*block(wildcards).code),
    message:
        "simulate {wildcards.environment}, {wildcards.agent}, M={wildcards.ensemble_size}, seeds {wildcards.first}-{wildcards.last}"
    shell:
        "python -m ensemblepp --threads {threads} simulate --spec {params.spec:q} --code {params.code}"
        " --output {output.run:q} 2> {log:q}"
