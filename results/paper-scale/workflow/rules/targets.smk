# What was asked for on the command line, before Snakemake looks for rules that make it; after all rules are known.
FAULTS = [fault for target in asked_for() for fault in target_faults(target)]
if FAULTS:
    print("\n".join(f"error: {fault}" for fault in FAULTS), file=sys.stderr)
    sys.exit(1)
