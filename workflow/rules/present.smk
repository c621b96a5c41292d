# Figures and tables from a study's dataset; each has a caption of its own name in workflow/report.
localrules:
    figure,
    table,


def study_title(wildcards):
    return STUDIES[wildcards.study].title


def seeds(wildcards):
    return len(STUDIES[wildcards.study].scales[CONFIG.scale].seed_list())


def horizon(wildcards):
    return STUDIES[wildcards.study].scales[CONFIG.scale].horizon


rule figure:
    input:
        RESULTS + "/datasets/{study}.nc",
    output:
        pdf=RESULTS + "/figures/{study}-{figure}.pdf",
        png=report(
            RESULTS + "/figures/{study}-{figure}.png",
            caption="../report/{figure}.rst",
            category="Figures",
            labels={"study": "{study}", "figure": "{figure}"},
        ),
    params:
        code=lambda wildcards: fingerprint("ensemblepp.figures", f"ensemblepp.figures.{wildcards.figure}"),
        seeds=seeds,
        horizon=horizon,
        title=study_title,
    log:
        "logs/figure/" + CONFIG.scale + "/{study}-{figure}.log",
    benchmark:
        "logs/benchmarks/figure/" + CONFIG.scale + "/{study}-{figure}.tsv"
    resources:
        mem_mb=1000,
        runtime=10,
    conda:
        "../../environment.yml"
    shell:
        "python -m ensemblepp figure --name {wildcards.figure} --dataset {input:q} {output:q} 2> {log:q}"


rule table:
    input:
        RESULTS + "/datasets/{study}.nc",
    output:
        csv=RESULTS + "/tables/{study}-{table}.csv",
        md=RESULTS + "/tables/{study}-{table}.md",
        tex=RESULTS + "/tables/{study}-{table}.tex",
        html=report(
            RESULTS + "/tables/{study}-{table}.html",
            caption="../report/{table}.rst",
            category="Tables",
            labels={"study": "{study}", "table": "{table}"},
        ),
    params:
        code=lambda wildcards: fingerprint("ensemblepp.tables", f"ensemblepp.tables.{wildcards.table}"),
        seeds=seeds,
        horizon=horizon,
        title=study_title,
    log:
        "logs/table/" + CONFIG.scale + "/{study}-{table}.log",
    benchmark:
        "logs/benchmarks/table/" + CONFIG.scale + "/{study}-{table}.tsv"
    resources:
        mem_mb=1000,
        runtime=10,
    conda:
        "../../environment.yml"
    shell:
        "python -m ensemblepp table --name {wildcards.table} --dataset {input:q} {output:q} 2> {log:q}"
