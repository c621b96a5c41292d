# Figures and tables from a study's dataset: a rule for each, since the path of a caption takes no wildcard. One label each:
# the report makes a toggle of a second label that happens to have two values, and its page then breaks.
for figure in declared("figures"):

    rule:
        name:
            f"figure_{figure}"
        input:
            "results/{scale}/datasets/{study}.nc",
        output:
            pdf=f"results/{{scale}}/figures/{{study}}-{figure}.pdf",
            png=report(
                f"results/{{scale}}/figures/{{study}}-{figure}.png",
                caption=f"../report/{figure}.rst",
                category="Figures",
                labels={"figure": f"{{study}}: {figure.replace('_', ' ')}"},
            ),
        log:
            f"logs/{{scale}}/figures/{{study}}-{figure}.log",
        benchmark:
            f"logs/{{scale}}/benchmarks/figures/{{study}}-{figure}.tsv"
        localrule: True
        conda:
            "../../environment.yml"
        resources:
            mem_mb=4000,
            runtime=10,
        params:
            name=figure,
            code=fingerprint("ensemblepp.figures", f"ensemblepp.figures.{figure}"),
            # for the caption
            seeds=lambda wildcards: len(grid(wildcards).seed_list()),
            horizon=lambda wildcards: grid(wildcards).horizon,
        message:
            "draw figure {params.name} of study {wildcards.study}"
        shell:
            "python -m ensemblepp figure --name {params.name} --dataset {input:q} {output:q} 2> {log:q}"


for table in declared("tables"):

    rule:
        name:
            f"table_{table}"
        input:
            "results/{scale}/datasets/{study}.nc",
        output:
            csv=f"results/{{scale}}/tables/{{study}}-{table}.csv",
            md=f"results/{{scale}}/tables/{{study}}-{table}.md",
            tex=f"results/{{scale}}/tables/{{study}}-{table}.tex",
            html=report(
                f"results/{{scale}}/tables/{{study}}-{table}.html",
                caption=f"../report/{table}.rst",
                category="Tables",
                labels={"table": f"{{study}}: {table.replace('_', ' ')}"},
            ),
        log:
            f"logs/{{scale}}/tables/{{study}}-{table}.log",
        benchmark:
            f"logs/{{scale}}/benchmarks/tables/{{study}}-{table}.tsv"
        localrule: True
        conda:
            "../../environment.yml"
        resources:
            mem_mb=4000,
            runtime=10,
        params:
            name=table,
            code=fingerprint("ensemblepp.tables", f"ensemblepp.tables.{table}"),
            # for the caption
            seeds=lambda wildcards: len(grid(wildcards).seed_list()),
            horizon=lambda wildcards: grid(wildcards).horizon,
        message:
            "make table {params.name} of study {wildcards.study}"
        shell:
            "python -m ensemblepp table --name {params.name} --dataset {input:q} {output:q} 2> {log:q}"


# A target for each study: `snakemake study_laws_d10` makes all that belongs to it, and nothing else.
for study in STUDIES:

    rule:
        name:
            f"study_{study.replace('-', '_')}"
        input:
            CONFIG.files(study),
        localrule: True
