# The entry that a plain `snakemake` finds; the Snakemake workflow catalog finds workflow/Snakefile.
include: "workflow/Snakefile"


# An included file never sets the default target, so it is named again here.
rule default:
    default_target: True
    input:
        rules.all.input,
    message:
        f"all of scale {CONFIG.scale} is there"
