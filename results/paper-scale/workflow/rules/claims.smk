# The paper's claims, decided by the datasets of the scale. An edited claim makes the ledger anew, and nothing else.
rule ledger:
    input:
        lambda _wildcards: list(ledger.datasets(CONFIG, missing_studies()).values()),
    output:
        multiext("results/{scale}/claims/ledger", *(f".{kind}" for kind in LEDGER_SUFFIXES)),
    log:
        "logs/{scale}/claims/ledger.log",
    benchmark:
        "logs/{scale}/benchmarks/claims/ledger.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        plan=lambda _wildcards: canonical_json(ledger.plan(CONFIG, missing_studies())),
        code=fingerprint(*LEDGER_CODE),
    message:
        "decide the claims"
    shell:
        "python -m ensemblepp claims --plan {params.plan:q} --code {params.code} --output {output:q} 2> {log:q}"
