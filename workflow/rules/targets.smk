# What was asked for on the command line, before Snakemake looks for rules that make it.
from snakemake.cli import get_argument_parser

from ensemblepp.config.targets import faults_of_wildcards, unknown


def target_faults(target):
    """What is wrong with a target; nothing of a file that lies there, or of one that only Snakemake can judge."""
    # `default` is defined in the file that includes all of these
    if target in {"default", *(rule.name for rule in workflow.rules)}:
        return []
    makers = [rule for rule in workflow.rules if rule.is_producer(target)]
    if makers:
        wildcards = makers[0].get_wildcards(target)
        return list(faults_of_wildcards(CONFIG, target, wildcards))
    if Path(target).exists():
        return []
    return [unknown(CONFIG, target, [rule.name for rule in workflow.rules if not rule.wildcard_names])]


def asked_for():
    """The targets on the command line of this process; Snakemake has not handed them on when it reads this."""
    if Path(sys.argv[0]).parent.name != "snakemake" and Path(sys.argv[0]).name != "snakemake":
        return []
    return get_argument_parser().parse_known_args(sys.argv[1:])[0].targets or []


FAULTS = [fault for target in asked_for() for fault in target_faults(target)]
if FAULTS:
    print("\n".join(f"error: {fault}" for fault in FAULTS), file=sys.stderr)
    sys.exit(1)
