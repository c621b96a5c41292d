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
        plan=lambda wildcards: packed(plan(CONFIG, wildcards.study)),
        code=fingerprint("ensemblepp.runs.aggregate"),
    message:
        "aggregate study {wildcards.study}"
    shell:
        "python -m ensemblepp aggregate --plan {params.plan:q} --code {params.code} --output {output:q} 2> {log:q}"
