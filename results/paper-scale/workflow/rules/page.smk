# The page that opens with the answer. An edit of a caption, or of the page's own code and style, makes it anew and nothing else.
rule page:
    input:
        lambda _wildcards: page.inputs(page_plan()),
    output:
        "results/{scale}/index.html",
    log:
        "logs/{scale}/page.log",
    benchmark:
        "logs/{scale}/benchmarks/page/page.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        plan=lambda _wildcards: canonical_json(page_plan()),
        code=fingerprint(*PAGE_CODE),
        words=lambda _wildcards: page_digest(page.caption_files(page_plan())),
    message:
        "write the page with claims, figures and tables"
    shell:
        "python -m ensemblepp page --plan {params.plan:q} --code {params.code} --output {output:q} 2> {log:q}"
