"""A real SLURM with one node on this machine, for end-to-end tests.

From Python, every `with` block of the same folder (in any process) shares one cluster, and the last to leave stops it:

    with LocalSlurm(cpus=4, gpus=2) as cluster:
        subprocess.run(["sbatch", ...], env=os.environ | cluster.environment)

By hand (`start` does nothing when all is up, and replaces what is missing when only a part is up):

    python tests/slurm/local_slurm.py start --gpus 2
    eval "$(python tests/slurm/local_slurm.py env)"
    sbatch ...
    python tests/slurm/local_slurm.py stop

It needs root on a Debian-like Linux (it works with SLURM 22.05 of Debian 12 and 24.11 of Debian 13), and installs the
SLURM and munge packages if they are missing. It needs neither systemd nor cgroups nor a host name that resolves.

Each start after a stop begins with an empty queue and job number 1; logs stay in the folder. There is no accounting:
`sacct` does not work, `squeue -t all` shows old jobs. The controller saves its state with a delay: after `kill -9` and
`start` it does not know what happened in the last five seconds or so.

Environment variables: LOCAL_SLURM_DIR is the folder for everything (/tmp/ensemblepp-slurm), LOCAL_SLURM_PORT the first
of two neighbouring TCP ports (16927).
"""

import argparse
import contextlib
import fcntl
import os
import re
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

NODE = "node1"
# program that tells whether the Debian package is there -> package
PACKAGES = {"slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client", "munged": "munge"}
DAEMONS = ("munged", "slurmctld", "slurmd")  # in the order in which they have to start
SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"  # a user's PATH may lack sbin
SYSTEM_CONF = Path("/etc/slurm/slurm.conf")
POLICY = Path("/usr/sbin/policy-rc.d")


class SlurmUnavailable(Exception):
    """This machine cannot run the test cluster; the message says why in one line."""


class LocalSlurm:
    """The cluster in one folder: a partition `main`, the default, and with `gpus` a second one, `gpu`.

    `cpus` may exceed what the machine has. `gpus` are pretend ones: SLURM hands them out and sets
    CUDA_VISIBLE_DEVICES, but there is nothing behind them.
    """

    def __init__(self, folder: str | Path | None = None, cpus: int = 4, gpus: int = 0, port: int | None = None):
        self.folder = Path(folder or os.environ.get("LOCAL_SLURM_DIR") or "/tmp/ensemblepp-slurm").absolute()
        # Sockets live below it, whose path may have 107 characters; slurm.conf knows no quoting.
        if not re.fullmatch(r"[\w./+-]{2,60}", str(self.folder), re.ASCII):
            raise ValueError(f"the folder of the test cluster needs a short path without special signs: {self.folder}")
        self.cpus = cpus
        self.gpus = gpus
        self.port = port or int(os.environ.get("LOCAL_SLURM_PORT") or 16927)
        self.conf = self.folder / "slurm.conf"
        self.munge_socket = self.folder / "munge.socket"
        # Jobs have it in their environment, and stop must not end those of a cluster in another folder.
        self.cluster_name = f"test{zlib.crc32(bytes(self.folder)):08x}"
        self.environment = {"SLURM_CONF": str(self.conf)}

    def __enter__(self) -> "LocalSlurm":
        with self._locked():
            self._start()
            self._users = (self.folder / "users").open("w")
            fcntl.flock(self._users, fcntl.LOCK_SH)
        return self

    def __exit__(self, *_: object) -> None:
        with self._locked(), self._users:
            try:
                fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # somebody else holds a share, and will be the last one out
                return
            self._stop()

    def start(self) -> None:
        """Start whatever is not running; raises SlurmUnavailable where that is impossible."""
        with self._locked():
            self._start()

    def stop(self) -> None:
        """End daemons and jobs, whoever uses them, and take back the link in /etc."""
        if self.folder.is_dir():
            with self._locked():
                self._stop()

    def pid(self, program: str) -> int | None:
        """The process of one of DAEMONS, or None."""
        try:
            pid = int((self.folder / f"{program}.pid").read_text())
        except (OSError, ValueError):
            return None
        return pid if self._runs(pid, program) else None

    def _runs(self, pid: int, program: str) -> bool:
        """Whether the process is that daemon of ours, not a later process with the number in a stale pid file."""
        try:
            name, *arguments = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        except OSError:
            return False
        return Path(name).name == program and str(self.folder) in " ".join(arguments)

    def _start(self) -> None:
        install_packages()
        fresh = not any(self.pid(program) for program in DAEMONS)
        try:
            self._link_system_conf()
            self._configure(fresh)
            self._launch(
                "munged",
                "--force",  # or it refuses a socket below /tmp, which everybody may write to
                f"--socket={self.munge_socket}",
                f"--key-file={self.folder}/munge.key",
                f"--pid-file={self.folder}/munged.pid",
                f"--log-file={self.folder}/munged.log",
                f"--seed-file={self.folder}/munged.seed",
                ready=self.munge_socket.is_socket,
            )
            self._launch("slurmctld", "-f", str(self.conf), ready=self._controller_answers)
            self._launch("slurmd", "-f", str(self.conf), "-N", NODE, ready=self._node_is_up)
        except BaseException:
            if fresh:
                self._stop()
            raise

    def _stop(self) -> None:
        # slurmd goes first, so that nothing new starts; its jobs would outlive it.
        self._end("slurmd")
        while leftovers := list(self._job_processes()):
            for pid in leftovers:
                send(signal.SIGKILL, pid)
            time.sleep(0.05)
        self._end("slurmctld")
        self._end("munged")
        if SYSTEM_CONF.is_symlink() and SYSTEM_CONF.readlink() == self.conf:
            SYSTEM_CONF.unlink()

    def _link_system_conf(self) -> None:
        """Make SYSTEM_CONF point to this cluster.

        Snakemake's executor inside a job (slurm-jobstep) removes SLURM_CONF before it calls srun, which then only
        finds the cluster through the default path.
        """
        if SYSTEM_CONF.is_symlink() and SYSTEM_CONF.readlink() == self.conf:
            return
        if SYSTEM_CONF.exists():
            raise SlurmUnavailable(f"{SYSTEM_CONF} belongs to another SLURM")
        SYSTEM_CONF.parent.mkdir(exist_ok=True)
        SYSTEM_CONF.unlink(missing_ok=True)  # a link into a folder that is gone
        SYSTEM_CONF.symlink_to(self.conf)

    def _configure(self, fresh: bool) -> None:
        """Write the files that the daemons read, or check that a running cluster has the settings asked for."""
        config = self._slurm_conf()
        if not fresh:
            if self.conf.read_text() != config:
                raise RuntimeError(f"the SLURM in {self.folder} runs with other settings: stop it first")
            return
        for name in ("slurmctld-state", "slurmd-spool"):
            shutil.rmtree(self.folder / name, ignore_errors=True)  # the jobs of an earlier cluster
            (self.folder / name).mkdir()
        self.conf.write_text(config)
        # Without cgroups, SLURM before 23.11 starts only when told of a version and not to mount anything, and later
        # ones when told that there are none.
        modern = slurm_version() >= (23, 11)
        (self.folder / "cgroup.conf").write_text(
            "CgroupPlugin=disabled\n" if modern else "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n"
        )
        key = self.folder / "munge.key"
        key.touch(mode=0o600)  # munged refuses a key that others can read
        key.write_bytes(secrets.token_bytes(1024))
        # slurmd sets CUDA_VISIBLE_DEVICES from the number at the end of a device file, and takes nothing but devices:
        # these are twins of /dev/null.
        devices = [self.folder / f"fakegpu{number}" for number in range(self.gpus)]
        for device in devices:
            if not device.is_char_device():
                try:
                    os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
                except PermissionError:
                    raise SlurmUnavailable("device files, for pretend GPUs, cannot be made here") from None
        (self.folder / "gres.conf").write_text("".join(f"NodeName={NODE} Name=gpu File={d}\n" for d in devices))

    def _slurm_conf(self) -> str:
        """The text of slurm.conf.

        What is not there for speed or to keep everything in the folder:
        - `SlurmctldHost` with an address, `NodeAddr`: the name of the machine need not resolve.
        - `AuthInfo`: our own munged, beside one that the machine may run.
        - `ProctrackType`, `TaskPlugin`, `JobAcctGatherType`: the kinds that do without cgroups. `OverMemoryKill` then
          ends jobs over their memory, checked each second.
        - `config_overrides`: believe the CPUs and memory declared here, even beyond those of the machine.
        - `DefMemPerCPU`: a job that does not ask for memory would otherwise get all of it and block the node.
        - `EnforcePartLimits`: sbatch refuses a job that can never run; otherwise it would wait for ever.
        - `MinJobAge`: squeue keeps showing finished jobs. The executor plugin asks it up to 180 s later and waits for
          ever for a job that squeue has forgotten. Zero would mean to keep them, but the plugin takes it as too short.
        - `ReturnToService`: a node that was down comes back when its slurmd does.
        - `KillWait`: a cancelled job has as long between SIGTERM and SIGKILL as elsewhere, as this machine may be slow.
        """
        host = os.uname().nodename.split(".")[0]
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 9 // 10 // 2**20
        gres = f" Gres=gpu:{self.gpus}" if self.gpus else ""
        settings = f"""\
            ClusterName={self.cluster_name}
            SlurmctldHost={host}(127.0.0.1)
            SlurmctldPort={self.port}
            SlurmUser=root
            SlurmdUser=root
            AuthType=auth/munge
            AuthInfo=socket={self.munge_socket}
            CredType=cred/munge
            StateSaveLocation={self.folder}/slurmctld-state
            SlurmdSpoolDir={self.folder}/slurmd-spool
            SlurmctldPidFile={self.folder}/slurmctld.pid
            SlurmdPidFile={self.folder}/slurmd.pid
            SlurmctldLogFile={self.folder}/slurmctld.log
            SlurmdLogFile={self.folder}/slurmd.log
            ProctrackType=proctrack/linuxproc
            TaskPlugin=task/none
            SwitchType=switch/none
            MpiDefault=none
            JobAcctGatherType=jobacct_gather/linux
            JobAcctGatherFrequency=task=1
            JobAcctGatherParams=OverMemoryKill
            AccountingStorageType=accounting_storage/none
            SelectType=select/cons_tres
            SelectTypeParameters=CR_CPU_Memory
            SchedulerType=sched/backfill
            SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
            EnforcePartLimits=ALL
            ReturnToService=2
            SlurmdParameters=config_overrides
            SlurmdTimeout=20
            KillWait=30
            MinJobAge=86400
            DefMemPerCPU={memory // self.cpus}
            GresTypes=gpu
            NodeName={NODE} NodeHostname={host} NodeAddr=127.0.0.1 Port={self.port + 1} CPUs={self.cpus} \
RealMemory={memory}{gres} State=UNKNOWN
            PartitionName=main Nodes={NODE} Default=YES MaxTime=INFINITE State=UP
            """
        if self.gpus:
            settings += f"PartitionName=gpu Nodes={NODE} MaxTime=INFINITE State=UP\n"
        return re.sub(r"^ +", "", settings, flags=re.MULTILINE)

    def _launch(self, program: str, *arguments: str, ready: Callable[[], bool]) -> None:
        """Run a daemon, which goes to the background by itself, unless it already runs, and wait until it is ready."""
        if not self.pid(program):
            (self.folder / f"{program}.pid").unlink(missing_ok=True)
            # Not a pipe: a daemon that keeps it open would hold us up.
            with (self.folder / f"{program}.out").open("w") as output:
                code = subprocess.call(
                    [find_program(program) or program, *arguments],
                    env=os.environ | self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            if code != 0:
                raise RuntimeError(f"{program} does not start:\n{self._last_words(program)}")
        begin = time.monotonic()
        while not (pid := self.pid(program)) or not ready():
            # The pid file may appear, and the node answer, somewhat later.
            if time.monotonic() - begin > (60 if pid else 5):
                raise RuntimeError(f"{program} does not come up:\n{self._last_words(program)}")
            time.sleep(0.05)

    def _end(self, program: str) -> None:
        """Ask a daemon to end, and kill it when it has not after five seconds."""
        pid = self.pid(program)
        if not pid:
            return
        send(signal.SIGTERM, pid)
        end = time.monotonic() + 5
        # The pid file does not tell: slurmd removes it some time before it ends.
        while self._runs(pid, program):
            if time.monotonic() > end:
                send(signal.SIGKILL, pid)
            time.sleep(0.05)
        (self.folder / f"{program}.pid").unlink(missing_ok=True)

    def _job_processes(self) -> Iterator[int]:
        """What is left of jobs: step daemons, which run in our folder, and what has a job's environment."""
        mark = f"SLURM_CLUSTER_NAME={self.cluster_name}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has just ended
                if (process / "exe").readlink().name.startswith("slurmstepd"):
                    ours = (process / "cwd").readlink() == self.folder
                else:
                    ours = mark in (process / "environ").read_bytes().split(b"\0")
                if ours:
                    yield int(process.name)

    def _ask(self, *command: str) -> str:
        """The output of a SLURM client, empty when it fails."""
        result = subprocess.run(
            command, env=os.environ | self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        return result.stdout if result.returncode == 0 else ""

    def _controller_answers(self) -> bool:
        return "is UP" in self._ask("scontrol", "ping")

    def _node_is_up(self) -> bool:
        state = self._ask("sinfo", "--noheader", "--partition=main", "--format=%t").strip()
        # A sign at the end, as in "idle*", means that the controller has not heard from the node.
        return re.fullmatch("idle|mix|alloc|comp|drain|drng|resv", state) is not None

    def _last_words(self, program: str) -> str:
        files = [self.folder / f"{program}.{kind}" for kind in ("out", "log")]
        text = "".join(file.read_text() for file in files if file.exists())
        return "\n".join(text.splitlines()[-20:])

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """One start or stop at a time. The lock goes with the process that holds it, however that one ends."""
        check_machine()
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def find_program(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", "") + os.pathsep + SYSTEM_PATH)


def send(signal_number: int, pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        os.kill(pid, signal_number)


def slurm_version() -> tuple[int, ...]:
    """Such as (22, 5)."""
    output = subprocess.run([find_program("slurmd"), "-V"], capture_output=True, text=True, check=True).stdout
    return tuple(int(number) for number in re.findall(r"\d+", output)[:2])


def check_machine() -> None:
    """Raise SlurmUnavailable where there is no point in trying."""
    if sys.platform != "linux":
        raise SlurmUnavailable("the test cluster runs on Linux only")
    if os.geteuid() != 0:
        raise SlurmUnavailable("only root can start and stop the test cluster")
    if SYSTEM_CONF.exists() and not SYSTEM_CONF.is_symlink():
        raise SlurmUnavailable(f"{SYSTEM_CONF} is a file: this machine has a SLURM of its own")


def install_packages() -> None:
    """Install what is missing of PACKAGES, or raise SlurmUnavailable."""
    missing = [package for program, package in PACKAGES.items() if not find_program(program)]
    if not missing:
        return
    if not find_program("apt-get"):
        raise SlurmUnavailable(f"not installed, and there is no apt-get: {', '.join(missing)}")
    install = ["install", "--no-install-recommends", *missing]
    with no_services():
        # The package lists may be absent or too old, so the second attempt renews them.
        if apt_get(*install):
            apt_get("update")
            if error := apt_get(*install):
                raise SlurmUnavailable(f"apt-get cannot install {', '.join(missing)}: {error}")


def apt_get(*arguments: str) -> str | None:
    """Run apt-get without questions; its last words when it fails."""
    result = subprocess.run(
        ["apt-get", "--yes", "--quiet", "--option=DPkg::Lock::Timeout=120", *arguments],
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive", "PATH": os.environ.get("PATH", "") + ":" + SYSTEM_PATH},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return "".join(result.stdout.splitlines()[-1:]) or "no message" if result.returncode != 0 else None


@contextlib.contextmanager
def no_services() -> Iterator[None]:
    """Keep packages from starting daemons of their own: Debian asks POLICY, where 101 means no."""
    ours = not POLICY.exists()
    if ours:
        POLICY.write_text("#!/bin/sh\nexit 101\n")
        POLICY.chmod(0o755)
    try:
        yield
    finally:
        if ours:
            POLICY.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["start", "stop", "status", "env"])
    parser.add_argument("--cpus", type=int, default=4, help="of the node, for start (default: %(default)s)")
    parser.add_argument("--gpus", type=int, default=0, help="pretend GPUs, for start (default: %(default)s)")
    arguments = parser.parse_args()
    cluster = LocalSlurm(cpus=arguments.cpus, gpus=arguments.gpus)
    if arguments.action in ("start", "stop"):
        try:
            cluster.start() if arguments.action == "start" else cluster.stop()
        except (SlurmUnavailable, RuntimeError) as error:
            sys.exit(f"local_slurm: {error}")
    elif arguments.action == "env":
        print(f"export SLURM_CONF={cluster.conf}")
    else:
        pids = {program: cluster.pid(program) for program in DAEMONS}
        for program, pid in pids.items():
            print(f"{program} {pid or 'is down'}")
        sys.exit(0 if all(pids.values()) else 3)


if __name__ == "__main__":
    main()
