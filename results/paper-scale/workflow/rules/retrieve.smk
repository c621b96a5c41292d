# Raw files from the mirror or their sources; checked; to prepared data.
rule retrieve:
    output:
        "data/raw/{folder}/{file}",
    log:
        "logs/data/retrieve/{folder}/{file}.log",
    benchmark:
        "logs/data/benchmarks/retrieve/{folder}/{file}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    resources:
        mem_mb=500,
        runtime=30,
    message:
        "retrieve {wildcards.folder}/{wildcards.file}"
    shell:
        "python -m ensemblepp retrieve --file {wildcards.folder}/{wildcards.file} --output {output:q} 2> {log:q}"


# A rule of its own: snakemake deletes the outputs of a job before it starts, so a faulty raw file must be found before
# the job that writes the prepared data does.
rule check:
    input:
        raw_files,
    output:
        "data/checked/{dataset}.json",
    log:
        "logs/data/check/{dataset}.log",
    benchmark:
        "logs/data/benchmarks/check/{dataset}.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        declared=declared_option,
        code=data_code,
    message:
        "check the raw files of {wildcards.dataset}"
    shell:
        "python -m ensemblepp check-data --dataset {wildcards.dataset} {params.declared:q} --code {params.code} --output {output:q} {input:q} 2> {log:q}"


rule prepare:
    input:
        raw=raw_files,
        checked="data/checked/{dataset}.json",
    output:
        "data/prepared/{dataset}.nc",
    log:
        "logs/data/prepare/{dataset}.log",
    benchmark:
        "logs/data/benchmarks/prepare/{dataset}.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        declared=declared_option,
        code=data_code,
    message:
        "prepare {wildcards.dataset}"
    shell:
        "python -m ensemblepp prepare --dataset {wildcards.dataset} {params.declared:q} --code {params.code} --output {output:q}"
        " {input.raw:q} 2> {log:q}"
