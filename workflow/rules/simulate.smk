# Run blocks: consecutive seeds of one (environment, agent, ensemble size, horizon).
def block(wildcards):
    return CONFIG.block(
        wildcards.environment,
        wildcards.agent,
        *(int(wildcards[name]) for name in ("ensemble_size", "horizon", "first", "last")),
    )


rule simulate:
    input:
        lambda wildcards: block(wildcards).inputs,
    output:
        run=RESULTS + "/runs/{environment}/{agent}/M{ensemble_size}/T{horizon}/seeds{first}-{last}.nc",
        provenance=RESULTS + "/runs/{environment}/{agent}/M{ensemble_size}/T{horizon}/seeds{first}-{last}.json",
    params:
        spec=lambda wildcards: canonical_json(block(wildcards).spec),
        code=lambda wildcards: fingerprint(*block(wildcards).modules),
    log:
        "logs/simulate/"
        + CONFIG.scale
        + "/{environment}/{agent}/M{ensemble_size}/T{horizon}/seeds{first}-{last}.log",
    benchmark:
        (
            "logs/benchmarks/simulate/"
            + CONFIG.scale
            + "/{environment}/{agent}/M{ensemble_size}/T{horizon}/seeds{first}-{last}.tsv"
        )
    resources:
        mem_mb=2000,
        runtime=240,
        gpu=lambda wildcards: int(block(wildcards).spec["device"] == "cuda"),
    conda:
        "../../environment.yml"
    shell:
        "python -m ensemblepp --threads {threads} simulate --spec {params.spec:q} --code {params.code}"
        " --output {output.run:q} 2> {log:q}"
