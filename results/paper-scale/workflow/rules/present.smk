# Figures and tables of a study's dataset: a rule for each study, since the outputs differ and the path of a caption takes no
# wildcard. One label each: the report makes a toggle of a second label that happens to have two values, and its page breaks.
for study, declared in STUDIES.items():
    made = {
        "figure": {name: f"results/{{scale}}/figures/{study}-{name}" for name in declared.figures},
        "table": {name: f"results/{{scale}}/tables/{study}-{name}" for name in declared.tables},
    }
    shown = {("figure", "png"), ("table", "html")}

    rule:
        name:
            f"present_{study.replace('-', '_')}"
        input:
            f"results/{{scale}}/datasets/{study}.nc",
        output:
            [
                (
                    report(
                        f"{stem}.{suffix}",
                        caption=caption(f"{kind}s", name),
                        category=f"{kind.capitalize()}s",
                        labels={kind: f"{study}: {name.replace('_', ' ')}"},
                    )
                    if (kind, suffix) in shown
                    else f"{stem}.{suffix}"
                )
                for kind, stems in made.items()
                for name, stem in stems.items()
                for suffix in ARTEFACTS[f"{kind}s"]
            ],
        log:
            f"logs/{{scale}}/present/{study}.log",
        benchmark:
            f"logs/{{scale}}/benchmarks/present/{study}.tsv"
        localrule: True
        conda:
            "../../environment.yml"
        resources:
            mem_mb=4000,
            runtime=10,
        params:
            study=study,
            figures=presented(declared, "figures"),
            tables=presented(declared, "tables"),
            code=fingerprint(*presentation_code(declared)),
            # for the captions
            seeds=len(declared.scales[CONFIG.scale].seed_list()),
            horizon=declared.scales[CONFIG.scale].horizon,
            own=own_words(declared),
        message:
            "draw and tabulate study {params.study}"
        shell:
            "python -m ensemblepp present --dataset {input:q} --folder results/{wildcards.scale}"
            " --figures {params.figures:q} --tables {params.tables:q} --code {params.code} 2> {log:q}"


# A target for each study: `snakemake study_laws_d10` makes all that belongs to it, and nothing else.
for study in STUDIES:

    rule:
        name:
            f"study_{study.replace('-', '_')}"
        input:
            complete(study),
        localrule: True
        params:
            study=study,
        message:
            "study {params.study} is complete"
