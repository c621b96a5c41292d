"""What pyproject.toml cannot say: a wheel holds the shipped configuration, whose one source is config/ beside the Snakefile."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

#: As `ensemblepp.config.shipped` looks for it.
SHIPPED = ("environments.yaml", "agents.yaml")


class WithConfiguration(build_py):
    """The package's files, and copies of the configuration's; an editable installation reads those where they are."""

    def run(self):
        super().run()
        if not self.editable_mode:
            for source, target in self._copies().items():
                self.mkpath(str(target.parent))
                self.copy_file(str(source), str(target))

    def get_outputs(self, include_bytecode=1):
        return [*super().get_outputs(include_bytecode), *map(str, self._copies().values())]

    def _copies(self):
        return {Path("config", name): Path(self.build_lib, "ensemblepp/config/files", name) for name in SHIPPED}


setup(cmdclass={"build_py": WithConfiguration})
