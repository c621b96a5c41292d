# Run blocks to one dataset per study.
rule aggregate:
    input:
        run_files,
    output:
        "results/{scale}/datasets/{study}.nc",
    log:
        "logs/{scale}/aggregate/{study}.log",
    benchmark:
        "logs/{scale}/benchmarks/aggregate/{study}.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=8000,
        runtime=30,
    params:
        # not the list of inputs: at paper scale it would not fit on a command line
        part=lambda wildcards: canonical_json(CONFIG.part(wildcards.study)),
        code=fingerprint("ensemblepp.aggregate"),
    message:
        "aggregate study {wildcards.study}"
    shell:
        "python -m ensemblepp aggregate --study {wildcards.study} --config {params.part:q} --output {output:q} 2> {log:q}"
