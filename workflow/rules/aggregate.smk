# Run blocks to one dataset per study.
rule aggregate:
    input:
        lambda wildcards: [block.path for block in CONFIG.blocks(wildcards.study)],
    output:
        RESULTS + "/datasets/{study}.nc",
    params:
        # not the list of inputs: at paper scale it would not fit on a command line
        part=lambda wildcards: canonical_json(CONFIG.part(wildcards.study)),
        code=fingerprint("ensemblepp.aggregate"),
    log:
        "logs/aggregate/" + CONFIG.scale + "/{study}.log",
    benchmark:
        "logs/benchmarks/aggregate/" + CONFIG.scale + "/{study}.tsv"
    resources:
        mem_mb=4000,
        runtime=30,
    conda:
        "../../environment.yml"
    shell:
        "python -m ensemblepp aggregate --study {wildcards.study} --config {params.part:q} --output {output:q} 2> {log:q}"
