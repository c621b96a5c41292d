# The package for this workflow and its jobs, and the configuration files, read strictly.
import gc
import os
import sys
from pathlib import Path

# what a plan is made of stays, and to look through it after every 700 new objects is a fifth of all planning
gc.set_threshold(10_000)

# the package and the Python of this snakemake, wherever it was started from
SOURCE = str(Path(workflow.basedir, "src"))
sys.path.insert(0, SOURCE)
for variable, folder in {
    "PATH": str(Path(sys.executable).parent),
    "PYTHONPATH": SOURCE,
}.items():
    others = os.environ.get(variable)
    os.environ.update({variable: f"{folder}{os.pathsep}{others}" if others else folder})

from snakemake.utils import update_config

from ensemblepp.config.checks import CONFIG_FILES
from ensemblepp.config.loading import read_yaml
from ensemblepp.errors import ConfigError, in_lines

try:
    VALUES = {path: read_yaml(path) for path in [*CONFIG_FILES, *workflow.config_settings.configfiles]}
except ConfigError as error:
    print(in_lines(error), file=sys.stderr)
    sys.exit(1)

# What `configfile:` would do, whose reader of YAML takes half a second at every start; it reads the first, which is short,
# and puts what the command line says over them all.
if not workflow.modifier.skip_configfile:
    for path in CONFIG_FILES[1:]:
        workflow.configfiles.append(path)
        update_config(config, VALUES[path])
