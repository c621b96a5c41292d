# Raw files from the mirror or their sources; checked; to prepared data.
from ensemblepp.data import load as load_dataset


localrules:
    retrieve,


rule retrieve:
    output:
        "data/raw/{folder}/{file}",
    log:
        "logs/retrieve/{folder}/{file}.log",
    benchmark:
        "logs/benchmarks/retrieve/{folder}/{file}.tsv"
    resources:
        mem_mb=500,
        runtime=30,
    conda:
        "../../environment.yml"
    shell:
        "python -m ensemblepp retrieve --file {wildcards.folder}/{wildcards.file} --output {output:q} 2> {log:q}"


def raw_files(wildcards):
    return [f"data/raw/{file.name}" for file in load_dataset(wildcards.dataset).RAW]


# A rule of its own: snakemake deletes the outputs of a job before it starts, so a faulty raw file must be found before
# the job that writes the prepared data does.
rule check:
    input:
        raw_files,
    output:
        "data/checked/{dataset}.json",
    params:
        code=lambda wildcards: fingerprint(f"ensemblepp.data.{wildcards.dataset}"),
    log:
        "logs/check/{dataset}.log",
    benchmark:
        "logs/benchmarks/check/{dataset}.tsv"
    resources:
        mem_mb=1000,
        runtime=10,
    conda:
        "../../environment.yml"
    shell:
        "python -m ensemblepp check --dataset {wildcards.dataset} --output {output:q} {input:q} 2> {log:q}"


rule prepare:
    input:
        raw=raw_files,
        checked="data/checked/{dataset}.json",
    output:
        "data/prepared/{dataset}.nc",
    params:
        code=lambda wildcards: fingerprint(f"ensemblepp.data.{wildcards.dataset}"),
    log:
        "logs/prepare/{dataset}.log",
    benchmark:
        "logs/benchmarks/prepare/{dataset}.tsv"
    resources:
        mem_mb=1000,
        runtime=10,
    conda:
        "../../environment.yml"
    shell:
        "python -m ensemblepp prepare --dataset {wildcards.dataset} --output {output:q} {input.raw:q} 2> {log:q}"
