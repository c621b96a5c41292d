# The package for this workflow and its jobs, and the configuration files, read strictly before Snakemake reads them.
import os
import sys
from pathlib import Path

# the package and the Python of this snakemake, wherever it was started from
SOURCE = str(Path(workflow.basedir, "src"))
sys.path.insert(0, SOURCE)
for variable, folder in {
    "PATH": str(Path(sys.executable).parent),
    "PYTHONPATH": SOURCE,
}.items():
    others = os.environ.get(variable)
    os.environ.update({variable: f"{folder}{os.pathsep}{others}" if others else folder})

from ensemblepp.config.checks import CONFIG_FILES
from ensemblepp.config.loading import read_yaml
from ensemblepp.errors import ConfigError, in_lines

try:
    for path in [*CONFIG_FILES, *workflow.config_settings.configfiles]:
        read_yaml(path)
except ConfigError as error:
    print(in_lines(error), file=sys.stderr)
    sys.exit(1)
